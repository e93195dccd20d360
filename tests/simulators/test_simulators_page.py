"""The page on simulators: every block of code runs, in the order of the page, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from saddleback import simulators

PAGE = Path(__file__).parents[2] / "docs" / "simulators.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    for number, code in enumerate(BLOCKS):
        exec(compile(code, f"{PAGE.name}, block {number}", "exec"), names)
    said = capsys.readouterr().out
    assert len(BLOCKS) == 9
    assert "Status.SOLVED" in said
    assert "[[0 1]\n [0 0]]" in said  # what infeasible actions stand for
    assert (tmp_path / "queue.drn").is_file()


def test_every_adapter_is_on_the_page() -> None:
    page = "\n".join(BLOCKS)
    for name in set(simulators.__all__) - {"BY_NAME", "Table"}:
        assert f"{name}(" in page, name
