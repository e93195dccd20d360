"""An upper bound on max_π V_□^π(ρ) for finite problems, every pair sampled afresh. P need not be linear.

**Optimism on the fresh samples themselves.** With the limits U of :class:`~saddleback.certificates.values.intervals.Bets`,

    T V = min{M, max_a(□ + γU(V))},        M(s) the most that anybody can still have from s (H where nothing is declared),

is monotone, and T(V + k) ≤ T V + γk for k ≥ 0. U needs no guess of how far V* varies: its second term, the largest V of the states
that may follow less 1/g, is a limit without any probability where the stake g is too high for the betting argument. So
T V* ≥ V* on an event about the fixed V*, every V with V ≥ T V lies above V*, and for *every* V, also one computed from the
same samples,

    max_π V_□^π(ρ) ≤ V(ρ) + H·max_s [T V − V]₊,

with V near the fixed point of T.

**One event a state.** π* is one fixed policy: T V* ≥ □ + γU(V*) at (s, π*(s)) ≥ V*(s) needs the event at the S pairs
(s, π*(s)) only, whichever they are, so each has log(S/δ).

**Observed rewards** are one variable with the next state, O + γV(s'): the same argument, with the same S events (:mod:`.joint`).

**Allocation.** The bound exceeds the truth by about Σ_x μ(x) γ w_x, w_x the width at pair x and μ the visits of the
optimistic policy. Before the fresh samples are drawn their numbers n_x are moved towards n_x ∝ μ(x)·(−n_x ∂w_x/∂n_x), the
condition for the least sum, on the estimated model of the earlier samples; a pair left with few samples becomes tempting to
the optimistic policy, is visited, and gets more. The stakes g_x follow from the earlier samples too: for the spread of V at
the next states of x, and no higher than the distance from its mean to the largest V that may follow allows.

**Pairs without samples.** Where earlier samples have not reached a state, no fresh ones are drawn there, and all that is known is
0 ≤ V* ≤ M: its □ counts as 1, its V is M, and T V ≤ V holds there by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.assumptions import bounded
from saddleback.certificates.bounds.bound import Bound, BoundPlan, ExpectedRewards, at_start
from saddleback.certificates.bounds.joint import Expectation, JointLimits, KnownLimits, Limits
from saddleback.certificates.guide import Guide
from saddleback.method.evaluators.lstd import EmpiricalChain
from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import declares, value_limits
from saddleback.problem.numerics import PLAN_DIGITS, first_largest, on_grid
from saddleback.problem.policies import TabularPolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, counted

KIND = "all pairs"
_SWEEPS, _FAR_SWEEPS = 20_000, 2_000
_FAR = (
    0.999  # discounts above this one: sweeps by the horizon would not end, and a shift of all states is taken at once
)
_ROUNDS = 12
_ALLOCATION_STEPS, _DRAFT_STEPS = 16, 4
_FLOOR = 0.15  # share of the samples that every pair gets alike
_ROUGHLY = 1e-4  # of H: accuracy of value iteration where only the plan depends on it,
_OF_A_WIDTH = 0.01  # and no more than that of a width, which is what is to be seen


@dataclass(frozen=True)
class TabularPlan(BoundPlan):
    """The stake of each pair ``(SA,)``."""

    stakes: Array

    def prove(self, problem: CMDP, fresh: Buffer, delta: float) -> Bound:
        """The bound from a fresh buffer over all pairs."""
        fresh.tabular_shape(problem)
        means = _with_unsampled(fresh, fresh.utilities(problem) @ self.sigma, 1.0)
        kind = JointLimits if np.any(problem.observed) else KnownLimits
        limits: Limits = kind(problem, fresh, self.sigma, self.stakes, delta)
        plain = _value_iteration(problem, fresh, means, ceiling := most_of(problem, self.sigma))
        V = _optimistic(problem, fresh, means, limits, plain, ceiling)
        bound, estimate = (at_start(problem, x[problem.start.states]) for x in (V, plain))
        arrays = self._arrays(problem, fresh, limits, V)
        return Bound(self.sigma, bound, estimate, KIND, delta, fresh.num_samples, bounded(problem), arrays)

    def _arrays(self, problem: CMDP, fresh: Buffer, limits: Limits, optimistic: Array) -> dict[str, Array]:
        """What the bound can be computed again from: the samples as counts, the stakes, and a function above V*."""
        samples, start = limits.arrays(), np.zeros(len(optimistic))
        np.add.at(start, problem.start.states, problem.start.weights)
        all_lengths = np.diff(samples.pop("first"))
        lengths = _with_unsampled(fresh, all_lengths, 0)
        kept = np.repeat(lengths > 0, all_lengths)
        return {
            **{name: x[kept] for name, x in samples.items()},
            "first": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            "signals": fresh.utilities(problem),
            "noise": fresh.signal_deviations(problem),
            "stakes": self.stakes,
            "optimistic": optimistic,
            "start": start,
            **_declared(problem, self.sigma),
        }


def _declared(problem: CMDP, sigma: Array) -> dict[str, Array]:
    """What the bound rests on besides the samples, where it was declared."""
    out = {}
    if not np.all((ceiling := most_of(problem, sigma)) == problem.horizon):
        out["ceiling"] = ceiling
    if problem.successors is not None:
        out["followers"] = problem.successors.indices.astype(np.int64)
        out["followers_first"] = problem.successors.indptr.astype(np.int64)
    return out


class AllPairs:
    """Every pair of a finite problem is sampled afresh; see the module's first lines."""

    def plan(
        self, guide: Guide, sigma: Array, samples: int, delta: float, *, draft: bool = False
    ) -> TabularPlan | None:
        """Allocation and stakes from an earlier buffer over all pairs; None where that is a coreset."""
        if guide.design.operator is not None:
            return None
        problem, earlier = guide.problem, guide.earlier[-1]
        S, A = earlier.tabular_shape(problem)
        H, gamma, rewards = problem.horizon, problem.gamma, ExpectedRewards.of(problem, earlier)
        expected = Expectation(problem, earlier, *rewards, sigma, delta)
        box = _with_unsampled(earlier, rewards.means @ sigma, 1.0)
        plain = _value_iteration(problem, earlier, box, ceiling := most_of(problem, sigma), accuracy=_ROUGHLY)
        n = equal = _equal(earlier, samples)
        near = min(_ROUGHLY, _OF_A_WIDTH * float(np.median(expected.width(plain, n).width)))
        plain = V = _value_iteration(problem, earlier, box, ceiling, plain, near)
        base = at_start(problem, plain[problem.start.states])
        best, visits = (math.inf, equal), np.zeros(S * A)
        for _ in range(_DRAFT_STEPS if draft else _ALLOCATION_STEPS):
            width, fall, _ = expected.width(V, n)
            w = _with_unsampled(earlier, width, 0.0)
            V = _value_iteration(problem, earlier, box + w, ceiling, V, near)
            excess = at_start(problem, V[problem.start.states]) - base
            if excess < best[0] - near * 1e-3 * H:  # by more than rounding errors
                best = (excess, n)
            Q = (box + w + gamma * earlier.average(V[earlier.support])).reshape(S, A)
            chain = EmpiricalChain(problem, earlier, TabularPolicy.deterministic(first_largest(Q, axis=1), A))
            visits = 0.6 * visits + 0.4 * chain.visits()
            slope = _with_unsampled(earlier, visits * fall, 0.0)
            if slope.sum() == 0:  # γ = 0 and known rewards: there is nothing to learn
                break
            n = np.sqrt(n * ((1 - _FLOOR) * samples * slope / slope.sum() + _FLOOR * equal))
            n *= samples / _with_unsampled(earlier, n, 0.0).sum()
        n = on_grid(_with_unsampled(earlier, best[1], 0.0), PLAN_DIGITS)
        counts = np.maximum(1, (n * min(1.0, samples / n.sum())).astype(np.int64))
        some, counts = counts, _with_unsampled(earlier, counts, 0)
        width, _, stakes = expected.width(plain, some)
        above = _value_iteration(problem, earlier, box + _with_unsampled(earlier, width, 0.0), ceiling, plain, near)
        excess = max(0.0, at_start(problem, above[problem.start.states]) - base)
        return TabularPlan(sigma, counts, base, excess, stakes)


