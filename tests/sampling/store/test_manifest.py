"""Lines of the manifest: what was written is read, and nothing else is."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.sampling.store.manifest import (
    LIMITS,
    MOST_SAMPLES,
    Entry,
    _torn,
    from_line,
    read_manifest,
    seal_of,
    to_line,
)

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
        (line * 2 + line[:20], 2, [], True),
        (line + bad, 1, [2], False),
        (bad, 0, [1], False),
        (bad + line, 1, [1], False),
        (line + bad + line + line[:-1], 2, [2], True),
        (line + bytes(600), 1, [], True),
        (line + b"x" * (2 << 20), 1, [2], False),
        (line + line[:-1] + b"\x0b", 1, [2], False),  # the end alone is another
        (line + line[:60] + b"\0" + line[61:], 1, [2], False),  # no sector is one byte
    ]:
        got = read_manifest(data)
        assert (len(got.entries), got.damaged, got.torn) == (entries, damaged, torn), data[:80]


def test_one_flipped_bit_in_the_last_line_is_damage() -> None:
    """All of the 8 · 280 flips, where it was never known how many lines there are."""
    line = to_line(ENTRY)
    for at in range(len(line)):
        for bit in range(8):
            changed = bytearray(line * 2)
            changed[len(line) + at] ^= 1 << bit
            got = read_manifest(bytes(changed))
            assert (len(got.entries), got.torn) == (1, False) and got.damaged[0] == 2, (at, bit)


@pytest.mark.parametrize("before", [0, 3, 511, 512, 700])
def test_what_a_cut_can_leave_of_the_last_line_is_torn(before: int) -> None:
    """Any beginning of it, and any of its sectors of 512 bytes as zeros."""
    entry = ENTRY._replace(blocks=np.array([(0, 7, i, 4096, 4096) for i in range(90)]))
    line = to_line(entry)
    assert len(line) > 3 * 512
    for cut in range(1, len(line) - 1):
        assert _torn(line[:cut], before), cut
    edges = [0, *range(512 - before % 512, len(line), 512), len(line)]
    for holes in range(1, 1 << (len(edges) - 1)):
        torn = bytearray(line)
        for k, (low, high) in enumerate(pairwise(edges)):
            if holes >> k & 1:
                torn[low:high] = bytes(high - low)
        assert _torn(bytes(torn), before), holes


def test_lines_that_were_sealed_are_never_torn() -> None:
    line = to_line(ENTRY)
    sealed = seal_of(line * 3)
    assert sealed == (seal_of(line * 5, 3)) and sealed.lines == 3
    for cut in (line * 2 + line[:-1], line * 2 + line[:20], line * 2 + bytes(50)):
        got = read_manifest(cut, sealed)
        assert (len(got.entries), got.damaged, got.torn) == (2, [3], False)
    assert read_manifest(line * 3 + line[:20], sealed).torn
