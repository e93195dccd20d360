"""Options that several verbs share, and how an answer becomes JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn

import rich.console
import typer
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from saddleback.cli.process import answers
from saddleback.errors import plain_text
from saddleback.files.json_file import to_plain

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="A .toml problem file, an .npz problem table, or a zoo problem (see `saddleback zoo`)."
    ),
]
StoredRun = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `saddleback solve --out` wrote.")]
ProblemFile = Annotated[
    Path | None,
    typer.Option("--problem", help="The problem file that the run was made from, which names code, named again."),
]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", help="name=value, a parameter of the zoo problem. May be repeated.")
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


def print_json(data: dict[str, Any]) -> None:
    """One object, numbers with every digit; JSON itself escapes all but one of the control characters."""
    text = json.dumps(data, indent=2, default=to_plain, allow_nan=False)
    typer.echo(text.replace("\x7f", "\\u007f"), file=answers())
