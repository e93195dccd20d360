"""The parts of a solve: chosen before its samples are drawn, and wired to them once they are there.

*Literal* follows the paper: LS-MDVI and LS-PE from zero, Frank-Wolfe, the same N for every pair. The *default* refines the
design, samples in proportion to its weights, solves by plug-in value iteration and evaluates by LSTD. Whoever wants an
a-priori guarantee asks for a grid of rewards, and gets MDVI, which has one.

Everything after sampling is a pure function of :class:`Prepared`; asked under another problem it costs no simulator call.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design, Designer
from saddleback.errors import InputError, Remark, require
from saddleback.features import OneHot
from saddleback.method.framework import Oracle
from saddleback.method.oracles import (
    Evaluator,
    InteractiveEvaluator,
    InteractiveSolver,
    Interval,
    Remarking,
    Solver,
    met_needs,
)
from saddleback.method.solvers.plug_in import fixed_point
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import GreedyPolicy, Policy, as_table
from saddleback.problem.spaces import Array
from saddleback.problem.user_code import Guarded, guarded
from saddleback.runs.settings import Method, Part
from saddleback.sampling.buffer import Buffer
from saddleback.simulators.generative_model import derived_seed
from saddleback.simulators.seed_rounds import AGAIN
from saddleback.solving.ties import Ties, ties_of

# Finite problems up to this size keep policies as action tables, so that equal ones are merged.
_TABLE_STATES, _TABLE_PAIRS = 200_000, 1 << 27

USUAL_PARTS = {  # (mode, tabular): solver, evaluator, design, allocation
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

    def remarks(self) -> list[Remark]:
        """What the solver says of the problem."""
        solver = self.solver
        return [Remark("solver", r) for r in solver.remarks(self.problem)] if isinstance(solver, Remarking) else []


def parts_of(problem: CMDP, method: Method) -> Chosen:
    """The parts of ``method`` for ``problem``."""
    kind = "guaranteed" if method.mode == "default" and method.grid is not None else method.mode
    usual = USUAL_PARTS[kind, problem.features is None]
    solver_name, solver = _part("solver", method.solver, usual[0])
    if met_needs("solver", solver_name, solver, problem).every_pair and problem.features is not None:
        problem = dataclasses.replace(problem, features=None)
        usual = USUAL_PARTS[kind, True]
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


@dataclass(frozen=True)
class Prepared:
    """Everything after sampling: a pure function of (problem, buffers).

    ``hints`` are smaller buffers in memory that guide a certificate where the samples themselves are elsewhere.
    ``used_seeds`` is the one register of the seeds with which anything was proved about what these samples suggested, each with
    what was asked: whoever asks something else, under whatever problem, may ask because of an earlier proof. All that is made of
    the same samples shares it.
    """

    problem: CMDP
    design: Design
    solver_buffer: Buffer | None
    evaluation_buffer: Buffer
    solver: Solver
    evaluator: Evaluator
    oracle: Oracle
    samples: int
    names: dict[str, str]
    remarks: tuple[Remark, ...]
    resolution: int | None
    explored: int = 0
    hints: tuple[Buffer, ...] | None = None
    ties: Ties | None = None
    used_seeds: dict[int, str] = field(default_factory=dict, repr=False, compare=False)

    def fresh_seed(self, seed: int) -> int:
        """``seed``, or where it was used one that is derived from it and was not."""
        found, number = seed, AGAIN.start
        while found in self.used_seeds:
            found, number = derived_seed(seed, number), number + 1
        return found

    @contextmanager
    def proving(self, seed: int, *question: object) -> Iterator[None]:
        """Something is proved with this seed, which is entered once it is; one that has proved anything else is refused.

        The same question once more has the same answer from the same samples, and proves nothing new.
        """
        told, problem, design = hashlib.sha256(), self.problem, self.design
        signals = problem.utilities(design.states, design.actions)
        start = np.asarray(problem.start.states), problem.start.weights
        asked_of = (signals, problem.thresholds, problem.base, problem.scale, *start, problem.stand_ins)
        for part in (*asked_of, *question):
            told.update(np.asarray(part).tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
        asked, rule = told.hexdigest(), "must not have been used for a certificate of these samples before"
        require(self.used_seeds.get(seed, asked) == asked, "seed", rule, seed, "use another")
        yield
        self.used_seeds[seed] = asked

    def interval(self, policy: Policy, confidence: float) -> Interval:
        """The evaluator's measured limits for one policy."""
        return self.evaluator.interval(self.problem, self.evaluation_buffer, policy, confidence)

    def optimum(self, sigma: Array) -> float:
        """The best value at ρ of □_σ on the estimated model of the evaluation buffer: errs upwards. H where unknown."""
        problem = self.problem
        theta, converged = fixed_point(problem, self.evaluation_buffer, sigma[None], 1e-7, 20_000)
        if not converged[0]:
            return problem.horizon
        at_start = problem.required_features().maximum(problem.start.states, np.ascontiguousarray(theta[:, 0]))
        return min(float(problem.start.weights @ at_start), problem.horizon)

    def on(self, problem: CMDP) -> Prepared:
        """The same samples under another reward, other constraints or thresholds: no new simulator call.

        States, actions, features and discount must be the same; new signals must be known functions or arrays. What is
        observed must have been observed, as the same signal in the same place: its limit may be another.
        """
        mine, ours, theirs = self.problem, self.problem.required_features(), problem.features
        same = (problem.num_actions, problem.states, problem.gamma) == (mine.num_actions, mine.states, mine.gamma)
        rule = "must keep states, actions and discount to reuse samples"
        require(same, "problem", rule, problem.name, "solve afresh")
        held, wanted = mine.actions_allowed, problem.actions_allowed
        sampled = held is None or (wanted is not None and not np.any(wanted & ~held))
        rule = "must allow no action that was not allowed when the samples were drawn"
        require(sampled, "actions_allowed", rule, "others", "solve afresh")
        missing = self.evaluation_buffer.unsampled
        known = missing is None or not np.any(missing[np.asarray(problem.start.states) * mine.num_actions])
        require(known, "start", "must begin in states that were sampled, to reuse samples", "others", "solve afresh")
        if theirs is not None:
            rule = f"must be the {ours.dim} that the samples were drawn for"
            require(theirs.dim == ours.dim, "features", rule, theirs.dim, "leave them out, or solve afresh")
        if self.solver_buffer is None:
            raise InputError("reuse", "must not be asked of interactive oracles", self.names["solver"], "solve afresh")
        self._check_observed(problem)
        problem = dataclasses.replace(problem, features=ours, candidates=mine.candidates)
        ties = None if self.ties is None else ties_of(problem, self.evaluation_buffer)
        buffers = self.solver_buffer, self.evaluator, self.evaluation_buffer
        oracle = oracle_of(problem, self.solver, *buffers, self.resolution, ties)
        # A problem chosen after these samples were seen is not independent of them: no grid, no a-priori guarantee.
        return dataclasses.replace(self, problem=problem, oracle=oracle, samples=0, resolution=None, ties=ties)

    def _check_observed(self, problem: CMDP) -> None:
        """Refuse observed signals that the samples do not hold, or hold with values that the new range leaves out."""
        mine, seen = self.problem.signals, np.flatnonzero(problem.observed)
        if not seen.size:
            return
        rule = "must observe the signals that were observed when the samples were drawn, in the same order"
        remedy = "change limits only, give known functions, or solve afresh"
        require(len(mine) == len(problem.signals), "reuse", rule, f"{len(problem.signals)} signals", remedy)
        for i in seen:
            was, now = mine[i], problem.signals[i]
            require(was.values is None and was.name == now.name, "reuse", rule, now.name, remedy)
            rule_of_range = f"must have a range that holds [{was.low:g}, {was.high:g}], in which it was observed"
            held = now.low <= was.low and was.high <= now.high
            require(held, now.name, rule_of_range, f"[{now.low:g}, {now.high:g}]", remedy)


