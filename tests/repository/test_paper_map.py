"""docs/paper_map.md against the tree: files exist, nothing of the paper is missing, modules and map name the same labels.

The paper itself is not needed: its algorithms, assumptions and theorems are listed here once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Set
from pathlib import Path
from typing import NamedTuple

from places import ROOT
from repository.offenders import expect_none

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

OF_A_READER = {"queue.py"}  # an example of a file that a reader may have

LABEL = re.compile(
    r"(?<![\w.`])(?:alGW|(?:alg|asm|asmp|def|fml|lem|lemma|thm|cor)_[A-Za-z0-9]+|sec_[A-Z]\w*|(?:sec|app|eq|fig):[\w\-]+)"
)


class Row(NamedTuple):
    """One line of the map."""

    line: int
    labels: list[str]
    what: str
    code: list[str]
    tests: list[str]
    errata: list[int]


def rows(text: str) -> list[Row]:
    """The table rows of the map, without headings."""
    found = []
    for at, line in enumerate(text.splitlines(), start=1):
        cells = [c.strip() for c in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if len(cells) == 5 and cells[0] != "Label" and set(cells[0]) != {"-"}:
            numbers = [int(n) for n in re.findall(r"\d+", cells[4])]
            labels = [label for label in re.split(r",\s*", cells[0]) if label]
            found.append(Row(at, labels, cells[1], _quoted(cells[2]), _quoted(cells[3]), numbers))
    return found


def _quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def missing_files(table: list[Row]) -> list[str]:
    """Files that rows of the map name and that are not there."""
    named = [
        (row, f, folder) for row in table for files, folder in ((row.code, SOURCE), (row.tests, TESTS)) for f in files
    ]
    return [f"docs/paper_map.md:{row.line}: no {f}" for row, f, folder in named if not (folder / f).is_file()]


def silent_modules(row: Row, read: dict[str, str]) -> list[str]:
    """Modules named for an algorithm whose docstrings (``read``) name neither its label nor its number."""
    silent = []
    for label in row.labels:
        words = (label, ALGORITHMS[label]) if label in ALGORITHMS else (UNNUMBERED.get(label, ""),)
        silent += [f for f in row.code if not any(w in read[f].replace("Algs.", "Alg.") for w in words)]
    return silent


def unmapped_labels(docstrings: dict[str, str], mapped: set[str]) -> list[str]:
    """Labels of the paper that docstrings name and the map does not."""
    return [f"{name}: {label}" for name, text in docstrings.items() for label in sorted(cited_labels(text) - mapped)]


def cited_labels(text: str) -> set[str]:
    """The paper's labels that a docstring names."""
    return set(LABEL.findall(text))


def bare_labels(table: list[Row], labels: Set[str]) -> list[str]:
    """Labels without code or without tests on the map."""
    bare = []
    for label in sorted(labels):
        mine = [row for row in table if label in row.labels]
        bare += [f"{label} has no code"] * (not any(row.code for row in mine))
        bare += [f"{label} has no tests"] * (not any(row.tests for row in mine))
    return bare


def named_paths(text: str) -> Iterator[tuple[int, str]]:
    """(line, path) for each quoted path that ends like a file of ours."""
    for at, line in enumerate(text.splitlines(), start=1):
        for quoted in _quoted(line):
            if re.fullmatch(r"[\w/\-]+\.(?:py|md|toml|txt)", quoted):
                yield at, quoted


def lost_paths(text: str) -> list[str]:
    """Files that a document names and that are neither in the repository's root, nor in the package, nor tests.

    A document may name the files that its own blocks store.
    """
    stored = {*re.findall(r"<!-- file: (\S+) -->", text), *OF_A_READER}
    return [
        f"{at}: no {path}"
        for at, path in named_paths(text)
        if path not in stored and not any((folder / path).is_file() for folder in (ROOT, SOURCE, TESTS))
    ]


