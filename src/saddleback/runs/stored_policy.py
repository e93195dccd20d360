"""A stored policy applied, without a simulator call: by ``saddleback act`` for programs that are not written in Python.

The policy's member is drawn once per episode: the same episode seed gives the same member, and the same action at the same
step.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddleback.errors import InputError, require
from saddleback.files.json_file import short
from saddleback.problem.episodes import Episode
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.policy_file import AbsentFeatures, load_mixture, with_features
from saddleback.problem.spaces import Features, FiniteStates, States, StateSpace
from saddleback.runs.run_folder import Run, load_run, without_policy
from saddleback.runs.targets import load_run_problem, load_run_target

_MOST_SEED = 1 << 63
_MOST_LISTED = 100_000  # probabilities: a problem may have more actions than there is memory


class StoredPolicy(NamedTuple):
    """A policy with what its states are; ``names`` are those of the states, ``action_names`` of the actions, where there are any."""

    mixture: MixturePolicy
    space: StateSpace
    names: list[str]
    action_names: list[str]

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
            name = self.action_names[action] if self.action_names else None
            row = {"step": step, "state": point[0].tolist(), "action": action, "action_name": name}
            rows.append({**row, "probabilities": p})
        members = len(self.mixture.members)
        which = {"episode_seed": seed, "member": episode.member, "members": members, "weight": episode.weight}
        return {**which, "actions": rows}

    def place_of(self, member: int) -> int:
        """The place of a member from the most played to the least, from 1, as texts and pages number them."""
        return 1 + int(np.flatnonzero(np.argsort(-self.mixture.weights, kind="stable") == member)[0])


def load_stored_policy(
    path: Path, problem_file: Path | None, states: Sequence[str] = (), which: str = "mixture"
) -> StoredPolicy:
    """The policy of a run folder, ``which`` is "mixture" or "stationary", or of a policy file.

    Code is loaded only for the features of a linear policy that are code. A run of an earlier version may need its problem for
    ``states`` that are named.
    """
    stored = None if path.suffix == ".npz" else load_run(path)
    mixture = load_mixture(path) if stored is None else chosen_policy(stored, which)
    if mixture is None:
        assert stored is not None
        raise without_policy(stored)
    first: Any = mixture.members[0]
    if isinstance(first, TabularPolicy):
        question = None if stored is None else stored.question
        if question is not None:
            return StoredPolicy(
                mixture, FiniteStates(len(first.table)), question.states.names or [], question.actions or []
            )
        named = stored is not None and not all(_is_number(part) for text in states for part in text.split(","))
        names = load_run_target(stored, problem_file).problem.state_names if stored is not None and named else None
        return StoredPolicy(mixture, FiniteStates(len(first.table)), list(names or ()), [])
    assert isinstance(first.features, AbsentFeatures)
    if stored is None:
        rule = "must be a run folder where a policy is linear in features, which no policy file holds"
        raise InputError("RUN", rule, str(path), "give the folder, or use saddleback.load_policy(path, features=...)")
    problem = load_run_problem(stored, problem_file)
    if problem.features is None:
        problem = load_run_target(stored, problem_file).problem
    assert problem.features is not None
    names, actions = list(problem.state_names or ()), list(problem.actions or ())
    return StoredPolicy(with_features(mixture, problem.features), problem.states, names, actions)


def chosen_policy(run: Run, which: str = "mixture") -> MixturePolicy | None:
    """The mixture of a run, or as a mixture of one the stationary policy that stands for it."""
    rule = "must be mixture or stationary"
    require(which in ("mixture", "stationary"), "--which", rule, short(which), "leave it out for the mixture")
    if which == "mixture" or (run.mixture is not None and len(run.mixture.members) == 1):
        return run.mixture
    if run.stationary is None:
        rule = "must be mixture where a run keeps no stationary policy"
        remedy = "leave it out: one is kept on a finite problem whose every pair was sampled"
        raise InputError("--which", rule, which, remedy)
    return MixturePolicy((run.stationary,), np.ones(1))


def load_policy(path: str | os.PathLike[str], features: Features | None = None) -> MixturePolicy:
    """The mixture of a policy file, or of a run folder; nothing is unpickled.

    path       what ``save_policy`` or `solve --policy` wrote, or a folder that `solve --out` wrote
    features   the feature map of the problem, for a linear policy over continuous states, which is θ alone: it is checked
               against values recorded in the file. A policy on a finite problem is complete, and a run folder holds its
               features unless they are code
    """
    if not os.path.isdir(path):
        return load_mixture(path, features=features)
    run = load_run(path)
    if run.mixture is None:
        raise without_policy(run)
    if features is None and run.question is not None and run.question.features is not None:
        features = run.question.features.features()
    return run.mixture if features is None else with_features(run.mixture, features)


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
