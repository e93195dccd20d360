"""From names and a sample budget to oracles: the part of a solve that every mode shares.

    problem, simulator → design → collect (one buffer for the solver, one for the evaluator) → O(σ) = (π_σ, V̂(π_σ))

The sample budget is the total of simulator calls over all buffers; it is split evenly over buffers and pairs.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from saddleback.buffer import Buffer, collect, cut
from saddleback.design import Design
from saddleback.designs import BY_NAME as DESIGNS
from saddleback.errors import InputError, require
from saddleback.evaluators import BY_NAME as EVALUATORS
from saddleback.features import OneHot
from saddleback.framework import Oracle
from saddleback.oracles import Evaluator, InteractiveSolver, Interval, Solver
from saddleback.policy import GreedyPolicy, Policy, as_table
from saddleback.problem import CMDP
from saddleback.simulator import GenerativeModel, Sampler, Stream, generator
from saddleback.solvers import BY_NAME as SOLVERS
from saddleback.solvers import TABULAR
from saddleback.spaces import Array
from saddleback.theory import (
    linear_evaluation_error,
    linear_solver_error,
    num_grid_points,
    tabular_evaluation_error,
    tabular_solver_error,
    with_rounding,
)

_TABLE_STATES = 200_000  # finite problems up to this size keep policies as action tables, so that equal ones are merged


class Designer(Protocol):
    """Whoever computes a design: an entry of :mod:`saddleback.designs`, or the user's own."""

    def design(self, problem: CMDP) -> Design:
        """The coreset and its weights."""
        ...


@dataclass(frozen=True)
class Choices:
    """Which parts a solve is made of, by name or as objects; None means the usual one for the problem."""

    solver: str | Solver | InteractiveSolver | None = None
    evaluator: str | Evaluator | None = None
    design: str | Designer | None = None
    buffers: int = 2
    batch_size: int = 4
    resolution: int | None = 1000


@dataclass(frozen=True)
class Prepared:
    """Everything after sampling: a pure function of (problem, buffers)."""

    problem: CMDP
    design: Design
    solver_buffer: Buffer | None
    evaluation_buffer: Buffer
    solver: Solver | InteractiveSolver
    evaluator: Evaluator
    oracle: Oracle
    samples: int
    names: dict[str, str]
    remarks: tuple[str, ...]
    resolution: int | None

    def interval(self, policy: Policy, confidence: float) -> Interval:
        """The evaluator's measured limits for one policy."""
        return self.evaluator.interval(self.problem, self.evaluation_buffer, policy, confidence)

    def a_priori_error(self, delta: float) -> float:
        """f = max(f_mdp, f_eva) with probability 1 − δ from explicit constants; infinite where nothing is proved.

        Proved are the paper's own pairs of oracles with buffers of their own, known rewards, rewards of the solver on a
        grid fixed beforehand and a design whose leverages were checked on every pair.
        """
        pair = (self.names["solver"], self.names["evaluator"])
        A, B, C = self.solver_buffer, self.evaluation_buffer, self.design
        proved = pair in (("ls-mdvi", "ls-pe"), ("tabular-mdvi", "tabular-pe")) and C.complete
        if A is None or A is B or self.resolution is None or not proved or np.any(self.problem.observed):
            return math.inf
        m, gamma = self.problem.num_constraints, self.problem.gamma
        n = num_grid_points(self.resolution, m)
        solver, evaluation = (A.num_batches, int(A.batch_sizes.min())), (B.num_batches, int(B.batch_sizes.min()))
        if pair[0] == "ls-mdvi":
            Gamma = min(C.lebesgue, math.sqrt(C.leverage_bound))
            shared: dict[str, Any] = {"gamma": gamma, "lebesgue": Gamma, "coreset_size": C.size, "delta": delta}
            f_mdp = linear_solver_error(*solver, num_problems=n, **shared)
            f_eva = linear_evaluation_error(*evaluation, num_problems=n * (1 + m), **shared)
        else:
            table: dict[str, Any] = {"gamma": gamma, "num_pairs": C.size, "delta": delta}
            f_mdp = tabular_solver_error(*solver, num_problems=n, **table)
            f_eva = tabular_evaluation_error(*evaluation, num_problems=n * (1 + m), **table)
        f_mdp = with_rounding(f_mdp, horizon=self.problem.horizon, resolution=self.resolution, num_constraints=m)
        return max(f_mdp, f_eva)


