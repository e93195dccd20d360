"""LSTD on the coreset: the evaluator's fixed point at once, without iterations and so without their bias.

    B = G⁻¹ Φ_Cᵀ diag(ρ̃),   E[x] = (1/N) Σ_n Σ_a π(a|s'_n) φ(s'_n, a)      (mean next features of pair x)
    ω = (I − γBE)⁻¹ B ◇_C,   V̂(ρ) = φ_ρᵀ ω,   φ_ρ = Σ_s ρ(s) Σ_a π(a|s) φ(s, a)

All samples of a pair are used together; T plays no part. The error is exactly

    V̂(ρ) − V^π(ρ) = γ Σ_x a_x ((P̂ − P)V^π)(x),     a = φ_ρᵀ (I − γBE)⁻¹ B        (rewards known)

whence, for a policy independent of this buffer, the rigorous width γH·Σ_x|a_x|√(log(2|C|k/δ)/(2N_x)) for k rewards
(:meth:`LSTD.width`): a is known, and V^π ∈ [0, H] is no random quantity. On a table (C = S × A, one-hot features) this is
policy evaluation on the estimated model and a_x is the discounted visits of x.

**How uncertain an evaluation is**, measured from its own buffer by the influence of the samples on V̂(ρ). The error of a
fixed-point evaluation is, to first order and exactly for LSTD,

    V̂(ρ) − V^π(ρ) = Σ_x a_x [◇̂ − ◇ + γ(P̂ − P)V^π](x) + (γ/T) Σ_x a_x (P(V⁰ − V̂^T))(x),      a = φ_ρᵀ (I − γBE)⁻¹ B

where a_x is how much the value at ρ moves with the target at coreset pair x (on a table: the discounted visits of x). The
first term is noise, of the next states and of rewards that are only observed; its variance is at most
Σ a_x² (σ_◇ + γσ_V)²/N_x, read off the samples with V̂ in the place of V^π. The second is the bias of T averaged
iterations that started from V⁰ (LSTD has none); it is estimated by the same weights and taken out, so the interval is V̂
minus the bias, plus or minus z standard errors, and may not hold V̂ itself. It is an approximation (central limit theorem, plug-in variances), labelled so wherever it is printed; it assumes that the policy was
not chosen on this buffer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from saddleback.errors import NumericalError
from saddleback.method.oracles import Interval, Needs, over_all_states
from saddleback.problem.cmdp import CMDP
from saddleback.problem.finite_model import Resolvent, follow
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array, States
from saddleback.sampling.buffer import Buffer, PolicyValue, counted

_PIECE = 1 << 22  # entries of φ at a time (32 MB)
_FACTORED_STATES = 1500


def cautious_variance(buffer: Buffer, V: Array) -> Array:
    """Variance of V at the next states of each pair ``(c, k)``.

    A pair whose samples agree by chance gets the variance of half a dissenting sample, as in Laplace's rule.
    """
    span = V.max(axis=0) - V.min(axis=0)
    return np.asarray(buffer.moments(V)[1] + (0.5 / buffer.counts[:, None]) * span**2)


def interval_from_influence(
    problem: CMDP, buffer: Buffer, influence: Array, estimate: Array, V: Array, drift: Array | None, confidence: float
) -> Interval:
    """Limits for the true values; ``V`` is V̂ and ``drift`` V⁰ − V̂^T (None: no bias) on the support, ``(n, 1+m)``."""
    noise = buffer.signal_noise(problem) + problem.gamma * np.sqrt(cautious_variance(buffer, V))
    standard_error = np.sqrt((influence**2 / buffer.counts) @ noise**2)
    bias = np.zeros_like(estimate)
    if drift is not None:
        bias = problem.gamma * (influence @ buffer.average(drift)) / buffer.num_batches
    z = float(ndtri(0.5 + 0.5 * confidence))
    low, high = estimate - bias - z * standard_error, estimate - bias + z * standard_error
    return Interval(np.clip(low, 0.0, problem.horizon), np.clip(high, 0.0, problem.horizon))


class EmpiricalChain:
    """The Markov chain P̂_π of a policy on a buffer that holds every pair of a finite problem.

    V = (I − γP̂_π)⁻¹ (π◇),      μ = ρᵀ (I − γP̂_π)⁻¹,      visits of (s,a): μ(s) π(a|s)
    """

    def __init__(self, problem: CMDP, buffer: Buffer, policy: Policy):
        S, _ = buffer.tabular_shape(problem)
        self.pi = policy.probabilities(np.arange(S))
        P = over_all_states(follow(self.pi, counted(buffer).empirical_model()), buffer, S)
        self._resolvent = Resolvent(P, problem.gamma, factored=S <= _FACTORED_STATES)
        self._start = problem.start

    def values(self, signals: Array) -> Array:
        """V ``(S, k)`` of signals ``(S·A, k)``."""
        return self._resolvent.values(np.einsum("sa,sak->sk", self.pi, signals.reshape(*self.pi.shape, -1)))

    def visits(self) -> Array:
        """Discounted visits of every pair from ρ, ``(S·A,)``."""
        rho = np.zeros(len(self.pi))
        np.add.at(rho, self._start.states, self._start.weights)
        return (self._resolvent.visits(rho)[:, None] * self.pi).ravel()


class _Solved(NamedTuple):
    """V̂(ρ) ``(1+m,)``, the influence a ``(c,)``, and V̂ on the buffer's support ``(n, 1+m)``."""

    at_start: Array
    influence: Array
    at_support: Array


