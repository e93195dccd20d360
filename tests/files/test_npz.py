"""The strict reader: what a hostile or damaged archive may do is be refused, by name."""

from __future__ import annotations

import errno
import io
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from saddleback.errors import InputError, StorageError
from saddleback.files.npz import ArraySpec, read_arrays, write_arrays

SPECS = {
    "x": ArraySpec("real", (1, 2)),
    "i": ArraySpec("integer", (1,), required=False),
    "t": ArraySpec("text", (1,), required=False),
}


def npy(x: np.ndarray, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, x, allow_pickle=allow_pickle)
    return stream.getvalue()


def header(text: str, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """An array file with any header whatever."""
    text = text.ljust(118) + "\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H", len(text)) + text.encode("latin1") + data


def archive(path: Path, members: list[tuple[str, bytes]], **more: int) -> Path:
    with zipfile.ZipFile(path, "w", **more) as file:
        for name, content in members:
            file.writestr(zipfile.ZipInfo(name), content, compress_type=more.get("compression"))
    return path


def refused(path: Path, *words: str, budget: int = 10**6) -> None:
    with pytest.raises(InputError) as caught:
        read_arrays(path, SPECS, budget)
    message = str(caught.value)
    assert path.name in message and "; " in message
    for word in words:
        assert word in message


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    x = np.array([[0.1, -0.0], [5e-324, 1e308]])
    write_arrays(path, {"x": x, "i": np.array([2**62], dtype=np.uint64), "t": np.array(["λ ≥ 0"])})
    got = read_arrays(path, SPECS)
    assert got["x"].tobytes() == x.tobytes()
    assert got["i"].dtype == np.int64 and got["i"][0] == 2**62
    assert got["t"].tolist() == ["λ ≥ 0"]
    first = path.read_bytes()
    write_arrays(path, {"x": x, "i": np.array([2**62], dtype=np.uint64), "t": np.array(["λ ≥ 0"])})
    assert path.read_bytes() == first
    assert os.listdir(tmp_path) == ["a.npz"]
    np.testing.assert_array_equal(np.load(path, allow_pickle=False)["x"], x)


def test_what_numpy_writes_is_read(tmp_path: Path) -> None:
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", x=fortran.astype(">f8"), i=np.arange(3, dtype=np.int8))
        got = read_arrays(tmp_path / "a.npz", SPECS)
        assert got["x"].dtype == np.float64
        np.testing.assert_array_equal(got["x"], fortran)
    np.savez(tmp_path / "a.npz", x=np.array([True, False]))
    assert read_arrays(tmp_path / "a.npz", SPECS)["x"].tolist() == [1.0, 0.0]


def test_no_file_and_no_archive(tmp_path: Path) -> None:
    refused(tmp_path / "missing.npz", "must be an existing .npz file", "no such file")
    refused(tmp_path, "a directory")
    text = tmp_path / "text.npz"
    text.write_text("hello")
    refused(text, "must be a readable .npz archive")
    text.write_bytes(b"")
    refused(text, "must be a readable .npz archive")


@pytest.mark.parametrize(
    ("name", "x", "words"),
    [
        ("x", np.ones(2, dtype=np.float32), ["x", "must be float64 or integers", "float32"]),
        ("x", np.ones(2, dtype=np.float16), ["float16"]),
        ("x", np.ones(2, dtype=complex), ["complex128"]),
        ("x", np.ones((2, 2, 2)), ["1 or 2 dimensions", "shape (2, 2, 2)"]),
        ("x", np.array([[0.0, 1], [2, np.nan]]), ["x[1, 1]", "must be finite", "nan"]),
        ("x", np.array([np.inf]), ["x[0]", "inf"]),
        ("i", np.ones(2), ["i", "must be integers", "float64"]),
        ("i", np.array([1, 2**63], dtype=np.uint64), ["i[1]", "must fit in int64", str(2**63)]),
        ("t", np.array([b"bytes"]), ["t", "must be text"]),
        ("t", np.array(["fine", "bell\a"]), ["t[1]", "must be printable"]),
        ("t", np.array(["\ud800"]), ["t[0]", "must be printable"]),
        ("t", np.array(["a", ""]), ["t[1]", "must be printable"]),
        ("x", np.zeros(2, dtype=[("a", "f8")]), ["must be float64 or integers"]),
    ],
)
def test_arrays_of_the_wrong_kind(tmp_path: Path, name: str, x: np.ndarray, words: list[str]) -> None:
    members = {"x": np.ones(1), name: x}
    refused(archive(tmp_path / "a.npz", [(f"{k}.npy", npy(v)) for k, v in members.items()]), *words)


