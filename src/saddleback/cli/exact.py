"""``saddleback exact``: the truth, where the table is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saddleback.cli.common import (
    At,
    Console,
    Json,
    Limits,
    Parameters,
    Target,
    constraint_named,
    print_json,
    say_kept,
    totals_at,
)
from saddleback.errors import InputError, plain_text, require
from saddleback.problem.policy_file import save_policy
from saddleback.reports.text import print_exact, print_exact_frontier
from saddleback.runs.limits import with_limit_settings
from saddleback.runs.outputs import check_output, is_policy
from saddleback.runs.targets import load_target, origin_of
from saddleback.runs.truth import (
    exact_answer,
    exact_conflict,
    exact_curve,
    exact_curve_json,
    exact_json,
    exact_mixture,
)
from saddleback.runs.verdict import ExitCode

_USUAL_POINTS, _MOST_POINTS = 20, 1000


def exact(
    target: Target,
    settings: Parameters = None,
    limit: Limits = None,
    method: Annotated[str, typer.Option(help="columns, lp, or auto: columns for anything large.")] = "auto",
    frontier: Annotated[
        bool, typer.Option("--frontier", help="The optimum at several thresholds of one constraint, the others held.")
    ] = False,
    constraint: Annotated[
        str | None,
        typer.Option(help="With --frontier: the constraint whose threshold moves.", show_default="the first"),
    ] = None,
    points: Annotated[
        int | None, typer.Option(help="With --frontier: number of thresholds.", show_default=str(_USUAL_POINTS))
    ] = None,
    at: At = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep the answer in this new folder, for `act`, `report` and `certify`.")
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="Write the optimal policy to this .npz file.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Let --out replace an earlier run, and --policy a file of another kind.")
    ] = False,
    as_json: Json = False,
) -> None:
    """The true optimum of a problem whose table is known: by column generation, or by the occupancy linear program."""
    chosen = with_limit_settings(settings, limit)
    instance = load_target(target, chosen)
    problem = instance.problem
    if frontier:
        for name, value in (("--out", out), ("--policy", policy)):
            require(value is None, name, "must not be given with --frontier", value, "choose one limit with --limit")
        moving = constraint_named(problem, constraint)
        number = _USUAL_POINTS if points is None else points
        require(2 <= number <= _MOST_POINTS, "--points", f"must be 2 to {_MOST_POINTS:,}", number, "use 20")
        curve = exact_curve(instance, moving, number if at is None else totals_at(problem, moving, at), method)
        if as_json:
            print_json(exact_curve_json(instance, moving, curve))
        else:
            print_exact_frontier(Console(), problem, moving, curve)
        met = any(answer.status == "optimal" for _, answer in curve)
        raise typer.Exit(ExitCode.ANSWERED if met else ExitCode.INFEASIBLE)
    for name, given in (("--constraint", constraint), ("--points", points), ("--at", at)):
        require(given is None, name, "must go with --frontier", given, "add --frontier")
    if out is None and policy is None and force:
        raise InputError("--force", "must go with --out or --policy", "none", "name what to replace")
    place = None
    if out is not None:
        from saddleback.runs.run_folder import check_place  # which loads all that a run is made of

        place = check_place(out, problem, force=force)
    taken = [] if place is None else [place]
    file = None if policy is None else check_output("--policy", policy, is_policy, force=force, besides=taken)
    answer = exact_answer(instance, method)
    conflict = exact_conflict(instance, method) if answer.status != "optimal" else None
    mixture = exact_mixture(answer)
    if file is not None and mixture is not None:
        save_policy(mixture, problem, file)
    elif file is not None:
        Console(stderr=True).print(f"no policy to write to {plain_text(str(policy))}", markup=False)
    if place is not None:
        from saddleback.runs.exact_run import save_exact

        save_exact(place, instance, answer, conflict or (), origin_of(target, chosen, instance), method, force=force)
    if as_json:
        print_json(exact_json(instance, answer, conflict))
    else:
        print_exact(Console(), problem, answer, conflict or ())
        say_kept(out, None if mixture is None else policy)
    raise typer.Exit(ExitCode.ANSWERED if answer.status == "optimal" else ExitCode.INFEASIBLE)
