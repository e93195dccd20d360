"""Tighter limits for the values of the frozen mixture, if P is linear in φ: coreset samples quieten the rollouts.

Earlier samples fix ω_k, Q̂_k = ⟨φ,ω_k⟩ and V̂_k = π_kQ̂_k for every member k. With ◇ one of r, c_1..c_m,

    V_k(ρ) = V̂_k(ρ) + E Σ_t γ^t u_k(s_t,a_t),     u_k = ◇ + γPV̂_k − Q̂_k

whatever ω_k and π_k are: E[Q̂_k(s_t,a_t) | s_t] = V̂_k(s_t), so the sum telescopes. A rollout that adds up u_k instead of
◇ + γV̂_k(s') − V̂_k(s) has next to no noise, since u_k ≈ 0. It needs PV̂_k, and linearity gives it everywhere from the
coreset, (PV)(s,a) = φᵀB(PV)_C. Let F be the fresh buffer on the coreset, w_t = γ^t/p_t the weights of a rollout, K its
member, Z its sum in :mod:`.rollouts`, and

    U = Σ_k w_k V̂_k(ρ) + Σ_t w_t u_K(s_t,a_t),    Û the same with P̂_F,    Û − U = yᵀd_K,
    y = Σ_t w_t Bᵀφ_t,    d_k = γ((P̂_F−P)V̂_k)_C.

Rollout i gives X_i = (1−β)Z_i + βU_i of mean V (but for what the cap of the rollouts hides, which is added to the limits),
and what is seen is X̂_i = X_i + βy_iᵀd. Over n rollouts

    mean X̂ − V = (mean X − V) + Σ_x ((P̂_F−P)G_x)(x),    G_x = βγ Σ_k α_kx V̂_k,    α_k = (1/n) Σ_{i of member k} y_i.   (*)

Both parts are of first order. β weighs them; where β = 0 is best, the plain interval of Z is given (at δ₁).

*One bet on both parts.* For s = ±1, a slope g fixed beforehand and stakes h_x ≤ g/N_x,

    E_s = Π_i (1 + s(g/n)(X_i − V)) · Π_x Π_j (1 + s h_x (G_x(s'_xj) − (PG_x)(x)))

has mean one: the X_i are independent of mean V; given the rollouts, G and h are fixed, and F is independent of them. So
log E_s(V) < L = log(2/δ₁) for both s with probability 1 − δ₁, and a V that would make it larger is excluded. What is
unknown in it are e_i = βy_iᵀd and D_x = ((P̂_F−P)G_x)(x), limited below. Since Σ_x D_x = mean e, they cancel to first order:

    log E_1(V) = Σ_i [log(1 + (g/n)(X̂_i − V − e_i)) + (g/n)e_i]
                 + Σ_x [Σ_j log(1 + h_x(G_x(s'_xj) − mean G_x + D_x)) − g D_x]

and every bracket is concave in its unknown, so that its least value over |e_i| ≤ ε_i, |D_x| ≤ v_x is at an end: nothing is
approximated. The sum falls with V, so the excluded V lie below a limit, found by bisection; s = −1 is the mirror image.
To first order the limit is mean X̂ − √(2L(v_R + v_F)): variances are added, not widths.

*The unknowns.* |d_kx| ≤ q_kx for all k, x from F (δ₂: two sides and one variance each, :func:`.deviation_limit`);
then ε_i = β Σ_t w_t Σ_x |φ_tᵀB_x| q_Kx and v_x = β Σ_k |α_kx| q_kx. For each value δ₁ : δ₂ = 0.95 : 0.05, and δ is
divided evenly over the 1+m values.

*Range.* E_1 must not be negative, so V is excluded only if (g/n)(V − min X) ≤ 0.95 for the least sum min X that
u ≥ û − Σ_x|φᵀB_x|q_x permits. In the event of δ₂ the true least sum is no smaller; it and V are fixed numbers, so either
E_1 was no bet for the true V, which then is not excluded, or its mean is one. In finite spaces û is looked through pair by
pair; otherwise known rewards must be linear in φ too, and the Lebesgue constant bounds û and V̂_k from the coreset.

Observed rewards enter as the rollouts see them. Tables (C = S × A) assume no linearity and are not treated here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from saddleback.certificates.assumptions import BOUNDED
from saddleback.certificates.certificate import LinearValues, user_limits
from saddleback.certificates.values.intervals import betting
from saddleback.certificates.values.linear_plan import (
    ValuePlan,
    around,
    chunks,
    enumerable,
    longest_sum,
    pair_limits,
    plan_values,
    variances,
)
from saddleback.certificates.values.rollouts import Baseline, Rollouts, Step
from saddleback.errors import NumericalError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, PolicyValue, counted
from saddleback.sampling.trajectories import RolloutPlan

_MOST_OF_CAPITAL = 0.95
_DOUBLINGS, _BISECTIONS = 30, 14  # 2⁻¹⁴ of the width is little
_ROUNDING = 1e-12
_MOST_OF_CAPITAL_AT_A_PAIR = 0.45  # the shifts may double what a sample costs


class CoresetReader:
    """Sums over the rollouts' steps: Σ w_t û and Σ w_t Σ_x|φᵀB_x|q_x of each ``(n, 1+m)``, and Σ_i y_i of each member.

    It observes :func:`~saddleback.certificates.values.rollouts.roll_out`; made by :func:`read_coreset`.
    """

    def __init__(self, problem: CMDP, mixture: MixturePolicy, fresh: Buffer, plan: ValuePlan):
        B, gamma = fresh.design.operator, problem.gamma
        assert B is not None
        self.problem, self.mixture, self.fresh, self.plan = problem, mixture, fresh, plan
        self.features, self.operator = problem.required_features(), B
        V = [self.at_support(k) for k in range(len(plan.omegas))]
        self.xi = [gamma * (B @ fresh.average(v)) - o for v, o in zip(V, plan.omegas, strict=True)]  # û = ◇ + ⟨φ,ξ⟩
        variance = np.array([variances(fresh, v) for v in V])
        self.q = gamma * pair_limits(variance, plan.high - plan.low, fresh.counts, plan.levels.pairs)  # (K, c, 1+m)
        self.sums, self.slack = np.zeros((2, plan.num_rollouts, self.q.shape[2]))
        self.visits = np.zeros(self.q.shape[:2])
        self.pair = np.repeat(
            np.arange(fresh.design.size), np.diff(counted(fresh).empirical_model().indptr)
        )  # of every entry

    def __call__(self, step: Step) -> None:
        """Add one step."""
        for k in np.unique(step.members):
            mine = step.members == k
            phi, rows = self.features.at(step.states[mine], step.actions[mine]), step.rollouts[mine]
            y = phi @ self.operator
            self.sums[rows] += step.weight * (step.utilities[mine] + phi @ self.xi[k])
            self.slack[rows] += step.weight * (np.abs(y) @ self.q[k])
            self.visits[k] += step.weight * y.sum(axis=0)

    def at_support(self, k: int) -> Array:
        """V̂_k on the fresh support, ``(n, 1+m)``."""
        return self.fresh.at_support(PolicyValue(self.mixture.members[k], self.plan.omegas[k]))

    def at_start(self) -> Array:
        """Σ_k w_k V̂_k(ρ), ``(1+m,)``."""
        start, out = self.problem.start, np.zeros(self.q.shape[2])
        for w, p, omega in zip(self.mixture.weights, self.mixture.members, self.plan.omegas, strict=True):
            out += w * (start.weights @ (p.mean_features(self.features, start.states) @ omega))
        return out

    def residual_range(self) -> tuple[Array, Array]:
        """Limits of u over all pairs and members, ``(1+m,)``."""
        problem, design = self.problem, self.fresh.design
        seen = problem.observed  # their ◇ may be anything in [0, 1]
        lows, highs = [], []
        if not enumerable(problem):
            u = np.where(seen, 0.0, problem.utilities(design.states, design.actions))
            assert design.features is not None
            for xi, q in zip(self.xi, self.q, strict=True):
                low, high = around(design, design.features @ xi + u)
                lows.append(low - design.lebesgue * q.max(axis=0))
                highs.append(high + design.lebesgue * q.max(axis=0))
            return np.min(lows, axis=0), np.max(highs, axis=0) + seen
        A = problem.num_actions
        for states in chunks(problem, max(self.operator.shape)):
            s, a = np.repeat(states, A, axis=0), np.tile(np.arange(A), len(states))
            u, phi = np.where(seen, 0.0, problem.utilities(s, a)), self.features.at(s, a)
            y = np.abs(phi @ self.operator)
            for xi, q in zip(self.xi, self.q, strict=True):
                residual, width = u + phi @ xi, y @ q
                lows.append((residual - width).min(axis=0))
                highs.append((residual + width).max(axis=0))
        return np.min(lows, axis=0), np.max(highs, axis=0) + seen


def read_coreset(
    problem: CMDP,
    mixture: MixturePolicy,
    earlier: Buffer,
    fresh: Buffer,
    baseline: Baseline,
    rolled: RolloutPlan,
    delta: float,
) -> CoresetReader | None:
    """What must watch the rollouts of ``rolled`` with ``baseline`` for intervals that hold together at 1 − δ.

    The mixture, the baseline, ``earlier`` (any buffer over the coreset of ``fresh``) and the sizes must not depend on
    ``fresh`` or the rollouts. None where nothing can be said: on tables, with fewer than two samples, without an LSTD fit.
    """
    if fresh.design.operator is None or rolled.number < 2 or int(fresh.counts.min()) < 2:
        return None
    assert earlier.design.size == fresh.design.size
    try:
        plan = plan_values(problem, mixture, earlier, fresh.counts, baseline, rolled, delta)
    except NumericalError:
        return None
    return CoresetReader(problem, mixture, fresh, plan)


def linear_intervals(reader: CoresetReader, rollouts: Rollouts) -> tuple[Array, Array]:
    """Limits ``(1+m,)`` of the mixture's values in utilities, from the rollouts that ``reader`` watched."""
    assert len(rollouts.gains) == reader.plan.num_rollouts
    slack, columns = _ROUNDING * reader.problem.horizon, range(reader.q.shape[2])
    seen = _Seen.of(reader, rollouts)
    low = np.array([_lower_limit(reader, seen.column(j, 1), j, 0) for j in columns])
    high = np.array([-_lower_limit(reader, seen.column(j, -1), j, 1) for j in columns])
    return np.clip(low - slack, *rollouts.known), np.clip(high + slack, *rollouts.known)


