"""``saddleback report``: a stored run as one page of HTML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from saddleback.cli.common import Json, print_json
from saddleback.errors import InputError
from saddleback.files.disk import written_whole
from saddleback.reports.html.page import page_of
from saddleback.runs.run_folder import load_run
from saddleback.runs.targets import load_run_target

MOST_BYTES = 3_000_000
"""What a page may take."""


def report(
    run: Annotated[Path, typer.Argument(help="A folder that `saddleback solve --out` wrote.", metavar="RUN")],
    out: Annotated[
        Path | None, typer.Option(help="The file to write; one that is there is replaced.", show_default="RUN.html")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a run as one self-contained HTML page: the answer, its proof, the trade-off with a slider, the policy."""
    stored = load_run(run)
    place = Path(os.path.abspath(f"{os.path.abspath(run)}.html" if out is None else out))
    if not place.parent.is_dir():
        raise InputError("--out", "must lie in an existing folder", str(place), "make the folder first")
    if place.is_dir():
        raise InputError("--out", "must be a file", f"{place}, a folder", "name a file that ends in .html")
    content = page_of(stored, load_run_target(stored).problem).encode()
    if len(content) > MOST_BYTES:
        remedy = "shorten the names of states and constraints"
        raise InputError("RUN", f"must fit a page of {MOST_BYTES:,} bytes", f"{len(content):,}", remedy)
    with written_whole(place) as file:
        file.write(content)
    if as_json:
        drawn = sorted(stored.drawings)
        print_json({"run": str(run), "report": str(place), "bytes": len(content), "drawn_from": drawn})
    else:
        text = f"{place} ({len(content) / 1000:,.0f} kB): open it in any browser."
        Console().print(text, markup=False, highlight=False, soft_wrap=True)
