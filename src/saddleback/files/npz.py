"""Arrays in ``.npz`` files from strangers: nothing is unpickled, and nothing is allocated before its size is known.

A file is read in this order, and refused at the first fault:

    sizes declared by the zip (their sum against a budget) → member names (known ones, each once) → headers (dtype and
    number of dimensions as specified, shape × itemsize equal to the member's size) → the arrays themselves

What the values mean is checked by the caller. A file is written whole or not at all
(:func:`saddleback.files.disk.written_whole`); the same arrays always give the same bytes.
"""

from __future__ import annotations

import errno
import math
import os
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError, SaddlebackError, StorageError
from saddleback.files.disk import written_whole
from saddleback.files.json_file import plain, short
from saddleback.files.memory import require_room

BUDGET = 8 * 10**9
"""Bytes of arrays that a file may hold unless the caller says otherwise."""

_PIECE = 1 << 20
_AGAIN = "write it again with numpy.savez"
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what numpy.savez and savez_compressed write


@dataclass(frozen=True)
class ArraySpec:
    """What a member may be: "real" (float64 or integers), "integer" or "text", with one of these dimension counts."""

    kind: Literal["real", "integer", "text"]
    ndims: tuple[int, ...]
    required: bool = True


def read_arrays(path: str | os.PathLike[str], specs: Mapping[str, ArraySpec], budget: int = BUDGET) -> dict[str, Any]:
    """The arrays of the file by name: float64, int64 or text, finite, with the number of dimensions asked for."""
    path = Path(path)
    try:
        found = None if path.is_file() else "a directory" if path.is_dir() else "no such file"
    except OSError as error:  # a name too long, a folder that may not be looked into
        found = error.strerror or str(error)
    if found is not None:
        raise InputError(str(path), "must be an existing .npz file", found, "check the path")
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(path, archive, specs, budget)
            return {name: _Member(path, name, specs[name]).read(archive, info) for name, info in members.items()}
    except SaddlebackError:
        raise
    except MemoryError:
        raise InputError(str(path), "must fit in memory", "a failed allocation", "give P as CSR parts") from None
    except Exception as error:  # a malformed zip can raise nearly anything
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise StorageError(f"`{path}` could not be read: {error}; check the disk and the permissions.") from error
        raise InputError(str(path), "must be a readable .npz archive", _said(error), _AGAIN) from None


def _members(
    path: Path, archive: zipfile.ZipFile, specs: Mapping[str, ArraySpec], budget: int
) -> dict[str, zipfile.ZipInfo]:
    """The zip's members by array name; nothing is read."""
    total = sum(info.file_size for info in archive.infolist())
    if total > budget:
        rule = f"must hold at most {budget:,} bytes of arrays"
        raise InputError(str(path), rule, f"{total:,}", "give P as CSR parts")
    require_room(total, f"the arrays of {path}", "give P as CSR parts")
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name not in specs or not info.filename.endswith(".npy"):
            known = ", ".join(specs)
            raise InputError(
                f"{path}: {short(info.filename)}", "must be a known array", "an unknown name", f"use {known}"
            )
        if name in members:
            raise InputError(f"{path}: {name}", "must appear once", "two members of that name", _AGAIN)
        if info.compress_type not in _COMPRESSIONS:
            rule = "must be stored or deflated"
            raise InputError(f"{path}: {name}", rule, f"zip compression {info.compress_type}", _AGAIN)
        members[name] = info
    for name, spec in specs.items():
        if spec.required and name not in members:
            raise InputError(f"{path}: {name}", "must be given", "no such array", f"add `{name}` to the file")
    return members