def under_linearity(reader: CoresetReader, rollouts: Rollouts) -> LinearValues:
    """The limits in the user's units, for a certificate."""
    limits = user_limits(reader.problem, *linear_intervals(reader, rollouts))
    return LinearValues(limits[0], limits[1:], f"{BOUNDED}; {assumption(reader.problem)}")


def assumption(problem: CMDP) -> str:
    """What the intervals need that those without linearity do not."""
    if enumerable(problem):
        return "transition probabilities linear in the features"
    return (
        "transition probabilities and known rewards linear in the features; "
        "leverages beyond the candidate pairs no larger than on them"
    )


class _Seen(NamedTuple):
    """Of one column, or of all: Z, Û and ε/β ``(n, …)``, their ranges and tails, G/β ``(entries, …)`` and v/β ``(c, …)``."""

    free: Array
    linear: Array
    slack: Array
    free_range: Array
    linear_range: Array
    free_tail: Array
    linear_tail: Array
    G: Array
    v: Array

    @classmethod
    def of(cls, reader: CoresetReader, rollouts: Rollouts) -> _Seen:
        """All columns."""
        plan, gamma, H = reader.plan, reader.problem.gamma, reader.problem.horizon
        left, at_start = gamma**rollouts.cap, reader.at_start()
        u_low, u_high = reader.residual_range()
        return cls(
            rollouts.values,
            at_start + reader.sums,
            reader.slack,
            np.array([rollouts.low, rollouts.high]),
            at_start + longest_sum(gamma) * np.array([np.minimum(u_low, 0.0), np.maximum(u_high, 0.0)]),
            np.array([rollouts.tail_low, rollouts.tail_high]),
            left * np.array([-plan.high.max(axis=0), H - plan.low.min(axis=0)]),
            _coreset_values(reader),
            np.einsum("kx,kxj->xj", np.abs(reader.visits) / plan.num_rollouts, reader.q),
        )

    def column(self, j: int, s: int) -> _Seen:
        """Column j, or for s = −1 its mirror image."""
        x, ends = [s * f[:, j] for f in self], slice(None, None, s)
        return _Seen(x[0], x[1], self.slack[:, j], x[3][ends], x[4][ends], x[5][ends], x[6][ends], x[7], self.v[:, j])


