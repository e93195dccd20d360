"""The pairs a design may choose from: their features as one checked matrix Φ whose row s·A + a is φ(s, a), the design that takes
them all, their leverages, and the pairs a design can spare.

The full design C = S × A, every pair weighted alike, is the tabular case (Algs. 6 and 7), and a yardstick for the others.

Features Φ ``(n, d)`` come with a ``span`` M ``(d, r)``: Φ M has independent columns, r the rank, so that G below is that of
Φ M and invertible. All n leverages take one pass over Φ, a product with a ``d × r`` matrix, in pieces that stay in cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design, full_design, leverages, weighted_design
from saddleback.errors import InputError, require
from saddleback.features import OneHot
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import RANK_TOLERANCE, on_grid
from saddleback.problem.phases import phase
from saddleback.problem.spaces import Actions, Array, States

_CHUNK = 1 << 16  # pairs per call of the feature map: its temporaries stay small
_MOST_BYTES = 1 << 33  # of Φ; beyond it a pool of candidates is the way


def candidate_features(problem: CMDP) -> tuple[States, Actions, Array]:
    """The candidate pairs ``(n,)``, ``(n,)`` of ``problem`` and Φ ``(n, d)``, float64 and finite."""
    if problem.features is None:
        remedy = "use the design 'full' for a tabular problem"
        raise InputError("features", "must be given for this design", None, remedy)
    states, actions = problem.pairs()
    _check_pairs(problem, states, actions)
    if problem.allowed is not None:  # the others have the features of one that is allowed
        allowed = problem.allowed[states, actions]
        states, actions = states[allowed], actions[allowed]
    n, d = len(states), problem.features.dim
    rule = f"must be few enough for their features to fit in {_MOST_BYTES >> 30} GiB"
    remedy = "pass a pool of candidates, or use the design 'full' for one-hot features"
    require(n * d * 8 <= _MOST_BYTES, "candidates", rule, f"{n} pairs with {d} features", remedy)
    Phi = np.empty((n, d))
    for first in range(0, n, _CHUNK):
        chunk = slice(first, min(first + _CHUNK, n))
        with phase(f"computing {d:,} features of {n:,} pairs") as advance:
            advance(f"{first:,} of {n:,}")
            rows = np.asarray(problem.features.at(states[chunk], actions[chunk]))
        expected = (chunk.stop - first, d)
        good = rows.shape == expected and rows.dtype == np.float64
        rule = f"must give a float64 array {expected} for {expected[0]} pairs"
        remedy = "mend the feature map; float32 loses the digits the iteration needs"
        require(good, "features", rule, f"{rows.dtype} {rows.shape}", remedy)
        bad = np.argwhere(~np.isfinite(rows))
        if bad.size:
            i, j = bad[0]
            where = f"state {states[first + i]}, action {actions[first + i]}"
            raise InputError("features", "must be finite", f"{rows[i, j]} in column {j} at {where}", "mend the map")
        Phi[chunk] = rows
    return states, actions, Phi


def _check_pairs(problem: CMDP, states: States, actions: Actions) -> None:
    wrong = problem.states.well_formed(states)
    require(wrong is None, "candidates", f"states {wrong}", "that", "match the state space")
    good = actions.shape == (len(states),) and actions.dtype.kind in "iu" and len(states) > 0
    rule = "must hold as many integer actions as states, at least one"
    remedy = "give one action a state"
    require(good, "candidates", rule, f"{len(states)} states with {actions.dtype} actions {actions.shape}", remedy)
    outside = problem.states.outside(states) | (actions < 0) | (actions >= problem.num_actions)
    bad = np.flatnonzero(outside)
    if bad.size:
        pair = f"state {states[bad[0]]}, action {actions[bad[0]]}"
        raise InputError("candidates", "must lie in the state and action spaces", pair, "remove that pair")


Rows = NDArray[np.int64]

CHUNK = 1 << 13
"""Candidates per piece of a pass: 3 MB for 50 features."""

_POOL = 1 << 12  # candidates on which pruning is tried before it is verified on all


class Optimum(NamedTuple):
    """Weights ρ̃ ``(n,)`` that sum to one, their g = max ν, and the number of steps (or rounds) taken."""

    weights: Array
    leverage_bound: float
    iterations: int


def whitening(features: Array, weights: Array, span: Array) -> Array | None:
    """M R⁻¹ ``(d, r)`` with R from the QR factorisation of √ρ̃ Φ M, so that ν = ‖φᵀM R⁻¹‖²; None if rows do not span."""
    R = np.linalg.qr(np.sqrt(weights)[:, None] * (features @ span), mode="r")
    if len(R) < span.shape[1]:
        return None
    singular = np.linalg.svd(R, compute_uv=False)
    return span @ np.linalg.inv(R) if singular[-1] > RANK_TOLERANCE * singular[0] else None


def all_leverages(features: Array, white: Array) -> Array:
    """ν ``(n,)``, without a second matrix of the size of Φ."""
    nu = np.empty(len(features))
    for first in range(0, len(features), CHUNK):
        piece = slice(first, first + CHUNK)
        nu[piece] = leverages(features[piece], white)
    return nu


def largest(values: Array, count: int) -> Rows:
    """Indices of the ``count`` largest values, in no particular order; of equal ones, up to rounding error, the first."""
    if count >= len(values):
        return np.arange(len(values))
    grid = on_grid(values)
    edge = np.partition(grid, len(grid) - count)[len(grid) - count]
    above, level = np.flatnonzero(grid > edge), np.flatnonzero(grid == edge)
    return np.concatenate([above, level[: count - len(above)]])


def prune(features: Array, weights: Array, target: float, span: Array | None = None) -> tuple[Array, float]:
    """Drop as many of the lightest pairs as leave g ≤ ``target``; the weights renormalised and their g, computed anew.

    Every pair of the coreset costs samples. The number is found by bisection on the candidates of largest leverage, then
    verified on all ``(n, d)``; those that break it join the pool, and the search goes on below. Without ``span`` the
    features must have rank d.
    """
    M = np.eye(features.shape[1]) if span is None else span
    rho = weights / weights.sum()
    C = np.flatnonzero(rho)
    C = C[np.argsort(on_grid(rho[C]), kind="stable")]  # lightest first

    def without(count: int) -> Array | None:
        kept = C[count:]
        return whitening(features[kept], rho[kept] / rho[kept].sum(), M)

    white = without(0)
    if white is None:
        return rho, np.inf
    nu = all_leverages(features, white)
    g = float(nu.max())
    pool, high = largest(nu, _POOL), len(C) - M.shape[1]
    while g <= target:
        low, rows = 0, features[pool]
        while low < high:  # the largest number of pairs to drop, by bisection
            middle = (low + high + 1) // 2
            white = without(middle)
            if white is not None and leverages(rows, white).max() <= target:
                low = middle
            else:
                high = middle - 1
        white = without(low)
        if low == 0 or white is None:
            break
        nu = all_leverages(features, white)
        if nu.max() <= target:
            rho[C[:low]] = 0.0
            return rho / rho.sum(), float(nu.max())
        pool, high = np.union1d(pool, largest(nu, _POOL)), low - 1
    return rho, g


@dataclass(frozen=True)
class Full:
    """All pairs. Without features, or with one-hot ones, W is the identity; with others a regression on all candidates."""

    def design(self, problem: CMDP) -> Design:
        """C = S × A, or all candidate pairs."""
        if problem.features is None or isinstance(problem.features, OneHot):
            good = problem.candidates is None and problem.num_states is not None
            found = "a continuous state space" if problem.candidates is None else "a pool of candidates"
            rule = "must be all pairs of a finite state space for a table of values"
            remedy = "leave them out, or give features that carry over from one pair to another"
            require(good, "candidates", rule, found, remedy)
            states, actions = problem.pairs()
            good = problem.features is None or problem.features.dim == len(states)
            rule = f"must have one entry for each of the {len(states)} pairs"
            remedy = "make OneHot and the problem agree on the number of states"
            require(good, "features", rule, problem.features and problem.features.dim, remedy)
            return full_design(states, actions)
        states, actions, Phi = candidate_features(problem)
        equal = np.full(len(states), 1.0 / len(states))
        return weighted_design(states, actions, Phi, equal, complete=problem.lists_all_pairs)