def most_of(problem: CMDP, sigma: Array) -> Array:
    """M ``(S,)``: what no policy exceeds from each state, in □_σ."""
    if not declares(problem):
        return np.full(problem.num_states or 0, problem.horizon)
    return np.asarray(value_limits(problem, np.arange(problem.num_states or 0))[1] @ sigma)


def _optimistic(problem: CMDP, fresh: Buffer, box: Array, limits: Limits, V: Array, ceiling: Array) -> Array:
    """A function above V*: near the fixed point of T, then raised to where V ≥ T V."""
    H = problem.horizon
    for _ in range(_ROUNDS):  # the confidence as a bonus, held while V settles, then taken at the new V
        bonus = _with_unsampled(fresh, limits.upper(V) - limits.mean(V), 0.0)
        previous, V = V, _value_iteration(problem, fresh, box + bonus, ceiling, V)
        if np.abs(V - previous).max() <= 1e-5 * H:
            break
    Q = _with_unsampled(fresh, limits.upper(V), H)
    excess = np.minimum(_best(problem, Q), ceiling) - V
    return np.minimum(V + H * max(0.0, float(excess.max())), ceiling)


def _with_unsampled(buffer: Buffer, x: NDArray[Any], there: float) -> NDArray[Any]:
    """``x`` ``(SA,)`` with ``there`` at the pairs that have no samples; of terminal states the ceiling says it all."""
    none = _without_samples(buffer)
    return x if none is None else np.where(none, np.asarray(there, dtype=x.dtype), x)


