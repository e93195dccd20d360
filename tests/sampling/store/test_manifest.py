"""Lines of the manifest: what was written is read, and nothing else is."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.sampling.store.manifest import LIMITS, MOST_SAMPLES, Entry, from_line, read_manifest, to_line

SHA = "0123456789abcdef" * 4
ENTRY = Entry(3, 12_000, SHA, np.array([[0, 5, 0, 4096, 4096], [1, 7, 2, 100, 60]]))

universal = settings(derandomize=True, deadline=None, max_examples=60)
keys = st.tuples(*(st.integers(0, limit - 1) for limit in LIMITS))
sizes = st.integers(1, MOST_SAMPLES).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n)))


@universal
@given(st.lists(st.tuples(keys, sizes), min_size=1, max_size=6), st.integers(0, 10**12 - 1), st.integers(0, 2**48 - 1))
def test_what_is_written_is_read(blocks: list, shard: int, num_bytes: int) -> None:
    entry = Entry(shard, num_bytes, SHA, np.array([(*key, *size) for key, size in blocks]))
    got = from_line(to_line(entry))
    assert got is not None and got[:3] == entry[:3]
    np.testing.assert_array_equal(got.blocks, entry.blocks)


def test_every_changed_bit_is_seen() -> None:
    line = to_line(ENTRY)
    assert from_line(line) is not None
    for at in range(len(line)):
        for bit in range(8):
            changed = bytearray(line)
            changed[at] ^= 1 << bit
            assert from_line(bytes(changed)) is None
    for length in range(len(line)):
        assert from_line(line[:length]) is None


def signed(**change: object) -> bytes:
    """A line with other contents and the check that goes with them."""
    fields = json.loads(to_line(ENTRY))
    fields.update(change)
    del fields["check"]
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    fields["check"] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize(
    "change",
    [
        {"shard": -1},
        {"shard": True},
        {"shard": "../../x"},
        {"shard": 3.0},
        {"shard": 10**12},
        {"bytes": -1},
        {"bytes": 2**60},
        {"bytes": None},
        {"sha256": SHA[:-1]},
        {"sha256": SHA.upper()},
        {"sha256": 5},
        {"blocks": []},
        {"blocks": [[0, 0, 0, 1]]},
        {"blocks": [0, 0, 0, 1, 1]},
        {"blocks": [[0, 0, 0, 1, 1.0]]},
        {"blocks": [[0, 0, 0, 1, True]]},
        {"blocks": [[0, 0, 0, 1, "1"]]},
        {"blocks": [[0, 0, 0, 1, 10**30]]},
        {"blocks": [[64, 0, 0, 1, 1]]},
        {"blocks": [[0, -1, 0, 1, 1]]},
        {"blocks": [[0, 0, 1 << 24, 1, 1]]},
        {"blocks": [[0, 0, 0, (1 << 26) + 1, 1]]},
        {"blocks": [[0, 0, 0, 0, 0]]},
        {"blocks": [[0, 0, 0, 5, 0]]},
        {"blocks": [[0, 0, 0, 5, 6]]},
        {"blocks": [[0, 0, i, 1, 1] for i in range(8193)]},
        {"more": 1},
    ],
)
def test_contents_that_nobody_writes_are_refused_with_the_right_check(change: dict) -> None:
    assert signed() == to_line(ENTRY)
    assert from_line(signed(**change)) is None


def test_json_that_means_the_same_is_refused() -> None:
    line = to_line(ENTRY)
    for other in (
        b" " + line,
        line.replace(b",", b", "),
        line[:-1],
        line[:-1] + b"\r\n",
        b"[" * 100_000,
        b"null\n",
        b"\n",
    ):
        assert from_line(other) is None
    twice = line.replace(b'"shard":3', b'"shard":3,"shard":3')
    assert from_line(twice) is None


def test_only_the_last_line_may_be_torn() -> None:
    line, bad = to_line(ENTRY), b"?\n"
    for data, entries, damaged, torn in [
        (b"", 0, [], False),
        (line * 3, 3, [], False),
        (line * 2 + line[:-1], 2, [], True),
        (line + bad, 1, [], True),
        (bad, 0, [], True),
        (bad + line, 1, [1], False),
        (line + bad + line + bad, 2, [2], True),
        (line + bytes(600), 1, [], True),
        (line + b"x" * (2 << 20), 1, [], True),
    ]:
        got = read_manifest(data)
        assert (len(got.entries), got.damaged, got.torn) == (entries, damaged, torn)
