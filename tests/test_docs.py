"""Every example on every page of the documentation runs and prints what the page says.

Blocks of a page run in the order of the page, in an empty folder, with the same names in view:

    ```python     runs; a ```text block that follows is what it prints
    ```console    each line that begins with "$ saddleback" runs; what stands below it is what it prints
    ``` or ```sh  if all its lines are saddleback commands they run, on few samples where they do not say how many

A comment before a block may change that: ``<!-- file: NAME -->`` stores the block under that name, for
all pages, before anything runs; ``<!-- make docs -->`` leaves it to `make docs`; ``<!-- exit 3 -->`` expects that exit code.
In what is printed "..." stands for anything; times and widths of white space do not count. Pages with a test of their own
are left to it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import saddleback
from saddleback import Status, cli

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(p for p in ROOT.glob("docs/**/*.md") if "_build" not in p.parts)]
FULL = bool(os.environ.get("SADDLEBACK_DOCS"))  # set by `make docs`
FEW = "20000"

OWN_TEST = {  # pages whose blocks another test runs
    "docs/black_box.md": "solvers/test_black_box.py",
    "docs/callbacks.md": "callbacks/test_callbacks.py",
    "docs/certificate.md": "storage/test_certificate_file.py",
    "docs/designs.md": "designs/test_optimal.py",
    "docs/distributed.md": "executors/test_distributed_doc.py",
    "docs/features.md": "features/test_features_page.py",
    "docs/plots.md": "test_plots.py",
    "docs/policies.md": "cli/test_act.py",
    "docs/samples.md": "test_samples_page.py",
    "docs/simulators.md": "simulators/test_simulators_page.py",
    "docs/theory.md": "theory/test_theory_page.py",
}
REFUSED: dict[str, int] = {}  # commands of a page that should be refused, with their exit code
BLOCK = re.compile(r"^(?:<!-- (?P<note>[^\n]*?) -->\n+)?```(?P<language>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.M)
TIME = re.compile(r"\b\d[\d.]* (?:µs|ms|s|min|hours|days)\b")
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block; ``note`` is the comment before it, ``printed`` the text block after it."""

    note: str
    language: str
    body: str
    line: int
    printed: str | None = None


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page's text, a text block joined to the Python block that it follows."""
    found = list(BLOCK.finditer(page))
    for i, one in enumerate(found):
        two = found[i + 1] if i + 1 < len(found) else None
        follows = two is not None and two["language"] == "text" and not page[one.end() : two.start()].strip()
        line = page.count("\n", 0, one.start()) + 1
        if one["language"] != "text":
            printed = two["body"] if follows and two is not None and one["language"] == "python" else None
            yield Block(one["note"] or "", one["language"], one["body"], line, printed)


def commands(block: Block) -> list[tuple[str, str | None]]:
    """Command lines of a block, each with what it should print: None where the page does not say."""
    if block.language == "console":
        parts = re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]
        return [
            (command, printed if printed.strip() else None)
            for command, _, printed in (p.partition("\n") for p in parts)
        ]
    lines = [line for line in block.body.splitlines() if line.strip()]
    if block.language in ("", "sh") and lines and all(line.startswith("saddleback ") for line in lines):
        return [(line, None) for line in lines]
    return []


def agrees(printed: str, said: str) -> bool:
    """Whether a page's output is the real one, times apart."""
    want, got = (TIME.sub("(time)", text.strip()) + "\n" for text in (said, printed))
    return doctest.OutputChecker().check_output(want, got, SAME)


def run_command(line: str, quick: bool) -> tuple[int, str, str]:
    """Exit code, standard output and errors of a command line."""
    words = shlex.split(line, comments=True)
    assert words[0] == "saddleback", f"only saddleback commands can be tested: {line}"
    budget = {"--samples", "--epsilon", "--from", "--help"}
    if quick and words[1] in ("solve", "frontier") and not budget & set(words):
        words += ["--samples", FEW]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main(words[1:])
            code: Any = 0
        except SystemExit as ended:
            code = ended.code or 0
    return int(code), out.getvalue(), err.getvalue()


def store_files(page: str) -> None:
    """Write the blocks that are files to the current folder."""
    for block in blocks(page):
        if block.note.startswith("file: "):
            name = Path(block.note.removeprefix("file: "))
            assert not name.exists(), f"{name} is on two pages"
            name.write_text(block.body)


def run_block(block: Block, names: dict[str, Any], where: str) -> None:
    """Run one block in the current folder; an assertion fails where the page is wrong."""
    if block.note.startswith("file: ") or (block.note == "make docs" and not FULL):
        return
    if block.language == "python":
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block.body, where, "exec"), names)
        if block.printed is not None:
            assert agrees(out.getvalue(), block.printed), f"{where} prints\n{out.getvalue()}"
    noted = int(block.note.removeprefix("exit ")) if block.note.startswith("exit ") else 0
    for line, printed in commands(block):
        expected = REFUSED.get(line, noted)
        quick = printed is None and not FULL
        code, out_text, err_text = run_command(line, quick)
        allowed = {expected, Status.UNDECIDED.exit_code} if quick else {expected}  # few samples may not settle it
        assert code in allowed, f"{where}: {line} ended with {code}\n{err_text}"
        if printed is not None:
            assert agrees(out_text, printed), f"{where}: {line} prints\n{out_text}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [p for p in PAGES if name_of(p) not in OWN_TEST], ids=name_of)
def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "90")
    for other in PAGES:
        store_files(other.read_text())
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page.read_text()):
        run_block(block, names, f"{name_of(page)}:{block.line}")


@pytest.mark.parametrize(("page", "test"), OWN_TEST.items())
def test_pages_left_out_have_a_test(page: str, test: str) -> None:
    assert (ROOT / page).is_file()
    assert Path(page).name in (ROOT / "tests" / test).read_text()


def test_the_checks_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = [
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```console\n$ saddleback zoo\nnothing of the kind\n```\n",
        "```console\n$ saddleback solve no-such-problem\n```\n",
        "```sh\nsaddleback solve no-such-problem\n```\n",
        "```console\n$ ls\n```\n",
        "<!-- exit 3 -->\n```console\n$ saddleback zoo\n```\n",
    ]
    for page in wrong:
        (block,) = blocks(page)
        with pytest.raises(AssertionError):
            run_block(block, {}, "page")
    page = "<!-- file: a.py -->\n```python\n1 / 0\n```\n"
    store_files(page)
    run_block(next(blocks(page)), {}, "page")
    assert Path("a.py").read_text() == "1 / 0\n"


def test_the_api_page_has_every_public_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    documented = set(re.findall(r"^\.\. (?:auto\w+|py:data):: (\w+)$", page, re.MULTILINE))
    assert documented | {"zoo"} == set(saddleback.__all__)
