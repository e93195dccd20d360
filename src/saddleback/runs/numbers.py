"""Numbers, sentences and tables as people read them, everywhere.

A number takes nine characters at most where it stands in a table, and tables fit a terminal of eighty columns: numbers are
never broken over lines, words and ranges may be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as RichTable

from saddleback.problem.cmdp import CMDP
from saddleback.problem.criteria import Unit
from saddleback.problem.signals import Constraint

_LONGEST = 9
_TIMES = ((86400 * 365.25, "years"), (86400, "days"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"))
_SIZES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"))


def number(x: float | None) -> str:
    """Four significant digits, fewer where that would be long, or a dash where there is no number."""
    if x is None or math.isnan(x):
        return "–"
    x += 0.0  # no sign of zero
    return next(text for form in (".4g", ".2e", ".1e") if len(text := format(x, form)) <= _LONGEST)


def between(limits: Sequence[float | None] | None) -> str:
    """Two limits as words, or a dash."""
    return "–" if limits is None else f"{number(limits[0])} to {number(limits[1])}"


def at_most(limit: float | None, minimise: bool = False) -> str:
    """An upper bound as words (a lower one, of what is minimised), or that there is none."""
    return "no bound" if limit is None else f"at {'least' if minimise else 'most'} {number(limit)}"


def in_unit(unit: Unit, total: float | None) -> str:
    """A discounted total as a number of the unit that its constraint was given in, or a dash."""
    return number(None if total is None else unit.shown(total))


def limits_in(unit: Unit, totals: Sequence[float | None] | None) -> str:
    """Two limits of such a value, or a dash."""
    return between(None if totals is None else [None if x is None else unit.shown(x) for x in totals])


def room_in_units(problem: CMDP, slack: float) -> str:
    """What is left, or missing, of the constraints together: in the unit of all of them, else as a discounted total."""
    units = problem.units
    alike = len(set(units)) == 1 and (units[0].per_step or len(units) == 1)
    return units[0].say(slack, number) if alike else f"{number(slack)} as a discounted total"


def wanted(constraint: Constraint, unit: Unit, *, signs: bool = False) -> str:
    """What is wanted of a constraint, as it was given: "<= 0.15 per step", or with ``signs`` "≤ 0.15 per step"."""
    sense = symbol(constraint.sense) if signs else constraint.sense
    return f"{sense} {number(constraint.threshold)}{unit.suffix}"


def confidence(share: float) -> str:
    """A confidence in percent, with every digit that was asked for."""
    return f"{100 * share:g} %"


def percent(share: float) -> str:
    """A share in percent, with three digits at most, that is not broken over lines."""
    return f"{100 * share:.3g}\u00a0%"


def symbol(sense: str) -> str:
    """≥ or ≤."""
    return "≥" if sense == ">=" else "≤"


def roughly(count: int) -> str:
    """Two digits of a count."""
    rounded = float(f"{count:.1e}")
    return f"{rounded:,.0f}" if rounded < 1e9 else f"{rounded:.1e}"


def count(number: int, thing: str) -> str:
    """So many of a thing, with the plural that a number needs."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, name in _TIMES:
        if seconds >= unit:
            return f"{number(seconds / unit)} {name}"
    return f"{number(seconds * 1e6)} µs"


def size(count: float) -> str:
    """Bytes in the unit that suits them."""
    for unit, name in _SIZES:
        if count >= unit:
            return f"{number(count / unit)} {name}"
    return f"{number(count / 1e3)} kB"


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def empty_table(
    title: str | None, words: Sequence[str], numbers: Sequence[str], *, ranges: Sequence[str] = ()
) -> RichTable:
    """A table without rows: ``words`` to the left, then ``numbers``, of which only ``ranges`` may be broken over lines."""
    table = RichTable(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for column in words:
        table.add_column(escape(column), overflow="fold")
    for column in numbers:
        table.add_column(escape(column), justify="right", no_wrap=column not in ranges, overflow="fold")
    return table


def add_row(table: RichTable, *cells: str) -> None:
    """What users named themselves is printed as it is, brackets included."""
    table.add_row(*map(escape, cells))
