"""``saddleback report``: a stored run as one page of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, ProblemFile, StoredRun, print_json
from saddleback.errors import plain_text
from saddleback.reports.html.page import write_page
from saddleback.runs.run_folder import verify_run


def report(
    run: StoredRun,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; a page of ours is replaced.", show_default="RUN.html")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --out replace a file of another kind.")] = False,
    problem: ProblemFile = None,
    as_json: Json = False,
) -> None:
    """Write a run as one self-contained HTML page: the answer, its proof, the trade-off with a slider, the policy."""
    stored = verify_run(run, contents=False)
    place = write_page(stored, out, problem, force=force)
    count = place.stat().st_size
    if as_json:
        print_json(
            {"run": str(run), "report": str(place), "bytes": count, "drawn_from": sorted(stored.drawings.files())}
        )
    else:
        text = f"{plain_text(str(place), 1000)} ({count / 1000:,.0f} kB): open it in any browser."
        Console().print(text, markup=False, highlight=False, soft_wrap=True)
