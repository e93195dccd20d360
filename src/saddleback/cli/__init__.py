"""The command line: ``saddleback zoo | exact | plan | solve | sample | resume | certify | frontier``, one file a verb.

Exit codes: 0 solved, 1 a stored proof that does not check out, 2 bad input, 3 infeasible, 4 undecided or budget exhausted,
5 a simulator or I/O fault, 130 an interrupt. Answers go to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from saddleback._version import __version__
from saddleback.cli import act, certify, exact, frontier, plan, resume, sample, solve, zoo
from saddleback.errors import SaddlebackError

app = typer.Typer(
    name="saddleback",
    help="Constrained decision problems with a simulator: a policy, and a proof of how good it is.",
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


# In the order in which a newcomer meets them.
app.command(epilog="Example: saddleback zoo")(zoo.zoo)
app.command(epilog="Example: saddleback exact wireless --json")(exact.exact)
app.command(epilog="Example: saddleback plan wireless --epsilon 2")(plan.plan)
app.command(
    epilog="Examples: saddleback solve wireless --check   ·   saddleback solve problem.npz --epsilon 0.5 --out run"
)(solve.solve)
app.command(epilog="Example: saddleback sample wireless --out samples --rounds 2 --workers 2")(sample.sample)
app.command(epilog="Example: saddleback resume run --workers 2")(resume.resume)
app.command(epilog="Examples: saddleback certify run --seed 7   ·   saddleback certify run --recheck")(certify.certify)
app.command(epilog="Example: saddleback frontier wireless --points 20")(frontier.frontier)
app.command(epilog="Example: saddleback act run --state 0 --episode-seed 7")(act.act)


def main(arguments: list[str] | None = None) -> None:
    """Entry point: errors become one message and an exit code, never a traceback."""
    try:
        app(arguments)
        return
    except SaddlebackError as error:
        _say(str(error))
        sys.exit(error.exit_code)
    except MemoryError:
        pass  # said below, when the exception has let go of what the run held: there is memory for it then
    except OSError as error:  # of a file that is not ours to name better, such as a closed standard output
        _say(f"the system refused: {error}; check the disk, the permissions and the names.")
        sys.exit(5)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(130)
    sys.stderr.write(
        "error: the memory does not suffice; use a smaller problem or fewer samples, or sample into a folder. What was "
        "drawn for --out is kept, and `saddleback resume` goes on from there.\n"
    )
    sys.exit(5)


def _say(text: str) -> None:
    escaped = text.replace("[", "\\[")
    Console(stderr=True, highlight=False).print(f"[red]error:[/red] {escaped}", soft_wrap=True)