def _without_samples(buffer: Buffer) -> NDArray[np.bool_] | None:
    masks = [mask for mask in (buffer.unsampled, buffer.certain) if mask is not None]
    return np.any(masks, axis=0) if masks else None


def _equal(buffer: Buffer, samples: int) -> Array:
    """As many samples for every pair that may have some; the others have a number too, which is not used."""
    none = _without_samples(buffer)
    pairs = buffer.design.size - (0 if none is None else int(none.sum()))
    return np.full(buffer.design.size, samples / pairs)


def _best(problem: CMDP, Q: Array) -> Array:
    return Q.reshape(-1, problem.num_actions).max(axis=1)


def _value_iteration(
    problem: CMDP, buffer: Buffer, reward: Array, ceiling: Array, V: Array | None = None, accuracy: float = 1e-7
) -> Array:
    """The fixed point of min(M, max_a(reward + γP̂V)) over all states, ``(S,)``, up to ``accuracy``·H."""
    gamma, H, P, support = problem.gamma, problem.horizon, counted(buffer).empirical_model(), buffer.support
    V = np.minimum(_best(problem, reward) * H, ceiling) if V is None else V
    for _ in range(_SWEEPS if gamma <= _FAR else _FAR_SWEEPS):
        new = np.minimum(_best(problem, reward + gamma * (P @ V[support])), ceiling)
        change, V = new - V, new
        least, most = float(change.min()), float(change.max())
        if gamma * max(-least, most) <= accuracy:
            break
        if (
            gamma > _FAR and gamma * (most - least) <= accuracy
        ):  # T(V + k) = T V + γk: what is left is the same everywhere
            return np.clip(V + gamma * H * (least + most) / 2, 0.0, ceiling)
    return V
