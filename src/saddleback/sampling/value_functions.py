"""§3, value functions at the buffer: a few numbers each, evaluated at the next states by whoever holds those.

    MaxDifference(θ_sum, θ_previous)          V = max_a⟨φ,θ_sum⟩ − max_a⟨φ,θ_previous⟩                          LS-MDVI
    SoftDifference(θ_sum, θ_previous, α, β)   V = (1/β) lse_a(β⟨φ,θ_sum⟩) − (α/β) lse_a(β⟨φ,θ_previous⟩)        mirror descent
    PolicyValue(π, ω)                         V = π⟨φ,ω⟩                                                       LS-PE

Parameters are ``(d,)`` or ``(d, k)``, k value functions in one read. :class:`Support` evaluates them at the distinct next
states of a buffer, or at some of them. It keeps φ of all of them where that fits into memory, remembers the last maximum
(in a run θ_previous was θ_sum one step ago) and the last policy, and uses compiled code where there is much to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError
from saddleback.problem.policies import Policy, maximum_over_actions, soft_maximum
from saddleback.problem.spaces import Array, Features, States
from saddleback.sampling.batches import Parts

_FEATURE_BYTES = 1 << 30  # φ of the support is kept when it fits in this much, else evaluated when needed,
_PIECE = 1 << 23  # so many entries at a time (64 MB)


class MaxDifference(NamedTuple):
    """V(s) = max_a⟨φ(s,a), θ_sum⟩ − max_a⟨φ(s,a), θ_previous⟩."""

    theta_sum: Array
    theta_previous: Array


class SoftDifference(NamedTuple):
    """V(s) = (1/β) lse_a(β⟨φ,θ_sum⟩) − (α/β) lse_a(β⟨φ,θ_previous⟩)."""

    theta_sum: Array
    theta_previous: Array
    alpha: float
    beta: float


class PolicyValue(NamedTuple):
    """V(s) = Σ_a π(a|s) ⟨φ(s,a), ω⟩."""

    policy: Policy
    omega: Array


Parametric = MaxDifference | SoftDifference | PolicyValue


@dataclass
class Support:
    """The distinct next states of a buffer, and φ on them; ``compiled`` says how maxima are taken."""

    states: States
    features: Features | None
    compiled: bool = False
    _last_maximum: tuple[Array, float | None, Array] | None = field(init=False, default=None)
    _last_policy: tuple[Policy, Array] | None = field(init=False, default=None)

    def values(self, value: Parametric, *, once: bool = False) -> Array:
        """V at every state, ``(n,)`` or ``(n, k)``; ``once``: the policy will hardly be asked about again."""
        if isinstance(value, PolicyValue):
            if once and not self.keeps(value.policy):
                return np.concatenate([phi @ value.omega for _, phi in self.features_in_pieces(value.policy)])
            return np.asarray(self.mean_features(value.policy) @ value.omega)
        beta, alpha = _softness(value)
        low: Array | None = None  # a zero θ_previous, as in burn-in and plug-in value iteration, is not evaluated
        last = self._last_maximum
        if last is not None and last[0] is value.theta_previous and last[1] == beta:
            low = last[2]
        elif beta is not None or value.theta_previous.any():
            low = self._in_pieces(self._places[1], lambda x, phi: self._maximum(value.theta_previous, beta, x, phi))
        high = self._in_pieces(self._places[1], lambda x, phi: self._maximum(value.theta_sum, beta, x, phi))
        self._last_maximum = (value.theta_sum, beta, high)
        return high if low is None else high - low if beta is None else high - alpha * low

    def means_at(self, rows: NDArray[Any] | slice, parts: Parts, value: Parametric) -> Array:
        """Each pair's mean of V over one batch, with V evaluated at the states ``rows`` of the batch alone."""
        all_phi = self._all_phi
        if isinstance(value, MaxDifference) and self.compiled and all_phi is not None:
            return _compiled_means(all_phi, rows, parts, value)
        if isinstance(value, PolicyValue):
            return parts.means(value.policy.mean_features(self._given, self.states[rows]) @ value.omega)
        states, phi = self._places[1][rows], None if all_phi is None else all_phi[rows]
        beta, alpha = _softness(value)
        high = self._maximum(value.theta_sum, beta, states, phi)
        return parts.means(high - alpha * self._maximum(value.theta_previous, beta, states, phi))

    def mean_features(self, policy: Policy) -> Array:
        """Σ_a π(a|s) φ(s,a) at every state, ``(n, d)``."""
        if self._last_policy is None or self._last_policy[0] is not policy:
            found = self._in_pieces(self.states, lambda states, _: policy.mean_features(self._given, states))
            self._last_policy = (policy, found)
        return self._last_policy[1]

    @property
    def dim(self) -> int:
        """d."""
        return self._given.dim

    def keeps(self, policy: Policy) -> bool:
        """Whether φ of the policy at every state is kept, or may be without much memory."""
        last = self._last_policy
        return len(self.states) * self.dim <= _PIECE or (last is not None and last[0] is policy)

    def features_in_pieces(self, policy: Policy) -> Iterator[tuple[int, Array]]:
        """Where each piece of the states begins, and Σ_a π(a|s) φ(s,a) on it."""
        step = max(1, _PIECE // self.dim)
        for first in range(0, len(self.states), step):
            yield first, policy.mean_features(self._given, self.states[first : first + step])

    def _maximum(self, theta: Array, beta: float | None, states: States, phi: Array | None) -> Array:
        """max_a⟨φ,θ⟩, or its soft form with ``beta``; ``phi`` is φ at ``states``, ``(n, A, d)``, where it is kept.

        ``states`` are positions where the features are held.
        """
        features = self._places[0]
        if phi is None:
            if beta is None:
                return features.maximum(states, theta)
            return soft_maximum(features.values(states, theta), beta)
        if beta is None and self.compiled:
            from saddleback.sampling.kernels import fused_maximum

            return fused_maximum(phi, theta)
        n, A, d = phi.shape
        Q = (phi.reshape(n * A, d) @ theta).reshape(n, A, *theta.shape[1:])
        return maximum_over_actions(Q) if beta is None else soft_maximum(Q, beta)

    @cached_property
    def _places(self) -> tuple[Features, States]:
        """The features and all states as they know them: positions where they can hold what they need of these states."""
        features, n = self._given, len(self.states)
        if not hasattr(features, "held") or n * features.dim * 8 > _FEATURE_BYTES * features.num_actions:
            return features, self.states
        return features.held(self.states), np.arange(n)

    def _in_pieces(self, places: States, function: Callable[[States, Array | None], Array]) -> Array:
        """``function(places, φ)`` over all states: at once where φ is kept or not needed, else piece by piece."""
        features, phi, n = self._given, self._all_phi, len(self.states)
        held = places is not self.states  # such features take pieces by themselves
        whole = phi is not None or features.direct or held
        step = n if whole else max(1, _PIECE // (features.num_actions * features.dim))
        if step >= n:
            return function(places, phi)
        return np.concatenate([function(places[i : i + step], None) for i in range(0, n, step)])

    @cached_property
    def _all_phi(self) -> Array | None:
        """φ on all states, ``(n, A, d)``, or None where an argmax oracle is the way or it would not fit."""
        features = self._given
        large = len(self.states) * features.num_actions * features.dim * 8 > _FEATURE_BYTES
        if features.direct or large or hasattr(features, "held"):
            return None
        return np.ascontiguousarray(features.all(self.states))

    @property
    def _given(self) -> Features:
        if self.features is None:
            rule = "must be given for a least-squares oracle"
            raise InputError("features", rule, None, "use a tabular oracle instead")
        return self.features


def kept_bytes(
    states: int, actions: int, dim: int, columns: int, *, held: bool = False, policies: bool = False
) -> float:
    """What a :class:`Support` keeps: φ where it fits, the last maximum of ``columns`` value functions, the last policy.

    ``held`` are features that keep ψ alone; with ``policies`` φ of a policy is asked for again, however large.
    """
    phi = 8.0 * states * dim * (1 / actions if held else actions)
    policy = 8.0 * states * dim if policies or states * dim <= _PIECE else 0.0
    return (phi if phi <= _FEATURE_BYTES else 0.0) + policy + 8.0 * states * columns


def evaluation_bytes(
    states: int, actions: int, dim: int, columns: int, *, copies: int, policies: bool = False
) -> float:
    """What evaluating a policy takes: ``copies`` of φ, a piece at a time unless it is kept, and the values."""
    phi = 8.0 * states * actions * dim
    most = phi if policies and phi <= _FEATURE_BYTES else 8.0 * _PIECE
    return copies * min(phi, most) + (8.0 * states * dim if policies else 0.0) + 8.0 * states * actions * columns


def _softness(value: MaxDifference | SoftDifference) -> tuple[float | None, float]:
    """(β, α); a plain maximum has no β."""
    return (value.beta, value.alpha) if isinstance(value, SoftDifference) else (None, 1.0)


def _compiled_means(phi: Array, rows: NDArray[Any] | slice, parts: Parts, value: MaxDifference) -> Array:
    """All θ's of both maxima in one read of the batch."""
    from saddleback.sampling.kernels import fused_maximum, gathered_maximum_means

    high = value.theta_sum.reshape(phi.shape[2], -1)
    k = high.shape[1]
    low = np.broadcast_to(value.theta_previous.reshape(len(high), -1), high.shape)
    thetas = np.hstack([high, low])
    if isinstance(rows, slice):
        means = parts.means(fused_maximum(phi[rows], thetas))
    else:
        means = gathered_maximum_means(phi, rows, parts.offsets, thetas)
    return (means[:, :k] - means[:, k:]).reshape(-1, *value.theta_sum.shape[1:])
