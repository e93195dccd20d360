"""The folders that a power cut could leave while a run is begun, drawn and put in its place.

What :mod:`sampling.store.crash_images` does for one folder of samples is done here for the whole tree, coarser: a file has the
bytes that were synced, all that were written, or a part of the last write; names are created, changed and removed one by
one, and each change that has not been synced is applied or lost, whatever became of the others. A rename from one folder to
another is one change, and safe when both have been synced. A folder that got lost takes along what was made in it.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kills.commands import call
from kills.kill_points import Bench
from saddleback.files.disk import Disk
from saddleback.sampling.store.shards import ShardWriter

MOST_PENDING = 5  # changes of names, the last ones, of which every combination is tried
Tree = dict[str, "Tree | bytes"]


class Change(NamedTuple):
    """A name that is taken away, a name that is given, or both; each as (number of the folder, name)."""

    gone: tuple[int, str] | None
    come: tuple[int, str] | None
    item: int

    @property
    def folders(self) -> set[int]:
        return {place[0] for place in (self.gone, self.come) if place is not None}


class Recorder:
    """All that a command does, in order: ("change", …), ("write", …), ("sync", …), ("sync folder", …), ("acknowledged", …)."""

    def __init__(self, home: Path):
        self.home, self.log = home, list[tuple[Any, ...]]()
        self.items: dict[str, int] = {str(home): 0}
        self.files: dict[int, int] = {}
        self.start = self._read(home)

    def _read(self, folder: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in sorted(folder.iterdir()):
            number = self.items[str(path)] = len(self.items)
            found[path.name] = (number, self._read(path) if path.is_dir() else path.read_bytes())
        return found

    def place(self, path: Path) -> tuple[int, str]:
        return self.items[str(path.parent)], path.name

    def new(self, path: Path) -> int:
        if str(path) not in self.items:
            number = self.items[str(path)] = max(self.items.values()) + 1
            self.log.append(("change", Change(None, self.place(path), number)))
        return self.items[str(path)]

    def moved(self, path: Path, to: Path) -> None:
        self.log.append(("change", Change(self.place(path), self.place(to), self.items[str(path)])))
        below = f"{path}{os.sep}"
        for name in [name for name in self.items if name == str(path) or name.startswith(below)]:
            self.items[str(to) + name[len(str(path)) :]] = self.items.pop(name)

    def removed(self, path: Path) -> None:
        self.log.append(("change", Change(self.place(path), None, self.items.pop(str(path)))))


def recorded(bench: Bench) -> Recorder:
    """What the command of a bench does when nothing happens to it."""
    bench.begin_anew()
    record = Recorder(bench.home)
    real = {name: getattr(Disk, name) for name in dir(Disk) if not name.startswith("_")}

    def opened(name: str) -> Callable[..., int]:
        def operation(disk: Disk, path: Path) -> int:
            file: int = real[name](disk, path)
            record.files[file] = record.new(path)
            return file

        return operation

    def write(disk: Disk, file: int, data: bytes) -> None:
        end = os.fstat(file).st_size if file in record.files else 0
        at = max(os.lseek(file, 0, os.SEEK_CUR), 0)
        real["write"](disk, file, data)
        grown = os.fstat(file).st_size - end
        at = end if grown == len(data) else at  # at the end, as a file that is added to
        record.log.append(("write", record.files[file], at, bytes(data)))

    def fsync(disk: Disk, file: int) -> None:
        record.log.append(("sync", record.files[file]))

    def make_folder(disk: Disk, path: Path) -> None:
        real["make_folder"](disk, path)
        record.new(path)
        record.log.append(("folder", record.items[str(path)]))

    def rename(disk: Disk, path: Path, new: Path) -> None:
        real["rename"](disk, path, new)
        record.items.pop(str(new), None)
        record.moved(path, new)

    def remove(disk: Disk, path: Path) -> None:
        real["remove"](disk, path)
        record.removed(path)

    def remove_folder(disk: Disk, path: Path) -> None:
        real["remove_folder"](disk, path)
        record.removed(path)

    def sync_folder(disk: Disk, path: Path) -> None:
        record.log.append(("sync folder", record.items[str(path)]))

    flush = ShardWriter.flush

    def flushed(writer: Any) -> None:
        blocks = [(writer._folder.name, *map(int, block[:3])) for block, *_ in writer._waiting]
        flush(writer)
        record.log.append(("acknowledged", blocks))

    with pytest.MonkeyPatch.context() as patch:
        for name in ("create", "open_append", "open_lock"):
            patch.setattr(Disk, name, opened(name))
        for function in (write, fsync, make_folder, rename, remove, remove_folder, sync_folder):
            patch.setattr(Disk, function.__name__, function)
        patch.setattr(ShardWriter, "flush", flushed)
        code, _, err = call(*bench.command)
    assert code == 0, err
    return record


class Cut(NamedTuple):
    """What a cut leaves after so many entries of the record, and what had been acknowledged by then."""

    tree: Tree
    acknowledged: set[tuple[Any, ...]]
    after: int


def images(record: Recorder, rng: random.Random, most: int = 1 << 30) -> Iterator[Cut]:
    """Every folder that a cut could leave; of each moment at most so many, chosen by chance."""
    log, seen = record.log, set[Any]()
    for after in range(len(log) + 1):
        if after < len(log) and log[after][0] == "acknowledged":
            continue  # the next moment is the same, with more that must be there
        safe, pending, synced, full, last = _state(record, log[:after])
        safe, pending = [*safe, *pending[:-MOST_PENDING]], pending[-MOST_PENDING:]
        combinations = list(itertools.product((False, True), repeat=len(pending)))
        unsynced = [item for item in full if full[item] != synced.get(item, b"")]
        found = []
        for applied in combinations:
            for how in ("synced", "full", "part") if unsynced else ("synced",):
                contents = {item: synced.get(item, b"") for item in full}
                if how != "synced":
                    contents |= {item: full[item] for item in unsynced}
                if how == "part" and last is not None:
                    contents[last[0]] = full[last[0]][: last[1] + last[2] // 2]
                changes = [change for change, kept in zip(pending, applied, strict=True) if kept]
                found.append(_tree(record, [*safe, *changes], contents))
        acknowledged = {block for kind, *what in log[:after] if kind == "acknowledged" for block in what[0]}
        rng.shuffle(found)
        for tree in found[:most]:
            key = (repr(tree), len(acknowledged))
            if key not in seen:
                seen.add(key)
                yield Cut(tree, acknowledged, after)


def _state(record: Recorder, log: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Changes of names that are safe and those that are not, bytes that are safe and all, and the last write."""
    safe: list[Change] = []
    pending: list[tuple[Change, set[int]]] = []
    full: dict[int, bytes] = dict(_contents(record.start))
    synced, last = dict(full), None
    for kind, *what in log:
        if kind == "change":
            change = what[0]
            pending.append((change, change.folders))
        elif kind == "sync folder":
            pending = [(change, folders - {what[0]}) for change, folders in pending]
            safe += [change for change, folders in pending if not folders]
            pending = [(change, folders) for change, folders in pending if folders]
        elif kind == "write":
            item, at, data = what
            old = full.get(item, b"").ljust(at, b"\0")
            full[item], last = old[:at] + data + old[at + len(data) :], (item, at, len(data))
        elif kind == "sync":
            synced[what[0]], last = full.get(what[0], b""), None
    return safe, [change for change, _ in pending], synced, full, last


