"""docs/samples.md does what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "samples.md").read_text()


def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from saddleback import cli

    monkeypatch.chdir(tmp_path)
    first = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)[0]
    lines = [line[2:] for line in first.splitlines() if line.startswith("$ ")]
    assert len(lines) == 6
    for line in lines:
        words = shlex.split(line, comments=True)
        assert words[0] == "saddleback"
        with pytest.raises(SystemExit) as ended:
            cli.main(words[1:])
        assert not ended.value.code, (line, capsys.readouterr().err)


def test_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    exec(compile(code, "docs/samples.md", "exec"), dict[str, Any]())
    first, second = capsys.readouterr().out.split("\n")[:2]
    word, read = second.split()
    assert first == "solved 0" and word == "solved" and 19_000 < int(read) <= 20_000  # allocations are rounded down
