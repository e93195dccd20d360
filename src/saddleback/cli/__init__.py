"""The command line: ``saddleback VERB ...``, options only, one file a verb.

Answers go to stdout, progress and errors to stderr; :class:`saddleback.runs.verdict.ExitCode` says how a command may end.

A verb is imported when it is called. The front page is drawn here, from the table below: neither a verb nor typer's own page,
which costs as much as typer itself, is imported for it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from saddleback._version import __version__
from saddleback.errors import SaddlebackError, plain_text
from saddleback.problem.user_code import interrupted_code, state
from saddleback.runs.verdict import ExitCode

TITLE = "Constrained decision problems with a simulator: a policy, and a proof of how good it is."
NOTES = (
    "Begin with `saddleback solve wireless --out run`, then `saddleback report run`. Each verb has examples: "
    "`saddleback solve --help`.",
    "TARGET is your own problem in a .toml file that names your simulator (docs/problem_files.md), a problem of the zoo, or an "
    ".npz or .drn table; RUN a folder that `solve --out` wrote. Rewards are discounted totals in the problem's own units, constraints "
    "what they were given in, totals or per step; --samples counts simulator calls. An option that shows no default is not "
    "used unless it is given.",
    f"Exit codes: {', '.join(f'{code} {code.meaning}' for code in ExitCode)}.",
    "Answers go to stdout, progress and errors to stderr; --json prints one object (docs/json.md).",
)
_LONGEST = 4000  # characters of a message
_LONGEST_NUMBER = 30  # digits of a whole number that is written as 1e6
OPTIONS = {"--version": "Print the version.", "--help": "Show this message and exit."}


class Verb(NamedTuple):
    """A verb ``name`` is the function of that name in ``cli/name.py``; ``summary`` is the first sentence of its docstring."""

    panel: str
    summary: str
    examples: tuple[str, ...]


LOOK, SOLVE, USE = "Look", "Solve", "Use and check what was solved"

# In the order in which a newcomer meets them.
VERBS: dict[str, Verb] = {
    "zoo": Verb(LOOK, "List the built-in problems and their parameters.", ("zoo", "zoo --json")),
    "new": Verb(
        LOOK,
        "Write a commented simulator and problem file to start from: NAME.py and NAME.toml, which run as they are.",
        ("new shop",),
    ),
    "exact": Verb(
        LOOK,
        "The true optimum of a problem whose table is known: by column generation, or by the occupancy linear program.",
        ("exact wireless", "exact wireless --set gamma=0.95 --json"),
    ),
    "check": Verb(
        LOOK,
        "Look for mistakes in a simulator, its rewards, constraints and features: before samples are paid for.",
        ("check problem.toml", "check wireless --calls 5000 --json"),
    ),
    "plan": Verb(
        LOOK,
        "Say what an accuracy would cost in simulator calls, time and memory: proved for the worst case, and likely.",
        ("plan wireless --epsilon 2", "plan problem.npz --epsilon 0.5 --delta 0.01"),
    ),
    "solve": Verb(
        SOLVE,
        "Find a policy from simulator calls alone, and prove how good it is.",
        (
            "solve wireless --check",
            "solve wireless --out run",
            "solve problem.npz --epsilon 0.5 --out run --workers 4",
        ),
    ),
    "frontier": Verb(
        SOLVE,
        "The best reward against one constraint's threshold, the others held, from one set of samples.",
        ("frontier wireless --points 20", "frontier run", "frontier wireless --certificate-samples 500000 --json"),
    ),
    "sample": Verb(
        SOLVE,
        "Draw samples into a folder that survives kills and power cuts; the same seed gives the same bits.",
        ("sample wireless --out samples --rounds 2 --workers 2", "solve wireless --from samples"),
    ),
    "resume": Verb(
        SOLVE,
        "Continue a run that was killed or interrupted: what was drawn is kept, and the result is the same, bit for bit.",
        ("resume run", "resume run --workers 4"),
    ),
    "report": Verb(
        USE,
        "Write a run as one self-contained HTML page: the answer, its proof, the trade-off with a slider, the policy.",
        ("report run", "report run --out page.html"),
    ),
    "certify": Verb(
        USE,
        "Prove again, from new simulator calls, how good a stored policy is; or --recheck the stored proof without any.",
        ("certify run --seed 7", "certify run --recheck"),
    ),
    "act": Verb(
        USE,
        "Apply a stored policy: the action in a state, with the member of the mixture that plays the episode.",
        ("act run --state 3 --episode-seed 7", "act run --state 3 --state 4 --episode-seed 7 --json"),
    ),
    "export": Verb(
        USE,
        "Write the policy of a run for other programs, with names of states and actions, and say what it is worth.",
        (
            "export run --to python",
            "export run --to csv --out policy.csv",
            "export run --to onnx --certificate-samples 100000",
        ),
    ),
}


@cache
def load(name: str) -> Any:
    """The command of a verb, imported now."""
    from saddleback.cli.process import as_verb

    verb = VERBS[name]
    lines = [f"saddleback {example}" for example in verb.examples]
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    function = getattr(importlib.import_module(f"saddleback.cli.{name}"), name)
    examples = "\n\n".join(["Example:" if len(lines) == 1 else "Examples:", *lines])
    alone.command(name, help=function.__doc__ or verb.summary, epilog=examples)(as_verb(_with_whole_numbers(function)))
    return typer.main.get_command(alone)


def whole_number(value: str | int) -> int:
    """A whole number as people write it: 1000000, 1_000_000, 1e6; a default is one already."""
    text = str(value)
    with suppress(ValueError):
        return int(text)
    try:
        exact = Decimal(text.strip()) if len(text) <= _LONGEST_NUMBER else None
    except InvalidOperation:
        exact = None
    if exact is None or not exact.is_finite() or exact.adjusted() >= _LONGEST_NUMBER or exact != int(exact):
        raise typer.BadParameter(f"{text[:60]!r} is not a whole number; write it in digits, or as 1e6.")
    return int(exact)


def _with_whole_numbers(function: Any) -> Any:
    """The function of a verb, whose whole-number options take 1e6 too."""
    hints = get_type_hints(function, include_extras=True)
    for hint in hints.values():
        kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        for option in more:
            if kind in (int, int | None) and isinstance(option, OptionInfo):
                option.parser, option.metavar = whole_number, option.metavar or "<int>"
    function.__annotations__ = hints
    return function


class Verbs(TyperGroup):
    """All verbs, of which only the one that is called is imported."""

    def __init__(self, **options: Any) -> None:
        names_only = {name: TyperCommand(name) for name in VERBS}  # for "Did you mean"
        super().__init__(**{**options, "commands": names_only})

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the options before the verb."""
        with _plain_complaints(), _interrupts_are_said():
            return super().make_context(*arguments, **options)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the verb."""
        return load(cmd_name) if cmd_name in VERBS else None

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        with _closed_pipe_is_a_fault(), _plain_complaints(), _interrupts_are_said():
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the front page."""
        with _closed_pipe_is_a_fault():
            _print_front_page()