def canonical(problem: CMDP, policy: Policy) -> Policy:
    """Allowed actions only; and small finite problems keep tables: two θ's with the same actions are one policy."""
    policy = problem.permitted(guarded(policy, GuardedPolicy))
    S = problem.num_states
    listed = S is not None and S <= _TABLE_STATES and S * problem.num_actions <= _TABLE_PAIRS
    if S is not None and listed and isinstance(policy, GreedyPolicy):
        return as_table(policy, S)
    return policy


def oracle_of(
    problem: CMDP,
    solver: Solver,
    solver_buffer: Buffer,
    evaluator: Evaluator,
    buffer: Buffer,
    resolution: int | None,
    ties: Ties | None = None,
) -> Oracle:
    """O(σ) on two buffers, which may be one; ``ties`` are settled by a rule."""

    def solve(sigmas: Array) -> list[Policy]:
        found = [canonical(problem, policy) for policy in solver.solve(problem, solver_buffer, sigmas)]
        return found if ties is None else [ties.settle(p) for p in found]

    return Oracle(solve, lambda policy: evaluator.evaluate(problem, buffer, policy), resolution)


class GuardedPolicy(Guarded):
    """A user's :class:`saddleback.problem.policies.Policy`, whose actions must be actions."""

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.inner.num_actions)

    def probabilities(self, states: Any) -> Any:
        """π(·|s), ``(n, A)``."""
        return self._ask("probabilities", states)

    def act(self, states: Any, rng: np.random.Generator) -> NDArray[np.int64]:
        """One action per state."""
        found, A = np.asarray(self._ask("act", states, rng)), self.num_actions
        good = found.shape == (len(states),) and found.dtype.kind in "iu" and bool(np.all((found >= 0) & (found < A)))
        rule = f"must give one of the actions 0 to {A - 1} for each of {len(states)} states"
        name = type(self.inner).__name__
        require(good, f"policy {name}", rule, f"{found.dtype} {found.shape} {found.ravel()[:8]}", "mend its `act`")
        return found.astype(np.int64)

    def mean_features(self, features: Any, states: Any) -> Any:
        """Σ_a π(a|s) φ(s, a)."""
        return self._ask("mean_features", features, states)

    def key(self) -> bytes:
        """As the policy itself."""
        return bytes(self.inner.key())
