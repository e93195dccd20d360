"""What a number of simulator calls is worth: the true loss, violation and Lagrangian regret of our policy and of textbook ones.

All in utilities, r, c_i ∈ [0, 1] and values in [0, H], evaluated exactly with the zoo's own P, which nothing that is measured sees:

    loss       V* − V_r(π)
    violation  max(0, max_i (b_i − V_{c_i}(π)))
    regret     V* − V_r(π) + λ*ᵀ(b − V_c(π)) ≥ 0,  λ* the exact prices: what is bought by missing a limit does not count as gained

Beside our own relaxed solve without a certificate stand, from as many calls or from the same samples:

    equal-lp, same-lp       the occupancy LP on the estimated table P̂, where unlucky samples leave it no policy with limits moved to
                            what P̂ can meet; its stationary policy
    equal-free, same-free   the unconstrained optimum of P̂ (model-based value iteration, as in MBQVI)

"equal" spreads the calls equally over all pairs; "same" uses exactly what our solve drew. With features P̂ of the same samples is the
regression Φ·W·P̂_C, negative entries cut off and rows scaled to one.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback import InputError, Method, Solution, solve
from saddleback.exact import best_policy, solve_by_columns
from saddleback.instances.zoo import make
from saddleback.problem.finite_model import Resolvent, follow
from saddleback.problem.policies import MixturePolicy, Policy
from saddleback.sampling.counted_buffer import CountedBuffer
from saddleback.simulators.table import Table

Array = NDArray[np.float64]
_FACTORED = 1000  # states up to which a chain is factored; sweeps are faster beyond
_MOVED = 1e-7  # of H: by how much more a limit is moved than P̂ says, so that rounding leaves the LP a policy


class Figures(NamedTuple):
    """Of one policy, in utilities."""

    loss: float
    violation: float
    regret: float


class Truth:
    """A table with its optimum and exact prices."""

    def __init__(self, table: Table) -> None:
        self.table, self.problem = table, table.problem()
        self.horizon, self.thresholds = self.problem.horizon, self.problem.thresholds
        exact = solve_by_columns(table)
        assert exact.status == "optimal"
        values = np.array([exact.value, *exact.constraint_values])
        self.best = float(self.problem.unit_values_of(values)[0])
        self.prices = exact.multipliers * np.abs(self.problem.scale[1:]) / np.abs(self.problem.scale[0])
        self.simulator = table.simulator()

    def values(self, policy: Policy | MixturePolicy) -> Array:
        """V_r, V_{c_1} … ``(1+m,)``."""
        if isinstance(policy, MixturePolicy):
            return np.asarray(policy.weights @ np.array([self.values(member) for member in policy.members]))
        table, S = self.table, self.table.num_states
        pi = policy.probabilities(np.arange(S))
        chain = Resolvent(follow(pi, table.P), table.gamma, factored=S <= _FACTORED)
        u = np.einsum("sa,sak->sk", pi, table.utilities().reshape(*pi.shape, -1))
        return np.asarray(table.rho @ chain.values(u))

    def figures(self, policy: Policy | MixturePolicy) -> Figures:
        """Of a policy."""
        V = self.values(policy)
        loss, missing = self.best - V[0], self.thresholds - V[1:]
        return Figures(float(loss), float(max(0.0, missing.max())), float(loss + self.prices @ missing))


@cache
def truth_of(name: str, **parameters: Any) -> Truth:
    """A problem of the zoo."""
    table = make(name, **parameters).table
    assert table is not None
    return Truth(table)


@cache
def slack_garnet(seed: int) -> Truth:
    """50 states, 4 actions, γ = .9; the limit is half of what the unconstrained optimum has, so it costs nothing."""
    instance = make("garnet", seed=seed)
    assert instance.table is not None
    limit = np.array([instance.known["unconstrained_c1"] / 2])
    truth = Truth(dataclasses.replace(instance.table, thresholds=limit))
    assert truth.prices == 0
    return truth


# ---- the rivals ------------------------------------------------------------------------------------------------------------


def equal_table(truth: Truth, calls: int, seed: int) -> Table:
    """P̂ of ``calls`` samples spread equally; what is left over goes to pairs drawn at random, who has none stays where it is."""
    table = truth.table
    S, A = table.reward.shape
    rng = np.random.default_rng(np.random.SeedSequence([seed, 16]))
    counts = np.full(S * A, calls // (S * A))
    counts[rng.permutation(S * A)[: calls % (S * A)]] += 1
    pairs = np.repeat(np.arange(S * A), counts)
    following = truth.simulator.sample(pairs // A, pairs % A, rng).next_states
    return estimated(table, frequencies(pairs, following, np.ones(len(pairs)), S, A))


def same_table(truth: Truth, found: Solution) -> Table:
    """P̂ of all samples that a solve drew, whichever of its buffers holds them."""
    table, parts = truth.table, found.prepared
    assert parts is not None
    S, A = table.reward.shape
    buffers = {id(b): b for b in (parts.solver_buffer, parts.evaluation_buffer) if b is not None}.values()
    rows, columns, counts = list[Any](), list[Any](), list[Any]()
    for buffer in buffers:
        assert isinstance(buffer, CountedBuffer)
        model = scipy.sparse.coo_array(buffer.empirical_model())
        known = np.ones(buffer.design.size, dtype=bool) if buffer.unsampled is None else ~buffer.unsampled
        kept = known[model.coords[0]]
        x = model.coords[0][kept]
        rows.append(np.asarray(buffer.design.states)[x] * A + np.asarray(buffer.design.actions)[x])
        columns.append(np.asarray(buffer.support)[model.coords[1][kept]])
        counts.append(model.data[kept] * buffer.counts[x])
    P = frequencies(np.concatenate(rows), np.concatenate(columns), np.concatenate(counts), S, A)
    design = parts.design
    if design.operator is None:
        return estimated(table, P)
    at_coreset = P[np.asarray(design.states) * A + np.asarray(design.actions)].toarray()
    pairs = np.arange(S * A)
    phi = parts.problem.required_features().at(pairs // A, pairs % A)
    dense = np.maximum(phi @ np.asarray(design.fit(at_coreset)), 0.0)
    return estimated(table, scipy.sparse.csr_array(dense / dense.sum(axis=1, keepdims=True)))


def frequencies(rows: Any, columns: Any, counts: Any, S: int, A: int) -> scipy.sparse.csr_array:
    """Rows that sum to one; a pair without samples stays where it is."""
    n = np.bincount(rows, counts, minlength=S * A)
    none = np.flatnonzero(n == 0)
    rows, columns = np.concatenate([rows, none]), np.concatenate([columns, none // A])
    shares = np.concatenate([counts, np.ones(len(none))]) / np.maximum(n, 1.0)[rows]
    return scipy.sparse.csr_array((shares, (rows, columns)), shape=(S * A, S))


def estimated(table: Table, P: scipy.sparse.csr_array) -> Table:
    """The table with P̂ in the place of P; ranges stay those of the truth."""
    P.sum_duplicates()
    return dataclasses.replace(table, P=P)


def lp_policy(table: Table) -> tuple[Policy, bool]:
    """The stationary policy of the occupancy LP on a table, and whether its limits could be met there.

    By columns, which is the same optimum in a fraction of the time. Where they cannot be met, all limits are moved by the same share
    of their ranges to what can.
    """
    answer = solve_by_columns(table)
    if answer.policy is not None:
        return answer.policy, True
    problem = table.problem()
    off = (-answer.unit_slater + _MOVED * problem.horizon) * np.abs(problem.scale[1:])
    sign = np.array([1.0 if sense == ">=" else -1.0 for sense in table.senses])
    answer = solve_by_columns(dataclasses.replace(table, thresholds=table.thresholds - sign * off))
    assert answer.policy is not None
    return answer.policy, False


def free_policy(table: Table) -> Policy:
    """The unconstrained optimum."""
    return best_policy(table, np.eye(1 + len(table.names))[0])[0]


# ---- one run -----------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The figures of each competitor from one seed, how many calls were left unspent or unused, and the seconds of our solve.

    A competitor that refuses the budget has none.
    """

    by_name: dict[str, Figures]
    idle: int
    seconds: float