@dataclass(frozen=True)
class LSTD:
    """No parameters. Works on coresets and, through the estimated model, on tables; batches mean nothing to it."""

    def needs(self, problem: CMDP) -> Needs:
        """No batches."""
        return Needs(batches=False)

    def evaluate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Array:
        """V̂_r(ρ), V̂_{c_1}(ρ), …, clipped to [0, H]."""
        return np.clip(self._solve(problem, buffer, policy, False).at_start, 0.0, problem.horizon)

    def interval(self, problem: CMDP, buffer: Buffer, policy: Policy, confidence: float) -> Interval:
        """Central-limit interval for V^π (see the first lines); there is no bias to take out."""
        solved = self._solve(problem, buffer, policy, True)
        return interval_from_influence(
            problem, buffer, solved.influence, solved.at_start, solved.at_support, None, confidence
        )

    def width(self, problem: CMDP, buffer: Buffer, policy: Policy, delta: float, num_problems: int = 1) -> float:
        """The rigorous half-width for ``num_problems`` (policies × rewards) at once, in the paper's units."""
        a, C = self._solve(problem, buffer, policy, True).influence, buffer.design.size
        L = math.log(2 * C * num_problems / delta)
        return float(problem.gamma * problem.horizon * np.sum(np.abs(a) * np.sqrt(L / (2 * buffer.counts))))

    def influence_and_values(self, problem: CMDP, buffer: Buffer, policy: Policy) -> tuple[Array, Array]:
        """a ``(c,)``, how much V̂(ρ) moves with the mean at each pair, and V̂ on the buffer's support ``(n, 1+m)``."""
        solved = self._solve(problem, buffer, policy, True)
        return solved.influence, solved.at_support

    def value_function(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Callable[[States], Array]:
        """V̂ as a function of any states, ``(n, 1+m)``."""
        if buffer.design.operator is None:
            V = EmpiricalChain(problem, buffer, policy).values(buffer.utilities(problem))
            return lambda states: V[states]
        features, omega = problem.required_features(), self._fitted(problem, buffer, policy)[0]
        step = max(1, _PIECE // features.dim)

        def values(states: States) -> Array:
            V = np.empty((len(states), omega.shape[1]))
            for first in range(0, len(states), step):  # φ of many states at once would be most of the memory
                piece = slice(first, first + step)
                V[piece] = policy.mean_features(features, states[piece]) @ omega
            return V

        return values

    def _fitted(self, problem: CMDP, buffer: Buffer, policy: Policy) -> tuple[Array, Array]:
        """ω ``(d, 1+m)`` and the matrix I − γBE it solves."""
        features, B, gamma = problem.required_features(), buffer.design.operator, problem.gamma
        assert B is not None
        diamond = buffer.utilities(problem)  # ◇_C
        E = buffer.average(PolicyValue(policy, np.eye(features.dim)))  # (c, d)
        system = np.eye(features.dim) - gamma * (B @ E)
        try:
            return np.asarray(np.linalg.solve(system, B @ diamond), dtype=np.float64), system
        except np.linalg.LinAlgError:
            raise NumericalError(
                f"the LSTD system of {features.dim} features is singular with {buffer.num_samples} samples; "
                "draw more samples or use ls-pe."
            ) from None

    def _solve(self, problem: CMDP, buffer: Buffer, policy: Policy, with_influence: bool) -> _Solved:
        if buffer.design.operator is None:
            return self._on_table(problem, buffer, policy, with_influence)
        B = buffer.design.operator
        omega, system = self._fitted(problem, buffer, policy)
        start = _at_start(problem, policy)
        if not with_influence:
            return _Solved(start @ omega, np.zeros(0), np.zeros(0))
        a = B.T @ np.linalg.solve(system.T, start)
        return _Solved(start @ omega, a, buffer.at_support(PolicyValue(policy, omega)))

    def _on_table(self, problem: CMDP, buffer: Buffer, policy: Policy, with_influence: bool) -> _Solved:
        chain = EmpiricalChain(problem, buffer, policy)
        V = chain.values(buffer.utilities(problem))
        at_start = problem.start.weights @ V[problem.start.states]
        if not with_influence:
            return _Solved(at_start, np.zeros(0), np.zeros(0))
        return _Solved(at_start, chain.visits(), V[buffer.support])


def _at_start(problem: CMDP, policy: Policy) -> Array:
    """φ_ρ ``(d,)``, some start states at a time."""
    features, start = problem.required_features(), problem.start
    step, out = max(1, _PIECE // features.dim), np.zeros(features.dim)
    for first in range(0, len(start.weights), step):
        piece = slice(first, first + step)
        out += start.weights[piece] @ policy.mean_features(features, start.states[piece])
    return out
