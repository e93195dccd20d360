"""Notebooks of the documentation, run without Jupyter: their cells one after the other, in one set of names.

    python tests/notebooks.py        run them and write what is printed into them

A notebook is nbformat 4.5 and holds plain Python: no magics, and output that is text. What a cell prints, and the value of its
last line, must be what is stored, by the rules of the pages (tests/printed.py).
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))


class Ran(NamedTuple):
    """A code cell, what it should print and what it prints."""

    cell: dict[str, Any]
    said: str
    printed: str


def read(path: Path) -> dict[str, Any]:
    """A notebook that Jupyter would open: every field that nbformat 4.5 requires, and no other kind of output than text."""
    book: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5) and set(book) == {
        "cells", "metadata", "nbformat", "nbformat_minor"}  # fmt: skip
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    names = [cell["id"] for cell in book["cells"]]
    assert len(set(names)) == len(names) and all(1 <= len(name) <= 64 for name in names)
    for cell in book["cells"]:
        usual = {"cell_type", "id", "metadata", "source"}
        assert set(cell) == usual | ({"execution_count", "outputs"} if cell["cell_type"] == "code" else set())
        assert all(isinstance(line, str) for line in cell["source"])
        for output in cell.get("outputs", []):
            assert output["output_type"] == "stream" and output["name"] == "stdout"
    return book


def run(book: dict[str, Any]) -> Iterator[Ran]:
    """Every code cell, in the current folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            said = "".join("".join(output["text"]) for output in cell["outputs"])
            yield Ran(cell, said, _printed("".join(cell["source"]), names))


def _printed(source: str, names: dict[str, Any]) -> str:
    tree, out = ast.parse(source), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
            if value is not None:
                print(repr(value))
    return out.getvalue()


def main() -> None:
    """Write what is printed into the notebooks."""
    os.environ["COLUMNS"] = "100"
    for path in NOTEBOOKS:
        book = read(path)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for number, ran in enumerate(run(book), start=1):
                lines = ran.printed.splitlines(keepends=True)
                ran.cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
                ran.cell["execution_count"] = number
        path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main()