def _lower_limit(reader: CoresetReader, seen: _Seen, j: int, side: int) -> float:
    """A lower limit of s·V at the level of one side of the bet."""
    plan, n = reader.plan, reader.plan.num_rollouts
    beta, g = float(plan.share[side, j]), float(plan.slope[side, j])
    if beta == 0:
        least, most = seen.free_range.tolist()
        return betting(seen.free, least, most, 2 * math.exp(-plan.levels.bet)).low + float(seen.free_tail[0])
    X, eps, h = (1 - beta) * seen.free + beta * seen.linear, beta * seen.slack, g / n
    floor = float((1 - beta) * seen.free_range[0] + beta * seen.linear_range[0])
    need = plan.levels.bet - _from_coreset(reader, beta * seen.G, beta * seen.v, g, beta, j)
    top = min(float(X.mean()), floor + _MOST_OF_CAPITAL / h)
    tail = (1 - beta) * float(seen.free_tail[0]) + beta * float(seen.linear_tail[0])
    return _largest(lambda V: _from_rollouts(X - V, eps, h) >= need, top, need / g) + tail


def _largest(excluded: Callable[[float], bool], top: float, step: float) -> float:
    """The largest number up to ``top`` that is excluded, where all below an excluded one are; −∞ if there is none."""
    if excluded(top):
        return top
    for _ in range(_DOUBLINGS):
        if excluded(top - step):
            break
        step *= 2
    else:
        return -math.inf
    low, high = top - step, top
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low


