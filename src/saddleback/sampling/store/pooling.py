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
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from saddleback.errors import InputError, require
from saddleback.sampling.blocks import Block
from saddleback.sampling.store.sample_store import Place, SampleStore

PARTS = "parts"
"""The field of a pool's fingerprint that says what was pooled."""


def pool(sources: Sequence[SampleStore], folder: Place) -> SampleStore:
    """The samples of all ``sources`` in the store at ``folder``, which is made or, if it was begun before, completed."""
    require(len(sources) > 0, "sources", "must hold at least one store", "none", "name a folder of samples")
    first = sources[0]
    for other in sources[1:]:
        first.require_like(other, {"seed", PARTS})
    groups: dict[tuple[int, ...], list[SampleStore]] = defaultdict(list)
    for store in sources:
        groups[seeds_of(store)].append(store)
    seeds = sorted(seed for group in groups for seed in group)
    for seed, following in itertools.pairwise(seeds):
        rule = "must be in one of the parts only, unless two parts have the same seeds"
        require(seed != following, f"seed {seed}", rule, "in several", "leave one of them out")
    one, fingerprint = len(groups) == 1, first.fingerprint
    for store in sources[1:] if one else ():  # pools of the same seeds are the same only if their parts are
        first.require_like(store)
    if not one:
        fingerprint = {**fingerprint, "seed": seeds, PARTS: _contents(groups)}
    numbered = _numbered(groups)
    pooled = SampleStore.resume(folder, fingerprint, first.layout)
    try:
        keys, rule = {block[:3] for block in numbered.values()}, "must be new, or hold nothing but samples of the parts"
        for block in pooled.blocks():
            require(block[:3] in keys, str(folder), rule, block.name, "choose a new folder")
        missing = set(pooled.missing(list(numbered.values())))
        for store in sources:
            if one:
                pooled.require_same_rows(store, set(store.blocks()) - missing)
            for block, rows in store.rows():
                target = numbered.get((store, block))
                if target in missing:
                    pooled.take(target, rows.copy())
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


def _contents(groups: dict[tuple[int, ...], list[SampleStore]]) -> list[dict[str, Any]]:
    """What the parts of each seed hold, by content hash."""
    return [
        {"seeds": list(seeds), "sha256": sorted({store.content_hash() for store in groups[seeds]})}
        for seeds in sorted(groups)
    ]


def _numbered(groups: dict[tuple[int, ...], list[SampleStore]]) -> dict[tuple[SampleStore, Block], Block]:
    """Every block once, where it comes from, and as it is in the pool: with a new number where seeds are mixed."""
    used: dict[tuple[int, int], int] = defaultdict(int)
    found = {}
    for seeds in sorted(groups):
        held = _held(groups[seeds])
        for store in groups[seeds][1:]:
            for other in groups[seeds]:
                if other is not store:
                    other.require_same_rows(store, {b for b in store.blocks() if held[b[:3]][1] is other})
        for block, store in sorted(held.values(), key=lambda found: found[0]):
            new = block._replace(block=used[block.stream, block.pair])
            found[store, block] = block if len(groups) == 1 else new
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
