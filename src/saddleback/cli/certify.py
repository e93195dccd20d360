"""``saddleback certify``: prove again, or check again, what a stored run says of its policy."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from saddleback.certificates import Certificate
from saddleback.cli.common import Json, ProblemFile, print_json
from saddleback.errors import InputError
from saddleback.problem.policy_file import with_features
from saddleback.reports.recertification_text import print_recertified, print_recheck
from saddleback.runs.recheck import recheck
from saddleback.runs.run_folder import Run, load_run
from saddleback.runs.targets import load_run_target
from saddleback.solving.recertify import recertify


def certify(
    run: Annotated[Path, typer.Argument(help="A folder that `saddleback solve --out` wrote.", metavar="RUN")],
    samples: Annotated[
        int | None,
        typer.Option(
            help="Simulator calls in all, a quarter of them a pilot.", show_default="a third more than before"
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Any but the run's own.", show_default="derived from it")] = None,
    delta: Annotated[float | None, typer.Option(help="One minus the confidence.", show_default="as in the run")] = None,
    recheck_only: Annotated[
        bool, typer.Option("--recheck", help="Draw nothing: compute the stored proof again from its stored numbers.")
    ] = False,
    problem: ProblemFile = None,
    as_json: Json = False,
) -> None:
    """Prove again, from new simulator calls, how good a stored policy is; or --recheck the stored proof without any."""
    stored = load_run(run)
    unnamed = recheck_only and stored.target.endswith(".toml") and problem is None
    instance = None if unnamed else load_run_target(stored, problem)
    if instance is not None and stored.mixture is not None and instance.problem.features is not None:
        stored = dataclasses.replace(stored, mixture=with_features(stored.mixture, instance.problem.features))
    if recheck_only or instance is None:
        for name, value in {"--samples": samples, "--seed": seed, "--delta": delta}.items():
            if value is not None:
                rule = "must not be given with --recheck, which draws no sample"
                raise InputError(name, rule, value, "leave one of the two out")
        raise typer.Exit(_recheck(stored, as_json))
    proof, pilot = recertify(stored, instance.problem, instance.simulator, samples=samples, seed=seed, delta=delta)
    if as_json:
        total = {"samples": proof.samples + pilot, "pilot": pilot}
        print_json({"run": str(run), **total, "certificate": proof.to_json(), "stored": stored.certificate})
    else:
        print_recertified(Console(), instance.problem, stored, proof, pilot)
    raise typer.Exit(_exit_code(stored, proof))


def _recheck(stored: Run, as_json: bool) -> int:
    if stored.certificate is None:
        raise InputError("RUN", "must hold a certificate", "none", "solve it with more samples")
    checks = recheck(stored.certificate, stored.rollouts)
    agrees = all(c.passed for c in checks)
    if as_json:
        print_json({"run": str(stored.path), "agrees": agrees, "checks": [c._asdict() for c in checks]})
    else:
        print_recheck(Console(), stored, checks)
    return 0 if agrees else 1


def _exit_code(stored: Run, proof: Certificate) -> int:
    """0 where the constraints are proved to hold, or may be missed a little and are not refuted; 3 infeasible; else 4."""
    if stored.mixture is None:
        return 3 if proof.infeasible else 4
    request: dict[str, Any] = stored.request
    strict = request.get("feasibility") == "strict"
    return 0 if proof.feasible == "certified" or (not strict and proof.feasible == "undecided") else 4