@contextmanager
def _plain_complaints() -> Iterator[None]:
    """What typer says of a word that it does not know, it says with the word in it."""
    try:
        yield
    except Exception as error:
        if isinstance(getattr(error, "message", None), str):
            error.message = plain_text(error.message, _LONGEST)  # type: ignore[attr-defined]
        raise


@contextmanager
def _interrupts_are_said() -> Iterator[None]:
    """Typer would end without a word."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        raise typer.Exit(interrupted_code()) from None


@contextmanager
def _closed_pipe_is_a_fault() -> Iterator[None]:
    """Where the reader of our output has gone, as in ``| head``, rich and typer end with 1, which is a failed proof's."""
    try:
        yield
    except (BrokenPipeError, SystemExit) as ended:
        if getattr(ended, "code", 1) != 1:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in the buffer goes nowhere, without a word
        raise typer.Exit(ExitCode.FAULT) from None


def _print_front_page() -> None:
    """Options, verbs by panel, notes."""
    from rich.console import Console
    from rich.markup import escape
    from rich.padding import Padding
    from rich.panel import Panel
    from rich.table import Table

    console = Console(highlight=False)
    usage = "[yellow]Usage:[/yellow] [bold]saddleback \\[OPTIONS] COMMAND \\[ARGS]...[/bold]"
    console.print(Padding(f"{usage}\n\n{TITLE}", (1, 1)))
    groups = {"Options": OPTIONS}
    for name, verb in VERBS.items():
        groups.setdefault(verb.panel, {})[name] = verb.summary
    wide = max(map(len, [*VERBS, *OPTIONS]))
    for title, rows in groups.items():
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold cyan", width=wide)
        for name, text in rows.items():
            table.add_row(name, escape(text))
        console.print(Panel(table, title=title, title_align="left", border_style="dim"))
    console.print(Padding(escape("\n\n".join(NOTES)), (1, 1)))


