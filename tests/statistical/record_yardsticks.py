"""Measures what calls are worth today, row by row: ``python tests/statistical/record_yardsticks.py [ROW ...]``.

The file it writes, yardsticks.json, is what a later change is compared with; it is taken again only where the yardstick itself changes.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(
    0, str(Path(__file__).parent.parent)
)  # where modules that tests share are found, when this runs as a program

from statistical.yardsticks import ROWS, Row, measured, truth_for

PLACE = Path(__file__).parent / "yardsticks.json"


def figures_of(row: Row) -> dict[str, Any]:
    """A row with its figures, to four digits."""
    outcomes, found = measured(row)
    figures = {
        name: {key: x if isinstance(x, int) else float(f"{x:.4g}") for key, x in dataclasses.asdict(summary).items()}
        for name, summary in found.items()
    }
    idle = sum(outcome.idle for outcome in outcomes) / len(outcomes) / row.calls
    seconds = sum(outcome.seconds for outcome in outcomes) / len(outcomes)
    horizon = round(truth_for(row, 0).horizon, 9)
    return {"horizon": horizon, "idle": float(f"{idle:.3g}"), "seconds": float(f"{seconds:.3g}"), "figures": figures}


def main(names: list[str]) -> None:
    """Take the rows that begin like one of the names, or all."""
    kept = json.loads(PLACE.read_text()) if PLACE.is_file() else {}
    for row in ROWS:
        if not names or any(row.key.startswith(name) for name in names):
            kept[row.key] = figures_of(row)
            print(row.key, json.dumps(kept[row.key]), flush=True)
            PLACE.write_text(json.dumps({r.key: kept[r.key] for r in ROWS if r.key in kept}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