def dead_links(text: str, folder: Path) -> list[str]:
    """Links of a document in ``folder`` that lead nowhere."""
    links = [(text.count("\n", 0, m.start()) + 1, m[1]) for m in re.finditer(r"\]\(([^)#:]+)\)", text)]
    return [f"{at}: no {target}" for at, target in links if not (folder / target).exists()]


MAP = rows((DOCS / "paper_map.md").read_text())
MAPPED = {label for row in MAP for label in row.labels}


def test_the_map_was_read() -> None:
    assert len(MAP) > 40
    assert sum(len(row.code) for row in MAP) > 50


def test_files_exist() -> None:
    expect_none(missing_files(MAP))


def test_nothing_of_the_paper_is_missing() -> None:
    assert (ALGORITHMS.keys() | UNNUMBERED.keys() | ASSUMPTIONS | RESULTS | GOALS | SUPPORT) - MAPPED == set()


def test_algorithms_assumptions_and_results_have_code_and_tests() -> None:
    labels = ALGORITHMS.keys() | UNNUMBERED.keys() | ASSUMPTIONS | RESULTS
    expect_none(bare_labels(MAP, labels))


def test_modules_say_what_they_implement() -> None:
    silent = []
    for label in ALGORITHMS | UNNUMBERED:
        first = next(row for row in MAP if label in row.labels)
        assert first.code, label
        read = {f: docstring(SOURCE / f) for f in first.code}
        silent += [f"{f} does not name {label}" for f in silent_modules(first._replace(labels=[label]), read)]
    expect_none(silent)


def test_labels_in_docstrings_are_on_the_map() -> None:
    read = {p.relative_to(ROOT).as_posix(): docstring(p) for p in sorted(SOURCE.rglob("*.py"))}
    assert len(read) > 100
    expect_none(unmapped_labels(read, MAPPED))


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


def test_documents_name_files_that_exist() -> None:
    read = {p: p.read_text() for p in [*DOCS.rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]}
    assert sum(len(list(named_paths(text))) for text in read.values()) > 100
    expect_none(f"{p.relative_to(ROOT)}:{wrong}" for p, text in sorted(read.items()) for wrong in lost_paths(text))


def test_links_between_documents_lead_somewhere() -> None:
    documents = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
    expect_none(f"{p.relative_to(ROOT)}:{wrong}" for p in documents for wrong in dead_links(p.read_text(), p.parent))


def test_the_checks_can_fail() -> None:
    text = "\n| alg_CVI | x | `solvers/no_such.py` | `test_no_such.py` | 3 |"
    assert missing_files(rows(text)) == [
        "docs/paper_map.md:2: no solvers/no_such.py",
        "docs/paper_map.md:2: no test_no_such.py",
    ]
    wrong = rows("| alg_CVI | Alg. 7 | `method/solvers/ls_mdvi.py` | | |")
    assert (
        silent_modules(wrong[0], {"method/solvers/ls_mdvi.py": docstring(SOURCE / "method/solvers/ls_mdvi.py")})
        == wrong[0].code
    )
    assert bare_labels(wrong, {"alg_CVI", "thm_main2"}) == [
        "alg_CVI has no tests",
        "thm_main2 has no code",
        "thm_main2 has no tests",
    ]
    assert unmapped_labels({"a.py": "Alg. 2 (§4.2, label alg_MDVICMLDP)"}, MAPPED) == ["a.py: alg_MDVICMLDP"]
    assert lost_paths("see `errors.py`,\n`no_such.py` and `x.npz`") == ["2: no no_such.py"]
    assert lost_paths("```python\nx = 1\n```\n`mine.py`") == ["4: no mine.py"]
    assert lost_paths("<!-- file: mine.py -->\n```python\nx = 1\n```\n`mine.py`") == []
    assert dead_links("[a](errata.md)\n[b](no_such.md) [c](https://no.such)", DOCS) == ["2: no no_such.md"]
