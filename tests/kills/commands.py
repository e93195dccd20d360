"""Small commands that write, run in this process, in a forked child or beside it, and what they leave."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

from saddleback import cli

SMALL = ["garnet", "--set", "states=4", "--set", "successors=2"]
SOLVE = ["solve", *SMALL, "--samples", "400"]


def call(*arguments: Any) -> tuple[int, str, str]:
    """The command line in this process: (exit code, stdout, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main([str(a) for a in arguments])
        except SystemExit as ended:
            code = ended.code
    return int(code or 0), out.getvalue(), " ".join(err.getvalue().split())


def everything(folder: Path) -> dict[str, bytes | str | None]:
    """Every name below a folder: the bytes of a file, where a link leads to, None for a folder."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found
