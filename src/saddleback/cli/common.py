"""Options that several verbs share, and how an answer becomes JSON."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import rich.console
import typer
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from saddleback.cli.process import answers
from saddleback.errors import nearest, plain_text, require
from saddleback.files.json_file import to_plain
from saddleback.problem.cmdp import CMDP
from saddleback.problem.signals import total_of

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="A .toml problem file, an .npz or .drn table, or a zoo problem (see `saddleback zoo`)."
    ),
]
StoredRun = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `saddleback solve --out` wrote.")]
ProblemFile = Annotated[
    Path | None,
    typer.Option(
        "--problem",
        help="The run's problem file where it is now, or FILE.py:NAME for a run made in Python.",
        show_default="where it was, if unchanged",
    ),
]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", help="name=value, a parameter of the zoo problem. May be repeated.")
]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        help="name=value, another limit of a constraint, in the unit in which the problem gives it. May be repeated.",
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        help="Thresholds, as in 5,7.5,10, in the unit in which the problem gives the limit.",
        show_default="evenly spread",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Timeout = Annotated[  # of which no verb need take care: it holds for every call of user code (cli/process.py)
    float | None,
    typer.Option(help="Seconds that one block, up to 4,096 samples, or another call of your code may take."),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same samples.")]

_OURS = dict.fromkeys(map(ord, "\n\u00a0"))  # ends of lines, and blanks at which no line may end


class Console(rich.console.Console):
    """Writes answers, or to stderr if it is told so."""

    def __init__(self, **options: Any) -> None:
        super().__init__(file=None if options.get("stderr") else answers(), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """What is printed, with control characters in the text of strangers as escapes; styles are our own."""
        return map(_plain, super().render(renderable, options))

    def on_broken_pipe(self) -> NoReturn:
        """The reader has gone: an error like any other, where rich would end the process."""
        raise BrokenPipeError


def _plain(segment: Segment) -> Segment:
    text, style, control = segment
    if control or text.translate(_OURS).isprintable():
        return segment
    return Segment("".join(c if ord(c) in _OURS else plain_text(c, 20) for c in text), style)


def constraint_named(problem: CMDP, name: str | None) -> int:
    """The place of the constraint of that name; of the first where none is named."""
    names = [c.name for c in problem.constraints]
    remedy = nearest(name, names, f"the constraints are {', '.join(names)}")
    require(name is None or name in names, "--constraint", "must name a constraint of the problem", repr(name), remedy)
    return 0 if name is None else names.index(name)


def totals_at(problem: CMDP, constraint: int, text: str) -> list[float]:
    """The thresholds of ``--at`` as discounted totals."""
    found = []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        good = math.isfinite(value)
        require(good, "--at", "must be numbers, separated by commas", plain_text(part, 80), "for example --at 5,7.5,10")
        found.append(total_of(problem.constraints[constraint], value, problem.horizon))
    most = 1000
    require(len(found) <= most, "--at", f"must be at most {most:,} thresholds", len(found), "ask for fewer at a time")
    return found


def say_kept(run: Path | None, policy: Path | None = None) -> None:
    """One line on stderr, as it is no part of the answer: where it was written, and what comes next."""
    said = [] if policy is None else [f"The policy is in {plain_text(str(policy), 1000)}."]
    if run is not None:
        name = plain_text(str(run), 1000)
        said.append(f"Kept in {name}. Next: saddleback report {shlex.quote(name)}")
    if said:
        Console(stderr=True, highlight=False).print(" ".join(said), markup=False, soft_wrap=True)


def print_json(data: dict[str, Any]) -> None:
    """One object, numbers with every digit; JSON itself escapes all but one of the control characters."""
    text = json.dumps(data, indent=2, default=to_plain, allow_nan=False)
    typer.echo(text.replace("\x7f", "\\u007f"), file=answers())
