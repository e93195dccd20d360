"""Hostile text on a real terminal, where styles are written: every escape sequence is one of ours."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli import hostile
from cli.hostile import KINDS

pytestmark = pytest.mark.check

OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # styles, and the cursor of a bar


def on_a_terminal(command: list[str], folder: Path) -> str:
    """All that a terminal would be sent."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "4000"}
    words = [sys.executable, "-m", "saddleback", *command]
    process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=folder)
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the last writer has gone
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    process.wait(60)
    return hostile.as_terminal_says(said)


@pytest.mark.parametrize("kind", ["a colour", "a title of the window"])
def test_only_our_own_sequences(kind: str, tmp_path: Path) -> None:
    text = KINDS[kind]
    folder = tmp_path / text
    folder.mkdir()
    commands = [
        ["solve", str(hostile.problem(folder, text, function="shop:bad"))],
        ["check", str(hostile.problem(folder, text, values="shop:bad"))],
        ["solve", str(hostile.problem(folder)), "--samples", "600", "--out", str(folder / "run")],
        ["certify", str(folder / "run"), "--recheck"],
        ["solve", text],
        ["frontier", "river-swim", "--samples", "2000", "--constraint", text],
        [f"--{text}"],
    ]
    styled = 0
    for command in commands:
        said = on_a_terminal(command, tmp_path).replace("\r\n", "\n")
        for sequence in OURS.findall(text):
            assert said.count(sequence + "red") == 0, f"{command!r}: {said!r}"
        styled += len(OURS.findall(said))
        plain = OURS.sub("", said).replace("\r", "")  # the cursor of a bar goes back to the beginning of its line
        assert not hostile.faults_of(plain), f"{command!r}: {said!r}"
        assert "bad\rgood" not in said
    assert styled > 0, "the terminal was not taken for one"
