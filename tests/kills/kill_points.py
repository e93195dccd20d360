"""A kill before and after every disk operation of a command, and in the middle of every write, and what comes of it.

A command is run in a forked child of a process that has everything imported. There every operation of
:class:`saddleback.files.disk.Disk` is counted, and the child ends at the n-th as SIGKILL would end it: at once, with what it
did so far in the page cache, and nothing flushed, closed or put right. Syncs do nothing: the cache outlives a process
(power cuts are another matter: tests/sampling/store/test_crash_images.py). After one operation is before the next. The next command runs in another child. Both tell
by a pipe which blocks were acknowledged, and which were added to a store.
"""

from __future__ import annotations

import functools
import json
import math
import os
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kills.commands import call
from saddleback.errors import SaddlebackError
from saddleback.files.disk import Disk
from saddleback.sampling.executors import durable
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.store.shards import ShardWriter

CHANGING = ("make_folder", "create", "open_lock", "write", "fsync", "rename", "remove", "remove_folder", "sync_folder")
Tell = Callable[..., None]
Words = list[str]


class Ended(NamedTuple):
    """What a child told, by kind, and how it ended; None: it was killed."""

    told: dict[str, list[Any]]
    code: int | None
    err: str


def in_child(work: Callable[[Tell], tuple[int, str] | None]) -> Ended:
    """Carry out ``work`` in a forked child."""
    reading, writing = os.pipe()
    with warnings.catch_warnings(action="ignore"):  # the child starts no thread of its parent again
        pid = os.fork()
    if pid == 0:
        os.close(reading)

        def tell(kind: str, *what: Any) -> None:
            os.write(writing, json.dumps([kind, *what]).encode() + b"\n")

        try:
            ended = work(tell)
            if ended is not None:
                tell("ended", *ended)
        except BaseException:
            tell("ended", 99, traceback.format_exc())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as lines:
        told: dict[str, list[Any]] = {}
        for kind, *what in map(json.loads, lines):
            told.setdefault(kind, []).append(what)
    os.waitpid(pid, 0)
    code, err = told.pop("ended", [[None, ""]])[0]
    return Ended(told, code, err)


