"""``saddleback export``: the policy of a run for other programs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, ProblemFile, StoredRun, Timeout, print_json
from saddleback.cli.proving import For, purpose_named
from saddleback.errors import plain_text, require
from saddleback.reports.exports import BY_NAME, export_place, write_export
from saddleback.reports.exports.policy import Points, exported, policy_to_export
from saddleback.runs.run_folder import Run, load_run, without_policy
from saddleback.runs.settings import Purpose
from saddleback.runs.targets import load_run_target, with_features_of
from saddleback.runs.verdict import ExitCode, code_of_proof
from saddleback.simulators.generative_model import derived_seed
from saddleback.simulators.seed_rounds import EXPORT
from saddleback.solving.recertify import Recertified, recertify


def export(
    run: StoredRun,
    to: Annotated[str, typer.Option(help=f"One of {', '.join(BY_NAME)}.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file to write; an export of ours is replaced.", show_default="RUN_policy.csv and the like"
        ),
    ] = None,
    which: Annotated[
        str | None,
        typer.Option(help="stationary or mixture.", show_default="one stationary policy where there is one"),
    ] = None,
    certificate_samples: Annotated[
        int, typer.Option(help="Simulator calls to prove what the exported policy is worth; 0 for none.")
    ] = 0,
    purpose: For = None,
    states: Annotated[
        Path | None,
        typer.Option(
            help="For csv over a box: a file with a state a line, as in 0.5,-1.", show_default="--points of them"
        ),
    ] = None,
    points: Annotated[int, typer.Option(help="For csv over a box: how many states, spread evenly.")] = 10_000,
    force: Annotated[bool, typer.Option("--force", help="Let --out replace a file of another kind.")] = False,
    problem: ProblemFile = None,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Write the policy of a run for other programs, with names of states and actions, and say what it is worth."""
    place = export_place(run, to, out, force=force)
    rule = "must not be negative"
    require(certificate_samples >= 0, "--certificate-samples", rule, certificate_samples, "0 means no certificate")
    wanted, rule = purpose_named(purpose), "must go with --certificate-samples"
    require(wanted is None or certificate_samples > 0, "--for", rule, purpose, "leave it out, or ask for a proof")
    stored, proved, code = load_run(run), None, ExitCode.ANSWERED
    if certificate_samples:
        proved = _certified(stored, which, certificate_samples, problem, wanted)
        proof, strict = proved.certificate, stored.request.get("feasibility") == "strict"
        wrong = bool(proof.contradictions)
        code = code_of_proof(proof.feasible, has_policy=True, infeasible=False, strict=strict, contradicted=wrong)
    policy = exported(stored, which, problem, None if proved is None else proved.certificate)
    write_export(policy, to, place, Points(states, points))
    if as_json:
        proof_json = None if proved is None else proved.certificate.to_json()
        print_json({"file": str(place), "bytes": place.stat().st_size, **policy.to_json(), "certificate": proof_json})
    else:
        written = f"{place} ({place.stat().st_size / 1000:,.1f} kB)"
        Console().print(plain_text(written, 10_000), markup=False, highlight=False, soft_wrap=True)  # a path is copied
        Console().print(plain_text(policy.sentence(), 10_000), markup=False, highlight=False)
    raise typer.Exit(code)


def _certified(
    stored: Run, which: str | None, samples: int, problem: Path | None, purpose: Purpose | None
) -> Recertified:
    """A certificate for the very policy that is exported."""
    if stored.mixture is None:
        raise without_policy(stored)
    mixture, _ = policy_to_export(stored, which)
    instance = load_run_target(stored, problem)
    asked = with_features_of(instance.problem, dataclasses.replace(stored, mixture=mixture))
    seed = derived_seed(stored.seed, EXPORT.start)
    return recertify(asked, instance.problem, instance.simulator, samples=samples, seed=seed, purpose=purpose)
