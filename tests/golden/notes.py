"""What was asked of a simulator and what it answered, as hashes that do not depend on who was quicker.

Every sample belongs to a *key*: (seed, stream, group, number), the name of its random stream. For each key two digests are
kept, of the question (the pair, how many samples) and of the answer. The whole is hashed in the order of the keys. The
*draws* are the same in the order of time: one line for each stretch of samples with the same seed and stream, so that two
records show which decision was the first to differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

SHORT = 12
"""Hexadecimal digits of a hash that is there for people to look at."""


class Key(NamedTuple):
    """The name of a random stream; ``group`` is a pair's number, or that of a group of rollouts."""

    seed: int
    stream: int
    group: int
    number: int


def array_bytes(array: Any) -> bytes:
    """Kind, shape and content of an array, byte for byte, but for the sign of zero and the width of whole numbers."""
    x = np.asarray(array)
    if x.dtype.kind in "iub":
        x = x.astype("<i8")
    elif x.dtype.kind == "f":
        x = x.astype("<f8") + 0.0  # −0.0 + 0.0 is 0.0
    else:
        raise TypeError(f"arrays of {x.dtype} have no agreed bytes")
    return f"{x.dtype.str}{x.shape}".encode() + np.ascontiguousarray(x).tobytes()


def digest_of(arrays: Iterable[Any]) -> bytes:
    """SHA-256 of arrays one after the other."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(b"none" if array is None else array_bytes(array))
    return digest.digest()


class _Entry(NamedTuple):
    key: Key
    size: int
    asked: bytes
    answered: bytes


@dataclass
class Notebook:
    """All samples of one case."""

    _entries: list[_Entry] = field(default_factory=list)

    def note(self, key: Key, size: int, asked: Iterable[Any], answered: Iterable[Any]) -> None:
        """Enter ``size`` samples of one key; a key may come again, as the steps of rollouts do."""
        self._entries.append(_Entry(Key(*map(int, key)), int(size), digest_of(asked), digest_of(answered)))

    @property
    def num_samples(self) -> int:
        """How many were entered."""
        return sum(entry.size for entry in self._entries)

    def samples(self) -> str:
        """SHA-256 of all questions and answers in the order of the keys."""
        return _hash(self._entries, with_answers=True)

    def counts(self) -> dict[str, Any]:
        """Numbers of samples: by stream, and by (seed, stream, pair) as a hash."""
        by_pair: dict[tuple[int, int, int], int] = {}
        by_stream: dict[str, int] = {}
        for key, size, _, _ in self._entries:
            by_pair[key[:3]] = by_pair.get(key[:3], 0) + size
            by_stream[str(key.stream)] = by_stream.get(str(key.stream), 0) + size
        digest = hashlib.sha256(repr(sorted(by_pair.items())).encode())
        return {"by_pair": digest.hexdigest(), "by_stream": dict(sorted(by_stream.items()))}

    def draws(self) -> list[str]:
        """One line for each stretch of the same seed and stream, in the order of time."""
        lines, stretch = [], list[_Entry]()
        for entry in self._entries:
            if stretch and stretch[-1].key[:2] != entry.key[:2]:
                lines.append(_line(stretch))
                stretch = []
            stretch.append(entry)
        return [*lines, _line(stretch)] if stretch else lines


def _line(stretch: list[_Entry]) -> str:
    seed, stream, _, _ = stretch[0].key
    asked, all_of_it = _hash(stretch, with_answers=False)[:SHORT], _hash(stretch, with_answers=True)[:SHORT]
    samples = sum(entry.size for entry in stretch)
    return f"seed {seed} stream {stream}: {len(stretch)} draws, {samples} samples, asked {asked}, drawn {all_of_it}"


def _hash(entries: list[_Entry], *, with_answers: bool) -> str:
    digest = hashlib.sha256()
    for key, size, asked, answered in sorted(entries, key=lambda entry: entry.key):  # stable: steps stay in order
        digest.update(repr((tuple(key), size)).encode() + asked)
        if with_answers:
            digest.update(answered)
    return digest.hexdigest()