def compare(truth: Truth, calls: int, seed: int, rivals: Iterable[str]) -> Outcome:
    """Our relaxed solve with ``calls`` simulator calls and no certificate, and the rivals named."""
    found, seconds = ours(truth, calls, seed)
    idle, by_name = calls, dict[str, Figures]()
    if found is not None:
        assert found.mixture is not None and found.prepared is not None
        by_name["ours"] = truth.figures(found.mixture)
        buffers = {id(b): b for b in (found.prepared.solver_buffer, found.prepared.evaluation_buffer) if b is not None}
        idle = calls - sum(_in_use(buffer) for buffer in buffers.values())
    tables = dict[str, Table]()
    for rival in rivals:
        samples, _, method = rival.partition("-")
        if samples == "same" and found is None:
            continue
        if samples not in tables:
            tables[samples] = (
                equal_table(truth, calls, seed) if found is None or samples == "equal" else same_table(truth, found)
            )
        policy = lp_policy(tables[samples])[0] if method == "lp" else free_policy(tables[samples])
        by_name[rival] = truth.figures(policy)
    return Outcome(by_name, idle, seconds)


def ours(truth: Truth, calls: int, seed: int) -> tuple[Solution | None, float]:
    """The solution, None where the budget is refused or nothing was found, and its CPU seconds."""
    began = time.process_time()
    how: Any = {"feasibility": "relaxed", "seed": seed, "method": Method(certificate=0)}
    try:
        found = solve(truth.problem, truth.simulator, samples=calls, **how)
    except InputError:
        return None, time.process_time() - began
    return (None if found.mixture is None else found), time.process_time() - began


