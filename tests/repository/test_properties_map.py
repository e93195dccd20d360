"""docs/properties.md against the tests: every test it names exists, every property is there, no reference leads nowhere."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from places import ROOT
from repository.offenders import expect_none

TESTS = ROOT / "tests"

WANTED = set(range(1, 34))
KINDS = {"for all", "sweep", "instance"}
REFERENCE = re.compile(r"(?<![A-Za-z])[Pp]ropert(?:y|ies)[ _](\d+(?:(?:, | and )\d+)*)")
OUTSIDE = re.compile(r"\bnotes,? §")  # a section of something that is not in the repository


class Row(NamedTuple):
    """One property."""

    line: int
    number: int
    statement: str
    kind: str
    tests: list[tuple[str, str]]


def rows(text: str) -> list[Row]:
    """The rows of the tables of properties."""
    found = []
    for at, line in enumerate(text.splitlines(), start=1):
        cells = [c.strip() for c in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if len(cells) == 4 and cells[0].isdigit():
            named = re.findall(r"`([\w/]+\.py)::(\w+)`", cells[3])
            found.append(Row(at, int(cells[0]), cells[1], cells[2], named))
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


def faults(row: Row) -> list[str]:
    """What is wrong with a row of the table, as sentences."""
    wrong = [f"no test {path}::{name}" for path, name in missing(row)]
    wrong += ["no statement"] * (not row.statement)
    wrong += ["names no test"] * (not row.tests)
    wrong += [f"{row.kind!r} is none of {sorted(KINDS)}"] * (row.kind not in KINDS)
    wrong += ["'for all', but Hypothesis draws the inputs of none of its tests"] * (
        row.kind == "for all" and not universal(row)
    )
    return [f"docs/properties.md:{row.line}: property {row.number}: {fault}" for fault in wrong]


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


def test_every_property_is_shown() -> None:
    expect_none(fault for row in PROPERTIES for fault in faults(row))


def sources() -> list[Path]:
    return [p for folder in ("src", "tests", "benchmarks", "docs") for p in sorted((ROOT / folder).rglob("*.[pm][yd]"))]


def test_references_lead_to_a_property_of_the_table() -> None:
    known = {row.number for row in PROPERTIES}
    found = {p.relative_to(ROOT).as_posix(): mentioned(p.read_text()) for p in sources() if p != Path(__file__)}
    assert len([path for path, numbers in found.items() if numbers]) > 8
    expect_none(f"{path}: no property {n}" for path, numbers in found.items() for n in sorted(numbers - known))


def test_nothing_points_outside_the_repository() -> None:
    expect_none(
        f"{p.relative_to(ROOT)}:{at}: {line.strip()}"
        for p in sources()
        if p != Path(__file__)
        for at, line in enumerate(p.read_text().splitlines(), start=1)
        if OUTSIDE.search(line)
    )


def test_the_checks_can_fail() -> None:
    text = "| 7 | x | for all | `test_no_such.py::test_x`, `repository/test_style.py::test_nothing_prints`, `repository/test_style.py::test_y` |"
    (bad,) = rows(text)
    assert missing(bad) == [("test_no_such.py", "test_x"), ("repository/test_style.py", "test_y")]
    assert not universal(bad)
    assert [fault.split(": ")[2] for fault in faults(bad)] == [
        "no test test_no_such.py::test_x",
        "no test repository/test_style.py::test_y",
        "'for all', but Hypothesis draws the inputs of none of its tests",
    ]
    assert [fault.split(": ", 2)[2] for fault in faults(Row(3, 8, "", "often", []))] == [
        "no statement",
        "names no test",
        "'often' is none of ['for all', 'instance', 'sweep']",
    ]
    assert mentioned("(property 99), Properties 3, 12 and 15, test_property_16_at") == {99, 3, 12, 15, 16}
    assert OUTSIDE.search("see the notes, §7") and not OUTSIDE.search("the paper notes in §2 that r is known")
