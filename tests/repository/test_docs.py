"""Every example on every page of the documentation runs and prints what the page says; pages.py has how, printed.py how nearly.

``python docs/rewrite.py`` writes what is printed into the pages.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import page_tables
import saddleback
from pages import (
    NOTE,
    PAGES,
    ROOT,
    TABLE,
    WrongPageError,
    blocks,
    name_of,
    notes,
    run,
    run_block,
    store_files,
    workplace,
)
from printed import DEFAULT, Tolerance, agrees, differences, rewritten

TABLE_OF_A_RUN = """\
 quantity   estimate      limits   calls
 ───────────────────────────────────────
 reward        10.67   1.2e-05 to −3   1,234,567
 share         2.00%   holds           12
"""


@pytest.fixture
def ray_turn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cluster at a time on this machine, however many processes the tests run in."""
    with contextlib.ExitStack() as held:
        if "<!-- needs: ray -->" in request.getfixturevalue("page").read_text():
            file = held.enter_context((tmp_path_factory.getbasetemp().parent / "ray.lock").open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


LONG = "black_box check designs distributed how_to/budget how_to/cluster how_to/features method plots problem_files samples"
LONG_PAGES = {
    f"docs/{name}.md"
    for name in (*LONG.split(), "simulators", "theory", "report", "policies", "how_to/your_simulator", "zoo")
}  # left to make check


@pytest.mark.usefixtures("ray_turn")
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow if name_of(p) in LONG_PAGES else ()) for p in PAGES],
    ids=map(name_of, PAGES),
)
def test_every_block_runs(page: Path, tmp_path: Path) -> None:
    with workplace(tmp_path):
        for shown in run(page.read_text(), name_of(page)):
            found = shown.differences()
            assert not found, f"{shown.where}: {found}; it prints\n{shown.printed}"


def test_no_block_is_overlooked() -> None:
    for page in PAGES:
        text = page.read_text()
        for language in ("python", "console", "sh", ""):
            parsed = sum(block.language == language for block in blocks(text))
            fences = re.findall(r"^```(.*)$", text, re.MULTILINE)
            assert parsed == fences[::2].count(language), (name_of(page), language)


def test_every_table_that_is_made_is_on_a_page() -> None:
    shown = [notes(t["notes"]).get("table") for page in PAGES for t in TABLE.finditer(page.read_text())]
    assert sorted(name for name in shown if name) == sorted(page_tables.BY_NAME)


def test_a_tolerance_stands_where_it_is_read() -> None:
    """At the top of a page, or right before what it is meant for."""
    for page in PAGES:
        text = page.read_text()
        read = [b.notes for b in blocks(text)] + [notes(t["notes"]) for t in TABLE.finditer(text)]
        number = sum("tolerance" in one for one in read) + text.startswith("<!-- tolerance: ")
        assert sum(n["name"] == "tolerance" for n in NOTE.finditer(text)) == number, name_of(page)


# ---- the comparison can fail -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("reward", "rewards"),  # a word
        ("holds", "open"),
        (" share         2.00%   holds           12\n", ""),  # a line
        ("estimate", "estimate estimate"),
        ("10.67", "10.69"),  # a number
        ("10.67", "-10.67"),
        ("1.2e-05", "1.4e-05"),
        ("1.2e-05", "1.2e-06"),
        ("−3", "3"),
        ("2.00%", "2.02%"),
        ("2.00%", "2.00 %"),
        ("12\n", "13\n"),  # counts
        ("1,234,567", "1,234,568"),
        ("───", "==="),
    ],
)
def test_a_difference_is_seen(old: str, new: str) -> None:
    changed = TABLE_OF_A_RUN.replace(old, new)
    assert changed != TABLE_OF_A_RUN
    assert not agrees(changed, TABLE_OF_A_RUN) and not agrees(TABLE_OF_A_RUN, changed)
    assert differences(changed, TABLE_OF_A_RUN)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("10.67", "10.68"),
        ("10.67", "+10.66"),
        ("1.2e-05", "1.3e-05"),
        ("−3", "-3"),
        ("1,234,567", "1234567"),
        ("   limits", " \n limits"),
        ("───", "─"),
    ],
)
def test_last_digits_spaces_and_widths_do_not_count(old: str, new: str) -> None:
    changed = TABLE_OF_A_RUN.replace(old, new, 1)
    assert changed != TABLE_OF_A_RUN
    assert agrees(changed, TABLE_OF_A_RUN) and agrees(TABLE_OF_A_RUN, changed)


@pytest.mark.parametrize(
    ("printed", "said", "same"),
    [
        ("1.776e-15", "0", True),  # a rounding error
        ("1.776e-9", "0", False),
        ("9.999", "10", True),  # ten, to four figures
        ("9.99", "10", True),
        ("9.97", "10", False),
        ("1000000.4", "1000001.2", True),
        ("5e+08", "5.1e+08", True),
        ("5e+08", "6e+08", False),
        ("took 1.2 s", "took 34\nmin", True),
        ("took 1.2 s", "took 34 kB", False),
        ("v1.25x", "v1.26x", False),  # letters touch it: a word
        ("1.25x", "1.26x", False),
        ("3e5ab7 and 12ab", "3e5ab8 and 12ab", False),
        ("SHA-256", "SHA-257", False),
    ],
)
def test_what_is_one_number_and_what_is_not(printed: str, said: str, same: bool) -> None:
    assert agrees(printed, said) is same


