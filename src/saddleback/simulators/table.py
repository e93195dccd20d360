"""A known finite model ⟨S, A, P, r, c, b, ρ, γ⟩: it can be sampled from, and it can be checked against.

:meth:`Table.problem` is what the agent knows (no P), :meth:`Table.simulator` is Gen. Solvers, evaluators and
certificates see those two only; the table itself is for :mod:`saddleback.exact`.

P is a sparse ``(S·A, S)`` matrix with row s·A + a. It is never renormalised silently: a row that does not sum to one
within 1e-9 is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import InputError, require
from saddleback.features import FeatureMatrix
from saddleback.problem.actions import permitted_policy, read_allowed, stand_ins_of
from saddleback.problem.cmdp import CMDP, Constraint, Sense, Start
from saddleback.problem.criteria import Unit, UnitName
from saddleback.problem.digest import problem_digest
from saddleback.problem.policies import TabularPolicy, as_table
from saddleback.problem.spaces import Actions, Array, FiniteStates, States, unmasked
from saddleback.problem.user_code import frozen
from saddleback.simulators.generative_model import GenerativeModel

ROW_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Table:
    """Arrays in the user's units: ``reward`` ``(S, A)``, ``constraints`` ``(m, S, A)``, ``thresholds`` ``(m,)``.

    Build it with :meth:`Table.of`, which checks everything. ``reward_range`` and ``ranges`` (one per constraint) declare
    the span of the signals where it is not their smallest and largest value. Thresholds are discounted totals; ``units`` says
    which of them are shown per step.
    """

    P: scipy.sparse.csr_array
    reward: Array
    constraints: Array
    thresholds: Array
    senses: tuple[Sense, ...]
    names: tuple[str, ...]
    gamma: float
    rho: Array
    phi: Array | None = None
    reward_range: tuple[float, float] | None = None
    ranges: tuple[tuple[float, float] | None, ...] | None = None
    name: str = "table"
    state_names: Sequence[str] | None = None
    actions_allowed: NDArray[np.bool_] | None = None
    minimise: bool = False
    units: tuple[UnitName, ...] | None = None
    preferred: Sequence[int] | None = None

    @classmethod
    def of(
        cls,
        P: Any,
        reward: ArrayLike,
        constraints: ArrayLike,
        thresholds: ArrayLike,
        *,
        gamma: float,
        rho: ArrayLike,
        senses: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        phi: ArrayLike | None = None,
        actions_allowed: Any = None,
        **more: Any,
    ) -> Table:
        """Check and assemble; ``P`` is dense ``(S, A, S)`` or sparse ``(S·A, S)``.

        ``actions_allowed`` is a mask, lists or a function as for a CMDP. Rows and signals of actions that are not allowed
        are not looked at: the table has those of their stand-ins.
        """
        r, c = as_numbers("reward", reward), as_numbers("constraints", constraints)
        b, start = np.atleast_1d(as_numbers("thresholds", thresholds)), as_numbers("rho", rho)
        discount = as_numbers("gamma", gamma)
        require(discount.size == 1, "gamma", "must be one number", f"shape {discount.shape}", "give a scalar")
        require(r.ndim == 2 and r.size > 0, "reward", "must have shape (S, A)", r.shape, "give one value a pair")
        S, A = r.shape
        m = len(b)
        remedy = "one (S, A) array a threshold"
        require(c.shape == (m, S, A), "constraints", f"must have shape {(m, S, A)}", c.shape, remedy)
        require(start.shape == (S,), "rho", f"must have shape ({S},)", start.shape, "one probability a state")
        senses = tuple(senses) if senses is not None else (">=",) * m
        names = tuple(names) if names is not None else tuple(f"constraint-{i}" for i in range(m))
        require(len(senses) == m, "senses", f"must have {m} entries", len(senses), "one a threshold")
        require(len(names) == m, "names", f"must have {m} entries", len(names), "one a threshold")
        allowed, rows = read_allowed(actions_allowed, FiniteStates(S), A, None), None
        if allowed is not None:
            meant = stand_ins_of(allowed)
            r, c = np.take_along_axis(r, meant, axis=1), np.take_along_axis(c, meant[None], axis=2)
            rows = (np.arange(S)[:, None] * A + meant).ravel()
        if phi is not None:
            shape = np.shape(phi)
            remedy = "one feature vector a pair"
            require(len(shape) == 3 and shape[:2] == (S, A), "phi", f"must have shape ({S}, {A}, d)", shape, remedy)
        table = cls(
            transition_matrix(P, S, A, rows),
            r,
            c,
            b,
            cast(tuple[Sense, ...], senses),
            names,
            float(discount.item()),
            start,
            None if phi is None else frozen(unmasked("phi", phi)),
            actions_allowed=allowed,
            **more,
        )
        table.problem()  # the problem checks ranges, thresholds, gamma, rho and features
        return table

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.reward.shape[0])

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.reward.shape[1])

    def problem(self) -> CMDP:
        """What the agent knows."""
        m, H = len(self.names), 1.0 / (1.0 - self.gamma) if self.gamma < 1 else 1.0  # a gamma of 1 is refused below
        ranges, units = self.ranges or (None,) * m, self.units or ("discounted",) * m
        rows = zip(self.names, self.constraints, self.senses, self.thresholds, ranges, units, strict=True)
        constraints = [Constraint(n, c, sense, Unit(unit, H).of(b), span, unit) for n, c, sense, b, span, unit in rows]
        return CMDP(
            gamma=self.gamma,
            start=Start.over_all(self.rho),
            num_actions=self.num_actions,
            states=FiniteStates(self.num_states),
            reward=self.reward,
            constraints=constraints,
            features=None if self.phi is None else FeatureMatrix(self.phi),
            reward_range=self.reward_range,
            name=self.name,
            state_names=self.state_names,
            actions_allowed=self.actions_allowed,
            minimise=self.minimise,
            preferred=self.preferred,
        )

    def simulator(self) -> GenerativeModel:
        """Gen: independent next states from P."""
        return GenerativeModel(TableSampler(self.P, self.num_actions, self), FiniteStates(self.num_states))

    def permitted(self, policy: TabularPolicy) -> TabularPolicy:
        """The policy with an allowed action in the place of every other: the one it stands for, so no value changes."""
        if self.actions_allowed is None:
            return policy
        return as_table(permitted_policy(policy, stand_ins_of(self.actions_allowed)), self.num_states)

    def utilities(self) -> Array:
        """r, c_1..c_m in the paper's units as ``(S·A, 1+m)``."""
        problem = self.problem()
        return problem.utilities(*problem.pairs())


