"""Archives and array files byte by byte: everything that a proper writer would not let one say can be said here."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

STORED, DEFLATED = 0, 8


@dataclass(frozen=True)
class ArrayFile:
    """A ``.npy`` file in pieces; ``fields`` is the text of its header."""

    fields: str
    data: bytes
    version: tuple[int, int] = (1, 0)

    def to_bytes(self) -> bytes:
        text = self.fields.encode("latin1", "replace")
        size = "<H" if self.version == (1, 0) else "<I"
        start = 8 + struct.calcsize(size)
        text += b" " * (-(start + len(text) + 1) % 64) + b"\n"
        return b"\x93NUMPY" + bytes(self.version) + struct.pack(size, len(text) & 0xFFFF) + text + self.data


def fields_of(dtype: Any, order: Any, shape: Any) -> str:
    """The text of a header; texts are taken as they are."""
    return f"{{'descr': {dtype!r}, 'fortran_order': {order}, 'shape': {shape}, }}"


def array_file(x: np.ndarray, fortran: bool = False) -> ArrayFile:
    x = np.asarray(x)
    return ArrayFile(fields_of(x.dtype.str, fortran, x.shape), x.tobytes("F" if fortran else "C"))


@dataclass(frozen=True)
class Member:
    """One file of an archive, and whatever its headers should say of it in place of the truth."""

    name: str
    data: bytes
    method: int = STORED
    flags: int = 0
    lies: dict[str, int] = field(default_factory=dict)  # of "crc", "size", "packed", "offset", "method"
    local_name: str | None = None

    def but(self, **changes: Any) -> Member:
        return replace(self, **changes)


def pack(members: list[Member], prefix: bytes = b"", comment: bytes = b"", count: int | None = None) -> bytes:
    """The archive. It is right wherever the members do not lie."""
    body, directory = bytearray(prefix), bytearray()
    for member in members:
        deflater = zlib.compressobj(1, zlib.DEFLATED, -15)
        raw = member.data if member.method != DEFLATED else deflater.compress(member.data) + deflater.flush()
        lies, offset = member.lies, len(body)
        crc, size = lies.get("crc", zlib.crc32(member.data)), lies.get("size", len(member.data))
        method, packed = lies.get("method", member.method), lies.get("packed", len(raw))
        name = member.name.encode("utf-8", "surrogatepass")
        flags = member.flags | (0x800 if not member.name.isascii() else 0)
        common = struct.pack("<HHHHIII", flags, method, 0, 33, crc, packed & 0xFFFFFFFF, size & 0xFFFFFFFF)
        local = name if member.local_name is None else member.local_name.encode()
        body += b"PK\3\4" + struct.pack("<H", 20) + common + struct.pack("<HH", len(local), 0) + local + raw
        extra = b""
        if max(packed, size) > 0xFFFFFFFF:  # in an extra field of 64 bits
            common = struct.pack("<HHHHIII", flags, method, 0, 33, crc, 0xFFFFFFFF, 0xFFFFFFFF)
            extra = struct.pack("<HHQQ", 1, 16, size, packed)
        place = lies.get("offset", offset) & 0xFFFFFFFF
        directory += b"PK\1\2" + struct.pack("<HH", 20, 20) + common
        directory += struct.pack("<HHHHHII", len(name), len(extra), 0, 0, 0, 0, place) + name + extra
    n = len(members) if count is None else count
    end = struct.pack("<HHHHIIH", 0, 0, n, n, len(directory), len(body), len(comment))
    return bytes(body + directory + b"PK\5\6" + end + comment)
