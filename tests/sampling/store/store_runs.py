"""A small run for the tests of the sample store: blocks whose samples follow from their keys, as a simulator's do."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from saddleback.files.disk import Disk
from saddleback.problem.spaces import BoxStates, FiniteStates
from saddleback.sampling.blocks import Block
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.manifest import read_header, write_header
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import Draw, generator

SEED = 20_240_607
FINGERPRINT = {"simulator": "a small run", "seed": SEED, "discount": 0.9}
FINITE = FiniteStates(50)
BOX = BoxStates(np.zeros(3), np.ones(3))

LAYOUTS = {
    "samples": Layout.of(FINITE),
    "samples with signals": Layout.of(FINITE, 2),
    "very many states": Layout.of(FiniteStates(1 << 40)),
    "points": Layout.of(BOX),
    "points with a signal": Layout.of(BOX, 1),
    "counts": Layout.of(FINITE, counts=True),
    "counts with signals": Layout.of(FINITE, 2, counts=True),
}


@cache
def draw(block: Block, layout: Layout) -> Draw:
    """The samples of a block: a function of its key and size."""
    rng = generator(SEED, block.stream, block.pair, block.block)
    if layout.num_states is None:
        states = rng.random((block.size, layout.dim))
    else:
        states = rng.integers(0, layout.num_states, block.size)
    return Draw(states, rng.normal(size=(block.size, layout.num_signals)) if layout.num_signals else None)


def some_blocks(num_pairs: int, per_pair: int, size: int, stream: int = 0) -> list[Block]:
    """Blocks in the order of their keys; the last of a pair is a third shorter."""
    return [
        Block(stream, pair, i, size if i < per_pair - 1 else size - size // 3)
        for pair in range(num_pairs)
        for i in range(per_pair)
    ]


def add_all(store: SampleStore, blocks: Iterable[Block]) -> None:
    for block in blocks:
        store.add(block, draw(block, store.layout))


def expected_hash(blocks: Iterable[Block], layout: Layout) -> str:
    """What ``content_hash`` must be, made from the blocks alone."""
    digest = hashlib.sha256()
    for block in sorted(blocks):
        rows = layout.encode(block, draw(block, layout))
        digest.update(repr(tuple(block)).encode())
        for name in rows.dtype.names:
            x = rows[name].copy()
            digest.update(f"{name} {x.dtype.str} {x.shape}".encode() + x.tobytes())
    return digest.hexdigest()


def unlike(store: SampleStore) -> list[Block]:
    """The blocks of a store that are not, bit for bit, what they should be."""
    return [b for b, rows in store.rows() if rows.tobytes() != store.layout.encode(b, draw(b, store.layout)).tobytes()]


class QuickDisk(Disk):
    """Without waiting for the disk, where a test cuts no power."""

    def fsync(self, file: int) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


def unsealed(folder: Path) -> Path:
    """The same store as a writer leaves it that was killed after its last line."""
    write_header(QuickDisk(), folder, read_header(folder)._replace(sealed=None))
    return folder


def filled(folder: Path, blocks: Sequence[Block], layout: Layout, per_shard: int = 2) -> Path:
    """A closed store of these blocks in this order, so many to a shard."""
    with SampleStore.create(folder, FINGERPRINT, layout, disk=QuickDisk()) as store:
        for i in range(0, len(blocks), per_shard):
            add_all(store, blocks[i : i + per_shard])
            store.flush()
    return folder