def _contents(start: dict[str, Any]) -> Iterator[tuple[int, bytes]]:
    for number, inside in start.values():
        if isinstance(inside, bytes):
            yield number, inside
        else:
            yield from _contents(inside)


def _tree(record: Recorder, changes: list[Change], contents: dict[int, bytes]) -> Tree:
    """The tree after these changes, each done if it can be."""
    folders: dict[int, dict[str, int]] = {0: {}}

    def read(number: int, start: dict[str, Any]) -> None:
        folders[number] = {name: item for name, (item, _) in start.items()}
        for item, inside in start.values():
            if isinstance(inside, dict):
                read(item, inside)

    read(0, record.start)
    made = {what[0] for kind, *what in record.log if kind == "folder"}
    for change in changes:
        if change.item in made:
            folders.setdefault(change.item, {})
        named = [(n, name) for n, names in folders.items() for name, item in names.items() if item == change.item]
        if change.gone in named:
            del folders[change.gone[0]][change.gone[1]]
        elif named:
            continue  # it still has the name that an earlier change, which is lost, took away
        if change.come is not None:
            folders.setdefault(change.come[0], {})[change.come[1]] = change.item

    def built(number: int) -> Tree:
        return {
            name: built(item) if item in folders else contents.get(item, b"") for name, item in folders[number].items()
        }

    return built(0)


def write_tree(folder: Path, tree: Tree) -> None:
    """Make the folder that a cut left."""
    folder.mkdir()
    for name, inside in tree.items():
        if isinstance(inside, bytes):
            (folder / name).write_bytes(inside)
        else:
            write_tree(folder / name, inside)
