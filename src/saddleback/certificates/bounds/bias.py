"""What a misfit of P to the features adds to values and advantages: known multiples of span(V), without any probability.

Let |(Pf)(x) − φ(x)ᵀB(Pf)_C| ≤ span(f)·o(x), where o(x) = ε(1 + Σ_y|φ(x)ᵀB_y|) if P is ε away from linear
(:mod:`saddleback.certificates.linearity.misfit`). In the notation of :mod:`.noise_forms`, with ζ(x) that difference for f = V and ζ_π its mean
over π's actions, V = u_π + γφ_πq + γζ_π and q = BP̂V + Bξ. So q = NP̂u_π + Nξ + γNP̂ζ_π, and besides the forms in ξ

    (V − V̂)(s) has  γζ_π(s) + γ²φ_πNP̂ζ_π,        A(x) − Â(x) has  γ(ζ(x) − ζ_π(s)) + γ²(φ(x) − φ_π(s))ᵀNP̂ζ_π,        |ζ| ≤ span(V)·o.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from saddleback.problem.spaces import Array


@dataclass(frozen=True)
class Bias:
    """γ, o ``(SA,)`` (None: P is linear), the policy ``(S, A)`` and the fresh frequencies ``(c, S)``."""

    gamma: float
    off: Array | None
    policy: Array
    P: Array

    @cached_property
    def _here(self) -> Array:
        """The mean of o over the policy's actions ``(S,)``."""
        assert self.off is not None
        return np.asarray((self.policy * self.off.reshape(self.policy.shape)).sum(axis=1))

    def of_states(self, rows: Array) -> Array:
        """Of (V − V̂)(s) less its mean over states, for each unit of span(V) ``(S,)``; ``rows`` are the coefficients of ξ."""
        return np.zeros(len(rows)) if self.off is None else self._sum(self._here + self._here.mean(), rows)

    def at_start(self, start: Array, row: Array) -> float:
        """The same of (V − V̂)(ρ)."""
        return 0.0 if self.off is None else float(self._sum(start @ self._here, row))

    def of_advantages(self, rows: Array) -> Array:
        """The same of A − Â ``(SA,)``; 0 at the pairs of a deterministic policy, whose advantages are 0."""
        if self.off is None:
            return np.zeros(len(rows))
        bias = self._sum(self.off + np.repeat(self._here, self.policy.shape[1]), rows)
        return np.where((self.policy == 1).ravel(), 0.0, bias)

    def _sum(self, here: Array, rows: Array) -> Array:
        """γ(here + |rows|P̂o): the rows have a γ in them."""
        return np.asarray(self.gamma * (here + np.abs(rows) @ (self.P @ self._here)))