@dataclass(frozen=True)
class _Member:
    """One array of the file, and how to name it in an error."""

    path: Path
    name: str
    spec: ArraySpec

    def refuse(self, rule: str, value: Any, remedy: str, index: tuple[int, ...] = ()) -> NoReturn:
        at = str(list(index)) if index else ""
        raise InputError(f"{self.path}: {self.name}{at}", rule, value, remedy)

    def read(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
        try:
            # As errors: numpy warns about headers of Python 2.
            with warnings.catch_warnings(action="error"), archive.open(info) as stream:
                shape, fortran, dtype = self._header(stream, info.file_size)
                x = np.empty(math.prod(shape), dtype)
                self._fill(x, stream)
            return self._converted(x.reshape(shape[::-1]).T if fortran else x.reshape(shape))
        except (SaddlebackError, MemoryError, OSError):
            raise
        except Exception as error:  # so can a malformed header
            self.refuse("must be a readable array", _said(error), _AGAIN)

    def _fill(self, x: NDArray[Any], stream: IO[bytes]) -> None:
        """Read all there is into ``x``; at the end of a member its checksum is compared."""
        rest = memoryview(x.view(np.uint8)) if x.size else memoryview(b"")  # type: ignore[arg-type]
        while rest:
            piece = stream.read(min(len(rest), _PIECE))
            if not piece:
                self.refuse("must hold all bytes of its shape", f"{len(rest):,} too few", _AGAIN)
            rest[: len(piece)] = piece
            rest = rest[len(piece) :]
        if stream.read(1):
            self.refuse("must hold the bytes of its shape", "more of them", _AGAIN)

    def _header(self, stream: IO[bytes], file_size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        """Shape, whether the first axis runs fastest, and type, once they are known to be what the array should have."""
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
        else:
            self.refuse("must be an array file of version 1.0 or 2.0", version, _AGAIN)
        if dtype.hasobject:
            rule = "must not hold Python objects, which would have to be unpickled"
            self.refuse(rule, f"dtype {dtype}", "store plain numbers or text")
        kind, itemsize = dtype.kind, dtype.itemsize
        if self.spec.kind == "text" and (kind != "U" or itemsize == 0):
            self.refuse("must be text (numpy unicode)", f"dtype {dtype}", "write it as numpy.array([...], dtype=str)")
        if self.spec.kind == "integer" and kind not in "iu":
            self.refuse("must be integers", f"dtype {dtype}", "convert it with .astype(numpy.int64)")
        if self.spec.kind == "real" and kind not in "iub" and not (kind == "f" and itemsize == 8):
            remedy = "convert it with .astype(numpy.float64) where it is made"
            self.refuse("must be float64 or integers", f"dtype {dtype}", remedy)
        if len(shape) not in self.spec.ndims or min(shape, default=0) < 0:
            dimensions = " or ".join(map(str, self.spec.ndims))
            self.refuse(f"must have {dimensions} dimensions", f"shape {shape}", "reshape it")
        size, declared = file_size - stream.tell(), math.prod(shape) * itemsize
        if size != declared:
            self.refuse(f"must hold the {declared:,} bytes of its shape {shape}", f"{size:,} bytes", _AGAIN)
        return shape, fortran, dtype

    def _converted(self, x: NDArray[Any]) -> NDArray[Any]:
        if self.spec.kind == "text":
            for i, text in enumerate(x.tolist()):
                if not text or not text.isprintable():
                    self.refuse("must be printable text", short(text), "rename it", (i,))
            return x
        if self.spec.kind == "integer":
            top = np.iinfo(np.int64).max
            for i in np.flatnonzero(x > top)[:1]:
                self.refuse("must fit in int64", x[i], "write the index again", (int(i),))
            return x.astype(np.int64)
        x = x.astype(np.float64, copy=False)
        for at in np.argwhere(~np.isfinite(x))[:1]:
            index = tuple(map(int, at))
            self.refuse("must be finite", x[index], "remove NaN and infinities", index)
        return x


def _said(error: Exception) -> str:
    """What an error says, which may quote the file."""
    return plain(str(error) or repr(error), 300)


def write_arrays(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays to ``path`` as ``.npz``: the whole file or none of it."""
    with written_whole(Path(path)) as file:
        archive: zipfile.ZipFile | None = None
        try:
            archive = zipfile.ZipFile(file, "w")
            for name, x in arrays.items():
                member = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so equal arrays give equal files
                with archive.open(member, "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, np.asarray(x, order="C"), allow_pickle=False)
            archive.close()
        except BaseException:
            # An interrupt may have left a member open, and the archive would complain of that instead.
            if archive is not None:
                archive.fp = None
            raise
