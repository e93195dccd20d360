"""Changes of array headers and of the archive around them; the arrays themselves are good."""

from __future__ import annotations

import numpy as np

from fuzz.archives import DEFLATED, STORED, ArrayFile, Member, array_file, fields_of, pack
from fuzz.array_changes import Arrays

Random = np.random.Generator

SHAPES = (
    "(10**9,)", "(1000000000,)", "(100000, 100000)", "(9223372036854775807,)", "(4294967296, 4294967296)", "(-1,)",
    "(2, -3)", "(0,)", "()", "(True,)", "(1.0,)", "('a',)", "[2]", "2", "None", "(0, 4611686018427387904)",
    "(0, 100000000000000000000000)", "(1, 1, 1, 1)", "(2,) * 9", "__import__('os')",
)  # fmt: skip
DTYPES = (
    "|O", "<f8", "<f4", "|V8", "|V0", "<U0", "|S0", "<U1000000000", "<i8", "<f16", "<c16", "O", "f8,O", "<m8", "xyz", "",
    "<f8\n", "(2,)<f8", "<u8", "|b1", ">f8", "|i1", "<U3",
)  # fmt: skip
DEEP = (
    "-" * 5000 + "1", "(" * 150 + ")" * 150, "(" * 900 + ")" * 900, "[" * 5000, "1+" * 3000 + "1", "not " * 2000 + "1",
    "{" * 190, "f(" * 100, "'\\d'", "b'\\x'", "{1: 2}", "()", "9" * 5000,
)  # fmt: skip
NAMES = (
    "../../{}", "{}", "/{}", "{}.npy", "{}.npy.npy", "x/{}.npy", "{}.NPY", "\0{}.npy", "{}\n.npy", "\x1b[31m{}.npy", "é.npy",
    "", ".npy", "C:\\{}.npy", "\ud800{}.npy",
)  # fmt: skip


def whole(arrays: Arrays, rng: Random, benign: bool = False) -> list[Member]:
    """The members of a sound archive; a benign one may differ from ours in all that does not matter."""
    out = []
    for name, x in arrays.items():
        file = array_file(x)
        if benign and rng.random() < 0.5:
            kind = x.dtype.kind
            x = x.astype(x.dtype.newbyteorder(">")) if kind in "fi" and rng.random() < 0.5 else x
            file = array_file(x, fortran=bool(rng.random() < 0.5))
        out.append(Member(f"{name}.npy", file.to_bytes(), DEFLATED if benign and rng.random() < 0.5 else STORED))
    return [out[i] for i in rng.permutation(len(out))] if benign else out


def header(arrays: Arrays, rng: Random) -> bytes:
    """The header of one array says something else."""
    members = whole(arrays, rng)
    at = int(rng.integers(len(members)))
    x = list(arrays.values())[at]
    file = array_file(x)
    descr, order, shape = x.dtype.str, "False", str(x.shape)
    match int(rng.integers(8)):
        case 0 | 1:
            text = fields_of(descr, order, rng.choice(SHAPES))
        case 2:
            text = fields_of(str(rng.choice(DTYPES)), order, shape)
        case 3:
            text = fields_of(descr, rng.choice(["True", "1", "None", "'C'"]), shape)
        case 4:
            text = fields_of(descr, order, rng.choice(DEEP))
        case 5:
            entry = rng.choice(["'more': 1", "'descr': '|O'", "'shape': (1,)", "0: 0"])
            text = fields_of(descr, order, shape)[:-1] + f"{entry}}}"
        case 6:
            text = str(rng.choice(["", "{}", "[]", "None", "{'descr'}", "0x", "\\", *DEEP]))
        case _:
            reversed_shape = str(tuple(reversed(x.shape)))
            text = fields_of(descr, order, str((x.size,)) if rng.random() < 0.5 else reversed_shape)
    version = (1, 0) if rng.random() < 0.85 else tuple(rng.choice([(2, 0), (3, 0), (0, 0), (9, 9), (1, 1)]).tolist())
    data = file.data if rng.random() < 0.8 else file.data[: int(rng.integers(len(file.data) + 1))]
    members[at] = members[at].but(data=ArrayFile(text, data, version).to_bytes())
    return pack(members)


