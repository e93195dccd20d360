"""Which parts a solve is made of: names or objects, and the usual ones for a mode and a problem.

*Literal* follows the paper: LS-MDVI and LS-PE from zero, Frank-Wolfe, the same N for every pair. The *default* refines the
design, samples in proportion to its weights, solves by plug-in value iteration and evaluates by LSTD. A grid of rewards is
asked for by who wants an a-priori guarantee, and MDVI has one.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from saddleback.designs import BY_NAME as DESIGNS
from saddleback.designs.design import Designer
from saddleback.errors import InputError, require
from saddleback.features import OneHot
from saddleback.method.evaluators import BY_NAME as EVALUATORS
from saddleback.method.oracles import Evaluator, InteractiveSolver, Solver
from saddleback.method.solvers import BY_NAME as SOLVERS
from saddleback.method.solvers import TABULAR
from saddleback.problem.cmdp import CMDP

Mode = Literal["default", "literal"]
Allocation = Literal["equal", "design"]

_USUAL = {  # (mode, tabular): solver, evaluator, design, allocation
    ("literal", True): ("tabular-mdvi", "tabular-pe", "full", "equal"),
    ("literal", False): ("ls-mdvi", "ls-pe", "frank-wolfe", "equal"),
    ("default", True): ("plug-in", "lstd", "full", "equal"),
    ("default", False): ("plug-in", "lstd", "exchange", "design"),
    ("guaranteed", True): ("tabular-mdvi", "lstd", "full", "equal"),
    ("guaranteed", False): ("ls-mdvi", "lstd", "exchange", "design"),
}


@dataclass(frozen=True)
class Choices:
    """Which parts a solve is made of, by name or as objects; None means the usual one for the mode and the problem.

    ``batch_size`` is M; ``resolution`` the grid of the solver's rewards (None: no grid).
    """

    solver: str | Solver | InteractiveSolver | None = None
    evaluator: str | Evaluator | None = None
    design: str | Designer | None = None
    buffers: int = 2
    batch_size: int | None = None
    resolution: int | None = None
    allocation: Allocation | None = None
    mode: Mode = "default"


def parts_of(problem: CMDP, choices: Choices) -> tuple[CMDP, dict[str, str], Any, Evaluator, Designer]:
    """The problem as its oracles see it, the names, and the oracles themselves."""
    require(
        choices.mode in ("default", "literal"), "mode", "must be default or literal", repr(choices.mode), "pick one"
    )
    require(
        choices.resolution is None or choices.resolution >= 1,
        "resolution",
        "must be at least 1",
        choices.resolution,
        "leave it out for no grid",
    )
    require(
        choices.allocation in (None, "equal", "design"),
        "allocation",
        "must be equal or design",
        repr(choices.allocation),
        "leave it out for the usual one",
    )
    require(
        choices.batch_size is None or choices.batch_size >= 1,
        "batch_size",
        "must be at least 1",
        choices.batch_size,
        "use 4",
    )
    require(choices.buffers in (1, 2), "buffers", "must be 1 or 2", choices.buffers, "use 2: one buffer is a heuristic")
    # A grid is asked for by who wants an a-priori guarantee, and MDVI has one.
    kind = "guaranteed" if choices.mode == "default" and choices.resolution is not None else choices.mode
    usual = _USUAL[kind, problem.features is None]
    solver_name, solver = _part("solver", choices.solver, usual[0], SOLVERS)
    if solver_name in TABULAR and problem.features is not None:
        problem = dataclasses.replace(problem, features=None)
        usual = _USUAL[kind, True]
    evaluator_name, evaluator = _part("evaluator", choices.evaluator, usual[1], EVALUATORS)
    design_name, designer = _part("design", choices.design, usual[2], DESIGNS)
    if problem.features is None and problem.num_states is not None:
        # One-hot features let least-squares oracles run on tables too; tabular oracles do not look at them.
        problem = dataclasses.replace(problem, features=OneHot(problem.num_states, problem.num_actions))
    return (
        problem,
        {"solver": solver_name, "evaluator": evaluator_name, "design": design_name},
        solver,
        evaluator,
        designer,
    )


def _part(kind: str, given: Any, usual: str, by_name: dict[str, Any]) -> tuple[str, Any]:
    """(name, object) for a part given by name, as an object, or not at all."""
    if given is None:
        given = usual
    if not isinstance(given, str):
        return type(given).__name__, given
    if given not in by_name:
        raise InputError(kind, f"must be one of {', '.join(sorted(by_name))}", repr(given), "choose one of them")
    return given, by_name[given]()


def usual_allocation(mode: Mode, full: bool) -> Allocation:
    """How samples are shared out unless said otherwise."""
    return _USUAL[mode, full][3]  # type: ignore[return-value]
