"""A mixture on a finite problem as a file: ``weights (k,)`` and ``probabilities (k, S, A)``, for anyone to check.

Member k is played for a whole episode with probability ``weights[k]``; it then takes action a in state s with probability
``probabilities[k, s, a]``.
"""

from __future__ import annotations

import os

import numpy as np

from saddleback.errors import InputError, require
from saddleback.policy import MixturePolicy, TabularPolicy
from saddleback.problem import CMDP
from saddleback.storage.npz import BUDGET, ArraySpec, read_arrays, write_arrays

_SPECS = {"weights": ArraySpec("real", (1,)), "probabilities": ArraySpec("real", (3,))}
_TOLERANCE = 1e-9  # as for the rows of P


def save_mixture(mixture: MixturePolicy, problem: CMDP, path: str | os.PathLike[str]) -> None:
    """Write the members' action probabilities at every state of a finite problem."""
    if problem.num_states is None:
        remedy = "keep the policy object, whose members are small arrays"
        raise InputError("policy", "must belong to a finite problem to be written as a table", problem.states, remedy)
    size = 8 * len(mixture.members) * problem.num_states * problem.num_actions
    require(
        size <= BUDGET,
        "policy",
        f"must take at most {BUDGET / 1e9:g} GB as a table of probabilities",
        f"{size / 1e9:.3g} GB ({len(mixture.members)} members, {problem.num_states} states, {problem.num_actions} actions)",
        "keep the policy object, whose members are small arrays",
    )
    every = np.arange(problem.num_states)
    probabilities = np.array([member.probabilities(every) for member in mixture.members])
    write_arrays(path, {"weights": mixture.weights, "probabilities": probabilities})


def load_mixture(path: str | os.PathLike[str], budget: int = BUDGET) -> MixturePolicy:
    """Read a mixture, its members as tables in the order of the file."""
    arrays = read_arrays(path, _SPECS, budget)
    w, p = arrays["weights"], arrays["probabilities"]
    require(
        p.shape[0] == len(w) and p.size > 0,
        f"{path}: probabilities",
        f"must have shape ({len(w)}, S, A)",
        p.shape,
        "give one table a weight",
    )
    for k in np.flatnonzero(w < 0)[:1]:
        raise InputError(f"{path}: weights[{k}]", "must be non-negative", w[k], "give probabilities")
    with np.errstate(over="ignore"):  # an infinite sum is not 1 either
        total, sums = float(w.sum()), p.sum(axis=2)
    require(abs(total - 1) <= _TOLERANCE, f"{path}: weights", "must sum to 1", total, "divide them by their sum")
    for k, s, a in np.argwhere(p < 0)[:1]:
        raise InputError(f"{path}: probabilities[{k}, {s}, {a}]", "must be non-negative", p[k, s, a], "mend the row")
    for k, s in np.argwhere(np.abs(sums - 1) > _TOLERANCE)[:1]:
        raise InputError(f"{path}: probabilities[{k}, {s}]", "must sum to 1", sums[k, s], "mend the row")
    return MixturePolicy(tuple(TabularPolicy.stochastic(member) for member in p), w)
