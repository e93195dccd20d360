"""The pages of the documentation: their blocks, and the one way to run them.

Blocks of a page run in the order of the page, in an empty folder, with the same names in view:

    ```python     runs; a ```text block that follows is what it prints
    ```console    each line that begins with "$ saddleback" runs; what stands below it is what it prints
    ``` or ```sh  if all its lines are saddleback commands they run, on few samples where they do not say how many

Notes are comments before a block, ``<!-- name: value -->`` or ``<!-- name -->``:

    file: NAME        the block is stored under that name, for all pages, before anything runs
    exit: CODE        its commands end with that exit code
    folder: NAME      it runs in that folder
    needs: MODULE     it runs only where that module is installed
    make docs         it runs in `make docs` only, as it takes long; a table likewise
    not run: WHY      it does not run
    tolerance: T      how far its numbers may be from those that are printed (see printed.py); at the very top of a page
                      it is meant for the whole page
    table: NAME       before a table: its rows are those that page_tables.py makes under that name
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import page_tables
from printed import DEFAULT, Tolerance, differences, rewritten
from saddleback import Status, cli

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(p for p in ROOT.glob("docs/**/*.md") if "_build" not in p.parts)]
FULL = bool(os.environ.get("SADDLEBACK_DOCS"))  # set by `make docs`
FEW = "20000"
WIDTH = "90"

NOTE = re.compile(r"<!-- (?P<name>[^\n:]*?)(?:: (?P<value>[^\n]*?))? -->")
NOTES = r"^(?P<notes>(?:<!-- [^\n]* -->\n+)*)"
BLOCK = re.compile(NOTES + r"```(?P<language>[^\n]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
TABLE = re.compile(NOTES + r"\|.*\n\|[-:| ]+\n(?P<rows>(?:\|.*\n)+)", re.MULTILINE)
KNOWN = {"file", "exit", "folder", "needs", "make docs", "not run", "tolerance", "table"}


class WrongPageError(AssertionError):
    """A page that cannot be run as it is written."""


@dataclass(frozen=True)
class Shown:
    """What a page says is printed, at ``at`` in its text, and what is printed."""

    where: str
    at: int
    said: str
    printed: str
    tolerance: Tolerance = DEFAULT

    def differences(self) -> list[str]:
        """Empty where the page is right."""
        return differences(self.printed, self.said, self.tolerance)

    def rewritten(self, words: bool) -> str | None:
        """What the page should say; None where the words differ, and are not to be changed or are left out in part."""
        return rewritten(self.printed, self.said, words)


class Output(NamedTuple):
    """A piece of a page that is printed, and where it begins."""

    text: str
    at: int


class Block(NamedTuple):
    """A fenced block; ``output`` is the text block after it."""

    notes: dict[str, str]
    language: str
    body: Output
    output: Output | None = None


class Command(NamedTuple):
    """A command line, and what should be printed: None where the page does not say."""

    line: str
    output: Output | None = None


def notes(text: str) -> dict[str, str]:
    found = {note["name"]: note["value"] or "" for note in NOTE.finditer(text)}
    if unknown := set(found) - KNOWN:
        raise WrongPageError(
            f"a note before a block must be one of {sorted(KNOWN)}, got {sorted(unknown)}; correct the page"
        )
    return found


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page's text, a text block joined to the Python block that it follows."""
    found = list(BLOCK.finditer(page))
    for one, two in zip_longest(found, found[1:]):
        if one["language"] == "text":
            continue
        said, output = one["notes"], None
        if (
            two
            and two["language"] == "text"
            and one["language"] == "python"
            and not page[one.end() : two.start()].strip()
        ):
            said, output = said + two["notes"], Output(two["body"], two.start("body"))
        yield Block(notes(said), one["language"], Output(one["body"], one.start("body")), output)


def commands(block: Block) -> list[Command]:
    """The command lines of a block, with what they should print."""
    body, at = block.body
    if block.language == "console":
        found = re.finditer(r"^\$ (?P<line>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", body, re.MULTILINE)
        return [
            Command(f["line"], Output(f["output"], at + f.start("output")) if f["output"].strip() else None)
            for f in found
        ]
    lines = [line for line in body.splitlines() if line.strip()]
    if block.language in ("", "sh") and lines and all(line.startswith("saddleback ") for line in lines):
        return [Command(line) for line in lines]
    return []


def run_command(line: str, quick: bool) -> tuple[int, str, str]:
    """Exit code, standard output and errors of a command line."""
    words = shlex.split(line, comments=True)
    if words[0] != "saddleback":
        raise WrongPageError(f"only saddleback commands can be run: {line}")
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


def left_out(block: Block, full: bool) -> bool:
    needed = block.notes.get("needs")
    missing = needed is not None and importlib.util.find_spec(needed) is None
    return missing or "file" in block.notes or "not run" in block.notes or ("make docs" in block.notes and not full)


def run_block(block: Block, names: dict[str, Any], where: str, full: bool = FULL) -> list[tuple[Output, str]]:
    """Run one block in the current folder: what it should print, and what it prints."""
    if left_out(block, full):
        return []
    shown = []
    with contextlib.chdir(block.notes.get("folder", ".")):
        if block.language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block.body.text, where, "exec"), names)
            if block.output is not None:
                shown.append((block.output, out.getvalue()))
        for line, output in commands(block):
            quick = output is None and not full
            code, printed, errors = run_command(line, quick)
            allowed = {int(block.notes.get("exit", 0))}
            if quick:
                # Few samples may not settle it, or find a policy that their own proof refutes.
                allowed |= {Status.UNDECIDED.exit_code, Status.REFUTED.exit_code}
            if code not in allowed:
                raise WrongPageError(f"{where}: {line} ended with {code}\n{errors}")
            if output is not None:
                shown.append((output, printed))
    return shown


def run(page: str, name: str, full: bool = FULL) -> Iterator[Shown]:
    """Run a page's text in the current folder: everything that it says is printed, as it is printed."""
    top = NOTE.match(page)
    usual = top["value"] if top and top["name"] == "tolerance" else None

    def shown(output: Output, printed: str, stated: str | None) -> Shown:
        tolerance = Tolerance.stated(stated) if stated else DEFAULT
        return Shown(f"{name}:{page.count(chr(10), 0, output.at) + 1}", output.at, output.text, printed, tolerance)

    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        where = f"{name}:{page.count(chr(10), 0, block.body.at)}"
        for output, printed in run_block(block, names, where, full):
            yield shown(output, printed, block.notes.get("tolerance", usual))
    for table in TABLE.finditer(page):
        stated = notes(table["notes"])
        if "table" in stated and (full or "make docs" not in stated):
            rows = page_tables.BY_NAME[stated["table"]]()
            yield shown(
                Output(table["rows"], table.start("rows")), "\n".join(rows) + "\n", stated.get("tolerance", usual)
            )


def store_files(page: str) -> None:
    """Write the blocks that are files to the current folder."""
    for block in blocks(page):
        if "file" in block.notes:
            name = Path(block.notes["file"])
            if name.exists():
                raise WrongPageError(f"{name} is on two pages")
            name.write_text(block.body.text)


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[None]:
    """An empty folder as pages expect it: with the files of all pages, and a terminal of their width."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    try:
        with contextlib.chdir(folder):
            for page in PAGES:
                store_files(page.read_text())
            yield
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()
