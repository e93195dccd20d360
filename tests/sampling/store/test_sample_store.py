"""The store's promises to its callers: what went in comes out, in the order of keys, whatever happened in between."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.designs.design import full_design
from saddleback.errors import InputError
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import FiniteStates
from saddleback.sampling.blocks import Block, BlockSource, blocks_for
from saddleback.sampling.collect import collect
from saddleback.sampling.store.block_index import BlockIndex
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.pooling import pool
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import Draw, GenerativeModel
from sampling.store.store_runs import (
    BOX,
    FINGERPRINT,
    LAYOUTS,
    QuickDisk,
    add_all,
    draw,
    expected_hash,
    filled,
    some_blocks,
)

BLOCKS = [*some_blocks(3, 3, 40), *some_blocks(2, 2, 30, stream=1)]


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_goes_in_comes_out(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    with SampleStore.create(tmp_path / "s", FINGERPRINT, layout) as store:
        add_all(store, BLOCKS[::-1])
        assert next(iter(store.read(0)))[0] == BLOCKS[0]
    with SampleStore.open(tmp_path / "s", FINGERPRINT) as store:
        assert store.blocks() == BLOCKS
        for stream in (0, 1):
            got = list(store.read(stream))
            assert [block for block, _ in got] == [b for b in BLOCKS if b.stream == stream] == store.blocks(stream)
            for block, (states, signals) in got:
                want = draw(block, layout)
                if layout.kind == "samples":
                    assert states.tobytes() == want.next_states.tobytes() and states.dtype == want.next_states.dtype
                    assert (signals is None) == (want.signals is None)
                    assert signals is None or signals.tobytes() == want.signals.tobytes()
                else:
                    np.testing.assert_array_equal(np.sort(states), np.sort(want.next_states))
                    assert signals is None
        assert store.num_samples == sum(block.size for block in BLOCKS)
        assert store.verify() == (1, len(BLOCKS), store.num_samples, store.verify().num_bytes, [], [], [])
    shards = sorted((tmp_path / "s").glob("*.npy"))
    assert len(shards) == 1  # all flushed at once
    assert len(np.load(shards[0], allow_pickle=False)["next_state"]) > 0


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_hash_does_not_know_shards_order_or_interruptions(name: str, tmp_path: Path) -> None:
    layout, hashes = LAYOUTS[name], set()
    for seed in range(4):
        rng, blocks, folder = random.Random(seed), BLOCKS.copy(), tmp_path / str(seed)
        rng.shuffle(blocks)
        for some in (blocks[:5], blocks[5:]):
            with SampleStore.resume(
                folder, FINGERPRINT, layout, disk=QuickDisk(), shard_bytes=rng.choice([1, 500, 2000])
            ) as store:
                add_all(store, some)
        with SampleStore.open(folder, writable=False) as store:
            hashes.add(store.content_hash())
    assert hashes == {expected_hash(BLOCKS, layout)}
    with SampleStore.create(tmp_path / "other", FINGERPRINT, layout) as store:
        add_all(store, BLOCKS[:-1])
        block = BLOCKS[-1]
        states, signals = draw(block._replace(block=9), layout)  # one block of other samples
        store.add(block, Draw(states, signals))
        assert store.content_hash() not in hashes


def observed_problem() -> tuple[CMDP, GenerativeModel]:
    problem = CMDP(
        gamma=0.9,
        start=Start.over_all(np.full(4, 0.25)),
        num_actions=2,
        states=FiniteStates(4),
        reward=None,
        reward_range=(1e6 - 9, 1e6 + 9),
        constraints=[Constraint("c", None, ">=", 1.0, range=(-9, 9))],
    )

    offset = np.array([1e6, 0.0])

    def sample(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return rng.integers(0, 4, len(states)), offset + np.clip(rng.normal(size=(len(states), 2)), -9, 9)

    return problem, GenerativeModel(sample, problem.states, 2)


@pytest.mark.parametrize("counts", [False, True])
def test_samples_are_those_of_collect(counts: bool, tmp_path: Path) -> None:
    """Bit for bit, with pairs of unequal size, blocks in a random order and two of them per shard."""
    problem, model = observed_problem()
    design, n = full_design(*problem.pairs()), np.array([1, 5000, 4096, 9000, 2, 3, 8192, 1])
    want = collect(model, problem, design, n, seed=3, stream=1)
    source = BlockSource(model, problem, design.states, design.actions, 3)
    blocks = blocks_for(1, n, np.zeros(8, dtype=np.int64))
    random.Random(0).shuffle(blocks)
    layout = Layout.of(model.states, 2, counts=counts)
    with SampleStore.create(tmp_path / "s", {}, layout, shard_bytes=2 * 4096 * 24) as store:
        for block in blocks:
            store.add(block, source.draw(block))
        got = store.samples(1, 8, problem.base)
        np.testing.assert_array_equal(got.num_blocks, want.num_blocks)
        np.testing.assert_array_equal(store.held(1, 8), n)
    if counts:
        for mine, theirs in zip(got.next_states, want.next_states, strict=True):
            np.testing.assert_array_equal(np.sort(mine), np.sort(theirs))
        # A mean near 10⁶ is a number rounded by δ = 10⁶·ε, and lies 9 from the base: δ in it, 2·9·δ in the variance.
        rounding = 1e6 * np.finfo(float).eps
        np.testing.assert_allclose(got.signal_means, want.signal_means, rtol=0, atol=4 * rounding)
        np.testing.assert_allclose(got.signal_variances, want.signal_variances, rtol=0, atol=18 * rounding)
    else:
        assert [s.tobytes() for s in got.next_states] == [s.tobytes() for s in want.next_states]
        assert got.signal_means.tobytes() == want.signal_means.tobytes()
        assert got.signal_variances.tobytes() == want.signal_variances.tobytes()


def test_counts_come_back_in_a_random_order_that_repeats(tmp_path: Path) -> None:
    """Sorted samples would make every batch a different stretch of the state space.

    The half-means of 4,000 shuffled states differ by 0.0 ± 0.46: eight standard deviations are allowed, which is far below
    a false alarm in a million, and sorted states differ by 25.
    """
    layout, block = LAYOUTS["counts"], Block(0, 0, 0, 4000)
    with SampleStore.create(tmp_path / "s", FINGERPRINT, layout) as store:
        add_all(store, [block])
        states, again = (store.samples(0, 1).next_states[0] for _ in range(2))
    np.testing.assert_array_equal(states, again)
    ordered = np.sort(states)
    assert abs(states[:2000].mean() - states[2000:].mean()) < 8 * 0.46
    assert abs(ordered[:2000].mean() - ordered[2000:].mean()) > 8 * 0.46


def test_counts_are_smaller_where_states_repeat(tmp_path: Path) -> None:
    sizes = {}
    for name in ("samples", "counts"):
        folder = filled(tmp_path / name, [Block(0, 0, i, 4096) for i in range(4)], LAYOUTS[name], per_shard=4)
        sizes[name] = (folder / "000000.npy").stat().st_size
    assert sizes["counts"] < sizes["samples"] / 8  # a byte a sample, nine a distinct state


def test_held_and_missing(tmp_path: Path) -> None:
    with SampleStore.create(tmp_path / "s", FINGERPRINT, LAYOUTS["samples"]) as store:
        assert store.missing(BLOCKS) == BLOCKS and store.held(0, 2).tolist() == [0, 0]
        add_all(store, BLOCKS[1:3])
        store.flush()
        add_all(store, BLOCKS[4:5])  # not flushed
        assert store.missing(BLOCKS) == [BLOCKS[0], BLOCKS[3], *BLOCKS[5:]]
        assert store.held(0, 3).tolist() == [67, 40, 0] and store.held(1, 3).tolist() == [0, 0, 0]
        with pytest.raises(InputError, match="`num_pairs` must cover the pairs of the store, which reach 1, got 1"):
            store.held(0, 1)
        with pytest.raises(InputError, match=r"block 1 of pair 0.*must have the 40 samples that it had.*got 41"):
            store.missing([BLOCKS[1]._replace(size=41)])
        with pytest.raises(InputError, match="must have samples of each of the 3 pairs, got none of pair 2"):
            store.samples(0, 3)
        with pytest.raises(InputError, match="without a gap, got block 1 of pair 0, stream 0, but not the one before"):
            store.samples(0, 2)
        assert [gap.split(",")[0] for gap in store.verify().gaps] == ["block 1 of pair 0", "block 1 of pair 1"]
        assert store.verify().sound
        add_all(store, store.missing(BLOCKS))
        assert store.verify().gaps == [] and store.samples(0, 3).total == store.held(0, 3).sum()


def test_a_block_is_added_once_and_whole(tmp_path: Path) -> None:
    with SampleStore.create(tmp_path / "s", FINGERPRINT, LAYOUTS["samples"]) as store:
        add_all(store, BLOCKS[:1])
        for _ in range(2):
            with pytest.raises(InputError, match="block 0 of pair 0, stream 0` must not have been added before"):
                add_all(store, BLOCKS[:1])
            store.flush()
        bad = [
            (Block(0, 1, 0, 3), Draw(np.zeros(2, int), None), r"next states of shape \(3,\)"),
            (Block(0, 1, 0, 3), Draw(np.zeros(3), None), r"next states of shape \(3,\), got float64"),
            (Block(0, 1, 0, 3), Draw(np.zeros((3, 1), int), None), r"shape \(3,\), got int64 of shape \(3, 1\)"),
            (Block(0, 1, 0, 3), Draw(np.zeros(3, int), np.zeros((3, 1))), "no signals"),
            (Block(0, 1, 0, 3), Draw(np.array([0, 50, 0]), None), "next states from 0 to 49, got 50"),
            (Block(0, 1, 0, 3), Draw(np.array([0, -1, 0]), None), "next states from 0 to 49, got -1"),
            (Block(0, 1, 0, 0), Draw(np.zeros(0, int), None), r"block.size` must lie in 1 … 67108864"),
            (Block(64, 1, 0, 1), Draw(np.zeros(1, int), None), r"block.stream` must lie in 0 … 63"),
            (Block(0, 1 << 32, 0, 1), Draw(np.zeros(1, int), None), "block.pair`"),
            (Block(0, -1, 0, 1), Draw(np.zeros(1, int), None), "block.pair`"),
            (Block(0, 1, 1 << 24, 1), Draw(np.zeros(1, int), None), "block.block`"),
        ]
        for block, drawn, message in bad:
            with pytest.raises(InputError, match=message):
                store.add(block, drawn)
        assert store.blocks() == BLOCKS[:1]
        store.add(Block(63, (1 << 32) - 1, (1 << 24) - 1, 2), Draw(np.array([3, 4], dtype=np.uint8), None))
        assert store.blocks(63) == [Block(63, (1 << 32) - 1, (1 << 24) - 1, 2)] and store.blocks(0) == BLOCKS[:1]
    for name, drawn, message in [
        ("points", Draw(np.array([[0.0, np.nan, 0.0]]), None), "finite numbers in next_state, got nan"),
        (
            "samples with signals",
            Draw(np.zeros(1, int), np.array([[0.0, np.inf]])),
            "finite numbers in signals, got inf",
        ),
        ("samples with signals", Draw(np.zeros(1, int), None), r"signals of shape \(1, 2\), got none"),
        ("counts with signals", Draw(np.zeros(2, int), np.array([[1e200, 0.0], [0.0, 0.0]])), "in deviations, got inf"),
    ]:
        with (
            SampleStore.resume(tmp_path / name, FINGERPRINT, LAYOUTS[name]) as store,
            pytest.raises(InputError, match=message),
            np.errstate(over="ignore"),
        ):
            store.add(Block(0, 0, 0, len(drawn.next_states)), drawn)


def test_a_block_may_be_larger_than_a_shard(tmp_path: Path) -> None:
    blocks = [Block(6, 0, i, 5000 * (i + 1)) for i in range(3)]
    with SampleStore.create(tmp_path / "s", FINGERPRINT, LAYOUTS["samples"], shard_bytes=1000) as store:
        add_all(store, blocks)
        assert store.content_hash() == expected_hash(blocks, store.layout) and store.verify().num_shards == 3
    with pytest.raises(InputError, match=r"`block.size` must lie in 1 … 67108864, got 67108865; make several blocks"):
        BlockIndex().missing([Block(0, 0, 0, (1 << 26) + 1)])


def test_another_fingerprint_is_refused_by_name(tmp_path: Path) -> None:
    stored = {"seed": 1, "simulator": {"name": "queue", "rate": 0.5}, "coreset": np.arange(3), "versions": {"x": "1.0"}}
    SampleStore.create(tmp_path / "s", stored, LAYOUTS["samples"]).close()
    SampleStore.open(tmp_path / "s", stored).close()
    SampleStore.open(tmp_path / "s").close()
    for change, words in [
        (
            {"seed": 2},
            ["`fingerprint.seed` must be what it was when the samples in", "1, got 2; set it back, or choose a"],
        ),
        ({"seed": True}, ["fingerprint.seed", "1, got true"]),
        ({"simulator": {"name": "queue", "rate": 0.25}}, ["`fingerprint.simulator.rate`", "0.5, got 0.25"]),
        ({"simulator": {"name": "queue"}}, ["`fingerprint.simulator.rate`", '0.5, got "no such field"']),
        ({"coreset": [0, 1, 3]}, ["`fingerprint.coreset[2]`", "2, got 3"]),
        ({"coreset": [0, 1]}, ["`fingerprint.coreset`", "[0, 1, 2], got [0, 1]"]),
        ({"more": None}, ["`fingerprint.more`", '"no such field", got null']),
    ]:
        with pytest.raises(InputError) as caught:
            SampleStore.open(tmp_path / "s", {**stored, **change})
        for word in words:
            assert word in str(caught.value)
    for bad in ({"x": float("nan")}, {"x": object()}, [1], {"x": {1, 2}}):
        with pytest.raises(InputError, match="`fingerprint` must be a JSON object"):
            SampleStore.create(tmp_path / "t", bad, LAYOUTS["samples"])


def test_resume_wants_the_same_layout_and_create_a_new_place(tmp_path: Path) -> None:
    folder = filled(tmp_path / "s", BLOCKS[:1], LAYOUTS["samples"])
    with pytest.raises(InputError, match="`layout` must be the store's"):
        SampleStore.resume(folder, FINGERPRINT, LAYOUTS["counts"])
    with pytest.raises(InputError, match="must be a new or empty folder, got one that holds a store; open that store"):
        SampleStore.create(folder, FINGERPRINT, LAYOUTS["samples"])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(InputError, match=r"new or empty folder, got one that holds notes.txt; choose another one"):
        SampleStore.create(tmp_path / "mine", FINGERPRINT, LAYOUTS["samples"])
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"
    with pytest.raises(InputError, match="must be 'samples' where the states are points"):
        Layout.of(BOX, counts=True)


def test_merge(tmp_path: Path) -> None:
    layout, end = LAYOUTS["samples with signals"], expected_hash(BLOCKS, LAYOUTS["samples with signals"])
    mine, theirs = BLOCKS[:8], BLOCKS[5:]  # three in common
    filled(tmp_path / "a", mine, layout), filled(tmp_path / "b", theirs, layout, per_shard=3)
    a, b = (SampleStore.open(tmp_path / name, writable=False) for name in "ab")
    for place in ("a", "a", "both"):  # into one of them, once more, and into a new folder
        with pool([a, b], tmp_path / place) as both:
            assert both.content_hash() == end
    with SampleStore.open(tmp_path / "a") as grown:
        assert grown.content_hash() == end


def test_merge_refuses_what_does_not_belong(tmp_path: Path) -> None:
    layout = LAYOUTS["samples"]
    filled(tmp_path / "a", BLOCKS[:4], layout)
    with SampleStore.create(tmp_path / "b", FINGERPRINT, layout) as b:
        add_all(b, BLOCKS[4:6])
        states = draw(BLOCKS[2], layout).next_states.copy()
        states[-1] = (states[-1] + 1) % 50
        b.add(BLOCKS[2], Draw(states, None))
    filled(tmp_path / "counts", BLOCKS[4:], LAYOUTS["counts"])
    with SampleStore.create(tmp_path / "c", {**FINGERPRINT, "host": "far"}, layout) as c:
        add_all(c, BLOCKS[4:])
    with SampleStore.create(tmp_path / "d", FINGERPRINT, layout) as d:
        block = BLOCKS[2]._replace(size=3)
        d.add(block, draw(block, layout))

    def other(name: str) -> SampleStore:
        return SampleStore.open(tmp_path / name, writable=False)

    a = other("a")
    for name, complaint in {
        "b": r"block 2 of pair 0, stream 0` must be the same in .*a and .*b",
        "counts": "must have the layout of",
        "c": r'`fingerprint.host`.*"no such field", got "far"',
        "d": r"must have the 27 samples in .*d that it has in .*a, got 3",
    }.items():
        with pytest.raises(InputError, match=complaint):
            pool([a, other(name)], tmp_path / "a")
    with SampleStore.open(tmp_path / "a") as unchanged:
        assert unchanged.blocks() == BLOCKS[:4]


def test_a_closed_store_and_a_reader_refuse(tmp_path: Path) -> None:
    store = SampleStore.create(tmp_path / "s", FINGERPRINT, LAYOUTS["samples"])
    add_all(store, BLOCKS[:1])
    store.close()
    store.close()
    for use in (store.flush, store.blocks, store.content_hash, lambda: add_all(store, BLOCKS[1:2])):
        with pytest.raises(InputError, match="`store` must be open, got the closed one of"):
            use()
    with SampleStore.open(tmp_path / "s", writable=False) as reader:
        assert reader.blocks() == BLOCKS[:1]
        for use in (reader.flush, lambda: add_all(reader, BLOCKS[1:2])):
            with pytest.raises(InputError, match=r"must be open for writing.*leave out writable=False"):
                use()


def test_readers_beside_a_writer(tmp_path: Path) -> None:
    """They see what was acknowledged when they came, and change nothing."""
    with SampleStore.create(tmp_path / "s", FINGERPRINT, LAYOUTS["samples"]) as writer:
        for i, block in enumerate(BLOCKS):
            add_all(writer, [block])
            with SampleStore.open(tmp_path / "s", writable=False) as reader:
                assert reader.blocks() == BLOCKS[:i]
            writer.flush()
        assert writer.verify().num_shards == len(BLOCKS)


STEPS = st.lists(st.sampled_from(["add", "flush", "reopen", "drop", "read"]), max_size=25)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(STEPS, st.randoms(use_true_random=False), st.sampled_from(sorted(LAYOUTS)), st.sampled_from([1, 700, 1 << 20]))
def test_any_sequence_of_uses(steps: list[str], rng: random.Random, name: str, shard_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        _use(Path(place) / "s", steps, rng, LAYOUTS[name], {"disk": QuickDisk(), "shard_bytes": shard_bytes})


def _use(folder: Path, steps: list[str], rng: random.Random, layout: Layout, more: dict[str, Any]) -> None:
    """Against a set of blocks; "drop" is a process that ends without a flush, which may lose what was added since."""
    store, sure, perhaps, left = SampleStore.create(folder, FINGERPRINT, layout, **more), set(), set(), BLOCKS.copy()
    rng.shuffle(left)
    for step in steps:
        if step == "add" and left:
            perhaps.add(left[-1])
            add_all(store, [left.pop()])
        elif step == "drop":
            store._writer._waiting.clear()
            store.close()
        elif step in ("flush", "read"):
            store.flush() if step == "flush" else store.content_hash()
            sure |= perhaps
        elif step == "reopen":
            store.close()
            sure |= perhaps
        if step in ("drop", "reopen"):
            store = SampleStore.open(folder, FINGERPRINT, **more)
            held = set(store.blocks())
            assert sure <= held <= sure | perhaps
            left += sorted(perhaps - held)
            sure, perhaps = held, set()
        assert set(store.blocks()) == sure | perhaps
    assert store.content_hash() == expected_hash(sure | perhaps, layout)
    store.close()


def test_a_place_without_a_store(tmp_path: Path) -> None:
    for folder, found in [(tmp_path / "no", "no such folder"), (tmp_path, "no store.json in it")]:
        with pytest.raises(InputError, match=f"must be a folder of samples, got {found}; check the path, or create"):
            SampleStore.open(folder)


@pytest.mark.parametrize(
    ("num", "size"), [(1, 1), (256, 1), (257, 2), (1 << 16, 2), (1 << 32, 4), ((1 << 32) + 1, 8), ((1 << 62) - 1, 8)]
)
@pytest.mark.parametrize("counts", [False, True])
def test_states_take_as_few_bytes_as_hold_them(num: int, size: int, counts: bool) -> None:
    layout, block = Layout.of(FiniteStates(num), counts=counts), Block(0, 0, 0, 2)
    assert layout.dtype["next_state"].itemsize == size
    got = layout.decode(block, layout.encode(block, Draw(np.array([0, num - 1]), None))).next_states
    assert got.dtype == np.int64 and sorted(got.tolist()) == [0, num - 1]
    for wrong in (np.array([0, num]), np.array([0, -1]), np.array([0, 1 << 63], np.uint64), np.array([0, -1], np.int8)):
        with pytest.raises(InputError, match=rf"must hold next states from 0 to {num - 1}, got {wrong[1]}"):
            layout.encode(block, Draw(wrong, None))