def claims(arrays: Arrays, rng: Random) -> bytes:
    """A header and an archive that agree on a size that is not there: an array of gigabytes in a few bytes."""
    members = whole(arrays, rng)
    at = int(rng.integers(len(members)))
    x = list(arrays.values())[at]
    n = int(rng.choice([10**5, 10**7, 10**8, 9 * 10**8, 10**10, 10**17]))
    shape = (n, *([1] * (x.ndim - 1))) if x.ndim else (n,)
    data = ArrayFile(fields_of(x.dtype.str, "False", shape), bytes(int(rng.choice([0, 8, 800])))).to_bytes()
    start = data.index(b"\n") + 1
    lies = {"size": start + n * x.dtype.itemsize}
    if rng.random() < 0.3:
        lies["packed"] = lies["size"]
    members[at] = members[at].but(data=data, lies=lies, method=int(rng.choice([STORED, DEFLATED])))
    return pack(members)


def bomb(arrays: Arrays, rng: Random) -> bytes:
    """Megabytes of zeros that take a few kilobytes, declared truly or not."""
    members = whole(arrays, rng)
    at = int(rng.integers(len(members)))
    x = list(arrays.values())[at]
    n = int(rng.choice([10**4, 10**5, 10**6]))
    shape = (n, *([1] * (x.ndim - 1))) if x.ndim else (n,)
    data = ArrayFile(fields_of(x.dtype.str, "False", shape), bytes(n * x.dtype.itemsize)).to_bytes()
    lies = {"size": len(members[at].data)} if rng.random() < 0.4 else {}
    members[at] = members[at].but(data=data, lies=lies, method=DEFLATED)
    return pack(members)


def member(arrays: Arrays, rng: Random) -> bytes:
    """Members that are missing, doubled, renamed, exchanged, or whose entry in the directory is wrong."""
    members = whole(arrays, rng, benign=True)
    at, other = int(rng.integers(len(members))), int(rng.integers(len(members)))
    one = members[at]
    match int(rng.integers(9)):
        case 0:
            members.insert(other, one)
        case 1:
            members.insert(other, one.but(data=members[other].data))
        case 2:
            members[at] = one.but(name=str(rng.choice(NAMES)).format(one.name.removesuffix(".npy")))
        case 3:
            members[at] = one.but(local_name=members[other].name)
        case 4:
            members[at], members[other] = one.but(name=members[other].name), members[other].but(name=one.name)
        case 5:
            what = str(rng.choice(["crc", "size", "packed", "offset", "method"]))
            truth = {"crc": 0, "size": len(one.data), "packed": len(one.data), "offset": 0, "method": 0}[what]
            lie = int(rng.choice([0, 1, truth + 1, max(0, truth - 1), 2**16 - 1, 12, 14, 99, 2**31]))
            members[at] = one.but(lies={what: lie & (0xFFFF if what == "method" else 0xFFFFFFFF)})
        case 6:
            members[at] = one.but(flags=int(rng.choice([0x1, 0x41, 0x8, 0x20, 0x2000, 0xFFFF, 0x800])))
        case 7:
            members[at] = one.but(data=one.data + bytes(int(rng.integers(1, 9))))
        case 8:
            del members[at]
    return pack(members, count=None if rng.random() < 0.9 else int(rng.choice([0, 1, 99, 65535])))


def harmless(arrays: Arrays, rng: Random) -> bytes:
    """Another order of members and bytes, compression, a comment, something before the archive: the same arrays."""
    return pack(whole(arrays, rng, benign=True), rng.bytes(int(rng.choice([0, 7]))), b"c" * int(rng.choice([0, 9])))


def objects(arrays: Arrays, rng: Random) -> bytes:
    """Python objects in place of numbers: a pickle that raises a SystemExit for whoever loads it."""
    members = whole(arrays, rng)
    at = int(rng.integers(len(members)))
    shape = list(arrays.values())[at].shape
    opcodes = b"cbuiltins\nexec\n(Vraise SystemExit(99)\ntR."
    members[at] = members[at].but(data=ArrayFile(fields_of("|O", "False", shape), opcodes).to_bytes())
    return pack(members)


BY_NAME = {f.__name__: f for f in (header, claims, bomb, member, harmless, objects)}
