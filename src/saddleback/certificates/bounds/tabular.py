"""An upper bound on max_π V_□^π(ρ) for finite problems, every pair sampled afresh. P need not be linear.

**Frozen function.** For any V fixed before the samples, with upper and lower limits U(V) ≥ PV ≥ L(V) at every pair,

    V* ≤ V + H·max_s [max_a(□ + γU(V)) − V]₊,        V* ≥ V − H·max_s [V − max_a(□ + γL(V))]₊        in every state.

V comes from optimistic value iteration on earlier samples, V = max_a(□ + γP̂V + c·w), where w is the width that the fresh
limits are expected to have and c = 1.5 leaves room for the noise of both samples.

**Optimism on the fresh samples themselves.** The limits U of :class:`Bets` are monotone in V, so
T V = max_a(□ + γU(V)) is a monotone γ-contraction, and T V* ≥ V* on an event that is about the fixed V* alone. Its fixed
point lies above V*, and so does every V with V ≥ T V; as T(V + k) = T V + γk, for *every* V at once, also one computed from
the same samples,

    max_π V_□^π(ρ) ≤ V(ρ) + H·max_{s,a} [□ + γU(V) − V]₊,

with V near the fixed point. This is about half as wide, but the stakes behind U must stay below 1/span(V*). A span D is
guessed beforehand; the frozen function then shows whether span(V*) ≤ D, and only then is this bound used. Three events,
log(3SA/δ) each; the smaller bound counts.

**Allocation.** The bound exceeds the truth by about Σ_x μ(x) γ w_x, w_x the width at pair x and μ the visits of the
optimistic policy. Before the fresh samples are drawn their numbers n_x are moved towards n_x ∝ μ(x)·(−n_x ∂w_x/∂n_x), the
condition for the least sum, on the estimated model of the earlier samples; a pair left with few samples becomes tempting to
the optimistic policy, is visited, and gets more.

**Pairs without samples.** Where earlier samples have not reached a state, no fresh ones are drawn there, and all that is known is
0 ≤ V* ≤ H: its □ counts as 1, its V is H, and T V ≤ V holds there by itself. Then D = H, which needs no proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.bounds.bound import Bound, BoundPlan, ExpectedRewards, at_start
from saddleback.certificates.guide import Guide
from saddleback.certificates.values.intervals import Bets, expected_width, stakes
from saddleback.method.evaluators.lstd import EmpiricalChain
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import PLAN_DIGITS, TIE, first_largest, on_grid
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
_OPTIMISM = 1.5  # c
_ABOVE = 0.8  # of the δ for observed rewards; those below only serve the span
_ROUGHLY = 1e-4  # of H: accuracy of value iteration where only the plan depends on it


@dataclass(frozen=True)
class TabularPlan(BoundPlan):
    """The frozen V ``(S,)``, its spread at each pair ``(SA,)``, the guessed span D of V*, and what rewards are expected."""

    frozen: Array
    spread: Array
    span: float
    rewards: ExpectedRewards

    def prove(self, problem: CMDP, fresh: Buffer, delta: float) -> Bound:
        """The bound from a fresh buffer over all pairs."""
        S, A = fresh.tabular_shape(problem)
        share = delta / 2 if np.any(problem.observed) else delta  # the other half is for the rewards
        goal, H, gamma = math.log(3 * S * A / share), problem.horizon, problem.gamma
        means = fresh.utilities(problem) @ self.sigma
        w_below, w_above, rare = self.rewards.limits(problem, fresh, self.sigma, delta / 2, _ABOVE)
        means, w_above = _with_unsampled(fresh, means, 1.0), _with_unsampled(fresh, w_above, 0.0)
        P, n, frozen, support = counted(fresh).empirical_model(), fresh.counts, self.frozen, fresh.support
        wide = Bets(P, n, stakes(self.spread, n, goal, float(np.ptp(frozen))), goal)
        above = (
            _best(problem, _with_unsampled(fresh, means + w_above + gamma * wide.upper(frozen[support]), H)) - frozen
        )
        lower = _with_unsampled(fresh, means - w_below + gamma * wide.lower(frozen[support]), 0.0)
        below = frozen - _best(problem, lower)
        up, down = H * max(0.0, float(above.max())), H * max(0.0, float(below.max()))
        span = min(H, float(frozen.max()) + up) - max(0.0, float(frozen.min()) - down)
        bounds = [at_start(problem, frozen[problem.start.states]) + up, H]
        plain = V = _value_iteration(problem, fresh, means)
        if span <= self.span:
            narrow = Bets(P, n, stakes(self.spread, n, goal, self.span), goal)
            V = _optimistic(problem, fresh, means + w_above, narrow, plain)
            bounds.append(at_start(problem, V[problem.start.states]))
        estimate = at_start(problem, plain[problem.start.states])
        arrays = self._arrays(problem, fresh, V)
        arrays |= {"rare": rare.astype(np.int64)} if np.any(problem.observed) else {}
        return Bound(self.sigma, min(bounds), estimate, KIND, delta, fresh.num_samples, arrays=arrays)

    def _arrays(self, problem: CMDP, fresh: Buffer, optimistic: Array) -> dict[str, Array]:
        """What the bound can be computed again from: the samples as counts, what was frozen, and a function above V*."""
        P, start = counted(fresh).empirical_model(), np.zeros(len(self.frozen))
        np.add.at(start, problem.start.states, problem.start.weights)
        lengths = _with_unsampled(fresh, np.diff(P.indptr), 0)
        kept = np.repeat(lengths > 0, np.diff(P.indptr))
        return {
            "counts": np.rint(P.data * np.repeat(fresh.counts, np.diff(P.indptr))).astype(np.int64)[kept],
            "next_states": np.asarray(fresh.support)[P.indices].astype(np.int64)[kept],
            "first": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            "signals": fresh.utilities(problem),
            "noise": fresh.signal_deviations(problem),
            "frozen": self.frozen,
            "spread": self.spread,
            "span": np.array(self.span),
            "optimistic": optimistic,
            "start": start,
        }


class AllPairs:
    """Every pair of a finite problem is sampled afresh; see the module's first lines."""

    def plan(
        self, guide: Guide, sigma: Array, samples: int, delta: float, *, draft: bool = False
    ) -> TabularPlan | None:
        """Allocation, frozen function and stakes from an earlier buffer over all pairs; None where that is a coreset."""
        if guide.design.operator is not None:
            return None
        problem, earlier = guide.problem, guide.earlier[-1]
        S, A = earlier.tabular_shape(problem)
        goal, H, gamma = math.log(3 * S * A / delta), problem.horizon, problem.gamma
        rewards = ExpectedRewards.of(problem, earlier)
        box = _with_unsampled(earlier, rewards.means @ sigma, 1.0)
        plain = V = _value_iteration(problem, earlier, box, accuracy=_ROUGHLY)
        base = at_start(problem, plain[problem.start.states])
        n = equal = _equal(earlier, samples)
        best, excess, visits = (math.inf, equal), 0.0, np.zeros(S * A)
        for _ in range(_DRAFT_STEPS if draft else _ALLOCATION_STEPS):
            spread, D = _spread(earlier, V), min(H, float(np.ptp(plain)) + 2 * excess)
            w_box = rewards.widths(problem, sigma, n, delta / 2)
            w = _with_unsampled(earlier, gamma * expected_width(spread, n, goal, D) + w_box, 0.0)
            V = _value_iteration(problem, earlier, box + w, V, _ROUGHLY)
            excess = at_start(problem, V[problem.start.states]) - base
            if excess < best[0] - _ROUGHLY * 1e-3 * H:  # by more than rounding errors
                best = (excess, n)
            Q = (box + w + gamma * earlier.average(V[earlier.support])).reshape(S, A)
            chain = EmpiricalChain(problem, earlier, TabularPolicy.deterministic(first_largest(Q, axis=1), A))
            visits = 0.6 * visits + 0.4 * chain.visits()
            fall = gamma * (spread * np.sqrt(goal / (2 * n)) + D * goal / n) + w_box / 2  # −n ∂w/∂n, about
            slope = _with_unsampled(earlier, visits * fall, 0.0)
            if slope.sum() == 0:  # γ = 0 and known rewards: there is nothing to learn
                break
            n = np.sqrt(n * ((1 - _FLOOR) * samples * slope / slope.sum() + _FLOOR * equal))
            n *= samples / _with_unsampled(earlier, n, 0.0).sum()
        n = on_grid(_with_unsampled(earlier, best[1], 0.0), PLAN_DIGITS)
        counts = np.maximum(1, (n * min(1.0, samples / n.sum())).astype(np.int64))
        counts = _with_unsampled(earlier, counts, 0)
        return _frozen(problem, earlier, rewards, sigma, counts, delta, plain)


