"""``saddleback certify``: prove again, or check again, what a stored run says of its policy."""

from __future__ import annotations

from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, ProblemFile, StoredRun, Timeout, print_json
from saddleback.cli.drawing import Workers
from saddleback.cli.proving import For, purpose_named
from saddleback.errors import InputError
from saddleback.reports.text import print_recertified, print_recheck
from saddleback.runs.exact_run import EXACT, is_exact
from saddleback.runs.recheck import NOT_CHECKED
from saddleback.runs.recheck.whole_run import recheck_run
from saddleback.runs.run_folder import Run, load_run
from saddleback.runs.targets import load_run_target, with_features_of
from saddleback.runs.verdict import ExitCode, code_of_proof
from saddleback.sampling.executors import open_executor
from saddleback.solving.progress import display
from saddleback.solving.recertify import recertify


def certify(
    run: StoredRun,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Simulator calls in all, a quarter of them a pilot.", show_default="a third more than before"
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Any but the run's own.", show_default="derived from it")] = None,
    delta: Annotated[float | None, typer.Option(help="One minus the confidence.", show_default="as in the run")] = None,
    purpose: For = None,
    recheck_only: Annotated[
        bool, typer.Option("--recheck", help="Draw nothing: compute the stored proof again from its stored numbers.")
    ] = False,
    problem: ProblemFile = None,
    workers: Workers = 1,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Prove again, from new simulator calls, how good a stored policy is; or --recheck the stored proof without any."""
    stored = load_run(run)
    if recheck_only:
        for name, value in {"--samples": samples, "--seed": seed, "--delta": delta, "--for": purpose}.items():
            if value is not None:
                rule = "must not be given with --recheck, which draws no sample"
                raise InputError(name, rule, value, "leave one of the two out")
        raise typer.Exit(_recheck(stored, problem, as_json))
    wanted = purpose_named(purpose)
    instance = load_run_target(stored, problem)
    stored = with_features_of(instance.problem, stored)
    model = instance.simulator.metered()
    with (
        display() as show,
        open_executor(workers, None, timeout, problem=instance.problem, simulator=model, progress=show) as crew,
    ):
        asked = {"samples": samples, "seed": seed}
        proof, pilot = recertify(stored, instance.problem, model, **asked, delta=delta, purpose=wanted, executor=crew)
    if as_json:
        total = {
            "samples": proof.samples + pilot,
            "pilot": pilot,
            "units": [c.units for c in instance.problem.constraints],
        }
        print_json({"run": str(run), **total, "certificate": proof.to_json(), "stored": stored.certificate})
    else:
        print_recertified(Console(), instance.problem, stored, proof, pilot)
    strict, has_policy = stored.request.get("feasibility") == "strict", stored.mixture is not None
    wrong, none = bool(proof.contradictions), proof.infeasible
    code = code_of_proof(proof.feasible, has_policy=has_policy, infeasible=none, strict=strict, contradicted=wrong)
    raise typer.Exit(code)


def _recheck(stored: Run, problem: ProblemFile, as_json: bool) -> ExitCode:
    if stored.certificate is None:
        remedy = f"it was {EXACT}, and needs none: `saddleback exact` computes it again"
        raise InputError(
            "RUN", "must hold a certificate", "none", remedy if is_exact(stored) else "solve it with more samples"
        )
    # A problem made in Python, or in a file that is not named again: the numbers have to speak for themselves.
    alone = problem is None and (stored.target.endswith(".toml") or stored.target.startswith("python:"))
    instance = None if alone else load_run_target(stored, problem)
    checks = recheck_run(stored if instance is None else with_features_of(instance.problem, stored), instance)
    agrees = all(c.passed for c in checks)
    if as_json:
        rows = [{**c._asdict(), "outcome": c.word.lower()} for c in checks]
        print_json({"run": str(stored.path), "agrees": agrees, "checks": rows, "not_checked": NOT_CHECKED})
    else:
        print_recheck(Console(), stored, checks)
    return ExitCode.ANSWERED if agrees else ExitCode.PROOF_FAILS