def test_dots_stand_for_anything() -> None:
    printed = "a 1 b 2 c 3 b 4 d"
    for said in ("...", "a 1 ... d", "... b 4 d", "a ... b 4 ... d", "... b 2 ... b 4 ...", "a 1 b 2 c 3 b 4 d ..."):
        assert agrees(printed, said), said
    for said in ("a ... c", "... b 2 d", "b ...", "a ... b 4 ... b 2 ...", "a 1 ... 1 b 2 c 3 b 4 d", ""):
        assert not agrees(printed, said), said


def test_a_page_may_state_a_tolerance() -> None:
    assert Tolerance.stated("0.5%") == Tolerance(0.005) and Tolerance.stated("1e-3") == Tolerance(1e-3)
    assert Tolerance.stated("2 %, counts too") == Tolerance(0.02, counts=True)
    assert agrees("10.72 of 100", "10.67 of 100", Tolerance(0.005)) and not agrees("10.72", "10.67")
    assert not agrees("10.75", "10.67", Tolerance(0.005)) and not agrees("101", "100", Tolerance(0.02))
    assert agrees("101", "100", Tolerance(0.02, counts=True))
    with pytest.raises(ValueError, match="correct the page"):
        Tolerance.stated("about a tenth")


def test_a_tolerance_is_for_a_page_or_a_block() -> None:
    block = "```python\nprint(1.5)\n```\n\n{}```text\n1.5\n```\n"
    note = "<!-- tolerance: 2% -->\n"
    shown = [*run(note + "# Title\n\n" + block.format(""), "page")]
    shown += run(block.format(note) + block.format("") + note + block.format(""), "page")
    assert [s.tolerance.relative for s in shown] == [0.02, 0.02, DEFAULT.relative, 0.02]


# ---- so can a page, and it can be rewritten ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```console\n$ saddleback zoo\nnothing of the kind\n```\n",
        "<!-- table: optima -->\n\n| problem |\n|---|\n| `wireless` |\n",
    ],
)
def test_a_wrong_page_is_seen(page: str) -> None:
    (shown,) = run(page, "page")
    assert shown.differences()


@pytest.mark.parametrize(
    "page",
    [
        "```console\n$ saddleback solve no-such-problem\n```\n",
        "```sh\nsaddleback solve no-such-problem\n```\n",
        "```console\n$ ls\n```\n",
        "<!-- exit: 3 -->\n```console\n$ saddleback zoo\n```\n",
        "<!-- exits: 0 -->\n```console\n$ saddleback zoo\n```\n",
    ],
)
def test_a_page_that_cannot_run_is_refused(page: str) -> None:
    with pytest.raises(WrongPageError):
        list(run(page, "page"))


def test_files_are_stored_and_what_cannot_run_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = "<!-- file: a.py -->\n```python\n1 / 0\n```\n"
    store_files(file)
    assert Path("a.py").read_text() == "1 / 0\n"
    for note in ("file: a.py", "not run: it ends badly", "needs: no_such_module", "make docs"):
        (block,) = blocks(f"<!-- {note} -->\n```python\n1 / 0\n```\n")
        assert run_block(block, {}, "page", full=False) == []
    (block,) = blocks("<!-- make docs -->\n```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError):
        run_block(block, {}, "page", full=True)


def test_numbers_are_rewritten_and_all_else_is_kept() -> None:
    said = "first 1.5 s\n...\n     Title\n\n reward   9.5   3   0.0\n ────────────\n...\n"
    printed = "first 2.5 s  \nmuch 5 else\n       Title  \n\n reward   10.25   40   0.0\n ───────────────\n\nmore\n"
    new = rewritten(printed, said)
    assert new == "first 2.5 s\n...\n       Title\n\n reward   10.25   40   0.0\n ───────────────\n...\n"
    assert agrees(printed, new) and rewritten(printed, new) == new
    assert rewritten(printed, said.replace("reward", "loss"), words=True) is None
    assert rewritten("a 1\nb 2 \n", "a 3\n") is None and rewritten("a 1\nb 2 \n", "a 3\n", words=True) == "a 1\nb 2\n"


@pytest.mark.slow
def test_the_script_rewrites_a_page_once(tmp_path: Path) -> None:
    """In a copy of the repository: numbers are put right, words are not, and the second run has nothing to do."""
    for part in ("docs", "tests"):
        (tmp_path / part).mkdir()
    for name in ("docs/rewrite.py", "tests/pages.py", "tests/printed.py", "tests/page_tables.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    right = "```python\nprint(1.5)\nprint('and', 20)\n```\n\n```text\n1.5\n...20\n```\n"
    page = tmp_path / "README.md"
    page.write_text(right.replace("\n1.5\n...20", "\n2.5\n... 7"))

    def script(*options: str) -> int:
        done = subprocess.run([sys.executable, "docs/rewrite.py", *options], cwd=tmp_path, check=False, timeout=100)
        return done.returncode

    assert script("--check") == 1 and "\n2.5\n... 7" in page.read_text()
    assert script() == 0 and "\n1.5\n... 20" in page.read_text()
    assert script("README.md") == 0 and "\n1.5\n... 20" in page.read_text()
    page.write_text(right.replace("...20", "or 20"))
    assert script() == 1 and "or 20" in page.read_text()
    assert script("--words") == 0 and "\n1.5\nand 20" in page.read_text()


def test_the_api_page_has_every_public_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    documented = set(re.findall(r"^\.\. (?:auto\w+|py:data):: (\w+)$", page, re.MULTILINE))
    assert documented | {"zoo"} == set(saddleback.__all__)
