"""Changes of bytes that know nothing of what the bytes mean."""

from __future__ import annotations

import numpy as np

Random = np.random.Generator


def flip(data: bytes, rng: Random) -> bytes:
    """A few bits, or a few bytes replaced."""
    out = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4, 16])) if data else 0):
        at = int(rng.integers(len(out)))
        out[at] = out[at] ^ (1 << int(rng.integers(8))) if rng.random() < 0.7 else int(rng.integers(256))
    return bytes(out)


def truncate(data: bytes, rng: Random) -> bytes:
    """The beginning, the end, or nothing."""
    at = int(rng.integers(len(data) + 1))
    return [data[:at], data[at:], data[: -int(rng.integers(1, 30))], b""][int(rng.choice(4, p=[0.4, 0.2, 0.35, 0.05]))]


def splice(data: bytes, rng: Random) -> bytes:
    """A stretch taken out, doubled, set to zero, or moved."""
    a, b, c = sorted(int(i) for i in rng.integers(0, len(data) + 1, 3))
    return [
        data[:a] + data[b:],
        data[:b] + data[a:],
        data[:a] + bytes(b - a) + data[b:],
        data[:a] + data[b:c] + data[a:b] + data[c:],
    ][int(rng.integers(4))]


def extend(data: bytes, rng: Random) -> bytes:
    """Bytes before, after, or inside."""
    more = rng.bytes(int(rng.choice([1, 2, 100])))
    at = int(rng.choice([0, len(data), rng.integers(len(data) + 1)]))
    return data[:at] + more + data[at:]


def long_integer(data: bytes, rng: Random) -> bytes:
    """Two or four bytes set to a number at the edge, as in sizes and offsets."""
    out, width = bytearray(data), int(rng.choice([2, 4, 8]))
    if len(out) >= width:
        at = int(rng.integers(len(out) - width + 1))
        value = (
            int(rng.choice([0, 1, 2**15, 2**16 - 1])) if width == 2 else (1 << (8 * width - int(rng.integers(4)))) - 1
        )
        out[at : at + width] = (value & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
    return bytes(out)


BY_NAME = {f.__name__: f for f in (flip, truncate, splice, extend, long_integer)}