class TableSampler:
    """Next states by inverse cumulative sums of the rows of P."""

    is_ours = True

    def __init__(self, P: scipy.sparse.csr_array, num_actions: int, table: Table | None = None):
        self.num_actions, self.table = num_actions, table
        self.indices, self.indptr = P.indices.astype(np.int64), P.indptr.astype(np.int64)
        # Sums within each row (rows of one length at a time): one sum over the whole table would lose the digits of small
        # probabilities.
        lengths = np.diff(self.indptr)
        self.cumulative = np.empty_like(P.data)
        for length in np.unique(lengths):
            at = self.indptr[:-1][lengths == length][:, None] + np.arange(length)
            self.cumulative[at] = np.cumsum(P.data[at], axis=1)
        self.steps = max(1, int(np.ceil(np.log2(max(2, int(lengths.max()) + 1)))))

    def __call__(self, states: States, actions: Actions, rng: np.random.Generator) -> NDArray[np.int64]:
        """One next state per pair."""
        rows = states * self.num_actions + actions
        u = rng.random(len(rows))
        if len(rows) > 1 and np.all(rows == rows[0]):  # a block of one pair: one sorted search
            lo, hi = self.indptr[rows[0]], self.indptr[rows[0] + 1]
            position = np.searchsorted(self.cumulative[lo:hi], u * self.cumulative[hi - 1], side="right")
            return np.asarray(self.indices[lo + np.minimum(position, hi - lo - 1)])
        low, high = self.indptr[rows], self.indptr[rows + 1] - 1
        u = u * self.cumulative[high]
        for _ in range(self.steps):  # a binary search in every row at once
            middle = (low + high) // 2
            right = self.cumulative[middle] <= u
            low, high = np.where(right, np.minimum(middle + 1, high), low), np.where(right, high, middle)
        return np.asarray(self.indices[low])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "table": None}  # who draws elsewhere needs the rows alone


