"""``saddleback act``: what a stored policy does in a state, for any program that can start another.

No simulator is called. The policy's member is drawn once per episode: the same episode seed gives the same member, and the
same action at the same step.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console

from saddleback.cli.common import Json, ProblemFile, print_json
from saddleback.errors import InputError, require
from saddleback.files.json_file import short
from saddleback.problem.cmdp import CMDP
from saddleback.problem.episode import Episode
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.policy_file import AbsentFeatures, load_mixture, with_features
from saddleback.problem.spaces import FiniteStates, States, StateSpace
from saddleback.runs.run_folder import Run, load_run
from saddleback.runs.targets import load_run_target

_MOST_SEED = 1 << 63
_SHOWN = 16  # probabilities in the line for people
_MOST_LISTED = 100_000  # probabilities at all: a problem may have more actions than there is memory


class _Policy(NamedTuple):
    """A policy with what its states are; ``names`` are those of the states, where they have any."""

    mixture: MixturePolicy
    space: StateSpace
    names: list[str]


def act(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A folder that `solve --out` wrote, or a file of `solve --policy`.")
    ],
    state: Annotated[
        list[str],
        typer.Option(
            help="A state's number or name, or its coordinates, as in 0.5,-1. Repeated: the states of consecutive steps.",
        ),
    ],
    episode_seed: Annotated[
        int | None,
        typer.Option(
            help="The same seed gives the same member and actions.", show_default="a new one, which is printed"
        ),
    ] = None,
    step: Annotated[int, typer.Option(help="Number of the (first) state in its episode, from 0.")] = 0,
    problem: ProblemFile = None,
    as_json: Json = False,
) -> None:
    """Apply a stored policy: the action in a state, with the member of the mixture that plays the episode."""
    seed = secrets.randbits(32) if episode_seed is None else episode_seed
    require(0 <= seed < _MOST_SEED, "--episode-seed", "must be a whole number, 0 or more", seed, "use 0, 1, 2 …")
    require(0 <= step < _MOST_SEED, "--step", "must be a whole number, 0 or more", step, "steps are 0, 1, 2 …")
    policy = _load(run, problem, by_name=any(not _is_number(part) for text in state for part in text.split(",")))
    episode = Episode.of(policy.mixture, seed)
    rows = []
    for t, text in enumerate(state, start=step):
        point = _state(text, policy)
        action = int(episode.act(point, t)[0])
        listed = policy.mixture.num_actions <= _MOST_LISTED
        p = episode.policy.probabilities(point)[0].tolist() if listed else None
        rows.append({"step": t, "state": point[0].tolist(), "action": action, "probabilities": p})
    found = {
        "run": str(run),
        "episode_seed": seed,
        "member": episode.member,
        "members": len(policy.mixture.members),
        "weight": episode.weight,
        "actions": rows,
    }
    if as_json:
        print_json(found)
    else:
        _print(found, state)


def _load(path: Path, problem: Path | None, by_name: bool) -> _Policy:
    """The policy and its states; the problem is built only where the file alone does not say enough."""
    if path.suffix == ".npz":
        mixture, stored = load_mixture(path), None
    else:
        stored = load_run(path)
        if stored.mixture is None:
            raise InputError("RUN", "must hold a policy", f"{path}, which has none", "solve it with more samples")
        mixture = stored.mixture
    first: Any = mixture.members[0]
    if isinstance(first, TabularPolicy):
        names = _problem(stored, problem).state_names if by_name and stored is not None else None
        return _Policy(mixture, FiniteStates(len(first.table)), list(names or ()))
    assert isinstance(first.features, AbsentFeatures)
    if stored is None:
        rule = "must be a run folder where a policy is linear in features, which no policy file holds"
        raise InputError("RUN", rule, str(path), "give the folder, or use MixturePolicy.load(path, features=...)")
    found = _problem(stored, problem)
    assert found.features is not None
    return _Policy(with_features(mixture, found.features), found.states, list(found.state_names or ()))


def _problem(stored: Run, file: Path | None) -> CMDP:
    """Built by name or read from the run's own table: no simulator call."""
    return load_run_target(stored, file).problem


def _state(text: str, policy: _Policy) -> States:
    """One state of the policy's space, ``(1,)`` or ``(1, k)``."""
    space = policy.space
    if text in policy.names:
        return np.array([policy.names.index(text)])
    if isinstance(space, FiniteStates):
        last, known = space.num - 1, f", or a name such as {policy.names[0]!r}" if policy.names else ""
        remedy = "states are numbered from 0"
        try:
            number = int(text)
        except ValueError:
            raise InputError("--state", f"must be a whole number, 0 to {last}{known}", short(text), remedy) from None
        require(0 <= number <= last, "--state", f"must be a whole number, 0 to {last}{known}", number, remedy)
        return np.array([number])
    try:
        point = np.array([[float(part) for part in text.split(",")]])
    except ValueError:
        point = np.full((1, 0), np.nan)
    rule = f"must be {space.dim} numbers, separated by commas"
    require(point.shape[1] == space.dim, "--state", rule, short(text), f"for example --state {_example(space.dim)}")
    box = f"must lie between {space.low.tolist()} and {space.high.tolist()}"
    require(not space.outside(point)[0], "--state", box, short(text), "give a state of the problem")
    return point


def _example(dim: int) -> str:
    return ",".join(["0.5"] * dim)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _print(found: dict[str, Any], given: list[str]) -> None:
    console = Console()

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False)

    say(
        f"episode {found['episode_seed']}: member {found['member'] + 1} of {found['members']}, drawn with probability "
        f"{found['weight']:.4g}"
    )
    for row, text in zip(found["actions"], given, strict=True):
        p = row["probabilities"]
        if p is None:
            say(f"step {row['step']}, state {short(text)[1:-1]}: action {row['action']}")
            continue
        chance = ", ".join(f"{x:.3g}" for x in p) if len(p) <= _SHOWN else f"{p[row['action']]:.3g} for this one"
        say(f"step {row['step']}, state {short(text)[1:-1]}: action {row['action']}   (probabilities {chance})")
