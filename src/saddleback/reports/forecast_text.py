"""What an accuracy would cost, as a table that says which numbers are proved and which are guessed, and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from saddleback.errors import plain_text
from saddleback.files.memory import limit
from saddleback.runs.limits import options_of
from saddleback.runs.numbers import add_row, confidence, duration, empty_table, number, roughly, size
from saddleback.runs.settings import USUAL_SAMPLES
from saddleback.solving.forecast import AFFORDABLE, Forecast

_USUAL_MOST = 100_000_000  # simulator calls after which `solve --epsilon` gives up unless told otherwise


def print_forecast(console: Console, found: Forecast, command: str) -> None:
    """The question, the table of ways, what they rest on, and the command to type next."""
    problem = found.solution.problem
    missed = "no constraint missed" + (
        "" if found.feasibility == "strict" else " by more than the same share of its range"
    )
    console.print(
        f"[bold]{escape(problem.name)}[/bold]: the cost of a reward within {number(found.epsilon)} of the optimum and "
        f"{missed}, with {confidence(1 - found.delta)} confidence."
    )
    if found.solution.mixture is None:
        console.print(f"A pilot of {found.pilot_samples:,} simulator calls says: {escape(found.solution.message)}.")
        return
    console.print(_table(found))
    for name, why in (("Worst case", found.why_no_worst), ("Adaptive run", found.why_no_likely)):
        if why:
            console.print(f"{name}: {escape(why)}.")
    if found.coreset is not None and found.slater is not None:
        console.print(
            f"{found.coreset} state-action pairs have to be sampled. {_room(found)} "
            f"The simulator takes {duration(found.seconds_per_call)} a call, in batches."
        )
    for remark in found.remarks:
        usual = f"with the usual {USUAL_SAMPLES:,} simulator calls " if remark.kind == "too-large" else "in the pilot "
        console.print(f"Note: {usual}{escape(remark.text)}.")
    proves = "no accuracy" if found.pilot_error is None else f"an accuracy of {number(found.pilot_error)}"
    console.print(f"All this took a pilot of {found.pilot_samples:,} simulator calls, which by itself proves {proves}.")
    console.print(_advice(found))
    if found.recommended == "adaptive":
        console.print(f"    {escape(plain_text(command, 4000))}", soft_wrap=True, highlight=False)
    if (needed := found.recommended_bytes) is not None and needed > (room := limit()).bytes:
        console.print(
            f"It takes more memory than there is, {size(needed)} of {size(room.bytes)} ({room.source}): ask for less accuracy, "
            "or use `saddleback sample --out` and `saddleback solve --from`, which reads samples in pieces."
        )


def solve_command(target: str, settings: Sequence[str], found: Forecast) -> str:
    """The `saddleback solve` that would reach the accuracy."""
    words = ["saddleback", "solve", target, *options_of(settings)]
    words += ["--epsilon", f"{found.epsilon:g}"]
    words += ["--delta", f"{found.delta:g}"] if found.delta != 0.05 else []
    words += [] if found.feasibility == "strict" else ["--feasibility", found.feasibility]
    most = 10 * (found.likely or 0)  # well above the forecast
    words += ["--max-samples", str(most)] if most > _USUAL_MOST else []
    return shlex.join(words)


def forecast_json(found: Forecast, command: str) -> dict[str, Any]:
    """The forecast as one JSON-ready object."""
    worst, slater, zeta = found.worst, found.slater, None
    worst_case: dict[str, Any] = {"samples": None, "reason": found.why_no_worst}
    adaptive: dict[str, Any] = {"samples": None, "reason": found.why_no_likely}
    if slater is not None:
        zeta = {name: getattr(slater, name) for name in ("estimate", "low", "high")}
        zeta |= {"units": "utilities", "label": "measured"}
    if worst is not None:
        worst_case = {"samples": worst.samples, "bytes": found.worst_bytes, "stored_bytes": worst.bytes}
        worst_case |= {name: getattr(worst, name) for name in ("seconds", "label", "resolution", "target_shift")}
        worst_case |= {"solver": worst.solver._asdict(), "evaluation": worst.evaluation._asdict()}
        worst_case["remarks"] = list(worst.remarks)
    if found.likely is not None:
        seconds = found.likely * found.seconds_per_call
        adaptive = {"samples": found.likely, "bytes": found.likely_bytes, "seconds": seconds, "label": "heuristic"}
    return {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "feasibility": found.feasibility,
        "coreset": found.coreset,
        "zeta": zeta,
        "simulator": {"seconds_per_call": found.seconds_per_call},
        "pilot": {
            "samples": found.pilot_samples,
            "error": found.pilot_error,
            "status": found.solution.status.value,
            "message": found.solution.message,
        },
        "worst_case": worst_case,
        "adaptive": adaptive,
        "remarks": [remark.text for remark in found.remarks],
        "recommended": found.recommended,
        "recommended_bytes": found.recommended_bytes,
        "command": command if found.recommended == "adaptive" else None,
    }


def _table(found: Forecast) -> RichTable:
    table = empty_table(None, ["way"], ["simulator calls", "simulator time", "memory"])
    table.add_column("how sure", overflow="fold")
    worst, likely, memory = found.worst, found.likely, found.likely_bytes
    if worst is None:
        add_row(table, "worst case", "–", "–", "–", "")
    else:
        sure = worst.label + (", if ζ is not below its range" if found.feasibility == "strict" else "")
        add_row(
            table,
            "worst case",
            roughly(worst.samples),
            duration(worst.seconds or 0.0),
            size(found.worst_bytes or 0),
            sure,
        )
    if likely is None or memory is None:
        add_row(table, "adaptive run", "–", "–", "–", "")
    else:
        time = duration(likely * found.seconds_per_call)
        add_row(table, "adaptive run", f"about {roughly(likely)}", time, size(memory), "heuristic, to a factor of 5")
    return table


def _room(found: Forecast) -> str:
    slater, problem = found.slater, found.solution.problem
    assert slater is not None
    alone = problem.num_constraints == 1
    scale = problem.units[0].of(abs(float(problem.scale[1]))) if alone else 1.0
    words = problem.units[0].suffix if alone else " in utilities"
    tightest = float(problem.thresholds.max())  # which no policy can miss, or leave, by more than its values allow
    ends = np.clip([slater.estimate, slater.low, slater.high], -tightest, problem.horizon - tightest)
    estimate, low, high = (number(scale * x) for x in ends.tolist())
    open_ = "" if slater.low > 0 else ", so it may be that they leave none"
    return f"The constraints leave room ζ = {estimate}{words} ({low} to {high}, measured, not proved){open_}."


def _advice(found: Forecast) -> str:
    if found.recommended == "adaptive":
        return "Recommended: the adaptive run, which stops as soon as it has its proof:"
    if found.recommended == "worst-case":
        return "Recommended: the worst-case plan; its parameters are in --json."
    return f"Recommended: neither takes {AFFORDABLE:,} simulator calls or less, so ask for less accuracy."
