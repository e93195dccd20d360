"""A mixture as a file, for anyone to use and to check. Member k is played for a whole episode with probability ``weights[k]``.

A *table*, on a finite problem: in state s it takes action a with probability ``probabilities[k, s, a]``.

    weights (k,)   probabilities (k, S, A)

*Linear*, where states are too many to list: it takes argmax_a ⟨φ(s, a), theta[k]⟩, the lowest action first, or where beta[k] > 0
an action with probability ∝ exp(beta[k] ⟨φ(s, a), theta[k]⟩).

    weights (k,)   theta (k, d)   beta (k,)   num_actions ()   probes (n,) or (n, dim)   maxima (k, n)

Names of states and actions may be there too, ``state_names (S,)`` and ``action_names (A,)``, for people.

φ is code, and a file holds no code: whoever loads it brings the feature map (``features=problem.features``), which must have
the recorded values max_a ⟨φ(s, a), theta[k]⟩ at the recorded states. Until then the members know θ and nothing else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from saddleback.errors import InputError, require
from saddleback.files.npz import BUDGET, ArraySpec, read_arrays, write_arrays
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import GreedyPolicy, MixturePolicy, SoftmaxPolicy, TabularPolicy
from saddleback.problem.spaces import Array, Features, States

_SPECS = {
    "weights": ArraySpec("real", (1,)),
    "probabilities": ArraySpec("real", (3,), required=False),
    "theta": ArraySpec("real", (2,), required=False),
    "beta": ArraySpec("real", (1,), required=False),
    "num_actions": ArraySpec("integer", (0,), required=False),
    "probes": ArraySpec("real", (1, 2), required=False),
    "maxima": ArraySpec("real", (2,), required=False),
    "state_names": ArraySpec("text", (1,), required=False),
    "action_names": ArraySpec("text", (1,), required=False),
}
_LINEAR = "theta", "beta", "num_actions", "probes", "maxima"
_TOLERANCE = 1e-9  # as for the rows of P
_MOST_PROBES = 8
_AGAIN = "write it again with save_policy"


@dataclass(frozen=True, eq=False)
class AbsentFeatures:
    """Stands for the feature map of a linear policy that was read from a file, until :func:`with_features` brings it.

    ``maxima[k]`` are the values of member k at ``probes``, by which a wrong map is known.
    """

    dim: int
    num_actions: int
    probes: States
    maxima: Array
    direct: bool = field(default=True, init=False)

    def _refuse(self, *_: Any) -> NoReturn:
        """Everything that needs φ."""
        remedy = (
            "load it with features=problem.features, or use `saddleback act`, which finds them by the problem's name"
        )
        raise InputError("features", f"must be given to a linear policy in {self.dim} dimensions", None, remedy)

    at = all = values = maximum = argmax = _refuse


def save_policy(mixture: MixturePolicy, problem: CMDP, path: str | os.PathLike[str], *, names: bool = False) -> None:
    """Write the members as tables of probabilities where the states can be listed, else as θ.

    With ``names`` the file also has those of states and actions, as far as the problem has any.
    """
    words = {"state_names": problem.state_names, "action_names": problem.actions} if names else {}
    named = {word: np.array(given, dtype=str) for word, given in words.items() if given}
    S, A, k = problem.num_states, problem.num_actions, len(mixture.members)
    size = 8 * k * (S or 0) * A
    if S is not None and size <= BUDGET:
        every = np.arange(S)
        probabilities = np.array([member.probabilities(every) for member in mixture.members])
        write_arrays(path, {"weights": mixture.weights, "probabilities": probabilities, **named})
        return
    if problem.features is not None and all(isinstance(m, (GreedyPolicy, SoftmaxPolicy)) for m in mixture.members):
        write_arrays(path, _linear_arrays(mixture, problem, problem.features) | named)
        return
    remedy = "keep the policy object, whose members are small arrays"
    if S is None:
        raise InputError("policy", "must belong to a finite problem to be written as a table", problem.states, remedy)
    rule = f"must take at most {BUDGET / 1e9:g} GB as a table of probabilities"
    raise InputError("policy", rule, f"{size / 1e9:.3g} GB ({k} members, {S} states, {A} actions)", remedy)


def load_mixture(path: str | os.PathLike[str], budget: int = BUDGET, features: Features | None = None) -> MixturePolicy:
    """Read a mixture, its members in the order of the file; a linear one acts once it has its ``features``."""
    arrays = read_arrays(path, _SPECS, budget)
    w = arrays["weights"]
    linear, rule = "theta" in arrays, "must hold one of probabilities and theta"
    require(("probabilities" in arrays) != linear, f"{path}", rule, sorted(arrays), _AGAIN)
    for name in _LINEAR:
        require((name in arrays) == linear, f"{path}: {name}", "must go with theta", sorted(arrays), "write it again")
    members = _linear_members(path, arrays) if linear else _tables(path, arrays["probabilities"], len(w))
    for k in np.flatnonzero(w < 0)[:1]:
        raise InputError(f"{path}: weights[{k}]", "must be non-negative", w[k], "give probabilities")
    with np.errstate(over="ignore"):  # an infinite sum is not 1 either
        total = float(w.sum())
    require(abs(total - 1) <= _TOLERANCE, f"{path}: weights", "must sum to 1", total, "divide them by their sum")
    mixture = MixturePolicy(members, w)
    return mixture if features is None else with_features(mixture, features)


def with_features(mixture: MixturePolicy, features: Features) -> MixturePolicy:
    """The mixture with the feature map that its members were made with, checked; one that has it is returned as it is."""
    return replace(mixture, members=tuple(_with_features(m, k, features) for k, m in enumerate(mixture.members)))


def _with_features(member: Any, k: int, features: Features) -> Any:
    absent = getattr(member, "features", None)
    if not isinstance(absent, AbsentFeatures):
        return member
    found, wanted = (features.dim, features.num_actions), (absent.dim, absent.num_actions)
    remedy = "give the features of the problem that was solved, in the version that was used"
    require(found == wanted, "features", f"must have (d, A) = {wanted}", found, remedy)
    now = features.maximum(absent.probes, member.theta)
    scale = 1.0 + np.abs(absent.maxima[k])
    for i in np.flatnonzero(~(np.abs(now - absent.maxima[k]) <= 1e-6 * scale))[:1]:
        rule = f"must give member {k} the value {absent.maxima[k, i]:.9g} in state {absent.probes[i]}, as recorded"
        raise InputError("features", rule, f"{now[i]:.9g}", remedy)
    return replace(member, features=features)


def _linear_arrays(mixture: MixturePolicy, problem: CMDP, features: Features) -> dict[str, Any]:
    probes = problem.start.states[:_MOST_PROBES]
    members: list[Any] = list(mixture.members)
    theta = np.array([m.theta for m in members])
    own = np.array([m.features.maximum(probes, m.theta) for m in members])
    maxima = np.array([features.maximum(probes, t) for t in theta])
    rule = "must have members over the problem's own features"
    require(bool(np.array_equal(own, maxima)), "policy", rule, "others", "solve the problem itself")
    return {
        "weights": mixture.weights,
        "theta": theta,
        "beta": np.array([getattr(m, "beta", 0.0) for m in members]),
        "num_actions": np.int64(features.num_actions),
        "probes": probes,
        "maxima": maxima,
    }


def _linear_members(path: str | os.PathLike[str], arrays: dict[str, Any]) -> tuple[GreedyPolicy | SoftmaxPolicy, ...]:
    theta, beta, maxima = arrays["theta"], arrays["beta"], arrays["maxima"]
    k, n, A = len(arrays["weights"]), len(arrays["probes"]), int(arrays["num_actions"])
    shapes = [theta.shape[0], len(beta), *maxima.shape]
    rule = f"must have a row for each of the {k} weights, and a column of maxima for each of the {n} probes"
    found = [theta.shape, beta.shape, maxima.shape]
    require(shapes == [k, k, k, n] and theta.size > 0, f"{path}: theta, beta, maxima", rule, found, _AGAIN)
    require(A >= 1, f"{path}: num_actions", "must be at least 1", A, _AGAIN)
    for i in np.flatnonzero(beta < 0)[:1]:
        raise InputError(f"{path}: beta[{i}]", "must not be negative", beta[i], "0 means greedy")
    probes = arrays["probes"]
    states = probes.astype(np.int64) if probes.ndim == 1 else probes
    absent = AbsentFeatures(theta.shape[1], A, states, maxima)
    return tuple(
        SoftmaxPolicy(absent, t, float(b)) if b > 0 else GreedyPolicy(absent, t)
        for t, b in zip(theta, beta, strict=True)
    )


def _tables(path: str | os.PathLike[str], p: Array, k: int) -> tuple[TabularPolicy, ...]:
    rule, good = f"must have shape ({k}, S, A)", p.shape[0] == k and p.size > 0
    require(good, f"{path}: probabilities", rule, p.shape, "give one table a weight")
    with np.errstate(over="ignore"):
        sums = p.sum(axis=2)
    for i, s, a in np.argwhere(p < 0)[:1]:
        raise InputError(f"{path}: probabilities[{i}, {s}, {a}]", "must be non-negative", p[i, s, a], "mend the row")
    for i, s in np.argwhere(np.abs(sums - 1) > _TOLERANCE)[:1]:
        raise InputError(f"{path}: probabilities[{i}, {s}]", "must sum to 1", sums[i, s], "mend the row")
    return tuple(TabularPolicy.stochastic(member) for member in p)