def _coreset_values(reader: CoresetReader) -> Array:
    """G_x/β at every distinct next state of every pair x, in the order of the empirical model, ``(entries, 1+m)``."""
    alpha, where = reader.visits / reader.plan.num_rollouts, counted(reader.fresh).empirical_model().indices
    G = np.zeros((len(where), reader.q.shape[2]))
    for k in range(len(alpha)):
        G += alpha[k, reader.pair, None] * reader.at_support(k)[where]
    return reader.problem.gamma * G


def _from_rollouts(z: Array, eps: Array, h: float) -> float:
    """The least Σ_i [log(1 + h(z_i − e_i)) + h e_i] over |e_i| ≤ ε_i."""
    return float(np.minimum(_log1p(h * (z - eps)) + h * eps, _log1p(h * (z + eps)) - h * eps).sum())


def _from_coreset(reader: CoresetReader, G: Array, v: Array, g: float, beta: float, j: int) -> float:
    """The least Σ_x [Σ_j log(1 + h_x(G_x − mean G_x + D_x)) − g D_x] over |D_x| ≤ v_x."""
    P, plan, N, row = counted(reader.fresh).empirical_model(), reader.plan, reader.fresh.counts, reader.pair
    alpha, first = np.abs(reader.visits) / plan.num_rollouts, P.indptr[:-1]
    span = beta * reader.problem.gamma * ((plan.high - plan.low)[:, j] @ alpha)  # of G_x, over all states
    h = np.minimum(g / N, _MOST_OF_CAPITAL_AT_A_PAIR / np.maximum(span, 1e-300))
    z, number = G - np.add.reduceat(P.data * G, first)[row], N[row] * P.data
    ends = [np.add.reduceat(number * _log1p(h[row] * (z + D[row])), first) - g * D for D in (-v, v)]
    return float(np.minimum(*ends).sum())


def _log1p(x: Array) -> Array:
    """log(1+x); −∞ where a bet would be lost altogether."""
    return np.asarray(np.log1p(x, where=x > -1, out=np.full_like(x, -np.inf)))
