"""Tables for a terminal of eighty columns: numbers are never broken over lines, words and ranges may be."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table as RichTable


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
