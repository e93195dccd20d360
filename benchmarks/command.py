"""What the command line costs before it gets to the problem, in CPU seconds of a process of its own.

The front page is measured against the bare import of what draws it. Of three verbs on a toy problem our own start is measured
against all that the command takes: from the libraries that every verb needs (typer, rich, NumPy, SciPy, HiGHS) to the call of
the verb's function.
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
START = """
import json, sys, time
import highspy, numpy, rich.console, scipy.sparse.linalg, typer
libraries = time.process_time()
from saddleback import cli
from saddleback.cli import load
load(sys.argv[1])
start = time.process_time()
try:
    cli.main(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
print(json.dumps([start - libraries, time.process_time()]), file=sys.stderr)
"""
COMMANDS = ("solve wireless", "check wireless", "exact wireless")


def rows() -> list[Row]:
    return [front_page(), *map(start, COMMANDS)]


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


def start(command: str) -> Row:
    """Our own start over all that a command takes."""
    found = []
    for _ in range(REPEATS + 1):
        done = subprocess.run(
            [sys.executable, "-c", START, *command.split()], capture_output=True, text=True, check=True
        )
        found.append(json.loads(done.stderr.splitlines()[-1]))
    ratio, ours, whole = (median(x) for x in zip(*((a / b, a, b) for a, b in found[1:]), strict=True))
    return Row(f"saddleback {command}: our own start / all of it (CPU)", ratio, 0.5, 0.25, ours, whole)


def _cpu(arguments: list[str]) -> float:
    """User and system seconds of a child."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.devnull, "wb") as nowhere:
        subprocess.run([sys.executable, *arguments], stdout=nowhere, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
