"""What an accuracy would cost, as a table that says which numbers are proved and which are guessed."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from saddleback.runs.tables import add_row, empty_table, number
from saddleback.sampling.memory import limit
from saddleback.solving.forecast import AFFORDABLE, Forecast

_TIMES = ((86400 * 365.25, "years"), (86400, "days"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"))


def print_forecast(console: Console, found: Forecast, command: str) -> None:
    """The question, the table of ways, what they rest on, and the command to type next."""
    problem = found.solution.problem
    missed = "no constraint missed" + (
        "" if found.feasibility == "strict" else " by more than the same share of its range"
    )
    console.print(
        f"[bold]{escape(problem.name)}[/bold]: the cost of a reward within {number(found.epsilon)} of the optimum and "
        f"{missed}, with {100 * (1 - found.delta):g} % confidence."
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
    proves = "no accuracy" if found.pilot_error is None else f"an accuracy of {number(found.pilot_error)}"
    console.print(f"All this took a pilot of {found.pilot_samples:,} simulator calls, which by itself proves {proves}.")
    console.print(_advice(found))
    if found.recommended == "adaptive":
        console.print(f"    {escape(command)}", soft_wrap=True, highlight=False)
    if (needed := found.recommended_bytes) is not None and needed > (room := limit()).bytes:
        console.print(
            f"It takes more memory than there is, {size(needed)} of {size(room.bytes)} ({room.source}): ask for less accuracy, "
            "or use `saddleback sample --out` and `saddleback solve --from`, which reads samples in pieces."
        )


def roughly(count: int) -> str:
    """Two digits of a count."""
    rounded = float(f"{count:.1e}")
    return f"{rounded:,.0f}" if rounded < 1e9 else f"{rounded:.1e}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, name in _TIMES:
        if seconds >= unit:
            return f"{number(seconds / unit)} {name}"
    return f"{number(seconds * 1e6)} µs"


def size(count: float) -> str:
    """Bytes in the unit that suits them."""
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= unit:
            return f"{number(count / unit)} {name}"
    return f"{number(count / 1e3)} kB"


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
    unit = abs(float(problem.scale[1])) if problem.num_constraints == 1 else 1.0
    words = "" if problem.num_constraints == 1 else " in utilities"
    estimate, low, high = (number(unit * x) for x in (slater.estimate, slater.low, slater.high))
    return f"The constraints leave room ζ = {estimate}{words} ({low} to {high}, measured, not proved)."


def _advice(found: Forecast) -> str:
    if found.recommended == "adaptive":
        return "Recommended: the adaptive run, which stops as soon as it has its proof:"
    if found.recommended == "worst-case":
        return "Recommended: the worst-case plan; its parameters are in --json."
    return f"Recommended: neither takes {AFFORDABLE:,} simulator calls or less, so ask for less accuracy."
