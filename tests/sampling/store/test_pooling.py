"""Several stores made into one: which block gets which number, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saddleback.errors import InputError
from saddleback.problem.spaces import FiniteStates
from saddleback.sampling.blocks import Block
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.pooling import pool
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import Draw

LAYOUT = Layout.of(FiniteStates(7), 0)


def stored(folder: Path, seed: int, blocks: dict[int, int]) -> SampleStore:
    """A store of one pair: so many samples in each block, the first ones of the block's own stream."""
    store = SampleStore.resume(folder, {"seed": seed, "problem": "x"}, LAYOUT)
    for number, size in blocks.items():
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        block = Block(0, 0, number, size)
        if store.missing([block]):
            store.add(block, Draw(rng.integers(0, 7, 64)[:size], None))
    store.flush()
    return store


def sequence(store: SampleStore) -> list[int]:
    return store.samples(0, 1).next_states[0].tolist()


def test_a_pair_has_its_blocks_by_seed_and_a_part_that_grows_is_refused(tmp_path: Path) -> None:
    with stored(tmp_path / "a", 0, {0: 64, 1: 64}) as a, stored(tmp_path / "b", 1, {0: 64}) as b:
        with pool([b, a], tmp_path / "p") as first:
            assert sequence(first) == sequence(a) + sequence(b)
            digest = first.content_hash()
        with pool([a, b], tmp_path / "p") as again:  # nothing to be done
            assert again.content_hash() == digest
    with stored(tmp_path / "a", 0, {2: 64}) as a, stored(tmp_path / "b", 1, {}) as b:
        with pytest.raises(InputError, match="choose a new folder"):
            pool([a, b], tmp_path / "p")
        with pool([a, b], tmp_path / "q") as grown:
            assert sequence(grown) == sequence(a) + sequence(b)


@pytest.mark.parametrize("others", [[], [9]])
def test_a_block_of_two_sizes_is_not_two_blocks(tmp_path: Path, others: list[int]) -> None:
    parts = [stored(tmp_path / "short", 0, {0: 30}), stored(tmp_path / "full", 0, {0: 64})]
    parts += [stored(tmp_path / "other", seed, {0: 64}) for seed in others]
    with pytest.raises(InputError, match=r"block 0 of pair 0.*30 samples"):
        pool(parts, tmp_path / "p")
    for part in parts:
        part.close()


def test_pools_of_the_same_seeds_must_have_the_same_parts(tmp_path: Path) -> None:
    with stored(tmp_path / "a", 0, {0: 64}) as a, stored(tmp_path / "b", 1, {0: 64}) as b:
        pool([a, b], tmp_path / "p").close()
    with stored(tmp_path / "b", 1, {1: 64}) as b, stored(tmp_path / "a", 0, {}) as a:
        pool([a, b], tmp_path / "q").close()
    with stored(tmp_path / "c", 2, {0: 64}) as c:
        p, q = (SampleStore.open(tmp_path / name, writable=False) for name in "pq")
        with pytest.raises(InputError, match="parts"):
            pool([p, q], tmp_path / "pq")
        with pool([p, c], tmp_path / "pc") as pooled:
            assert pooled.fingerprint["seed"] == [0, 1, 2] and pooled.num_samples == 3 * 64
        p.close()
        q.close()
