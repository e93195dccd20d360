"""``saddleback act``: what a stored policy does in a state, for any program that can start another."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated, Any

import typer

from saddleback.cli.common import Console, Json, ProblemFile, print_json
from saddleback.files.json_file import plain, short
from saddleback.runs.stored_policy import load_stored_policy

_SHOWN = 16  # probabilities in the line for people


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
    which: Annotated[
        str,
        typer.Option(help="mixture, which the proof is about, or stationary: one policy in its place, an estimate."),
    ] = "mixture",
    problem: ProblemFile = None,
    as_json: Json = False,
) -> None:
    """Apply a stored policy: the action in a state, with the member of the mixture that plays the episode."""
    seed = secrets.randbits(32) if episode_seed is None else episode_seed
    policy = load_stored_policy(run, problem, state, which)
    found = policy.actions(state, seed, step)
    if as_json:
        print_json({"run": str(run), **found})
    else:
        _print(found, state, policy.place_of(found["member"]))


def _print(found: dict[str, Any], given: list[str], place: int) -> None:
    who = f"member {place} of {found['members']}, drawn with probability {found['weight']:.4g}"
    lines = [f"episode {found['episode_seed']}: {who}"]
    for row, text in zip(found["actions"], given, strict=True):
        p, chance = row["probabilities"], ""
        if p is not None:
            few = ", ".join(f"{x:.3g}" for x in p) if len(p) <= _SHOWN else f"{p[row['action']]:.3g} for this one"
            chance = f"   (probabilities {few})"
        name = "" if row["action_name"] is None else f" ({plain(row['action_name'], 200)})"
        lines.append(f"step {row['step']}, state {short(text)[1:-1]}: action {row['action']}{name}{chance}")
    for line in lines:
        Console().print(line, markup=False, highlight=False)
