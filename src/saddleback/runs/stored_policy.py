"""A stored policy applied, without a simulator call: by ``saddleback act`` for programs that are not written in Python.

The policy's member is drawn once per episode: the same episode seed gives the same member, and the same action at the same
step.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddleback.errors import InputError, require
from saddleback.files.json_file import short
from saddleback.problem.policies import Episode, MixturePolicy, TabularPolicy
from saddleback.problem.policy_file import AbsentFeatures, load_mixture, with_features
from saddleback.problem.spaces import FiniteStates, States, StateSpace
from saddleback.runs.run_folder import load_run
from saddleback.runs.targets import load_run_target

_MOST_SEED = 1 << 63
_MOST_LISTED = 100_000  # probabilities: a problem may have more actions than there is memory


class StoredPolicy(NamedTuple):
    """A policy with what its states are; ``names`` are those of the states, where they have any."""

    mixture: MixturePolicy
    space: StateSpace
    names: list[str]

    def state(self, text: str) -> States:
        """One state of the policy's space, ``(1,)`` or ``(1, k)``, from its number, its name or its coordinates."""
        if text in self.names:
            return np.array([self.names.index(text)])
        return (
            _number(text, self.space, self.names) if isinstance(self.space, FiniteStates) else _point(text, self.space)
        )

    def actions(self, states: Sequence[str], seed: int, first_step: int = 0) -> dict[str, Any]:
        """What is done in the states of consecutive steps of one episode, JSON-ready."""
        require(0 <= seed < _MOST_SEED, "--episode-seed", "must be a whole number, 0 or more", seed, "use 0, 1, 2 …")
        require(
            0 <= first_step < _MOST_SEED, "--step", "must be a whole number, 0 or more", first_step, "use 0, 1, 2 …"
        )
        episode, rows = Episode.of(self.mixture, seed), []
        for step, text in enumerate(states, start=first_step):
            point = self.state(text)
            listed = self.mixture.num_actions <= _MOST_LISTED
            p = episode.policy.probabilities(point)[0].tolist() if listed else None
            action = int(episode.act(point, step)[0])
            rows.append({"step": step, "state": point[0].tolist(), "action": action, "probabilities": p})
        members = len(self.mixture.members)
        which = {"episode_seed": seed, "member": episode.member, "members": members, "weight": episode.weight}
        return {**which, "actions": rows}


def load_stored_policy(path: Path, problem_file: Path | None, states: Sequence[str]) -> StoredPolicy:
    """The policy of a run folder or of a policy file.

    The problem is built, by its name or from the run's own table, only where the file does not say enough: for ``states``
    that are named, and for the features of a linear policy.
    """
    stored = None if path.suffix == ".npz" else load_run(path)
    mixture = load_mixture(path) if stored is None else stored.mixture
    if mixture is None:
        raise InputError("RUN", "must hold a policy", f"{path}, which has none", "solve it with more samples")
    first: Any = mixture.members[0]
    if isinstance(first, TabularPolicy):
        named = stored is not None and not all(_is_number(part) for text in states for part in text.split(","))
        names = load_run_target(stored, problem_file).problem.state_names if stored is not None and named else None
        return StoredPolicy(mixture, FiniteStates(len(first.table)), list(names or ()))
    assert isinstance(first.features, AbsentFeatures)
    if stored is None:
        rule = "must be a run folder where a policy is linear in features, which no policy file holds"
        raise InputError("RUN", rule, str(path), "give the folder, or use saddleback.load_policy(path, features=...)")
    problem = load_run_target(stored, problem_file).problem
    assert problem.features is not None
    return StoredPolicy(with_features(mixture, problem.features), problem.states, list(problem.state_names or ()))


def _number(text: str, space: FiniteStates, names: list[str]) -> States:
    last, known = space.num - 1, f", or a name such as {names[0]!r}" if names else ""
    rule, remedy = f"must be a whole number, 0 to {last}{known}", "states are numbered from 0"
    try:
        number = int(text)
    except ValueError:
        raise InputError("--state", rule, short(text), remedy) from None
    require(0 <= number <= last, "--state", rule, number, remedy)
    return np.array([number])


def _point(text: str, space: Any) -> States:
    try:
        point = np.array([[float(part) for part in text.split(",")]])
    except ValueError:
        point = np.full((1, 0), np.nan)
    rule, example = f"must be {space.dim} numbers, separated by commas", ",".join(["0.5"] * space.dim)
    require(point.shape[1] == space.dim, "--state", rule, short(text), f"for example --state {example}")
    box = f"must lie between {space.low.tolist()} and {space.high.tolist()}"
    require(not space.outside(point)[0], "--state", box, short(text), "give a state of the problem")
    return point


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
