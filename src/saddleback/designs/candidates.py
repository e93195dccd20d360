"""The pairs a design may choose from and their features, as one checked matrix Φ whose row s·A + a is φ(s, a)."""

from __future__ import annotations

import numpy as np

from saddleback.errors import InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, Array, States

_CHUNK = 1 << 16  # pairs per call of the feature map: its temporaries stay small
_MOST_BYTES = 1 << 33  # of Φ; beyond it a pool of candidates is the way


def candidate_features(problem: CMDP) -> tuple[States, Actions, Array]:
    """The candidate pairs ``(n,)``, ``(n,)`` of ``problem`` and Φ ``(n, d)``, float64 and finite."""
    if problem.features is None:
        raise InputError(
            "features", "must be given for this design", None, "use the design 'full' for a tabular problem"
        )
    states, actions = problem.pairs()
    _check_pairs(problem, states, actions)
    if problem.allowed is not None:  # the others have the features of one that is allowed
        allowed = problem.allowed[states, actions]
        states, actions = states[allowed], actions[allowed]
    n, d = len(states), problem.features.dim
    require(
        n * d * 8 <= _MOST_BYTES,
        "candidates",
        f"must be few enough for their features to fit in {_MOST_BYTES >> 30} GiB",
        f"{n} pairs with {d} features",
        "pass a pool of candidates, or use the design 'full' for one-hot features",
    )
    Phi = np.empty((n, d))
    for first in range(0, n, _CHUNK):
        chunk = slice(first, min(first + _CHUNK, n))
        rows = np.asarray(problem.features.at(states[chunk], actions[chunk]))
        expected = (chunk.stop - first, d)
        require(
            rows.shape == expected and rows.dtype == np.float64,
            "features",
            f"must give a float64 array {expected} for {expected[0]} pairs",
            f"{rows.dtype} {rows.shape}",
            "mend the feature map; float32 loses the digits the iteration needs",
        )
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
    require(
        actions.shape == (len(states),) and actions.dtype.kind in "iu" and len(states) > 0,
        "candidates",
        "must hold as many integer actions as states, at least one",
        f"{len(states)} states with {actions.dtype} actions {actions.shape}",
        "give one action a state",
    )
    outside = problem.states.outside(states) | (actions < 0) | (actions >= problem.num_actions)
    bad = np.flatnonzero(outside)
    if bad.size:
        pair = f"state {states[bad[0]]}, action {actions[bad[0]]}"
        raise InputError("candidates", "must lie in the state and action spaces", pair, "remove that pair")
