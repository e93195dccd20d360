"""What the command line costs before it gets to the problem, in CPU seconds of a process of its own.

The front page is measured against the bare import of what draws it. Of three verbs on a toy problem the share of the start is
measured: everything up to the call of the verb's function, the interpreter and the imports of NumPy, SciPy and HiGHS among it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from statistics import median

from benchmarks.timing import Row

REPEATS = 5
SHARE = """
import json, sys, time
from saddleback import cli
from saddleback.cli.verbs import load
load(sys.argv[1])
start = time.process_time()
try:
    cli.main(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
print(json.dumps([start, time.process_time()]), file=sys.stderr)
"""
VERBS = {  # the most that the start may be of the whole, and where we want it
    "solve wireless": (0.6, 0.3),
    "check wireless": (0.9, 0.5),
    "exact wireless": (1.0, 0.9),  # its problem takes a few milliseconds, NumPy, SciPy and HiGHS a third of a second
}


def rows() -> list[Row]:
    return [front_page(), *(start(command, *limits) for command, limits in VERBS.items())]


def front_page() -> Row:
    """`saddleback --help` over `python -c "import typer, rich"`, in turn."""
    pairs = []
    for _ in range(REPEATS + 1):
        pairs.append((_cpu(["-m", "saddleback", "--help"]), _cpu(["-c", "import typer, rich"])))
    pairs = pairs[1:]  # the first writes the compiled files
    ours, bare = median(a for a, _ in pairs), median(b for _, b in pairs)
    return Row(
        "saddleback --help / import of typer and rich (CPU)", median(a / b for a, b in pairs), 2, 1.5, ours, bare
    )


def start(command: str, floor: float, aim: float) -> Row:
    """The share of the start in all that a command takes."""
    found = []
    for _ in range(REPEATS + 1):
        done = subprocess.run(
            [sys.executable, "-c", SHARE, *command.split()], capture_output=True, text=True, check=True
        )
        found.append(json.loads(done.stderr.splitlines()[-1]))
    before, whole = median(a for a, _ in found[1:]), median(b for _, b in found[1:])
    return Row(f"saddleback {command}: start / all of it (CPU)", before / whole, floor, aim, before, whole)


def _cpu(arguments: list[str]) -> float:
    """User and system seconds of a child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.devnull, "wb") as nowhere:
        subprocess.run([sys.executable, *arguments], stdout=nowhere, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    for row in rows():
        print(row)
