"""What a further proof of a stored policy is for: an option of the verbs that draw one."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from saddleback.errors import one_of
from saddleback.runs.settings import PURPOSES, Purpose

For = Annotated[
    str | None,
    typer.Option(
        "--for", help="What the proof is for: feasibility, value or gap.", show_default="what that of the run was for"
    ),
]


def purpose_named(given: str | None) -> Purpose | None:
    """What ``--for`` says."""
    if given is not None:
        one_of("--for", given, PURPOSES)
    return cast("Purpose | None", given)
