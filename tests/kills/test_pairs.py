"""Two commands on one run, started together: one works, the other touches nothing, and the run ends as if it were alone.

The children are forked from a process that has all imported, so that they meet within milliseconds, and begin at moments that
are drawn. ``closing`` holds the first one up at one of its last disk operations, and lets the second begin then.
"""

from __future__ import annotations

import math
import os
import random
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kills.commands import SMALL, SOLVE, call
from kills.kill_points import CHANGING, contents, flush_when_all_is_drawn
from saddleback.files.disk import Disk
from saddleback.sampling.executors import durable

SAMPLE = ["sample", *SMALL, "--out"]
RESUME, SOLVE_OUT, AGAIN = ["resume"], [*SOLVE, "--out"], [*SOLVE, "--force", "--out"]


class Pair(NamedTuple):
    """The two commands; ``begun`` is one that is killed on the run before them."""

    first: list[str]
    second: list[str]
    begun: list[str] | None = None
    closing: bool = False


PAIRS = {
    "solve, solve": Pair(SOLVE_OUT, SOLVE_OUT),
    "solve, resume": Pair(SOLVE_OUT, RESUME, SOLVE_OUT),
    "resume, resume": Pair(RESUME, RESUME, SOLVE_OUT),
    "sample, sample": Pair(SAMPLE, SAMPLE),
    "sample, resume": Pair(SAMPLE, RESUME, SAMPLE),
    "solve, solve while it closes": Pair(SOLVE_OUT, SOLVE_OUT, closing=True),
    "solve, solve --force while it closes": Pair(SOLVE_OUT, AGAIN, closing=True),
    "solve, resume while it closes": Pair(SOLVE_OUT, RESUME, closing=True),
    "sample, sample while it closes": Pair(SAMPLE, SAMPLE, closing=True),
}
_LAST = 40  # operations: a solve is written and put away in about so many


def child(
    command: list[str],
    place: Path,
    delay: float = 0.0,
    at: int = -1,
    reached: int | None = None,
    wait: int | None = None,
) -> int:
    """A command in a forked child; its process. At an operation it is killed, or tells ``reached`` and is held up.

    It waits until ``wait`` has been told, and for a while.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        done = [0]
        flush_when_all_is_drawn()
        for name in CHANGING:
            setattr(Disk, name, _held_up(getattr(Disk, name), name, done, at, reached))
        if wait is not None:
            os.read(wait, 1)
        time.sleep(delay)
        code, _, err = call(*command, place)
        if "must have one writer" in err:
            code = 200
    except BaseException:
        code = 99
    finally:
        os._exit(code)


def _held_up(real: Any, name: str, done: list[int], at: int, reached: int | None) -> Any:
    def operation(*arguments: Any) -> Any:
        if done[0] == at:
            if reached is None:
                os._exit(9)
            os.write(reached, b"!")
            time.sleep(0.1)
        done[0] += 1
        return None if name in ("fsync", "sync_folder") else real(*arguments)

    return operation


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a solve and a sample leave behind when they are alone, and how many operations that takes."""
    folder = tmp_path_factory.mktemp("alone")
    wanted = {}
    for verb, command in (("solve", SOLVE_OUT), ("sample", SAMPLE)):
        home = folder / verb
        home.mkdir()
        operations, count = [], _counting
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(durable, "_SYNC_SECONDS", math.inf)
            for name in CHANGING:
                patch.setattr(Disk, name, count(getattr(Disk, name), operations))
            assert call(*command, home / "run")[0] == 0
        wanted[verb] = (contents(home), len(operations))
    return wanted


def _counting(real: Any, operations: list[int]) -> Any:
    def operation(*arguments: Any) -> Any:
        operations.append(1)
        return real(*arguments)

    return operation


def meet(pair: Pair, home: Path, unbroken: dict[str, Any], rng: random.Random) -> tuple[int, int]:
    """Let the two meet, and hold what they leave against the run that was alone; how they ended."""
    home.mkdir()
    place, verb = home / "run", "sample" if pair.first[0] == "sample" or pair.begun is SAMPLE else "solve"
    wanted, operations = unbroken[verb]
    if pair.begun is not None:
        assert ended(child(pair.begun, place, at=operations // 2)) == 9
    if pair.closing:
        wait, reached = os.pipe()
        at = operations - 1 - rng.randrange(min(_LAST, operations // 2))
        processes = [child(pair.first, place, 0, at, reached)]
        os.close(reached)  # before the second begins: it must not wait for itself if the first ends without a word
        processes.append(child(pair.second, place, rng.uniform(0, 0.15), wait=wait))
        os.close(wait)
    else:
        processes = [child(command, place, rng.uniform(0, 0.03)) for command in (pair.first, pair.second)]
    first, second = (ended(pid) for pid in processes)
    assert {first, second} <= {0, 2, 200}, (first, second)
    assert 0 in (first, second), "neither ended"
    assert contents(home) == wanted
    code, _, err = call("resume", place)
    assert code == 0 and "nothing to resume" in err and contents(home) == wanted
    return first, second


def _pairs(names: list[str], each: int, folder: Path, unbroken: dict[str, Any]) -> list[str]:
    rng, lines = random.Random(20_261_116), []
    for name in names:
        codes = [meet(PAIRS[name], folder / f"{name}-{i}".replace(" ", ""), unbroken, rng) for i in range(each)]
        lines.append(f"{name}: {each} pairs, of which {sum(200 in pair for pair in codes)} met")
    return lines


@pytest.mark.slow
def test_two_at_once(tmp_path: Path, unbroken: dict[str, Any]) -> None:
    _pairs(["solve, resume", "sample, sample"], 1, tmp_path, unbroken)


@pytest.mark.check
def test_pairs_of_every_kind(tmp_path: Path, unbroken: dict[str, Any]) -> None:
    print(*_pairs(list(PAIRS), 2, tmp_path, unbroken), sep="\n")


@pytest.mark.study
def test_many_pairs(tmp_path: Path, unbroken: dict[str, Any]) -> None:
    print(*_pairs(list(PAIRS), 12, tmp_path, unbroken), sep="\n")
