"""docs/theory.md: its tables of figures are all made by tests/page_tables.py."""

from __future__ import annotations

import re

from page_tables import number, size
from pages import TABLE, notes
from places import DOCS

PAGE = (DOCS / "theory.md").read_text()


def test_no_other_table_holds_figures() -> None:
    """Every line of a table with a number of samples is one that is made."""
    made = [line for t in TABLE.finditer(PAGE) if "table" in notes(t["notes"]) for line in t["rows"].splitlines()]
    figures = [line for line in PAGE.splitlines() if line.startswith("|") and re.search(r"\de\d", line)]
    assert set(figures) <= set(made)
    assert len(figures) > 20


def test_numbers_are_written_with_two_figures() -> None:
    assert [number(x) for x in (0.123, 5, 42, 690.4, 4.19e4, 999_999)] == ["0.12", "5", "42", "690", "4.2e4", "1.0e6"]
    assert [size(n) for n in (2_300_000_000, 399 * 10**12)] == ["2.3 GB", "399 TB"]
