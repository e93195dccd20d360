"""`make bench`: every ratio with its floor, aim and measured value, as a table and as JSON.

`python -m benchmarks sampling streaming` measures these two modules, and writes no JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    command,
    design,
    exact_solve,
    literal_loop,
    ls_mdvi,
    rollout_steps,
    sampling,
    streaming,
    trade_off,
)

MODULES = (literal_loop, ls_mdvi, trade_off, rollout_steps, design, exact_solve, sampling, streaming, command)


def main(names: list[str]) -> int:
    """All modules, or those that are named."""
    rows = [row for module in MODULES if not names or module.__name__.split(".")[-1] in names for row in module.rows()]
    table = Table(title="Ratios (smaller is better)")
    for column in ("what", "floor", "aim", "measured", "ours, s", "reference, s"):
        table.add_column(column)
    for row in rows:
        mark = "" if row.passed else "  ABOVE THE FLOOR"
        table.add_row(
            row.name,
            f"{row.floor:g}",
            f"{row.aim:g}",
            f"{row.ratio:.2f}{mark}",
            f"{row.seconds:.3f}",
            f"{row.reference_seconds:.3f}",
        )
    Console(width=140).print(table)
    if names:
        return 0 if all(row.passed for row in rows) else 1
    output = Path(__file__).parent / "output"
    output.mkdir(exist_ok=True)
    (output / "ratios.json").write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