def table_behind(problem: CMDP, simulator: GenerativeModel) -> Table | None:
    """The table that a simulator draws from, where the problem asks just what the table says."""
    sampler = getattr(simulator._sample, "sample", simulator._sample)  # beneath stand-ins of actions
    table = sampler.table if isinstance(sampler, TableSampler) else None
    if table is None or problem.start.sampler is not None or problem.candidates is not None:
        return None
    own = table.problem()
    phi = [None if p.features is None else getattr(p.features, "phi", np.empty(0)) for p in (own, problem)]
    alike = phi[0] is phi[1] is None or (phi[0] is not None and phi[1] is not None and np.array_equal(phi[0], phi[1]))
    return table if alike and problem_digest(own) == problem_digest(problem) else None


def as_numbers(name: str, given: Any) -> Array:
    """An array of float64, or an :class:`InputError` where the input is ragged, text or of lower precision."""
    try:
        x = unmasked(name, given)
    except ValueError:
        remedy = "make all rows alike"
        raise InputError(name, "must be a rectangular array of numbers", "a ragged one", remedy) from None
    remedy = "convert it where it is made"
    require(x.dtype.kind in "iub" or x.dtype == np.float64, name, "must hold float64 numbers", str(x.dtype), remedy)
    return x.astype(np.float64)


def checked_csr(name: str, matrix: Any) -> scipy.sparse.csr_array:
    """A sparse matrix whose index arrays can be trusted: scipy takes rows from any, and reads foreign memory."""
    require(matrix.dtype == np.float64, name, "must be float64", str(matrix.dtype), "convert it where it is made")
    try:
        csr: scipy.sparse.csr_array = scipy.sparse.csr_array(matrix)
        csr.check_format(full_check=True)
    except ValueError as error:
        raise InputError(name, "must be a well-formed sparse matrix", str(error), "build it anew") from None
    return csr


def transition_matrix(
    P: Any, num_states: int, num_actions: int, rows: NDArray[np.int64] | None = None
) -> scipy.sparse.csr_array:
    """P, or these ``rows`` s·A + a of it, as a checked ``(S·A, S)`` CSR matrix; errors name the row and the value."""
    S, A = num_states, num_actions
    if not scipy.sparse.issparse(P):
        dense = as_numbers("P", P)
        require(dense.shape == (S, A, S), "P", f"must have shape {(S, A, S)}", dense.shape, "index it [s, a, s']")
        P = scipy.sparse.csr_array(dense.reshape(S * A, S))
    matrix = checked_csr("P", P)
    require(matrix.shape == (S * A, S), "P", f"must have shape {(S * A, S)}", matrix.shape, "row s*A + a")
    matrix = matrix.copy() if rows is None else scipy.sparse.csr_array(matrix[rows])  # not the caller's arrays any more
    if not matrix.has_canonical_format:
        matrix.sum_duplicates()
    bad = np.flatnonzero(~np.isfinite(matrix.data) | (matrix.data < 0))
    if bad.size:
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right") - 1)
        remedy = "give probabilities"
        raise InputError(_row_name(row, A), "must be finite and non-negative", matrix.data[bad[0]], remedy)
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    wrong = np.flatnonzero(np.abs(sums - 1) > ROW_SUM_TOLERANCE)
    if wrong.size:
        rule, remedy = "must sum to 1", "mend the table; divide the rows by their sums only if you know why they differ"
        raise InputError(_row_name(int(wrong[0]), A), rule, f"{sums[wrong[0]]:.12g} ({wrong.size} such rows)", remedy)
    return matrix


def _row_name(row: int, num_actions: int) -> str:
    return f"P[state {row // num_actions}, action {row % num_actions}]"
