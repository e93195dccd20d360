"""Several stores of one problem made into one: the union of runs with the same seed, the pool of runs with different ones.

    same seed         the same key is the same block, so the union is taken; what both hold must agree
    different seeds   keys (seed, stream, pair, block) are disjoint, so the samples are independent: a pair's blocks follow
                      one another by seed, then by number, and are numbered anew from 0

A pool's fingerprint has the list of its seeds in the place of the seed, and the content hashes of its ``parts``: a block's
number depends on how many blocks come before it, so a pool of parts that have grown is another pool, in a new folder. It
can be solved from and pooled again, but not continued: continue one of its parts and pool again. The result depends on the
parts alone, not on their order, and an interrupted pooling is simply repeated.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from saddleback.errors import InputError, require
from saddleback.sampling.blocks import Block
from saddleback.sampling.store.manifest import require_same
from saddleback.sampling.store.sample_store import SampleStore

PARTS = "parts"
"""The field of a pool's fingerprint that says what was pooled."""


def pool(sources: Sequence[SampleStore], folder: str | os.PathLike[str]) -> SampleStore:
    """The samples of all ``sources`` in the store at ``folder``, which is made or, if it was begun before, completed."""
    require(len(sources) > 0, "sources", "must hold at least one store", "none", "name a folder of samples")
    first = sources[0]
    for other in sources[1:]:
        rule = f"must have the layout of {first.folder}, {first.layout}"
        require(other.layout == first.layout, str(other.folder), rule, other.layout, "draw it again with that layout")
        require_same(first.folder, first.fingerprint, other.fingerprint, {"seed", PARTS})
    groups: dict[tuple[int, ...], list[SampleStore]] = defaultdict(list)
    for store in sources:
        groups[seeds_of(store)].append(store)
    seeds = sorted(seed for group in groups for seed in group)
    for seed, following in itertools.pairwise(seeds):
        rule = "must be in one of the parts only, unless two parts have the same seeds"
        require(seed != following, f"seed {seed}", rule, "in several", "leave one of them out")
    one = len(groups) == 1
    fingerprint: dict[str, Any] = {name: x for name, x in first.fingerprint.items() if name != PARTS}
    if one:
        for store in sources[1:]:  # pools of the same seeds are the same only if their parts are
            require_same(first.folder, first.fingerprint, store.fingerprint)
        fingerprint = first.fingerprint
    else:
        fingerprint |= {"seed": seeds, PARTS: _contents(groups)}
    held = _held(sources) if one else {}
    pooled = SampleStore.resume(folder, fingerprint, first.layout)
    try:
        if one:
            for block in pooled.blocks():
                rule = "must be a new folder, or one with nothing but samples of the parts"
                require(block[:3] in held, str(folder), rule, block.name, "choose a new folder")
            for store in sources:
                pooled.merge(store)
        else:
            _complete(pooled, groups)
        pooled.flush()
    except BaseException:
        pooled.close()
        raise
    return pooled


def seeds_of(store: SampleStore) -> tuple[int, ...]:
    """The seeds whose samples a store holds."""
    seed = store.fingerprint.get("seed")
    listed = seed if isinstance(seed, list) else [seed]
    for x in listed:
        if not isinstance(x, int) or isinstance(x, bool):
            raise InputError(str(store.folder), "must say which seed its samples have", repr(x), "draw them again")
    return tuple(listed)


def _complete(pooled: SampleStore, groups: dict[tuple[int, ...], list[SampleStore]]) -> None:
    numbered = _numbered(groups)
    missing = set(pooled.missing(list(numbered.values())))
    for store in {source: None for source, _ in numbered}:
        for block, rows in store.rows():
            target = numbered.get((store, block))
            if target is not None and target in missing:
                pooled.take(target, rows.copy())


def _contents(groups: dict[tuple[int, ...], list[SampleStore]]) -> list[dict[str, Any]]:
    """What the parts of each seed hold, by content hash."""
    return [
        {"seeds": list(seeds), "sha256": sorted({store.content_hash() for store in groups[seeds]})}
        for seeds in sorted(groups)
    ]


def _numbered(groups: dict[tuple[int, ...], list[SampleStore]]) -> dict[tuple[SampleStore, Block], Block]:
    """Every block once, where it comes from, and as it is in the pool."""
    used: dict[tuple[int, int], int] = defaultdict(int)
    found = {}
    for seeds in sorted(groups):
        held = _held(groups[seeds])
        for store in groups[seeds][1:]:
            for other in groups[seeds]:
                if other is not store:
                    other.require_same_rows(store, {b for b in store.blocks() if held[b[:3]][1] is other})
        for block, store in sorted(held.values(), key=lambda found: found[0]):
            found[store, block] = block._replace(block=used[block.stream, block.pair])
            used[block.stream, block.pair] += 1
    return found


def _held(stores: Sequence[SampleStore]) -> dict[tuple[int, ...], tuple[Block, SampleStore]]:
    """Every block of stores with the same seed, by its key, and the first store that has it; it has one size in all."""
    held: dict[tuple[int, ...], tuple[Block, SampleStore]] = {}
    for store in stores:
        for block in store.blocks():
            first, other = held.setdefault(block[:3], (block, store))
            rule = f"must have the {first.size:,} samples in {store.folder} that it has in {other.folder}"
            require(first.size == block.size, block.name, rule, f"{block.size:,}", "leave one of the two out")
    return held
