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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.bounds.bound import Bound, BoundPlan, at_start, reward_widths
from saddleback.certificates.guide import Guide
from saddleback.certificates.values.intervals import Bets, expected_width, stakes
from saddleback.method.evaluators.lstd import EmpiricalChain
from saddleback.problem.cmdp import CMDP
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
_OPTIMISM = 1.5  # c
_ROUGHLY = 1e-4  # of H: accuracy of value iteration where only the plan depends on it


@dataclass(frozen=True)
class TabularPlan(BoundPlan):
    """The frozen V ``(S,)``, its spread at each pair ``(SA,)``, and the guessed span D of V*."""

    frozen: Array
    spread: Array
    span: float

    def prove(self, problem: CMDP, fresh: Buffer, delta: float) -> Bound:
        """The bound from a fresh buffer over all pairs."""
        S, A = fresh.tabular_shape(problem)
        share = delta / 2 if np.any(problem.observed) else delta  # the other half is for the rewards
        goal, H, gamma = math.log(3 * S * A / share), problem.horizon, problem.gamma
        means, widths = fresh.utilities(problem) @ self.sigma, reward_widths(problem, fresh, self.sigma, delta / 2)
        P, n, frozen, support = counted(fresh).empirical_model(), fresh.counts, self.frozen, fresh.support
        wide = Bets(P, n, stakes(self.spread, n, goal, float(np.ptp(frozen))), goal)
        above = _best(problem, means + widths + gamma * wide.upper(frozen[support])) - frozen
        below = frozen - _best(problem, means - widths + gamma * wide.lower(frozen[support]))
        up, down = H * max(0.0, float(above.max())), H * max(0.0, float(below.max()))
        span = min(H, float(frozen.max()) + up) - max(0.0, float(frozen.min()) - down)
        bounds = [at_start(problem, frozen[problem.start.states]) + up, H]
        plain = V = _value_iteration(problem, fresh, means)
        if span <= self.span:
            narrow = Bets(P, n, stakes(self.spread, n, goal, self.span), goal)
            V = _optimistic(problem, fresh, means + widths, narrow, plain)
            bounds.append(at_start(problem, V[problem.start.states]))
        estimate = at_start(problem, plain[problem.start.states])
        arrays = self._arrays(problem, fresh, V)
        return Bound(self.sigma, min(bounds), estimate, KIND, delta, fresh.num_samples, arrays=arrays)

    def _arrays(self, problem: CMDP, fresh: Buffer, optimistic: Array) -> dict[str, Array]:
        """What the bound can be computed again from: the samples as counts, what was frozen, and a function above V*."""
        P, start = counted(fresh).empirical_model(), np.zeros(len(self.frozen))
        np.add.at(start, problem.start.states, problem.start.weights)
        return {
            "counts": np.rint(P.data * np.repeat(fresh.counts, np.diff(P.indptr))).astype(np.int64),
            "next_states": np.asarray(fresh.support)[P.indices].astype(np.int64),
            "first": P.indptr.astype(np.int64),
            "signals": fresh.utilities(problem),
            "noise": fresh.signal_noise(problem),
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
        box, noise = earlier.utilities(problem) @ sigma, earlier.signal_noise(problem) @ sigma
        plain = V = _value_iteration(problem, earlier, box, accuracy=_ROUGHLY)
        base = at_start(problem, plain[problem.start.states])
        n = equal = np.full(S * A, samples / (S * A))
        best, excess, visits = (math.inf, equal), 0.0, np.zeros(S * A)
        for _ in range(_DRAFT_STEPS if draft else _ALLOCATION_STEPS):
            spread, D = _spread(earlier, V), min(H, float(np.ptp(plain)) + 2 * excess)
            w = gamma * expected_width(spread, n, goal, D) + noise * np.sqrt(2 * goal / n)
            V = _value_iteration(problem, earlier, box + w, V, _ROUGHLY)
            excess = at_start(problem, V[problem.start.states]) - base
            if excess < best[0] - _ROUGHLY * 1e-3 * H:  # by more than rounding errors
                best = (excess, n)
            Q = (box + w + gamma * earlier.average(V[earlier.support])).reshape(S, A)
            chain = EmpiricalChain(problem, earlier, TabularPolicy.deterministic(first_largest(Q, axis=1), A))
            visits = 0.6 * visits + 0.4 * chain.visits()
            fall = (gamma * spread + noise) * np.sqrt(goal / (2 * n)) + gamma * D * goal / n  # −n ∂w/∂n, about
            slope = visits * fall
            if slope.sum() == 0:  # γ = 0 and known rewards: there is nothing to learn
                break
            n = np.sqrt(n * ((1 - _FLOOR) * samples * slope / slope.sum() + _FLOOR * equal))
            n *= samples / n.sum()
        n = on_grid(best[1], PLAN_DIGITS)
        counts = np.maximum(1, (n * min(1.0, samples / n.sum())).astype(np.int64))
        return _frozen(problem, earlier, box, sigma, counts, goal, plain)


def _frozen(
    problem: CMDP, earlier: Buffer, box: Array, sigma: Array, counts: NDArray[np.int64], goal: float, plain: Array
) -> TabularPlan:
    """The function to be tested on the fresh samples, the span they are expected to show of V*, and the likely excess."""
    gamma, H, A, V = problem.gamma, problem.horizon, problem.num_actions, plain
    for _ in range(_ROUNDS // 2):
        spread = _spread(earlier, V)
        w = gamma * expected_width(spread, counts, goal, min(H, float(np.ptp(V))))
        V = _value_iteration(problem, earlier, box + _OPTIMISM * w, V)
    greedy = first_largest((box + gamma * earlier.average(V[earlier.support])).reshape(-1, A), axis=1)
    widest = float(w.reshape(-1, A)[np.arange(len(greedy)), greedy].max())
    span = min(H, 1.2 * (float(np.ptp(V)) + (1 + _OPTIMISM) * H * widest))
    narrow = box + gamma * expected_width(_spread(earlier, plain), counts, goal, span)
    likely = [_value_iteration(problem, earlier, narrow, plain, _ROUGHLY) - plain, 1.1 * (V - plain)]
    excess = max(0.0, min(at_start(problem, above[problem.start.states]) for above in likely))
    estimate = at_start(problem, plain[problem.start.states])
    return TabularPlan(sigma, counts, estimate, excess, V, spread, span)


def _optimistic(problem: CMDP, fresh: Buffer, box: Array, bets: Bets, V: Array) -> Array:
    """A function above V*: near the fixed point of max_a(□ + γU(V)), then raised to where V ≥ T V."""
    gamma, H, support = problem.gamma, problem.horizon, fresh.support
    for _ in range(_ROUNDS):  # the confidence as a bonus, held while V settles, then taken at the new V
        bonus = gamma * (bets.upper(V[support]) - fresh.average(V[support]))
        previous, V = V, _value_iteration(problem, fresh, box + bonus, V)
        if np.abs(V - previous).max() <= 1e-5 * H:
            break
    excess = _best(problem, box + gamma * bets.upper(V[support])) - V
    return V + H * max(0.0, float(excess.max()))


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