class Bomb:
    """Unpickling one of these would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path, str]]:
        return Path.write_text, (self.path, "exploded")


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    content = npy(np.array([Bomb(tmp_path / "crater")], dtype=object), allow_pickle=True)
    refused(archive(tmp_path / "a.npz", [("x.npy", content)]), "x", "Python objects", "object")
    inside = npy(np.array([(Bomb(tmp_path / "crater"),)], dtype=[("a", object)]), allow_pickle=True)
    refused(archive(tmp_path / "a.npz", [("x.npy", inside)]), "Python objects")
    assert not (tmp_path / "crater").exists()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_are_known_and_appear_once(tmp_path: Path) -> None:
    good = npy(np.ones(2))
    refused(archive(tmp_path / "a.npz", [("x.npy", good), ("x.npy", good)]), "x", "must appear once")
    refused(archive(tmp_path / "a.npz", [("x.npy", good), ("y.npy", good)]), "'y.npy'", "known array", "x, i, t")
    refused(archive(tmp_path / "a.npz", [("x.npy", good), ("../../x.npy", good)]), "'../../x.npy'")
    refused(archive(tmp_path / "a.npz", [("x.npy", good), ("i", good)]), "'i'")
    refused(archive(tmp_path / "a.npz", [("i.npy", npy(np.arange(2)))]), "x", "must be given")
    refused(archive(tmp_path / "a.npz", []), "x", "must be given")


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 2, }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2L,), }",
        "{'descr': '<f8', 'fortran_order': False}",
        "{'descr': 'nonsense', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': ('<f8', (2**9,)), 'fortran_order': False, 'shape': (2,), }",
        "{'descr': [('a',)], 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000000,), }",
        "__import__('os').system('true')",
        "(" * 100,
    ],
)
def test_headers_that_lie(tmp_path: Path, text: str) -> None:
    refused(archive(tmp_path / "a.npz", [("x.npy", header(text, bytes(16)))]), "x")


def test_text_of_no_width_is_refused(tmp_path: Path) -> None:
    """It would fill no bytes and yet a trillion strings."""
    empty = header("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }")
    refused(archive(tmp_path / "a.npz", [("x.npy", npy(np.ones(1))), ("t.npy", empty)]), "t", "must be text")


def test_text_outside_unicode_is_refused(tmp_path: Path) -> None:
    wild = header("{'descr': '<U1', 'fortran_order': False, 'shape': (1,), }", b"\xff\xff\xff\x7f")
    refused(archive(tmp_path / "a.npz", [("x.npy", npy(np.ones(1))), ("t.npy", wild)]), "t", "must be a readable array")


def test_other_versions_and_compressions_are_refused(tmp_path: Path) -> None:
    right = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }"
    refused(archive(tmp_path / "a.npz", [("x.npy", header(right, bytes(16), (9, 9)))]), "version 1.0 or 2.0", "(9, 9)")
    refused(archive(tmp_path / "a.npz", [("x.npy", npy(np.ones(2)))], compression=zipfile.ZIP_BZIP2), "deflated")


def test_a_budget_is_kept_before_anything_is_read(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", [("x.npy", npy(np.zeros(10**6)))], compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**5
    refused(path, "at most 1,000,000 bytes", "8,000,128")
    assert len(read_arrays(path, SPECS, 10**7)["x"]) == 10**6


def test_truncated_anywhere_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", [("x.npy", npy(np.arange(8.0))), ("t.npy", npy(np.array(["name"])))])
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        refused(path)


def test_damaged_anywhere_is_refused_or_read_the_same(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", [("x.npy", npy(np.arange(8.0))), ("t.npy", npy(np.array(["name"])))])
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    read = 0
    for _ in range(600):
        mutant = bytearray(whole)
        mutant[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(mutant))
        try:
            got = read_arrays(path, SPECS, 10**6)
        except InputError:
            continue
        read += 1  # a flip in a date or a comment field
        np.testing.assert_array_equal(got["x"], np.arange(8.0))
        assert "t" not in got or got["t"].tolist() == ["name"]
    assert read < 600 / 3


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, {"x": np.ones(3)})
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match=r"a\.npz` could not be written.*No space"):
            write_arrays(path, {"x": np.zeros(3)})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npz"]
    with pytest.raises(StorageError, match="could not be written"):
        write_arrays(tmp_path / "nowhere" / "a.npz", {"x": np.ones(3)})


def test_a_disk_that_fails_is_not_the_files_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, {"x": np.ones(3)})

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(zipfile, "ZipFile", broken)
    with pytest.raises(StorageError, match="could not be read"):
        read_arrays(path, SPECS)


def test_a_small_file_of_large_arrays_is_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten megabytes of zeros in ten kilobytes, where there is room for five."""
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(1_250_000))
    monkeypatch.setenv("SADDLEBACK_MEMORY", "5MB")
    with pytest.raises(InputError, match="`memory` must hold the arrays"):
        read_arrays(tmp_path / "x.npz", {"x": ArraySpec("real", (1,))})
    monkeypatch.setenv("SADDLEBACK_MEMORY", "50MB")
    assert len(read_arrays(tmp_path / "x.npz", {"x": ArraySpec("real", (1,))})["x"]) == 1_250_000
