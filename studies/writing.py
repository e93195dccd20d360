"""Files of a study: ``<name>.csv`` (every point), ``<name>.md`` (the section) and the pictures; and the page of them all."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from studies.drawing import draw
from studies.panels import FIT_COLUMNS, POINT_COLUMNS, Figures, by_title, fit_rows, point_rows

HEAD = """# Studies

What the algorithms do on problems whose truth is known, beside the rates the paper proves. The truth (exact values, exact
optima) is used to measure errors only; no algorithm sees it. This page is made by

```
make study                                    # these studies and the long statistical checks
python -m studies                             # these studies alone, about a quarter of an hour on one core
python -m studies strict-against-relaxed      # one of them
```

and holds exactly what the files in `output/` hold: a CSV file with every point, a table with every exponent, the pictures.

**How to read the tables.** Errors are in the paper's units (rewards and constraints in [0, 1], values in [0, H],
H = 1/(1 − γ)). Each point is a median over the seeds listed, unless the axis says otherwise; bands in the pictures are
quartiles. An *exponent* p is that of a power law C·xᵖ through the points, with a 95 % range (bootstrap over the seeds);
"last 3" is the same over the last three points, and differs where a curve bends. "Paper" is the exponent that the paper's rate
implies: a worst case over all problems, so a smaller one on some problem is no contradiction. A point of exactly zero (the best
policy was found) has no logarithm and is left out of fits and pictures; "inf" means that too few runs had an answer.
"""


def write(folder: Path, name: str, title: str, question: str, answer: Sequence[str], figures: Figures) -> list[Path]:
    """All files of one study; ``question`` and the points of ``answer`` are Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = name.replace("-", "_")
    paths = [folder / f"{stem}.csv"]
    with paths[0].open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(POINT_COLUMNS)
        writer.writerows(point_rows(figures))
    pictures = []
    for figure, panels in figures.items():
        paths.append(folder / f"{stem}_{figure}.svg")
        draw(paths[-1], panels)
        pictures.append(f"![{'; '.join(p.title for p in panels)}]({paths[-1].name})")
    problems: dict[str, list[str]] = {}
    for panel in by_title(figures).values():
        problems.setdefault(panel.problem, []).append(panel.title)
    parts = [
        f"## {title}",
        filled(f"**Asked.** {question}"),
        "**Found.**\n\n" + "\n".join(filled(point, "- ") for point in answer),
        *pictures,
        "What was run:\n\n" + "\n".join(filled(f"{'; '.join(t)}: {p}", "- ") for p, t in problems.items()),
        markdown(FIT_COLUMNS, fit_rows(figures)),
        f"Remade by `python -m studies {name}`; every point is in [{paths[0].name}]({paths[0].name}).",
    ]
    paths.append(folder / f"{stem}.md")
    paths[-1].write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return paths


def write_page(page: Path, folder: Path, names: Sequence[str]) -> None:
    """The sections found in ``folder``, in order, below the head; links are turned to point there."""
    sections = []
    for name in names:
        section = folder / f"{name.replace('-', '_')}.md"
        if section.exists():
            sections.append(section.read_text(encoding="utf-8").replace("](", f"]({folder.name}/"))
    page.write_text("\n".join([HEAD, *sections]), encoding="utf-8")


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def filled(text: str, bullet: str = "") -> str:
    """Broken into lines, the first with a bullet and the others indented below it."""
    return textwrap.fill(
        " ".join(text.split()),
        width=120,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )
