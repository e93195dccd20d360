"""What is in a store's folder: what can be trusted, what a cut left behind, and what is damaged.

A writer that is cut off leaves at most a torn last line, files that had not yet got their names, and one shard that had its
name but no line: the next in number. All of it was never acknowledged and is swept away. Anything else is damage, refused
with its name and what it held. Samples are a function of their keys, so nothing is lost for good: a store without the
damaged shards is continued like one that was never finished, and ends the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddleback.errors import InputError
from saddleback.files.disk import LOCK, PARTIAL, Disk, disk_faults_named, write_whole
from saddleback.sampling.store.block_index import BlockIndex
from saddleback.sampling.store.manifest import (
    HEADER,
    MANIFEST,
    PAIR,
    SIZE,
    Entry,
    Header,
    read_manifest,
    seal_of,
    shard_name,
    to_line,
    write_header,
)
from saddleback.sampling.store.shards import Fault, shard_fault

_SHARD = re.compile(r"(\d{6,})\.npy")


class Damage(NamedTuple):
    """A file that breaks a rule, and what was in it (None where nobody knows)."""

    file: str
    rule: str
    value: Any
    entry: Entry | None

    @property
    def lost(self) -> str:
        """What is gone with it, in words."""
        if self.entry is None:
            return "the blocks of the shards it named"
        x = self.entry.blocks
        pairs = f"pairs {x[:, PAIR].min()} to {x[:, PAIR].max()}"
        return f"{len(x):,} blocks with {int(x[:, SIZE].sum()):,} samples of {pairs}"


class Inspection(NamedTuple):
    """The shards that are sound, whether the last line was torn, what was left behind, and what is damaged."""

    sound: list[Entry]
    torn: bool
    leftovers: list[str]
    damage: list[Damage]


class Recovery(NamedTuple):
    """What opening a store did to it: whether a torn line was dropped, files removed, and blocks lost to damage."""

    torn: bool
    removed: list[str]
    blocks_lost: int


class Report(NamedTuple):
    """A store's sizes, in sentences what is damaged or missing, and files in its folder that are none of its own."""

    num_shards: int
    num_blocks: int
    num_samples: int
    num_bytes: int
    damage: list[str]
    gaps: list[str]
    others: list[str]

    @property
    def sound(self) -> bool:
        """Whether all that the manifest names is there and unchanged."""
        return not self.damage


def inspect(disk: Disk, folder: Path, header: Header, *, contents: bool = True) -> Inspection:
    """Look at everything; change nothing. ``contents`` reads every shard, or else sizes and headers must do."""
    names = disk.names(folder)  # first: a writer at work names a shard in the manifest after it is in the folder
    try:
        data = disk.map(folder / MANIFEST)
    except FileNotFoundError:
        gone = Damage(MANIFEST, "must be there, since it names the shards", "no such file", None)
        return Inspection([], False, _leftovers(names, []), [gone])
    lines, sealed = read_manifest(data, header.sealed), header.sealed
    rule = "must be unchanged, with the check that it ends in"
    damage = [Damage(f"{MANIFEST}:{number}", rule, "a damaged line", None) for number in lines.damaged]
    sound: list[Entry] = []
    seen: set[int] = set()
    for entry in lines.entries:
        fault = shard_fault(disk, folder, header.layout, entry, contents=contents)
        if entry.shard in seen:
            fault = Fault("must be named by one line of the manifest", "two")
        seen.add(entry.shard)
        if fault is None:
            sound.append(entry)
        else:
            damage.append(Damage(entry.name, *fault, entry))
    if sealed is not None and not lines.damaged and (found := seal_of(data, sealed.lines)) != sealed:
        rule = f"must begin with the {sealed.lines:,} lines that it had when the store was closed"
        there = "others" if found.lines == sealed.lines else f"{found.lines:,} of them"
        damage.append(Damage(MANIFEST, rule, there, None))
    leftovers = _leftovers(names, lines.entries)
    next_one = shard_name(next_number(lines.entries))
    for name in leftovers if not damage else ():
        if _SHARD.fullmatch(name) and name != next_one:
            damage.append(Damage(MANIFEST, f"must name the shard {name}, which is there", "no such line", None))
            break
    return Inspection(sound, lines.torn, leftovers, damage)


def next_number(entries: Iterable[Entry]) -> int:
    """The number of the shard that is written next."""
    return max((entry.shard for entry in entries), default=-1) + 1


def refuse(folder: Path, found: Inspection) -> None:
    """Raise an :class:`InputError` about the first fault, if there is one, and say what is left and how to go on."""
    for first in found.damage[:1]:
        more = "" if len(found.damage) == 1 else f", and {len(found.damage) - 1} more files are damaged"
        remedy = (
            f"{first.lost} are lost{more}, {sizes(found.sound)} are sound: `saddleback sample ... --repair`, or opening the "
            "store with drop_damaged=True, takes away what is damaged, which is then drawn again, the same"
        )
        raise InputError(str(folder / first.file), first.rule, first.value, remedy)


def sizes(entries: Sequence[Entry]) -> str:
    """How much some shards hold, in words."""
    blocks = sum(len(entry.blocks) for entry in entries)
    return f"{blocks:,} blocks with {sum(int(entry.blocks[:, SIZE].sum()) for entry in entries):,} samples"


def recover(disk: Disk, folder: Path, header: Header, found: Inspection) -> Recovery:
    """Sweep up, and write the manifest anew; what was sealed counts no more once some of it is given up.

    Anew, since a line that can be read need not be on the disk: its writer may have been killed before its fsync, or the
    fsync may have failed. It must be there to stay before its blocks are called held.
    """
    lost = [d.entry for d in found.damage if d.entry is not None]
    names = set(disk.names(folder)) - {entry.name for entry in found.sound}  # a shard may be named twice
    removed = [name for name in (*found.leftovers, *(entry.name for entry in lost)) if name in names]
    for name in removed:
        disk.remove(folder / name)
    if removed:
        disk.sync_folder(folder)
    if found.damage:
        write_header(disk, folder, header._replace(sealed=None))
    write_whole(disk, folder / MANIFEST, map(to_line, found.sound))
    return Recovery(found.torn, removed, sum(len(entry.blocks) for entry in lost))


def verify(disk: Disk, folder: Path, header: Header, *, contents: bool = True) -> Report:
    """Check every shard (without its ``contents``: size and header), that keys are unique, and that no pair lacks a block between two others."""
    with disk_faults_named(folder, "check the disk and the permissions"):
        found = inspect(disk, folder, header, contents=contents)
    damage = [f"{d.file} {d.rule}, got {d.value}; {d.lost} are lost" for d in found.damage]
    gaps: list[str] = []
    try:
        gaps = [f"{b.name} is there and the one before it is not" for b in BlockIndex(found.sound).gaps()]
    except InputError as error:
        damage.append(str(error))
    blocks = np.concatenate([np.empty((0, 5), dtype=np.int64), *(entry.blocks for entry in found.sound)])
    num_bytes = sum(entry.num_bytes for entry in found.sound)
    ours = {
        HEADER,
        MANIFEST,
        LOCK,
        *found.leftovers,
        *(e.name for e in (*found.sound, *(d.entry for d in found.damage)) if e),
    }
    others = sorted(set(disk.names(folder)) - ours)
    return Report(len(found.sound), len(blocks), int(blocks[:, SIZE].sum()), num_bytes, damage, gaps, others)


def _leftovers(names: Iterable[str], entries: Iterable[Entry]) -> list[str]:
    """Files of ours that the manifest does not name; whatever else is in the folder is not ours to touch."""
    listed, ours = {entry.name for entry in entries}, {MANIFEST + PARTIAL, HEADER + PARTIAL}
    return [x for x in names if x in ours or (_SHARD.fullmatch(x.removesuffix(PARTIAL)) and x not in listed)]
