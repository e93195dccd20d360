"""Numbers and tables for a terminal of eighty columns: numbers take nine characters at most and are never broken."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as RichTable

_LONGEST_NUMBER = 9


def number(x: float | None) -> str:
    """Four significant digits, fewer where that would be long, or a dash where there is no number."""
    if x is None or math.isnan(x):
        return "–"
    return next(text for form in (".4g", ".2e", ".1e") if len(text := format(x, form)) <= _LONGEST_NUMBER)


def between(limits: Sequence[float] | None) -> str:
    """Two limits as words, or a dash."""
    return "–" if limits is None else f"{number(limits[0])} to {number(limits[1])}"


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
