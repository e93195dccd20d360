"""The notebooks of the documentation print what they say; ``python tests/notebooks.py`` writes it into them."""

from __future__ import annotations

from pathlib import Path

import pytest

import notebooks
from printed import differences


def test_there_is_one() -> None:
    assert [path.name for path in notebooks.NOTEBOOKS] == ["first_notebook.ipynb"]


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.name)
def test_what_is_stored_is_printed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    book = notebooks.read(path)
    printed = 0
    for number, ran in enumerate(notebooks.run(book), start=1):
        assert not differences(ran.said, ran.printed), (number, ran.printed)
        assert ran.cell["execution_count"] == number
        printed += bool(ran.said)
    assert printed >= 3


def test_a_cell_that_prints_something_else_is_found() -> None:
    """A control."""
    cell = {"cell_type": "code", "source": ["x = 2\n", "print(x)\n", "x + 1"], "outputs": []}
    (ran,) = notebooks.run({"cells": [cell]})
    assert ran.printed == "2\n3\n" and differences(ran.said, ran.printed)
