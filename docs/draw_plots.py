"""Draws the pictures of docs/plots.md by running its code: ``python docs/draw_plots.py [FOLDER]``."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

PAGE = Path(__file__).with_name("plots.md")


def draw(folder: Path) -> None:
    """Run the page's code in ``folder``, where it saves its pictures; the same numbers give the same bytes."""
    import matplotlib

    from pages import blocks

    code = "\n".join(block.body.text for block in blocks(PAGE.read_text()) if block.language == "python")
    settings = {"svg.hashsalt": "saddleback", "svg.fonttype": "none", "path.simplify_threshold": 0.1}
    folder.mkdir(exist_ok=True)
    with matplotlib.rc_context(settings), contextlib.chdir(folder):
        exec(compile(code, PAGE.name, "exec"), {})


if __name__ == "__main__":
    os.environ.setdefault("SOURCE_DATE_EPOCH", "0")  # matplotlib's date in the file
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE.with_name("images"))
