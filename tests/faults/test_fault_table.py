"""The table of faults has all its rows, and every row names tests that exist."""

from __future__ import annotations

import ast
import re

from places import ROOT

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[list[str]]:
    """The cells of each numbered row of docs/faults.md."""
    lines = (ROOT / "docs" / "faults.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in cells if row[0].isdigit()]


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def missing(row: list[str]) -> list[str]:
    named = NAMED.findall(row[3])
    return [f"{path}::{name}" for path, name in named if not (ROOT / path).is_file() or name not in functions(path)]


def test_every_row_names_tests_that_exist() -> None:
    table = rows()
    assert [int(row[0]) for row in table] == list(range(1, 82))
    for row in table:
        assert len(row) == 4 and all(row), f"row {row[0]} has empty cells"
        assert NAMED.findall(row[3]), f"row {row[0]} names no test"
        assert missing(row) == []


def test_a_row_with_a_test_that_is_not_there_is_noticed() -> None:
    here = "tests/faults/test_fault_table.py"
    assert missing(["1", "", "", f"`{here}::no_such_test`, `tests/nowhere.py::test_x`"]) == [
        f"{here}::no_such_test",
        "tests/nowhere.py::test_x",
    ]
