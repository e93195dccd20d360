"""docs/properties.md against the tests: every test it names exists, every property is there, no reference leads nowhere."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"

WANTED = set(range(1, 34))
KINDS = {"for all", "sweep", "instance"}
REFERENCE = re.compile(r"(?<![A-Za-z])[Pp]ropert(?:y|ies)[ _](\d+(?:(?:, | and )\d+)*)")
OUTSIDE = re.compile(r"\bnotes,? §")  # a section of something that is not in the repository


class Row(NamedTuple):
    """One property."""

    number: int
    statement: str
    kind: str
    tests: list[tuple[str, str]]


def rows(text: str) -> list[Row]:
    """The rows of the tables of properties."""
    found = []
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if len(cells) == 4 and cells[0].isdigit():
            named = re.findall(r"`([\w/]+\.py)::(\w+)`", cells[3])
            found.append(Row(int(cells[0]), cells[1], cells[2], named))
    return found


@cache
def functions(path: str) -> dict[str, bool]:
    """Test functions of a file of tests, and whether Hypothesis draws their inputs."""
    if not (TESTS / path).is_file():
        return {}
    body = ast.parse((TESTS / path).read_text()).body
    tests = [n for n in body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
    return {n.name: any("given(" in ast.unparse(d) for d in n.decorator_list) for n in tests}


def missing(row: Row) -> list[tuple[str, str]]:
    return [(path, name) for path, name in row.tests if name not in functions(path)]


def universal(row: Row) -> bool:
    return any(functions(path).get(name, False) for path, name in row.tests)


def mentioned(text: str) -> set[int]:
    """Numbers of properties that a text refers to."""
    return {int(n) for m in REFERENCE.finditer(text) for n in re.findall(r"\d+", m.group(1))}


PROPERTIES = rows((ROOT / "docs" / "properties.md").read_text())


def test_every_property_is_there_once() -> None:
    numbers = [row.number for row in PROPERTIES]
    assert WANTED - set(numbers) == set()
    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("row", PROPERTIES, ids=lambda row: str(row.number))
def test_property_is_shown(row: Row) -> None:
    assert row.statement
    assert row.tests
    assert missing(row) == []
    assert row.kind in KINDS
    if row.kind == "for all":
        assert universal(row)


def sources() -> list[Path]:
    return [p for folder in ("src", "tests", "benchmarks", "docs") for p in sorted((ROOT / folder).rglob("*.[pm][yd]"))]


def test_references_lead_to_a_property_of_the_table() -> None:
    known = {row.number for row in PROPERTIES}
    found = {p.relative_to(ROOT).as_posix(): mentioned(p.read_text()) for p in sources() if p != Path(__file__)}
    assert len([path for path, numbers in found.items() if numbers]) > 8
    assert {path: numbers - known for path, numbers in found.items() if numbers - known} == {}


def test_nothing_points_outside_the_repository() -> None:
    assert [p.name for p in sources() if p != Path(__file__) and OUTSIDE.search(p.read_text())] == []


def test_the_checks_can_fail() -> None:
    text = "| 7 | x | for all | `test_no_such.py::test_x`, `test_style.py::test_source_file`, `test_style.py::test_y` |"
    (bad,) = rows(text)
    assert missing(bad) == [("test_no_such.py", "test_x"), ("test_style.py", "test_y")]
    assert not universal(bad)
    assert mentioned("(property 99), Properties 3, 12 and 15, test_property_16_at") == {99, 3, 12, 15, 16}
    assert OUTSIDE.search("see the notes, §7") and not OUTSIDE.search("the paper notes in §2 that r is known")
