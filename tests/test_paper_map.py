"""docs/paper_map.md against the tree: files exist, nothing of the paper is missing, modules and map name the same labels.

The paper itself is not needed: its algorithms, assumptions and theorems are listed here once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SOURCE, TESTS, DOCS = ROOT / "src" / "saddleback", ROOT / "tests", ROOT / "docs"

ALGORITHMS = {
    "alg_CMDPL": "Alg. 1",
    "alg_MDVICLMDP": "Alg. 2",
    "alg_CVIL": "Alg. 3",
    "alg_ID": "Alg. 4",
    "alGW": "Alg. 5",
    "alg_MDVICMDP": "Alg. 6",
    "alg_CVI": "Alg. 7",
}
UNNUMBERED = {  # described in the text: the label, and the word that the module's docstring must hold
    "Appendix_Table-Tabular": "mirror descent",
    "app:gss": "app:gss",
    "app:model-based": "app:model-based",
}
ASSUMPTIONS = {"asm_32", "def_genm", "asmp_b1", "asmp_b2", "sec:instant-data"}  # the last holds the design assumption
RESULTS = {"thm_main2", "lem_optGL", "lem_optG2L", "thm_main2C", "lem_mdvi", "lem_concen", "thm_main2CT", "sec_LB"}
GOALS = {"sec:problem", "eq:true-CMDP", "fml_RF", "fml_SF", "eq:saddle", "Table1"}
SUPPORT = {"lem_pd", "lem_43", "lem_concentrate", "lem_TVL", "lemma_10", "lem_bounddualv", "lem_boundsense"}

LABEL = re.compile(
    r"(?<![\w.`])(?:alGW|(?:alg|asm|asmp|def|fml|lem|lemma|thm|cor)_[A-Za-z0-9]+|sec_[A-Z]\w*|(?:sec|app|eq|fig):[\w\-]+)"
)


class Row(NamedTuple):
    """One line of the map."""

    labels: list[str]
    what: str
    code: list[str]
    tests: list[str]
    errata: list[int]


def rows(text: str) -> list[Row]:
    """The table rows of the map, without headings."""
    found = []
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if len(cells) == 5 and cells[0] != "Label" and set(cells[0]) != {"-"}:
            numbers = [int(n) for n in re.findall(r"\d+", cells[4])]
            labels = [label for label in re.split(r",\s*", cells[0]) if label]
            found.append(Row(labels, cells[1], _quoted(cells[2]), _quoted(cells[3]), numbers))
    return found


def _quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def missing_files(row: Row) -> list[str]:
    return [f for f in row.code if not (SOURCE / f).is_file()] + [f for f in row.tests if not (TESTS / f).is_file()]


def silent_modules(row: Row, read: dict[str, str]) -> list[str]:
    """Modules named for an algorithm whose docstrings (``read``) name neither its label nor its number."""
    silent = []
    for label in row.labels:
        words = (label, ALGORITHMS[label]) if label in ALGORITHMS else (UNNUMBERED.get(label, ""),)
        silent += [f for f in row.code if not any(w in read[f].replace("Algs.", "Alg.") for w in words)]
    return silent


def cited_labels(text: str) -> set[str]:
    """The paper's labels that a docstring names."""
    return set(LABEL.findall(text))


MAP = rows((DOCS / "paper_map.md").read_text())
MAPPED = {label for row in MAP for label in row.labels}


def test_the_map_was_read() -> None:
    assert len(MAP) > 40
    assert sum(len(row.code) for row in MAP) > 50


@pytest.mark.parametrize("row", MAP, ids=lambda row: row.what[:40])
def test_files_exist(row: Row) -> None:
    assert missing_files(row) == []


def test_nothing_of_the_paper_is_missing() -> None:
    assert (ALGORITHMS.keys() | UNNUMBERED.keys() | ASSUMPTIONS | RESULTS | GOALS | SUPPORT) - MAPPED == set()


def test_algorithms_assumptions_and_results_have_code_and_tests() -> None:
    for label in ALGORITHMS.keys() | UNNUMBERED.keys() | ASSUMPTIONS | RESULTS:
        mine = [row for row in MAP if label in row.labels]
        assert any(row.code for row in mine), label
        assert any(row.tests for row in mine), label


@pytest.mark.parametrize("label", ALGORITHMS | UNNUMBERED)
def test_modules_say_what_they_implement(label: str) -> None:
    first = next(row for row in MAP if label in row.labels)
    read = {f: docstring(SOURCE / f) for f in first.code}
    assert first.code
    assert silent_modules(first._replace(labels=[label]), read) == []


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_labels_in_docstrings_are_on_the_map(path: Path) -> None:
    assert cited_labels(docstring(path)) - MAPPED == set()


def test_every_top_level_file_is_on_the_map() -> None:
    """A top-level file is what the paper fixes: each has its place."""
    top = {p.name for p in SOURCE.glob("*.py") if not p.name.startswith("_")}
    assert top - {f for row in MAP for f in row.code} == set()


def errata_entries() -> list[int]:
    return [int(n) for n in re.findall(r"^### (\d+)\. ", (DOCS / "errata.md").read_text(), re.MULTILINE)]


def test_errata_are_numbered_and_referred_to() -> None:
    entries = errata_entries()
    assert entries == list(range(1, len(entries) + 1))
    assert {n for row in MAP for n in row.errata} == set(entries)


def test_errata_name_labels_on_the_map() -> None:
    headings = re.findall(r"^### \d+\. (.*)$", (DOCS / "errata.md").read_text(), re.MULTILINE)
    assert cited_labels(" ".join(headings)) - MAPPED == set()


def named_paths() -> Iterator[tuple[str, str]]:
    """(document, path) for each quoted path that ends like a file of ours."""
    for document in [*DOCS.rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for quoted in _quoted(document.read_text()):
            if re.fullmatch(r"[\w/\-]+\.(?:py|md|toml|txt|npz)", quoted) and not quoted.endswith(".npz"):
                yield document.name, quoted


@pytest.mark.parametrize(("document", "path"), sorted(set(named_paths())))
def test_documents_name_files_that_exist(document: str, path: str) -> None:
    assert any((folder / path).is_file() for folder in (ROOT, SOURCE, TESTS)), f"{document} names {path}"


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), (document.name, target)


def test_the_checks_can_fail() -> None:
    bad = rows("| alg_CVI | x | `solvers/no_such.py` | `test_no_such.py` | 3 |")[0]
    assert missing_files(bad) == ["solvers/no_such.py", "test_no_such.py"]
    wrong = rows("| alg_CVI | Alg. 7 | `solvers/ls_mdvi.py` | | |")[0]
    assert silent_modules(wrong, {"solvers/ls_mdvi.py": docstring(SOURCE / "solvers/ls_mdvi.py")}) == wrong.code
    assert cited_labels("Alg. 2 (§4.2, label alg_MDVICMLDP)") - MAPPED == {"alg_MDVICMLDP"}
