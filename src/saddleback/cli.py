"""The command line: ``saddleback zoo | exact | solve``.

Exit codes: 0 solved, 2 bad input, 3 infeasible, 4 undecided or budget exhausted, 5 a simulator or I/O fault, 130 an
interrupt. Answers go to stdout, progress and errors to stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from saddleback import zoo as zoo_problems
from saddleback._version import __version__
from saddleback.designs import BY_NAME as DESIGNS
from saddleback.duals import BY_NAME as DUALS
from saddleback.errors import InputError, SaddlebackError
from saddleback.evaluators import BY_NAME as EVALUATORS
from saddleback.exact import mixture_values, solve_by_columns, solve_exactly
from saddleback.reports.text import print_exact, print_frontier, print_solution
from saddleback.setup import Choices, prepare
from saddleback.solution import Solution
from saddleback.solvers import BY_NAME as SOLVERS
from saddleback.solving import Progress
from saddleback.solving import solve as solve_problem
from saddleback.storage.policy_file import save_mixture
from saddleback.targets import load_target
from saddleback.tradeoff import frontier as trade_off
from saddleback.zoo.instance import Instance

app = typer.Typer(
    name="saddleback",
    help="Constrained decision problems with a simulator: a policy, and what is known about it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
_LARGE = 2000  # state-action pairs above which the linear program is left to `--method lp`
Target = Annotated[str, typer.Argument(help="A zoo problem (see `saddleback zoo`) or an .npz problem table.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="name=value, a parameter of the zoo problem.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


@app.command(epilog="Example: saddleback zoo")
def zoo(as_json: Json = False) -> None:
    """List the built-in problems and their parameters."""
    rows: list[dict[str, Any]] = [
        {"name": name, "summary": _first_line(make), "parameters": _parameters(name)}
        for name, make in zoo_problems.BY_NAME.items()
    ]
    if as_json:
        _print_json({"problems": rows})
        return
    console = Console()
    for row in rows:
        console.print(f"[bold]{row['name']}[/bold]  {row['summary']}", highlight=False)
        console.print(
            "    " + ", ".join(f"{k}={v}" for k, v in row["parameters"].items()), style="dim", highlight=False
        )


@app.command(epilog="Example: saddleback exact wireless --json")
def exact(
    target: Target,
    settings: Settings = None,
    method: Annotated[str, typer.Option(help="columns, lp, or auto: columns for anything large.")] = "auto",
    as_json: Json = False,
) -> None:
    """The true optimum of a problem whose table is known: by column generation, or by the occupancy linear program."""
    instance = load_target(target, settings or [])
    if instance.table is None:
        raise typer.BadParameter(f"'{target}' has no table to solve exactly; known facts: {instance.known}")
    if method not in ("auto", "columns", "lp"):
        raise InputError("--method", "must be auto, columns or lp", repr(method), "leave it out for the usual one")
    large = instance.table.reward.size > _LARGE
    columns = method == "columns" or (method == "auto" and large)
    answer = solve_by_columns(instance.table) if columns else solve_exactly(instance.table)
    if as_json:
        _print_json(_exact_json(instance, answer))
    else:
        print_exact(Console(), instance.problem, answer)
    if answer.status != "optimal":
        raise typer.Exit(3)


@app.command(
    epilog="Examples: saddleback solve wireless --check   ·   saddleback solve problem.npz --samples 1000000 --json"
)
def solve(
    target: Target,
    settings: Settings = None,
    samples: Annotated[int, typer.Option(help="Simulator calls in total, over all buffers.")] = 1_000_000,
    feasibility: Annotated[str, typer.Option(help="relaxed or strict.")] = "relaxed",
    solver: Annotated[str | None, typer.Option(help="One of " + ", ".join(SOLVERS) + ".")] = None,
    evaluator: Annotated[str | None, typer.Option(help="One of " + ", ".join(EVALUATORS) + ".")] = None,
    dual: Annotated[str | None, typer.Option(help="One of " + ", ".join(DUALS) + ".")] = None,
    design: Annotated[str | None, typer.Option(help="One of " + ", ".join(DESIGNS) + ".")] = None,
    mode: Annotated[str, typer.Option(help="default, or literal: the paper's algorithm as it stands.")] = "default",
    iterations: Annotated[int, typer.Option(help="K, for the projected descent of literal mode.")] = 1000,
    error: Annotated[float | None, typer.Option(help="The oracles' error f, set by hand, in utilities.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same samples.")] = 0,
    buffers: Annotated[int, typer.Option(help="2: solver and evaluator have their own samples. 1: the paper's.")] = 2,
    batch_size: Annotated[int | None, typer.Option(help="M, samples a pair in each inner iteration.")] = None,
    resolution: Annotated[
        int, typer.Option(help="Grid of the solver's rewards, which a-priori guarantees need; 0 for none.")
    ] = -1,
    allocation: Annotated[
        str | None, typer.Option(help="equal, or design: samples follow the design's weights.")
    ] = None,
    delta: Annotated[float, typer.Option(help="One minus the confidence of the limits.")] = 0.05,
    check: Annotated[bool, typer.Option("--check", help="Compare with the truth where the table is known.")] = False,
    policy: Annotated[Path | None, typer.Option(help="Write the mixture to this .npz file.")] = None,
    as_json: Json = False,
) -> None:
    """Find a policy from simulator calls alone, and say what is known about it."""
    instance = load_target(target, settings or [])
    if policy is not None and not policy.absolute().parent.is_dir():
        raise InputError("--policy", "must lie in an existing folder", str(policy), "make the folder first")
    with _progress() as progress:
        solution = solve_problem(
            instance.problem,
            instance.simulator,
            feasibility=feasibility,  # type: ignore[arg-type]
            samples=samples,
            mode=mode,  # type: ignore[arg-type]
            iterations=iterations,
            delta=delta,
            seed=seed,
            error=error,
            dual=dual,
            solver=solver,
            evaluator=evaluator,
            design=design,
            buffers=buffers,
            batch_size=batch_size,
            resolution=resolution or None,
            allocation=allocation,  # type: ignore[arg-type]
            progress=progress,
        )
    truth = _truth(instance, solution) if check else None
    if policy is not None and solution.mixture is not None:
        save_mixture(solution.mixture, solution.problem, policy)
    elif policy is not None:
        Console(stderr=True).print(f"no policy to write to {policy}", markup=False)
    if as_json:
        _print_json({**solution.to_json(), **({"exact": truth} if check else {})})
    else:
        print_solution(Console(), solution, truth)
    raise typer.Exit(solution.status.exit_code)


@app.command(epilog="Example: saddleback frontier wireless --points 20")
def frontier(
    target: Target,
    settings: Settings = None,
    constraint: Annotated[str | None, typer.Option(help="Name of the constraint whose threshold moves.")] = None,
    points: Annotated[int, typer.Option(help="Number of thresholds.")] = 20,
    samples: Annotated[int, typer.Option(help="Simulator calls in total, over all buffers.")] = 1_000_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same samples.")] = 0,
    as_json: Json = False,
) -> None:
    """The best reward against one constraint's threshold, the others held, from one set of samples."""
    instance = load_target(target, settings or [])
    parts = prepare(instance.problem, instance.simulator, samples, seed, Choices())
    with _progress() as progress:
        if progress is not None:
            progress("frontier", 0, 1)
        curve = trade_off(parts, constraint, points)
    if as_json:
        name = instance.problem.constraints[curve.constraint].name
        rows = [p.to_json() for p in curve.points]
        vertices = curve.breakpoints() if instance.problem.num_constraints == 1 else None
        _print_json({"constraint": name, "samples": parts.samples, "points": rows, "breakpoints": vertices})
    else:
        print_frontier(Console(), curve)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Constrained decision problems with a simulator."""
    if version:
        typer.echo(__version__)
        raise typer.Exit()


def main(arguments: list[str] | None = None) -> None:
    """Entry point: errors become one message and an exit code, never a traceback."""
    try:
        app(arguments)
    except SaddlebackError as error:
        Console(stderr=True, highlight=False).print(f"[red]error:[/red] {_plain(str(error))}", soft_wrap=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(130)


def _truth(instance: Instance, solution: Solution) -> dict[str, Any] | None:
    """True values of the returned mixture and the true optimum; None where the table is not known."""
    if instance.table is None:
        return None
    large = instance.table.reward.size > _LARGE
    best = solve_by_columns(instance.table) if large else solve_exactly(instance.table)
    truth: dict[str, Any] = {"optimum": _exact_json(instance, best)}
    truth["optimum"]["constraints"] = best.constraint_values.tolist() if best.status == "optimal" else []
    if solution.mixture is not None:
        values = mixture_values(instance.table, solution.mixture)
        truth |= {"value": float(values[0]), "constraints": values[1:].tolist()}
    return truth


def _exact_json(instance: Instance, answer: Any) -> dict[str, Any]:
    problem, optimal = instance.problem, answer.status == "optimal"
    rows = []
    for c, b, v in zip(problem.constraints, problem.user_thresholds(), answer.constraint_values, strict=True):
        slack = (v - b) if c.sense == ">=" else (b - v)
        rows.append({"name": c.name, "value": float(v), "threshold": float(b), "sense": c.sense, "slack": float(slack)})
    out = {
        "status": "solved" if optimal else "infeasible",
        "value": float(answer.value) if optimal else None,
        "constraints": rows if optimal else [],
        "multipliers": answer.multipliers.tolist() if optimal else [],
        "slater": float(answer.slater),
        "gap": float(answer.gap),
        "method": answer.method,
        "seconds": answer.seconds,
    }
    if not optimal:
        out["max_slack"] = float(answer.max_slack)
    return out


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A progress bar on stderr, on a terminal only, shown after the first second."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        yield report


def _print_json(data: dict[str, Any]) -> None:
    typer.echo(json.dumps(data, indent=2, default=_to_plain, allow_nan=False))


def _to_plain(x: Any) -> Any:
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else str(x)


def _plain(text: str) -> str:
    return text.replace("[", "\\[")


def _first_line(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "").strip().splitlines()[0]


def _parameters(name: str) -> dict[str, Any]:
    return {row.name: row.default for row in zoo_problems.describe(name)}