def count_operations(at: int, when: str) -> list[str]:
    """In a child: end it at an operation (-1: never); the names of those that were done, as a list that grows."""
    done: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(Disk, name)

        @functools.wraps(real)
        def operation(disk: Disk, *arguments: Any) -> Any:
            now = len(done) == at
            if now and when == "before":
                os._exit(9)
            if now and when == "half" and name == "write":
                real(disk, arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os._exit(9)
            done.append(name)
            found = None if name in ("fsync", "sync_folder") else real(disk, *arguments)
            if now:
                os._exit(9)
            return found

        return operation

    for name in CHANGING:
        setattr(Disk, name, counted(name))
    return done


def flush_when_all_is_drawn() -> None:
    """In a child: samples are written after so many blocks, not after a second, or a busy machine would do more operations."""
    durable._SYNC_SECONDS = math.inf


def watch_blocks(tell: Tell) -> None:
    """In a child: tell of every block that is added to a store, and of those that are acknowledged."""
    add, flush = ShardWriter.add, ShardWriter.flush

    def added(writer: Any, block: Any, rows: Any) -> None:
        tell("added", writer._folder.name, *map(int, block[:3]))
        add(writer, block, rows)

    def flushed(writer: Any) -> None:
        blocks = [list(map(int, block[:3])) for block, *_ in writer._waiting]
        flush(writer)
        for block in blocks:
            tell("acknowledged", writer._folder.name, *block)

    ShardWriter.add, ShardWriter.flush = added, flushed  # type: ignore[method-assign]


def run(command: Words, at: int = -1, when: str = "before") -> Ended:
    """A command in a child, killed at an operation; what it told includes the operations of one that was not killed."""

    def work(tell: Tell) -> tuple[int, str]:
        watch_blocks(tell)
        flush_when_all_is_drawn()
        done = count_operations(at, when)
        code, _, err = call(*command)
        for name in done if at < 0 else ():
            tell("operation", name)
        return code, err

    return in_child(work)


class Scenario(NamedTuple):
    """Commands and functions beforehand, the one that is killed, and the one that comes next, in a folder ``{home}``.

    ``again`` says which codes the same command may end with if it comes next; None: `resume` comes next, unless nothing
    had been begun.
    """

    command: str
    before: tuple[str | Callable[[Path], None], ...] = ()
    again: tuple[int, ...] | None = None

    def words(self, text: str, home: Path) -> Words:
        return text.replace("{home}", str(home)).split()


def contents(home: Path) -> dict[str, bytes | str | None]:
    """Every name with its bytes; of a store what it holds, since its shards may be cut elsewhere, and who locked it."""
    found: dict[str, bytes | str | None] = {}
    stores = [path.parent for path in home.rglob("store.json")]
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if path in stores:
            with SampleStore.open(path, writable=False) as store:
                found[name] = store.content_hash()
            litter = [p.name for p in path.iterdir() if p.name.endswith(".partial")]
            assert not litter, f"{name} holds {litter}"
        elif path.parent not in stores:
            found[name] = path.read_bytes() if path.is_file() else None
    return found


class Bench:
    """One scenario: prepared once, run through once, and then killed anywhere."""

    def __init__(self, scenario: Scenario, folder: Path):
        self.scenario, self.home = scenario, folder / "home"
        self._prepared = folder / "prepared"
        self.home.mkdir(parents=True)
        for first in scenario.before:
            if callable(first):
                first(self.home)
            else:
                code, _, err = call(*scenario.words(first, self.home))
                assert code == 0, err
        shutil.copytree(self.home, self._prepared)
        assert call(*self.command)[0] == 0  # here, so that whatever it imports is there in every child
        self.wanted = contents(self.home)
        self.begin_anew()
        ended = run(self.command)
        assert ended.code == 0 and contents(self.home) == self.wanted, ended.err
        self.operations = [name for (name,) in ended.told["operation"]]

    @property
    def command(self) -> Words:
        return self.scenario.words(self.scenario.command, self.home)

    def points(self) -> Iterator[tuple[int, str]]:
        """Every moment at which it can be killed."""
        for at, name in enumerate(self.operations):
            yield at, "before"
            if name == "write":
                yield at, "half"
        yield at, "after"

    def fault(self, at: int, when: str) -> str | None:
        """Kill at a moment, run the next command, and say what is wrong then."""
        self.begin_anew()
        killed = run(self.command, at, when)
        if killed.code is not None:
            return f"it ended with {killed.code}: {killed.err}"
        return self.judged({tuple(what) for what in killed.told.get("acknowledged", [])})

    def judged(self, acknowledged: set[tuple[Any, ...]]) -> str | None:
        """Run the next command on what is in the folder, and say what is wrong then."""
        place = self.home / "run"
        if self.scenario.again is None:
            command, codes = ["resume", str(place)], (0,)
            if not (place.with_name("run.work") / "request.json").exists() and not self._has_ended():
                command, codes = self.command, (0,)
        else:
            command, codes = self.command, self.scenario.again
        ended = run(command)
        if ended.code not in codes:
            return f"{command[0]} ended with {ended.code}: {ended.err}"
        twice = acknowledged & {tuple(what) for what in ended.told.get("added", [])}
        if twice:
            return f"{len(twice)} acknowledged blocks were drawn again, {min(twice)}"
        try:
            found = contents(self.home)
        except Exception as error:
            return f"what is left cannot be read: {error}"
        for name in sorted(found.keys() | self.wanted.keys()):
            if found.get(name, 0) != self.wanted.get(name, 0):
                return f"{name} is {'other' if name in found and name in self.wanted else 'left' if name in found else 'missing'}"
        return None

    def begin_anew(self) -> None:
        """Everything as before the command."""
        shutil.rmtree(self.home)
        shutil.copytree(self._prepared, self.home)

    def _has_ended(self) -> bool:
        """Whether the place is as the unbroken command leaves it."""
        try:
            found = contents(self.home)
        except SaddlebackError:
            return False
        inside = [name for name in self.wanted if name.split("/")[0] == "run"]
        return bool(inside) and all(found.get(name, 0) == self.wanted[name] for name in inside)
