"""§2, the Bellman operators of a known table, and what their residuals prove.

    (T_q V)(s) = max_a [qᵀu(s, a) + γ P(·|s, a)ᵀV]       u = (r, c_1..c_m) ∈ [0, 1],  q ≥ 0         Model.greedy
    (T_π V)(s) = u(s, π(s)) + γ P(·|s, π(s))ᵀV           one column of V a utility                  Chain.sweep
    d ↦ ρ + γ P_πᵀ d                                     whose fixed point is the occupancy         Chain.push

For *any* V, however it was found, with l = min_s (TV − V)(s) and h = max_s (TV − V)(s),

    TV + γH·l  ≤  V_π  ≤  TV + γH·h   (T = T_π),          max_π V_qᵀu^π  ≤  TV + γH·h   (T = T_q)          bracket

and the middle of the first is MacQueen's shift: on a chain that forgets its start, h − l falls far faster than γⁿ. This
file is the readable form, in NumPy and SciPy; for large tables :mod:`saddleback.exact.sparse_bellman` does the same in
one pass over the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import NumericalError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.criteria import Discounted
from saddleback.problem.policies import maximum_over_actions
from saddleback.problem.spaces import Array
from saddleback.simulators.table import ROW_SUM_TOLERANCE, Table

Choice = NDArray[np.int32]  # a deterministic policy: one action a state

COMPILE_FROM = 5_000_000  # entries of P: from here on compiled sweeps win back the import of numba
TIE = 64 * float(np.finfo(np.float64).eps)  # of Σq·H: two actions closer than this are tied
_ROUNDING = 4 * float(np.finfo(np.float64).eps)


class Limits(NamedTuple):
    """Proved limits of a value."""

    low: Array
    high: Array


class Greedy(NamedTuple):
    """T_qV ``(S,)``, a policy that attains it up to ties, and the limits of T_qV − V over the states."""

    values: Array
    actions: Choice
    low: float
    high: float


@dataclass(frozen=True)
class Discount:
    """γ, and by how much rows of P may differ from a sum of one: what a Bellman residual is worth."""

    gamma: float
    uneven: float

    @property
    def horizon(self) -> float:
        """H."""
        return Discounted(self.gamma).horizon

    def reach(self, row: float = 1.0) -> float:
        """Σ_{t≥1} (γ·row)ᵗ: γH for rows that sum to one."""
        return self.gamma * row / (1.0 - self.gamma * row)

    def bracket(self, low: ArrayLike, high: ArrayLike, size: float | Array) -> Limits:
        """Limits of V_π − T_πV from those of T_πV − V; ``size`` is the largest |V|, whose rounding counts too."""
        shrunk, stretched = self.reach(1.0 - self.uneven), self.reach(1.0 + self.uneven)
        rounding = _ROUNDING * self.horizon * size
        below, above = np.asarray(low), np.asarray(high)
        return Limits(
            np.where(below < 0, stretched, shrunk) * below - rounding,
            np.where(above > 0, stretched, shrunk) * above + rounding,
        )


@dataclass(frozen=True)
class Chain:
    """The Markov chain of one deterministic policy: P_π ``(S, S)`` and u_π ``(S, k)``."""

    P: scipy.sparse.csr_array
    utilities: Array
    gamma: float
    kernels: ModuleType | None

    def sweep(self, V: Array, q: Array, new: Array) -> Limits:
        """T_πV into ``new`` ``(S, k)``; limits of T_πV − V over the states, for every column and for V q, ``(k+1,)``."""
        if self.kernels is not None:
            return Limits(*self.kernels.sweep(*_parts(self.P), self.utilities, self.gamma, V, q, new))
        for i in range(V.shape[1]):
            new[:, i] = self.P @ V[:, i]  # SciPy is slower with two columns at once
        new *= self.gamma
        new += self.utilities
        change = new - V
        mixed = change @ q
        return Limits(np.append(change.min(axis=0), mixed.min()), np.append(change.max(axis=0), mixed.max()))

    def push(self, rho: Array, d: Array) -> Array:
        """ρ + γP_πᵀd."""
        if self.kernels is not None:
            return np.asarray(self.kernels.push(*_parts(self.P), self.gamma, rho, d))
        return np.asarray(rho + self.gamma * (self.P.T @ d))


@dataclass(frozen=True)
class Model:
    """A table in the paper's units: P with short indices, u ``(S·A, k)`` with k = 1+m, ρ, γ."""

    P: scipy.sparse.csr_array
    utilities: Array
    rho: Array
    discount: Discount
    num_actions: int
    kernels: ModuleType | None

    @classmethod
    def of(cls, table: Table, problem: CMDP, compiled: bool | None = None) -> Model:
        """The arrays of ``table``; ``compiled`` None means "where it pays"."""
        P = table.P
        discount = Discount(table.gamma, float(np.abs(P @ np.ones(P.shape[1]) - 1.0).max()))
        if table.gamma * (1.0 + 10 * ROW_SUM_TOLERANCE) >= 1.0:
            raise NumericalError(f"gamma = {table.gamma} is too close to 1 for rows of P that sum to 1 within 1e-9.")
        if compiled is None:
            compiled = P.nnz >= COMPILE_FROM
        signals = [table.reward, *table.constraints]
        u = np.empty((table.reward.size, len(signals)), order="C" if compiled else "F")
        for i, x in enumerate(signals):
            u[:, i] = x.ravel()
        u -= problem.base
        u /= problem.scale
        np.clip(u, 0.0, 1.0, out=u)
        if P.indices.dtype != np.int32 and max(P.nnz, *P.shape) < np.iinfo(np.int32).max:
            P = scipy.sparse.csr_array((P.data, P.indices.astype(np.int32), P.indptr.astype(np.int32)), shape=P.shape)
        return cls(P, u, table.rho / table.rho.sum(), discount, table.num_actions, _kernels() if compiled else None)

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.P.shape[1])

    @property
    def pass_share(self) -> float:
        """What a sweep of T_π costs, in passes of T_q."""
        return self.utilities.shape[1] / (2 * self.num_actions)

    def chain(self, actions: Choice) -> Chain:
        """The chain that ``actions`` makes."""
        S, A = self.num_states, self.num_actions
        if self.kernels is not None:
            indptr, indices, data, u = self.kernels.rows_of(*_parts(self.P), self.utilities, actions)
            P = scipy.sparse.csr_array((data, indices, indptr), shape=(S, S))
        else:
            rows = np.arange(S) * A + actions
            P, u = self.P[rows], np.asfortranarray(self.utilities[rows])
        return Chain(P, u, self.discount.gamma, self.kernels)

    def greedy(self, box: Array, V: Array, actions: Choice, tie: float) -> Greedy:
        """T_qV with □_q = ``box`` ``(S·A,)``; where ``actions`` are within ``tie`` of the best they stay."""
        if self.kernels is not None:
            return Greedy(*self.kernels.greedy(*_parts(self.P), box, self.discount.gamma, V, actions, tie))
        S = self.num_states
        Q = (box + self.discount.gamma * (self.P @ V)).reshape(S, -1)
        best = maximum_over_actions(Q)
        better = np.flatnonzero(best - Q[np.arange(S), actions] > tie)
        chosen = actions.copy()
        chosen[better] = (Q[better] >= best[better, None] - tie).argmax(axis=1)
        change = best - V
        return Greedy(best, chosen, float(change.min()), float(change.max()))


def _parts(P: scipy.sparse.csr_array) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger], Array]:
    """CSR arrays for a kernel: without a sign, which spares it the question whether an index counts from the end."""
    unsigned = np.dtype(f"u{P.indices.dtype.itemsize}")
    return P.indptr.view(unsigned), P.indices.view(unsigned), P.data


def _kernels() -> ModuleType:
    """The compiled twins; numba is loaded only here."""
    from saddleback.exact import sparse_bellman

    return sparse_bellman