def prepare(
    problem: CMDP,
    model: GenerativeModel,
    samples: int,
    seed: int,
    choices: Choices,
) -> Prepared:
    """Choose the parts, compute the design, draw the samples, wire the oracles."""
    tabular = problem.features is None
    solver_name, solver = _part("solver", choices.solver, "tabular-mdvi" if tabular else "ls-mdvi", SOLVERS)
    if solver_name in TABULAR:
        tabular = True
        problem = dataclasses.replace(problem, features=None)
    evaluator_name, evaluator = _part("evaluator", choices.evaluator, "tabular-pe" if tabular else "ls-pe", EVALUATORS)
    design_name, designer = _part("design", choices.design, "full" if tabular else "frank-wolfe", DESIGNS)
    if problem.features is None and problem.num_states is not None:
        # One-hot features let least-squares oracles run on tables too; tabular oracles do not look at them.
        problem = dataclasses.replace(problem, features=OneHot(problem.num_states, problem.num_actions))
    design: Design = designer.design(problem)
    require(choices.buffers in (1, 2), "buffers", "must be 1 or 2", choices.buffers, "use 2: one buffer is a heuristic")
    names = {"solver": solver_name, "evaluator": evaluator_name, "design": design_name}
    remarks = list(solver.remarks(problem)) if hasattr(solver, "remarks") else []

    def batches(counts: Any) -> int:
        smallest = int(np.min(counts))
        return max(1, smallest // min(choices.batch_size, smallest))

    interactive = isinstance(solver, InteractiveSolver)
    if choices.buffers == 1:
        remarks.append(
            "one buffer serves solver and evaluator: evaluations are biased upwards on the data that chose the policy"
        )
    num_buffers = 2 if interactive else choices.buffers  # an interactive solver's half is a limit
    per_pair = samples // (num_buffers * design.size)
    require(
        per_pair >= 1,
        "samples",
        f"must be at least {num_buffers * design.size} ({num_buffers} buffer(s) of {design.size} pairs)",
        samples,
        "raise --samples, or use fewer features",
    )
    solver_buffer: Buffer | None = None
    drawn = 0
    if interactive:
        sampler = Sampler(model, seed, limit=samples - per_pair * design.size)
        solve = _interactive(problem, design, solver, sampler, choices.resolution)
        drawn = sampler.num_queries
    else:
        own, counts, T = design, np.full(design.size, per_pair), batches(per_pair)
        if hasattr(solver, "allocate"):  # GSS collects i.i.d. from the design instead of N per pair
            own, counts = solver.allocate(design, per_pair * design.size, generator(seed, Stream.SOLVER, 0, 1 << 30))
            T = 1
        drawn_samples = collect(model, problem, own, counts, seed=seed, stream=Stream.SOLVER)
        drawn = drawn_samples.total
        solver_buffer = cut(drawn_samples, problem, own, T)
        solve = _buffered(problem, solver_buffer, solver)
    if choices.buffers == 1 and solver_buffer is not None and not hasattr(solver, "allocate"):
        evaluation_buffer = solver_buffer
    else:
        more = collect(model, problem, design, per_pair, seed=seed, stream=Stream.EVALUATION)
        drawn += more.total
        evaluation_buffer = cut(more, problem, design, batches(per_pair))
    oracle = Oracle(solve, lambda policy: evaluator.evaluate(problem, evaluation_buffer, policy), choices.resolution)
    return Prepared(
        problem,
        design,
        solver_buffer,
        evaluation_buffer,
        solver,
        evaluator,
        oracle,
        drawn,
        names,
        tuple(remarks),
        choices.resolution,
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


def _canonical(problem: CMDP, policy: Policy) -> Policy:
    """Small finite problems keep tables: two θ's with the same actions are one policy."""
    S = problem.num_states
    if S is not None and S <= _TABLE_STATES and isinstance(policy, GreedyPolicy) and problem.candidates is None:
        return as_table(policy, S)
    return policy


def _buffered(problem: CMDP, buffer: Buffer, solver: Solver) -> Callable[[Array], Policy]:
    return lambda sigma: _canonical(problem, solver.solve(problem, buffer, sigma[None])[0])


def _interactive(
    problem: CMDP, design: Design, solver: InteractiveSolver, sampler: Sampler, resolution: int | None
) -> Callable[[Array], Policy]:
    """Solve for every point of the grid from one run of the sampler, before the dual asks for any of them."""
    if resolution is None or (resolution + 1) ** problem.num_constraints > 2000:
        raise InputError(
            "resolution",
            "must leave at most 2000 grid points for an interactive solver, which solves them all at once",
            resolution,
            "use a coarser grid, such as --resolution 20",
        )
    m = problem.num_constraints
    grid = np.array([p for p in itertools.product(range(resolution + 1), repeat=m) if sum(p) <= resolution])
    mixing = np.column_stack([resolution - grid.sum(axis=1), grid]) / resolution
    policies = solver.solve_interactively(problem, design, sampler, mixing)
    by_point = {s.tobytes(): _canonical(problem, p) for s, p in zip(mixing, policies, strict=True)}
    return lambda sigma: by_point[sigma.tobytes()]