app = typer.Typer(
    name="saddleback",
    cls=Verbs,
    help=TITLE,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Constrained decision problems with a simulator: a policy, and a proof of how good it is."""
    if version:
        typer.echo(__version__)
        raise typer.Exit()


def main(arguments: list[str] | None = None, *, own_process: bool = False, board: Any = None) -> None:
    """Entry point: whatever happens becomes one message and an exit code, never a traceback.

    ``own_process`` says that this process does nothing else; ``board`` is memory in which it says what it calls.
    """
    state.own_process, state.board = own_process, board
    try:
        app(arguments, prog_name="saddleback")
        return
    except SaddlebackError as error:
        _say(str(error))
        sys.exit(error.exit_code or ExitCode.FAULT)  # an error that user code has made may say anything
    except MemoryError:
        pass  # said below, when the exception has let go of what the run held: there is memory for it then
    except OSError as error:  # of a file that is not ours to name better, such as a closed standard output
        _say(f"the system refused: {error}; check the disk, the permissions and the names.")
        sys.exit(ExitCode.FAULT)
    except Exception as error:
        if _came_of_an_interrupt(error):
            sys.stderr.write("interrupted\n")
            sys.exit(interrupted_code())
        _say(
            f"this is a fault of saddleback, not of your input ({type(error).__name__}). {_report_of(error, arguments)}"
        )
        sys.exit(ExitCode.INTERNAL_ERROR)
    sys.stderr.write(
        "error: the memory does not suffice; use a smaller problem or fewer samples, or sample into a folder. What was "
        "drawn for --out is kept, and `saddleback resume` goes on from there.\n"
    )
    sys.exit(ExitCode.FAULT)


def _came_of_an_interrupt(error: BaseException) -> bool:
    """Whether it was raised while an interrupt made its way out: whatever could not be closed then is no fault of ours."""
    before = error.__context__
    return before is not None and (isinstance(before, KeyboardInterrupt) or _came_of_an_interrupt(before))


def _report_of(error: Exception, arguments: list[str] | None) -> str:
    """Write down all that is known of an internal error, and say where."""
    import platform
    import shlex
    import tempfile
    import traceback

    where = f"saddleback {__version__}, Python {platform.python_version()}, {platform.platform()}"
    try:
        command = shlex.join(["saddleback", *(sys.argv[1:] if arguments is None else arguments)])
        text = "\n".join([command, where, "", *traceback.format_exception(error)])
        handle, place = tempfile.mkstemp(prefix="saddleback-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except Exception as refused:  # the disk, or an exception that cannot be shown
        return f"The full report could not be written: {refused}."
    return f"The full report is in {place}; please send it with your question."


def _say(text: str) -> None:
    from rich.console import Console
    from rich.markup import escape

    with suppress(OSError, SystemExit):  # nobody listens: the exit code says it too
        text = plain_text(text, _LONGEST)
        Console(stderr=True, highlight=False).print(f"[red]error:[/red] {escape(text)}", soft_wrap=True)
