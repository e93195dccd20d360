"""Every byte of a folder damaged in turn, and what is made of it: a refusal that names the file, or the same answer.

:func:`damaged` gives changed copies of a file. :func:`spoil` puts one after the other in the place of the file and asks a
*reader*, a function that gives the answer that the folder holds, as bytes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from saddleback.errors import SaddlebackError

LARGE = 1 << 12
"""Bytes from which on only some are damaged."""

MOST = 2_000

Reader = Callable[[], bytes]


def damaged(data: bytes, step: int, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """One bit of every ``step``-th byte flipped; at every fifth of these places also cut, doubled and zeroed."""
    places = range(rng.randrange(min(step, max(1, len(data)))), len(data), step)
    if len(data) > LARGE:
        places = sorted(rng.sample(range(len(data)), MOST // step))  # type: ignore[assignment]
    for number, at in enumerate(places):
        yield f"bit of byte {at}", data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        if number % 5 == 0:
            yield f"cut at byte {at}", data[:at]
            yield f"byte {at} twice", data[:at] + data[at : at + 1] + data[at:]
            if data[at]:
                yield f"zero for byte {at}", data[:at] + b"\0" + data[at + 1 :]


def spoil(folder: Path, read: Reader, step: int, seed: int) -> Counter[str]:
    """How often each thing happened; raises where a changed folder gives another answer, or any other error."""
    rng, right, found = random.Random(seed), read(), Counter[str]()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        whole = path.read_bytes()
        for what, content in damaged(whole, step, rng):
            path.write_bytes(content)
            where = f"{path.relative_to(folder)}, {what}"
            answer, said = b"", None
            try:
                answer = read()
            except SaddlebackError as error:
                said = str(error)
            assert said is not None or answer == right, f"{where}: another answer"
            assert said is None or path.name in said, f"{where}: {said}"
            found["the same" if said is None else "refused"] += 1
        path.write_bytes(whole)
    assert read() == right
    return found
