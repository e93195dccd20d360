"""Which parts a solve is made of: the usual ones for a mode and a problem, or those that were chosen.

*Literal* follows the paper: LS-MDVI and LS-PE from zero, Frank-Wolfe, the same N for every pair. The *default* refines the
design, samples in proportion to its weights, solves by plug-in value iteration and evaluates by LSTD. Whoever wants an
a-priori guarantee asks for a grid of rewards, and gets MDVI, which has one.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from saddleback.designs.design import Designer
from saddleback.features import OneHot
from saddleback.method.oracles import Evaluator, InteractiveEvaluator, InteractiveSolver, Solver, met_needs
from saddleback.problem.cmdp import CMDP
from saddleback.runs.settings import Allocation, Method, Mode, Part

_USUAL = {  # (mode, tabular): solver, evaluator, design, allocation
    ("literal", True): ("tabular-mdvi", "tabular-pe", "full", "equal"),
    ("literal", False): ("ls-mdvi", "ls-pe", "frank-wolfe", "equal"),
    ("default", True): ("plug-in", "lstd", "full", "equal"),
    ("default", False): ("plug-in", "lstd", "exchange", "design"),
    ("guaranteed", True): ("tabular-mdvi", "lstd", "full", "equal"),
    ("guaranteed", False): ("ls-mdvi", "lstd", "exchange", "design"),
}


class Chosen(NamedTuple):
    """The problem as its oracles see it, the names of the parts, and the parts themselves."""

    problem: CMDP
    names: dict[str, str]
    solver: Solver | InteractiveSolver
    evaluator: Evaluator | InteractiveEvaluator
    designer: Designer


def parts_of(problem: CMDP, method: Method) -> Chosen:
    """The parts of ``method`` for ``problem``."""
    kind = "guaranteed" if method.mode == "default" and method.grid is not None else method.mode
    usual = _USUAL[kind, problem.features is None]
    solver_name, solver = _part("solver", method.solver, usual[0])
    if met_needs("solver", solver_name, solver, problem).every_pair and problem.features is not None:
        problem = dataclasses.replace(problem, features=None)
        usual = _USUAL[kind, True]
    evaluator_name, evaluator = _part("evaluator", method.evaluator, usual[1])
    met_needs("evaluator", evaluator_name, evaluator, problem)
    design_name, designer = _part("design", method.design, usual[2])
    if problem.features is None and problem.num_states is not None:
        # One-hot features let least-squares oracles run on tables too; tabular oracles do not look at them.
        problem = dataclasses.replace(problem, features=OneHot(problem.num_states, problem.num_actions))
    names = {"solver": solver_name, "evaluator": evaluator_name, "design": design_name}
    return Chosen(problem, names, solver, evaluator, designer)


def _part(kind: str, given: Any, usual: str) -> tuple[str, Any]:
    """(name, object) for a part given by name, with options, as an object, or not at all."""
    given = usual if given is None else given
    if isinstance(given, str):
        given = Part(given)
    return (given.name, given.make(kind)) if isinstance(given, Part) else (type(given).__name__, given)


def usual_allocation(mode: Mode, full: bool) -> Allocation:
    """How samples are shared out unless said otherwise."""
    return _USUAL[mode, full][3]  # type: ignore[return-value]
