"""``saddleback plan``: what an accuracy would cost, before it is paid for."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console

from saddleback.cli.common import Json, Seed, Settings, Target, print_json
from saddleback.reports.forecast_text import print_forecast
from saddleback.runs.solution import Status
from saddleback.runs.targets import load_target
from saddleback.solving.forecast import Forecast, forecast

_USUAL_MOST = 100_000_000  # simulator calls after which `solve --epsilon` gives up unless told otherwise


def plan(
    target: Target,
    epsilon: Annotated[float, typer.Option(help="The accuracy wanted of the discounted reward.")],
    settings: Settings = None,
    delta: Annotated[float, typer.Option(help="One minus the confidence.")] = 0.05,
    feasibility: Annotated[str, typer.Option(help="relaxed or strict.")] = "relaxed",
    samples: Annotated[
        int | None, typer.Option(help="Simulator calls of the pilot.", show_default="20000, more for large problems")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say what an accuracy would cost in simulator calls, time and memory: proved for the worst case, and likely."""
    instance = load_target(target, settings or [])
    found = forecast(
        instance.problem,
        instance.simulator,
        epsilon=epsilon,
        delta=delta,
        feasibility=feasibility,  # type: ignore[arg-type]
        samples=samples,
        seed=seed,
    )
    command = _command(target, settings or [], found)
    if as_json:
        print_json(_json(found, command))
    else:
        print_forecast(Console(), found, command)
    if found.solution.status is Status.INFEASIBLE:
        raise typer.Exit(found.solution.status.exit_code)
    raise typer.Exit(0 if found.recommended != "neither" else 4)


def _command(target: str, settings: Sequence[str], found: Forecast) -> str:
    words = ["saddleback", "solve", target]
    for setting in settings:
        words += ["--set", setting]
    words += ["--epsilon", f"{found.epsilon:g}"]
    words += ["--delta", f"{found.delta:g}"] if found.delta != 0.05 else []
    words += ["--feasibility", "strict"] if found.feasibility == "strict" else []
    most = 10 * (found.likely or 0)  # well above the forecast
    words += ["--max-samples", str(most)] if most > _USUAL_MOST else []
    return shlex.join(words)


def _json(found: Forecast, command: str) -> dict[str, Any]:
    worst, slater = found.worst, found.slater
    return {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "feasibility": found.feasibility,
        "coreset": found.coreset,
        "zeta": None
        if slater is None
        else {
            "estimate": slater.estimate,
            "low": slater.low,
            "high": slater.high,
            "units": "utilities",
            "label": "measured",
        },
        "simulator": {"seconds_per_call": found.seconds_per_call},
        "pilot": {
            "samples": found.pilot_samples,
            "error": found.pilot_error,
            "status": found.solution.status.value,
            "message": found.solution.message,
        },
        "worst_case": {"samples": None, "reason": found.why_no_worst}
        if worst is None
        else {
            "samples": worst.samples,
            "bytes": found.worst_bytes,
            "stored_bytes": worst.bytes,
            "seconds": worst.seconds,
            "label": worst.label,
            "solver": worst.solver._asdict(),
            "evaluation": worst.evaluation._asdict(),
            "resolution": worst.resolution,
            "target_shift": worst.target_shift,
            "remarks": list(worst.remarks),
        },
        "adaptive": {"samples": None, "reason": found.why_no_likely}
        if found.likely is None
        else {
            "samples": found.likely,
            "bytes": found.likely_bytes,
            "seconds": found.likely * found.seconds_per_call,
            "label": "heuristic",
        },
        "recommended": found.recommended,
        "recommended_bytes": found.recommended_bytes,
        "command": command if found.recommended == "adaptive" else None,
    }