def _frozen(
    problem: CMDP,
    earlier: Buffer,
    rewards: ExpectedRewards,
    sigma: Array,
    counts: NDArray[np.int64],
    delta: float,
    plain: Array,
) -> TabularPlan:
    """The function to be tested on the fresh samples, the span they are expected to show of V*, and the likely excess."""
    some = np.maximum(1, counts)
    box, w_box = rewards.means @ sigma, rewards.widths(problem, sigma, some, delta / 2)
    box, w_box = _with_unsampled(earlier, box, 1.0), _with_unsampled(earlier, w_box, 0.0)
    goal = math.log(3 * len(box) / delta)
    gamma, H, A, V = problem.gamma, problem.horizon, problem.num_actions, plain
    for _ in range(_ROUNDS // 2):
        spread = _spread(earlier, V)
        w = gamma * expected_width(spread, some, goal, min(H, float(np.ptp(V)))) + w_box
        w = _with_unsampled(earlier, w, 0.0)
        V = _value_iteration(problem, earlier, box + _OPTIMISM * w, V)
        if np.ptp(V) <= TIE * H:  # at its ceiling everywhere: another round would take that for certainty
            break
    greedy = first_largest((box + gamma * earlier.average(V[earlier.support])).reshape(-1, A), axis=1)
    widest = float(w.reshape(-1, A)[np.arange(len(greedy)), greedy].max())
    span = min(H, 1.2 * (float(np.ptp(V)) + (1 + _OPTIMISM) * H * widest)) if earlier.unsampled is None else H
    w = _with_unsampled(earlier, expected_width(_spread(earlier, plain), some, goal, span), 0.0)
    narrow = box + w_box + gamma * w
    likely = [_value_iteration(problem, earlier, narrow, plain, _ROUGHLY) - plain, 1.1 * (V - plain)]
    excess = max(0.0, min(at_start(problem, above[problem.start.states]) for above in likely))
    estimate = at_start(problem, plain[problem.start.states])
    return TabularPlan(sigma, counts, estimate, excess, V, spread, span, rewards)


def _optimistic(problem: CMDP, fresh: Buffer, box: Array, bets: Bets, V: Array) -> Array:
    """A function above V*: near the fixed point of max_a(□ + γU(V)), then raised to where V ≥ T V."""
    gamma, H, support = problem.gamma, problem.horizon, fresh.support
    for _ in range(_ROUNDS):  # the confidence as a bonus, held while V settles, then taken at the new V
        bonus = _with_unsampled(fresh, gamma * (bets.upper(V[support]) - fresh.average(V[support])), 0.0)
        previous, V = V, _value_iteration(problem, fresh, box + bonus, V)
        if np.abs(V - previous).max() <= 1e-5 * H:
            break
    excess = _best(problem, _with_unsampled(fresh, box + gamma * bets.upper(V[support]), H)) - V
    return V + H * max(0.0, float(excess.max()))


def _with_unsampled(buffer: Buffer, x: NDArray[Any], there: float) -> NDArray[Any]:
    """``x`` ``(SA,)`` with ``there`` at the pairs that have no samples."""
    return x if buffer.unsampled is None else np.where(buffer.unsampled, np.asarray(there, dtype=x.dtype), x)


def _equal(buffer: Buffer, samples: int) -> Array:
    """As many samples for every pair that may have some; the others have a number too, which is not used."""
    pairs = buffer.design.size - (0 if buffer.unsampled is None else int(buffer.unsampled.sum()))
    return np.full(buffer.design.size, samples / pairs)


def _best(problem: CMDP, Q: Array) -> Array:
    return Q.reshape(-1, problem.num_actions).max(axis=1)


def _value_iteration(
    problem: CMDP, buffer: Buffer, reward: Array, V: Array | None = None, accuracy: float = 1e-7
) -> Array:
    """The fixed point of min(H, max_a(reward + γP̂V)) over all states, ``(S,)``, up to ``accuracy``·H."""
    gamma, H, P, support = problem.gamma, problem.horizon, counted(buffer).empirical_model(), buffer.support
    V = np.minimum(_best(problem, reward) * H, H) if V is None else V
    for _ in range(_SWEEPS if gamma <= _FAR else _FAR_SWEEPS):
        new = np.minimum(_best(problem, reward + gamma * (P @ V[support])), H)
        change, V = new - V, new
        least, most = float(change.min()), float(change.max())
        if gamma * max(-least, most) <= accuracy:
            break
        if (
            gamma > _FAR and gamma * (most - least) <= accuracy
        ):  # T(V + k) = T V + γk: what is left is the same everywhere
            return np.clip(V + gamma * H * (least + most) / 2, 0.0, H)
    return V


def _spread(buffer: Buffer, V: Array) -> Array:
    """Standard deviation of V at the next states of each pair; a pair whose samples agree gets half a dissenting one."""
    _, variance = buffer.moments(V[buffer.support])
    return np.asarray(np.sqrt(variance + 0.5 * float(np.ptp(V)) ** 2 / buffer.counts))
