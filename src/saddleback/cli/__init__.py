"""The command line: ``saddleback VERB ...``, options only, one file a verb.

Answers go to stdout, progress and errors to stderr; :class:`saddleback.runs.verdict.ExitCode` says how a command may end.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from saddleback._version import __version__
from saddleback.cli.verbs import TITLE, Verbs
from saddleback.errors import SaddlebackError
from saddleback.runs.verdict import ExitCode

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


def main(arguments: list[str] | None = None) -> None:
    """Entry point: whatever happens becomes one message and an exit code, never a traceback."""
    try:
        app(arguments, prog_name="saddleback")
        return
    except SaddlebackError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except MemoryError:
        pass  # said below, when the exception has let go of what the run held: there is memory for it then
    except OSError as error:  # of a file that is not ours to name better, such as a closed standard output
        _say(f"the system refused: {error}; check the disk, the permissions and the names.")
        sys.exit(ExitCode.FAULT)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:
        _say(
            f"this is a fault of saddleback, not of your input ({type(error).__name__}). {_report_of(error, arguments)}"
        )
        sys.exit(ExitCode.INTERNAL_ERROR)
    sys.stderr.write(
        "error: the memory does not suffice; use a smaller problem or fewer samples, or sample into a folder. What was "
        "drawn for --out is kept, and `saddleback resume` goes on from there.\n"
    )
    sys.exit(ExitCode.FAULT)


def _report_of(error: Exception, arguments: list[str] | None) -> str:
    """Write down all that is known of an internal error, and say where."""
    import platform
    import shlex
    import tempfile
    import traceback

    command = shlex.join(["saddleback", *(sys.argv[1:] if arguments is None else arguments)])
    where = f"saddleback {__version__}, Python {platform.python_version()}, {platform.platform()}"
    text = "\n".join([command, where, "", *traceback.format_exception(error)])
    try:
        handle, place = tempfile.mkstemp(prefix="saddleback-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError as refused:
        return f"The full report could not be written: {refused}."
    return f"The full report is in {place}; please send it with your question."


def _say(text: str) -> None:
    from rich.console import Console
    from rich.markup import escape

    Console(stderr=True, highlight=False).print(f"[red]error:[/red] {escape(text)}", soft_wrap=True)
