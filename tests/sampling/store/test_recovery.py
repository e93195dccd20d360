"""What opening a store sweeps up, what it refuses, and how to go on: nothing that was held is given up in silence."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from saddleback.errors import InputError
from saddleback.sampling.store.sample_store import SampleStore, verify_store
from sampling.store.store_runs import (
    FINGERPRINT,
    LAYOUTS,
    add_all,
    expected_hash,
    filled,
    some_blocks,
    unlike,
    unsealed,
)

BLOCKS = [*some_blocks(3, 3, 40), *some_blocks(2, 2, 30, stream=1)]


def damage(path: Path, at: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def test_a_damaged_shard_is_refused_and_can_be_drawn_again(tmp_path: Path) -> None:
    folder = filled(tmp_path / "s", BLOCKS, LAYOUTS["samples"])
    damage(folder / "000001.npy")
    (folder / "000003.npy").unlink()
    words = r"000001.npy` must be unchanged, with the SHA-256 .*2 blocks with 67 samples of pairs 0 to 1 are lost, and 1 more"
    for writable in (True, False):
        with pytest.raises(InputError, match=words):
            SampleStore.open(folder, writable=writable)
    with pytest.raises(InputError, match="drop_damaged=True"):
        SampleStore.open(folder, writable=False, drop_damaged=True)
    report = verify_store(folder)
    assert not report.sound and len(report.damage) == 2 and report.num_shards == 5
    assert "000003.npy must be there, since the manifest names it, got no such file" in report.damage[1]
    with SampleStore.open(folder, drop_damaged=True) as store:
        assert store.recovery == (False, ["000001.npy"], 4)
        assert store.missing(BLOCKS) == [*BLOCKS[2:4], *BLOCKS[6:8]]
        add_all(store, store.missing(BLOCKS))
        assert store.content_hash() == expected_hash(BLOCKS, LAYOUTS["samples"])
        assert store.verify().sound and store.verify().gaps == []
    assert verify_store(folder).sound


def test_sizes_and_headers_are_checked_without_hashes(tmp_path: Path) -> None:
    folder = filled(tmp_path / "s", BLOCKS, LAYOUTS["samples"])
    damage(folder / "000001.npy")
    SampleStore.open(folder, writable=False, hashes=False).close()
    path = folder / "000002.npy"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(InputError, match=r"000002.npy` must have the 195 bytes that the manifest says, got 187"):
        SampleStore.open(folder, writable=False, hashes=False)


def test_a_torn_line_is_dropped_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    folder = unsealed(filled(tmp_path / "s", BLOCKS, LAYOUTS["samples"]))
    manifest = folder / "manifest.jsonl"
    lines = manifest.read_bytes().splitlines(keepends=True)
    for torn in (lines[-1][:-1], lines[-1][:50], b"\0" * 60):
        manifest.write_bytes(b"".join(lines[:-1]) + torn)
        with SampleStore.open(folder, writable=False) as store:  # a reader looks past it
            assert len(store.blocks()) == 12
        assert manifest.read_bytes().endswith(torn)
    with SampleStore.open(folder) as store:
        assert store.recovery == (True, ["000006.npy"], 0)
        assert store.missing(BLOCKS) == BLOCKS[12:]
    assert manifest.read_bytes() == b"".join(lines[:-1])
    damage(manifest, len(lines[0]) + 30)
    with pytest.raises(
        InputError, match=r"manifest.jsonl:2` must be unchanged.*the blocks of the shards it named are lost"
    ):
        SampleStore.open(folder)
    with SampleStore.open(folder, drop_damaged=True) as store:
        assert store.missing(BLOCKS) == [*BLOCKS[2:4], *BLOCKS[12:]] and store.recovery.removed == ["000001.npy"]
        add_all(store, store.missing(BLOCKS))
        assert store.content_hash() == expected_hash(BLOCKS, LAYOUTS["samples"])


@pytest.mark.parametrize("left", [0, 1, 4])
def test_a_manifest_that_lost_its_end_does_not_cost_the_shards(left: int, tmp_path: Path) -> None:
    """No writer leaves two shards without lines: sweeping them up would destroy what one bad file has hidden."""
    folder = unsealed(filled(tmp_path / "s", BLOCKS, LAYOUTS["samples"]))
    manifest, held = folder / "manifest.jsonl", sorted(folder.glob("*.npy"))
    whole = manifest.read_bytes()
    manifest.write_bytes(b"".join(whole.splitlines(keepends=True)[:left]))
    with pytest.raises(InputError, match=f"manifest.jsonl` must name the shard {left + 1:06d}.npy, which is there"):
        SampleStore.open(folder)
    assert sorted(folder.glob("*.npy")) == held
    manifest.unlink()
    with pytest.raises(InputError, match=r"manifest.jsonl` must be there, since it names the shards"):
        SampleStore.open(folder)
    assert sorted(folder.glob("*.npy")) == held
    manifest.write_bytes(whole)
    with SampleStore.open(folder) as store:
        assert store.blocks() == BLOCKS


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    folder = filled(tmp_path / "s", BLOCKS, LAYOUTS["samples"])
    others = ("notes.txt", "policy.npy", "1.npy", "x000009.npy", "000007.npy.old")
    for name in others:
        (folder / name).write_text("keep")
    for name in ("000007.npy", "000008.npy.partial", "manifest.jsonl.partial"):
        (folder / name).write_text("swept")
    with SampleStore.open(folder) as store:
        assert store.recovery.removed == ["000007.npy", "000008.npy.partial", "manifest.jsonl.partial"]
        assert store.blocks() == BLOCKS
    assert [(folder / name).read_text() for name in others] == ["keep"] * 5
    assert not (folder / "000007.npy").exists()


def mutant(data: bytearray, rng: random.Random) -> bytes:
    """The bytes with one change."""
    at, length = rng.randrange(len(data)), rng.randrange(1, 40)
    match rng.randrange(5):
        case 0:
            data[at] ^= 1 << rng.randrange(8)
        case 1:
            del data[at:]
        case 2:
            del data[at : at + length]
        case 3:
            data[at:at] = rng.randbytes(length)
        case _:
            data[at : at + length] = bytes(length)
    return bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("number", [400, pytest.param(20_000, marks=pytest.mark.study)])
def test_mutants_are_refused_or_give_nothing_wrong(number: int, tmp_path: Path) -> None:
    """One message that names a file, or a store whose blocks are all there and right."""
    seed, layout, found = 5_2025, LAYOUTS["counts with signals"], Counter()
    print(f"seed {seed}")
    rng, folder = random.Random(seed), filled(tmp_path / "s", BLOCKS, layout)
    paths = [path for path in sorted(folder.iterdir()) if path.name != "lock"]
    for _ in range(number):
        path = rng.choice(paths)
        whole = path.read_bytes()
        path.write_bytes(mutant(bytearray(whole), rng))
        try:
            with SampleStore.open(folder, writable=False) as store:
                assert store.layout == layout and store.fingerprint == FINGERPRINT and unlike(store) == []
                assert store.blocks() == BLOCKS
            found["opened"] += 1
            message = f"{folder}; opened"
        except InputError as error:
            message = str(error)
            found[f"refused {path.suffix}"] += 1
        assert str(folder) in message and "; " in message
        path.write_bytes(whole)
    print(found)
    assert found["opened"] < number / 3 and found["refused .npy"] > number / 3
