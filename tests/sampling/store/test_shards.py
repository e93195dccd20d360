"""Shards that lie, with a manifest that vouches for them: sizes and headers first, then the contents, and no unpickling."""

from __future__ import annotations

import hashlib
import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from saddleback.errors import InputError
from saddleback.files.disk import Disk
from saddleback.sampling.blocks import Block
from saddleback.sampling.store.layout import Layout, Rows
from saddleback.sampling.store.manifest import Entry, read_manifest, to_line
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.store.shards import ShardReader, shard_fault, write_shard
from sampling.store.store_runs import LAYOUTS, draw, filled, some_blocks, unsealed

BLOCKS = some_blocks(2, 2, 30)


def rows_of(layout: Layout) -> list[Rows]:
    return [layout.encode(block, draw(block, layout)) for block in BLOCKS]


def npy(x: np.ndarray, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, x, allow_pickle=allow_pickle)
    return stream.getvalue()


def header(text: str, data: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    """An array file with any header whatever."""
    text = text.ljust(118) + "\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H", len(text)) + text.encode("latin1") + data


def vouched(folder: Path, content: bytes) -> None:
    """Put bytes in the place of the first shard, with a manifest that names their length and SHA-256."""
    entry = read_manifest((folder / "manifest.jsonl").read_bytes()).entries[0]
    (folder / "000000.npy").write_bytes(content)
    new = entry._replace(num_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    (unsealed(folder) / "manifest.jsonl").write_bytes(to_line(new))


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_is_written_is_read_in_any_order(name: str, tmp_path: Path) -> None:
    layout, disk = LAYOUTS[name], Disk()
    pieces = rows_of(layout)
    blocks = [(*block, len(rows)) for block, rows in zip(BLOCKS, pieces, strict=True)]
    entry = write_shard(disk, tmp_path, 7, layout, pieces, blocks)
    content = (tmp_path / "000007.npy").read_bytes()
    assert entry.num_bytes == len(content) and entry.sha256 == hashlib.sha256(content).hexdigest()
    assert content == npy(np.concatenate(pieces))  # as numpy.save would have it
    assert shard_fault(disk, tmp_path, layout, entry) is None
    reader, starts = ShardReader(disk, tmp_path, layout), entry.starts
    for i in (3, 0, 2, 1):
        got = reader.rows(7, int(starts[i]), len(pieces[i]))
        assert got.tobytes() == pieces[i].tobytes()
        assert not got.flags.writeable


def test_few_shards_are_mapped_at_a_time(tmp_path: Path) -> None:
    layout, mapped = LAYOUTS["samples"], []

    class CountingDisk(Disk):
        def map(self, path: Path) -> object:
            mapped.append(path.name)
            return super().map(path)

    pieces = rows_of(layout)[:1]
    for number in range(6):
        write_shard(Disk(), tmp_path, number, layout, pieces, [(*BLOCKS[0], 30)])
    reader = ShardReader(CountingDisk(), tmp_path, layout)
    for number in (0, 0, 1, 2, 3, 0, 4, 0, 1):  # 1 has made way for 4
        reader.rows(number, 0, 30)
    assert mapped == [f"{number:06d}.npy" for number in (0, 1, 2, 3, 4, 1)]
    assert len(reader._mapped) == 4


class Bomb:
    """Unpickling one of these would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path, str]]:
        return Path.write_text, (self.path, "exploded")


RIGHT = "{'descr': [('next_state', '|u1')], 'fortran_order': False, 'shape': (100,), }"
DATA = bytes(100)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must begin with the header"),
        (b"\x93NUMPY", "must begin with the header"),
        (header(RIGHT, DATA, (2, 0)), "must be an array file of version 1.0"),
        (header(RIGHT, DATA, (9, 9)), "must be an array file of version 1.0"),
        (header(RIGHT.replace("100", "10**9"), DATA), "must begin with the header"),
        (header(RIGHT.replace("100", "1000000000000"), DATA), "must hold the bytes of its shape"),
        (header(RIGHT.replace("100", "4611686018427387904"), DATA), "must hold the bytes of its shape"),
        (header(RIGHT.replace("100", "-1"), DATA), "must hold the bytes of its shape"),
        (header(RIGHT.replace("100", "0"), b""), "must hold the bytes of its shape"),
        (header(RIGHT.replace("(100,)", "(10, 10)"), DATA), "must hold the bytes of its shape"),
        (header(RIGHT, DATA + b"!"), "must hold the bytes of its shape"),
        (header(RIGHT, DATA[:-1]), "must hold the bytes of its shape"),
        (header(RIGHT.replace("100", "99"), DATA[:-1]), "must have the 100 rows that the manifest says, got 99"),
        (header(RIGHT.replace("|u1", "<f8"), 8 * DATA), "must have rows of type"),
        (header(RIGHT.replace("|u1", "<i8"), 8 * DATA), "must have rows of type"),
        (header(RIGHT.replace("|u1", ">u2"), 2 * DATA), "must have rows of type"),
        (header(RIGHT.replace("|u1", "|i1"), DATA), "must have rows of type"),
        (header(RIGHT.replace("|u1", "|O"), 8 * DATA), "must have rows of type"),
        (header(RIGHT.replace("next_state", "state"), DATA), "must have rows of type"),
        (header(RIGHT.replace("[('next_state', '|u1')]", "'|u1'"), DATA), "must have rows of type"),
        (header("__import__('os').system('true')", DATA), "must begin with the header"),
        (header("(" * 100, DATA), "must begin with the header"),
        (header(RIGHT, DATA[:-1] + bytes([50])), "must hold next states from 0 to 49, got 50"),
        (header(RIGHT, DATA[:-1] + bytes([255])), "must hold next states from 0 to 49, got 255"),
    ],
)
def test_vouched_shards_that_lie(content: bytes, words: str, tmp_path: Path) -> None:
    folder = filled(tmp_path / "s", BLOCKS, LAYOUTS["samples"], per_shard=4)
    vouched(folder, header(RIGHT, DATA))
    SampleStore.open(folder).close()  # what is right passes
    vouched(folder, content)
    with pytest.raises(InputError) as caught:
        SampleStore.open(folder)
    assert "000000.npy" in str(caught.value) and words in str(caught.value)
    assert "4 blocks with 100 samples of pairs 0 to 1 are lost" in str(caught.value)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    folder = filled(tmp_path / "s", BLOCKS, LAYOUTS["samples"], per_shard=4)
    objects = np.array([Bomb(tmp_path / "crater")] * 100, dtype=object)
    for x in (objects, np.array([(o,) for o in objects], dtype=[("next_state", object)])):
        vouched(folder, npy(x, allow_pickle=True))
        with pytest.raises(InputError, match="must have rows of type"):
            SampleStore.open(folder)
    assert not (tmp_path / "crater").exists()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("count", 0, "must hold counts of 1 or more, got 0"),
        ("count", -5, "must hold counts of 1 or more, got -5"),
        ("count", 2**40, "must hold the 30 samples of its block 0"),
        ("means", np.nan, "must hold finite numbers in means, got nan"),
        ("deviations", np.inf, "must hold finite numbers in deviations, got inf"),
        ("next_state", 50, "must hold next states from 0 to 49, got 50"),
    ],
)
def test_vouched_counts_that_lie(field: str, value: float, words: str, tmp_path: Path) -> None:
    layout = LAYOUTS["counts with signals"]
    folder = filled(tmp_path / "s", BLOCKS, layout, per_shard=4)
    rows = np.load(folder / "000000.npy", allow_pickle=False)
    rows[field][3] = value
    vouched(folder, npy(rows))
    with pytest.raises(InputError) as caught:
        SampleStore.open(folder)
    assert words in str(caught.value)


def test_manifests_that_lie(tmp_path: Path) -> None:
    """Two lines for one shard, a key in two shards: both are seen though every line is in order."""
    folder = filled(tmp_path / "s", BLOCKS[:3], LAYOUTS["samples"], per_shard=1)
    entries = read_manifest((unsealed(folder) / "manifest.jsonl").read_bytes()).entries
    (folder / "manifest.jsonl").write_bytes(b"".join(map(to_line, [*entries, entries[0]])))
    with pytest.raises(InputError, match=r"000000.npy` must be named by one line of the manifest, got two"):
        SampleStore.open(folder)
    with SampleStore.open(folder, drop_damaged=True) as store:
        assert store.blocks() == BLOCKS[:3] and store.recovery.removed == [] and store.verify().sound
    twice = entries[1]._replace(blocks=entries[1].blocks.copy())
    twice.blocks[0, :3] = entries[0].blocks[0, :3]
    (unsealed(folder) / "manifest.jsonl").write_bytes(b"".join(map(to_line, [entries[0], twice, entries[2]])))
    with pytest.raises(InputError, match="block 0 of pair 0, stream 0` must be stored once, got shards 0 and 1"):
        SampleStore.open(folder)


def rewritten(right: str, old: str, new: str, check: bool) -> str:
    """The text of ``store.json`` with a change, and the check that goes with it if ``check``."""
    assert old in right
    text = right.replace(old, new, 1)
    if check:
        fields = json.loads(text)
        del fields["check"]
        fields["check"] = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
        text = json.dumps(fields)
    return text


@pytest.mark.parametrize(
    ("old", "new", "words", "check"),
    [
        ("saddleback-samples/3", "saddleback-samples/1", "format` must be 'saddleback-samples/2' or 'saddle", True),
        (
            '"lines": 1',
            '"lines": 2',
            "must begin with the 2 lines that it had when the store was closed, got 1 of",
            True,
        ),
        (
            '"lines": 1',
            '"lines": 0',
            "must begin with the 0 lines that it had when the store was closed, got others",
            True,
        ),
        ('"samples",', '"sums",', "layout.kind` must be 'samples' or 'counts'", True),
        ('"dim": 0', '"dim": 3', "layout` must describe samples or counts", True),
        ('"num_states": 50', '"num_states": null', "layout` must describe samples or counts", True),
        ('"num_states": 50', '"num_states": 0', "layout` must describe samples or counts", True),
        ('"num_signals": 0', '"num_signals": 1000000000', "layout` must describe samples or counts", True),
        ('"num_signals": 0', '"num_signals": -1', "`int` >= 0 - at `$.num_signals`", True),
        ('"num_signals": 0', '"num_signals": 1', "must have rows of type", True),
        ('"dim": 0,', "", "missing required field `dim`", True),
        ('"fingerprint": {', '"fingerprint": [], "x": {', "`object`, got `array` - at `$.fingerprint`", True),
        ('"discount": 0.9', '"discount": 0.8', "must be unchanged, with the check that it holds", False),
        ('"num_states": 50', '"num_states": 58', "must be unchanged, with the check that it holds", False),
        ("{", "[", "must be readable JSON", False),
    ],
)
def test_headers_of_stores_that_lie(old: str, new: str, words: str, check: bool, tmp_path: Path) -> None:
    folder = filled(tmp_path / "s", BLOCKS[:1], LAYOUTS["samples"])
    path = folder / "store.json"
    right = path.read_text()
    path.write_text(rewritten(right, "50", "50", True))
    SampleStore.open(folder).close()  # what is right passes
    path.write_text(rewritten(right, old, new, check))
    with pytest.raises(InputError) as caught:
        SampleStore.open(folder)
    assert words in str(caught.value)


def test_entries_know_where_blocks_begin() -> None:
    blocks = np.array([(*Block(0, 0, i, 9), rows) for i, rows in enumerate((4, 9, 1))])
    assert Entry(3, 0, "", blocks).starts.tolist() == [0, 4, 13, 14] and Entry(3, 0, "", blocks).name == "000003.npy"
