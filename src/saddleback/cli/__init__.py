"""The command line: ``saddleback zoo | exact | plan | solve | frontier | sample | resume | report | certify | act``, one file a verb.

Exit codes: 0 solved, 1 a stored proof that does not check out, 2 bad input, 3 infeasible, 4 undecided or budget exhausted,
5 a simulator or I/O fault, 130 an interrupt. Answers go to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from saddleback._version import __version__
from saddleback.cli import act, certify, check, exact, frontier, plan, report, resume, sample, solve, zoo
from saddleback.errors import SaddlebackError

app = typer.Typer(
    name="saddleback",
    help="Constrained decision problems with a simulator: a policy, and a proof of how good it is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="\n\n".join(
        [
            "Begin with `saddleback solve wireless --out run`, then `saddleback report run`. Each verb has examples: "
            "`saddleback solve --help`.",
            "TARGET is a problem of the zoo or an .npz table, RUN a folder that `solve --out` wrote. Rewards, constraints and "
            "thresholds are discounted totals in the problem's own units; --samples counts simulator calls. An option that "
            "shows no default is not used unless it is given.",
            "Exit codes: 0 solved, 1 a stored proof does not check out, 2 bad input, 3 infeasible, 4 undecided or budget "
            "exhausted, 5 a simulator or I/O fault, 130 interrupted.",
            "Answers go to stdout, progress and errors to stderr; --json prints one object (docs/json.md).",
        ]
    ),
)
_LOOK, _SOLVE, _USE = "Look", "Solve", "Use and check what was solved"


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Constrained decision problems with a simulator: a policy, and a proof of how good it is."""
    if version:
        typer.echo(__version__)
        raise typer.Exit()


def _add(verb: Callable[..., None], panel: str, *examples: str) -> None:
    """Register a verb with its examples, one a line."""
    heading = "Example:" if len(examples) == 1 else "Examples:"
    app.command(rich_help_panel=panel, epilog="\n\n".join([heading, *examples]))(verb)


# In the order in which a newcomer meets them.
_add(zoo.zoo, _LOOK, "saddleback zoo", "saddleback zoo --json")
_add(exact.exact, _LOOK, "saddleback exact wireless", "saddleback exact wireless --set gamma=0.95 --json")
_add(check.check, _LOOK, "saddleback check problem.toml", "saddleback check wireless --calls 5000 --json")
_add(plan.plan, _LOOK, "saddleback plan wireless --epsilon 2", "saddleback plan problem.npz --epsilon 0.5 --delta 0.01")
_add(
    solve.solve,
    _SOLVE,
    "saddleback solve wireless --check",
    "saddleback solve wireless --out run",
    "saddleback solve problem.npz --epsilon 0.5 --feasibility strict --out run --workers 4",
)
_add(
    frontier.frontier,
    _SOLVE,
    "saddleback frontier wireless --points 20",
    "saddleback frontier wireless --certificate-samples 500000 --json",
)
_add(
    sample.sample,
    _SOLVE,
    "saddleback sample wireless --out samples --rounds 2 --workers 2",
    "saddleback solve wireless --from samples",
)
_add(resume.resume, _SOLVE, "saddleback resume run", "saddleback resume run --workers 4")
_add(report.report, _USE, "saddleback report run", "saddleback report run --out page.html")
_add(certify.certify, _USE, "saddleback certify run --seed 7", "saddleback certify run --recheck")
_add(
    act.act,
    _USE,
    "saddleback act run --state 3 --episode-seed 7",
    "saddleback act run --state 3 --state 4 --episode-seed 7 --json",
)


def main(arguments: list[str] | None = None) -> None:
    """Entry point: errors become one message and an exit code, never a traceback."""
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