def _in_use(buffer: Any) -> int:
    known = slice(None) if buffer.unsampled is None else ~buffer.unsampled
    return int(buffer.counts[known].sum())


@dataclasses.dataclass(frozen=True)
class Summary:
    """Over seeds: median loss, mean violation and mean regret of a competitor, in utilities, and how many answered."""

    loss: float
    violation: float
    regret: float
    answered: int


def summaries(outcomes: list[Outcome]) -> dict[str, Summary]:
    """One for each competitor that answered at least once."""
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.by_name)
    found = {name: np.array([o.by_name[name] for o in outcomes if name in o.by_name]) for name in names}
    return {
        name: Summary(float(np.median(f[:, 0])), float(f[:, 1].mean()), float(f[:, 2].mean()), len(f))
        for name, f in found.items()
    }


# ---- rows ----------------------------------------------------------------------------------------------------------------------

SLACK = "slack-garnet"
ZOO = ("wireless", "queue", "inventory", "garnet", "random-linear", "ward", "two-products")


class Row(NamedTuple):
    """A problem, the simulator calls of a solve, and the seeds 0, 1, … that are tried."""

    problem: str
    calls: int
    seeds: int

    @property
    def key(self) -> str:
        """Under which its figures are kept."""
        return f"{self.problem}, {self.calls} calls, seeds 0 to {self.seeds - 1}"


SLACK_ROWS = [Row(SLACK, 200 * each, 20) for each in (10, 100, 1000)]
ZOO_ROWS = [
    Row(name, calls, 10 if (name, calls) == ("two-products", 1_000_000) else 20)  # half a minute a solve
    for calls in (100_000, 1_000_000)
    for name in ZOO
]
QUICK_ROWS = [Row(SLACK, 2000, 5), Row("wireless", 20_000, 3), Row("random-linear", 20_000, 3)]
LARGE_ROW = Row("two-products", 3_000_000, 20)
ROWS = [*SLACK_ROWS, *ZOO_ROWS, *QUICK_ROWS]


def truth_for(row: Row, seed: int) -> Truth:
    """The problem of a row, which may be another for each seed."""
    return slack_garnet(seed) if row.problem == SLACK else truth_of(row.problem)


@cache
def measured(row: Row) -> tuple[list[Outcome], dict[str, Summary]]:
    """Every seed of a row, and the summaries of all."""
    rivals = ("equal-free", "same-free") if row.problem == SLACK else ("equal-lp", "same-lp")
    outcomes = [compare(truth_for(row, seed), row.calls, seed, rivals) for seed in range(row.seeds)]
    return outcomes, summaries(outcomes)
