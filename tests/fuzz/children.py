"""Run checks in children that may crash, hang or eat memory, and say what became of each.

A child is forked from a parent that has everything imported. It works through a batch under limits that start anew with
each recipe: 10 s of CPU, 200 s on the clock (for those who sleep: a busy machine is no fault of theirs), and 2 GB of address
space above what it began with. If it dies, the recipe at which it died is the culprit, and the rest of the batch goes to a
new child. Whatever is not allowed is tried again in a child of its own, so that a fault is not blamed on what came before it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from fuzz.mutants import Recipe

CPU_SECONDS, CLOCK_SECONDS, MEMORY = 10, 200, 2 * 10**9
BATCH = 500
ALLOWED = ("accepted", "InputError", "StorageError", "SimulatorError")

Check = Callable[[Recipe, Path], str]


class Outcome(NamedTuple):
    """What became of a recipe: one of ``ALLOWED``, or what was wrong."""

    recipe: Recipe
    verdict: str
    detail: str

    @property
    def allowed(self) -> bool:
        return self.verdict in ALLOWED


def run(check: Check, recipes: Sequence[Recipe], folder: Path, batch: int = BATCH) -> list[Outcome]:
    """Check every recipe, each in a folder of its own name below ``folder``."""
    outcomes: list[Outcome] = []
    for first in range(0, len(recipes), batch):
        rest = recipes[first : first + batch]
        while rest:
            found = _child(check, rest, folder)
            rest = rest[len(found) :]
            outcomes += [x if x.allowed else _alone(check, x, folder) for x in found]
    return outcomes


def table_of(outcomes: Sequence[Outcome]) -> str:
    """Counts by kind of file and verdict, for people."""
    counts = Counter((x.recipe.kind, x.verdict) for x in outcomes)
    kinds = sorted({kind for kind, _ in counts})
    verdicts = [*ALLOWED, *sorted({v for _, v in counts} - set(ALLOWED))]
    rows = ["{:>8}".format("") + "".join(f"{v:>14}" for v in verdicts)]
    rows += [f"{kind:>8}" + "".join(f"{counts[kind, v]:>14,}" for v in verdicts) for kind in kinds]
    return "\n".join(rows)


def _alone(check: Check, seen: Outcome, folder: Path) -> Outcome:
    again = _child(check, [seen.recipe], folder)[0]
    return again if not again.allowed else Outcome(seen.recipe, f"{seen.verdict}, after others", seen.detail)


def _child(check: Check, recipes: Sequence[Recipe], folder: Path) -> list[Outcome]:
    """What a new child says of the recipes, up to the one at which it died."""
    reading, writing = os.pipe()
    with warnings.catch_warnings(action="ignore"):  # of forking where there are threads: the child starts none
        pid = os.fork()
    if pid == 0:
        try:
            os.close(reading)
            _work(check, recipes, folder, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        lines = pipe.read().split(b"\n")[:-1]
    status = os.waitpid(pid, 0)[1]
    found = [Outcome(r, *json.loads(line)) for r, line in zip(recipes, lines, strict=False)]
    if len(found) < len(recipes):
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        what = "timeout" if number in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL) else f"died of signal {number}"
        found.append(Outcome(recipes[len(found)], what, f"wait status {status}"))
    return found


def _work(check: Check, recipes: Sequence[Recipe], folder: Path, writing: int) -> None:
    faulthandler.disable()  # the parent says what happened
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.fsync = lambda file: None  # no power is cut here
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for i, recipe in enumerate(recipes):
        usage = resource.getrusage(resource.RUSAGE_SELF)
        spent = int(usage.ru_utime + usage.ru_stime) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (spent + CPU_SECONDS, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        signal.alarm(CLOCK_SECONDS)
        verdict = _verdict(check, recipe, folder / f"{os.getpid()}-{i}")
        os.write(writing, json.dumps(verdict).encode() + b"\n")
    signal.alarm(0)


def _verdict(check: Check, recipe: Recipe, folder: Path) -> tuple[str, str]:
    try:
        with warnings.catch_warnings(action="error"):
            return check(recipe, folder), ""
    except BaseException as error:
        return type(error).__name__, str(error)[:500]
