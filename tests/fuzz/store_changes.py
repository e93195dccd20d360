"""Changes of sample stores. *Forged* ones have checks and hashes that fit again: only the contents can give them away."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from fuzz import byte_changes, json_changes
from fuzz.array_changes import EDGES, ODD
from fuzz.folder_changes import Files

Random = np.random.Generator


def _canonical(fields: Any) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def signed_line(fields: dict[str, Any]) -> bytes:
    """A line of the manifest whose check is right."""
    rest = {name: x for name, x in fields.items() if name != "check"}
    return _canonical({**rest, "check": hashlib.sha256(_canonical(rest)).hexdigest()}) + b"\n"


def _lines(files: Files) -> list[bytes]:
    data = files["manifest.jsonl"]
    assert isinstance(data, bytes)
    return data.splitlines(keepends=True)


def _shard(files: Files, rng: Random) -> str:
    return str(rng.choice(sorted(name for name in files if name.endswith(".npy"))))


def torn(files: Files, rng: Random) -> Files:
    """The manifest ends anywhere."""
    data = b"".join(_lines(files))
    return {**files, "manifest.jsonl": data[: int(rng.integers(len(data)))]}


def lines(files: Files, rng: Random) -> Files:
    """Lines missing, twice there, in another order, joined, or with strange ends."""
    x = _lines(files)
    i, j = (int(k) for k in rng.integers(len(x), size=2))
    match int(rng.integers(8)):
        case 0:
            del x[i]
        case 1:
            x.insert(j, x[i])
        case 2:
            x = [x[k] for k in rng.permutation(len(x))]
        case 3:
            x[i] = x[i].rstrip(b"\n")
        case 4:
            x[i] = x[i].rstrip(b"\n") + b"\r\n"
        case 5:
            x.insert(i, b"\n" * int(rng.integers(1, 4)))
        case 6:
            x[i] = x[i][: len(x[i]) // 2]
        case 7:
            x[i] = x[i].replace(b",", b", ")
    return {**files, "manifest.jsonl": b"".join(x)}


def line(files: Files, rng: Random) -> Files:
    """A line whose JSON was changed, its check left as it was."""
    x = _lines(files)
    i = int(rng.integers(len(x)))
    x[i] = json_changes.changed(x[i], rng).replace(b"\n", b"") + b"\n"
    return {**files, "manifest.jsonl": b"".join(x)}


def shard_bytes(files: Files, rng: Random) -> Files:
    """A shard whose bytes were changed."""
    name = _shard(files, rng)
    change = sorted(byte_changes.BY_NAME)[int(rng.integers(len(byte_changes.BY_NAME)))]
    content = files[name]
    assert isinstance(content, bytes)
    return {**files, name: byte_changes.BY_NAME[change](content, rng)}


def header(files: Files, rng: Random) -> Files:
    """``store.json`` changed, its check left as it was."""
    content = files["store.json"]
    assert isinstance(content, bytes)
    return {**files, "store.json": json_changes.changed(content, rng)}


def forged_header(files: Files, rng: Random) -> Files:
    """``store.json`` changed, with a check that fits."""
    changed = header(files, rng)
    try:
        fields = json.loads(changed["store.json"])  # type: ignore[arg-type]
        rest = {name: x for name, x in fields.items() if name != "check"}
        check = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
        return {**files, "store.json": json.dumps({**rest, "check": check}).encode()}
    except (ValueError, AttributeError, RecursionError):
        return changed


def forged_line(files: Files, rng: Random) -> Files:
    """A line that says something else, with a check that fits."""
    x = _lines(files)
    i = int(rng.integers(len(x)))
    fields = json.loads(x[i])
    if rng.random() < 0.7:
        row = fields["blocks"][int(rng.integers(len(fields["blocks"])))]
        column = int(rng.integers(5))
        row[column] = int(rng.choice([*EDGES, row[column] + 1, row[column] - 1]))
        if rng.random() < 0.3:
            row[3] = row[4]
    else:
        name = str(rng.choice(["shard", "bytes", "sha256"]))
        fields[name] = [0, -1, 10**6, 10**12, 10**30, "x", None, 1.0, True, "0" * 64][int(rng.integers(10))]
    x[i] = signed_line(fields)
    return {**files, "manifest.jsonl": b"".join(x)}


def forged_shard(files: Files, rng: Random) -> Files:
    """A shard with other rows or another header, its length and hash in the manifest."""
    number = int(rng.integers(len(_lines(files))))
    x = _lines(files)
    fields = json.loads(x[number])
    name = f"{fields['shard']:06d}.npy"
    data = files[name]
    assert isinstance(data, bytes)
    start = data.index(b"\n") + 1
    head, body = data[:start], bytearray(data[start:])
    match int(rng.integers(5)):
        case 0 | 1:
            for _ in range(int(rng.integers(1, 5))):
                at = 8 * int(rng.integers(len(body) // 8))
                odd = (
                    np.float64(rng.choice(ODD)).tobytes()
                    if rng.random() < 0.5
                    else np.int64(rng.choice(EDGES)).tobytes()
                )
                body[at : at + 8] = odd
        case 2:
            head = byte_changes.flip(head, rng)
        case 3:
            old = head[head.index(b"'shape'") : head.index(b"}")]
            shapes = (b"(0,)", b"(-1,)", b"(1, 3)", b"(10000000000,)", b"()", b"(True,)", b"(9,)")
            new = b"'shape': " + shapes[int(rng.integers(len(shapes)))] + b", "
            head = head.replace(old, new.ljust(len(old)))
        case 4:
            body = bytearray(byte_changes.splice(bytes(body), rng))
    content = head + bytes(body)
    fields["bytes"], fields["sha256"] = len(content), hashlib.sha256(content).hexdigest()
    x[number] = signed_line(fields)
    return {**files, name: content, "manifest.jsonl": b"".join(x)}


def forged_counts(files: Files, rng: Random) -> Files:
    """Rows of counts whose sum is right only because the numbers wrap around."""
    number = int(rng.integers(len(_lines(files))))
    x = _lines(files)
    fields = json.loads(x[number])
    name = f"{fields['shard']:06d}.npy"
    data = files[name]
    assert isinstance(data, bytes)
    start, block = data.index(b"\n") + 1, fields["blocks"][0]
    rows = block[4]
    total = sum(b[4] for b in fields["blocks"])
    if b"'count'" not in data[:start] or rows < 4:
        return forged_shard(files, rng)
    width = (len(data) - start) // total
    out = bytearray(data)
    big = [2**62] * 4 + [1] * (rows - 4)
    big[0] += block[3] - (rows - 4)
    states = int(data[data.index(b"'next_state', '") + 17 :][:1])  # bytes
    for i, count in enumerate(big):
        at = start + i * width + states  # the count comes after the bytes of the next state
        out[at : at + 8] = int(count).to_bytes(8, "little", signed=True)
    fields["sha256"] = hashlib.sha256(bytes(out)).hexdigest()
    x[number] = signed_line(fields)
    return {**files, name: bytes(out), "manifest.jsonl": b"".join(x)}


BY_NAME = {
    f.__name__: f
    for f in (torn, lines, line, shard_bytes, header, forged_header, forged_line, forged_shard, forged_counts)
}
