"""All that is done to a disk, in one place, so that tests can record it or make it fail.

What a power cut leaves of these operations:

    write, create, rename, remove    perhaps nothing, perhaps a part, in any order
    after fsync(file)                what had been written to the file, but not its name
    after sync_folder(folder)        the names in the folder

So a file gets its name in this order: create under another name → write → fsync → rename → sync the folder. An fsync that failed must not be tried again: the system may have dropped the data and would report success. Its
bytes stay unknown until they are written anew, to another file.

One writer at a time is held to by a lock that the system takes back when its process dies, however it dies: a POSIX record
lock on a file of the folder. A lock that only exists as a file would outlive a killed writer, and the number written in it may
by then belong to another process; this one cannot be stale. The file names the writer, for the message of whoever comes second.
Record locks do not work between the threads of a process nor pass to its children, so a table of our own covers the first, and
the children have to open the store themselves.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import platform
import secrets
import stat
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from saddleback.errors import InputError, StorageError

PARTIAL = ".partial"
"""How the name of a file ends until all of it is on the disk."""

Mapped = bytes | mmap.mmap


class Disk:
    """The operations as the system has them; every failure is an OSError."""

    def make_folder(self, path: Path) -> None:
        """A new folder."""
        os.mkdir(path)

    def create(self, path: Path) -> int:
        """A new file, open for writing."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def open_append(self, path: Path) -> int:
        """A file that is there, open for writing at its end."""
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def write(self, file: int, data: bytes) -> None:
        """All of the bytes."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]

    def fsync(self, file: int) -> None:
        """Make what was written survive a power cut."""
        os.fsync(file)

    def close(self, file: int) -> None:
        """Close an open file."""
        os.close(file)

    def rename(self, path: Path, new: Path) -> None:
        """Give a file another name, in place of the file that had it."""
        os.replace(path, new)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        os.remove(path)

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder survive a power cut."""
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def names(self, path: Path) -> list[str]:
        """What a folder holds."""
        return sorted(os.listdir(path))

    def map(self, path: Path) -> Mapped:
        """A file's bytes, which are read when they are looked at."""
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # opening a pipe would wait for its writer
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is not a plain file", str(path))
            return b"" if status.st_size == 0 else mmap.mmap(file, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(file)


def write_whole(disk: Disk, path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file so that it is there whole or not at all, and there to stay when this returns.

    What a failure leaves under the other name is swept up by whoever owns the folder.
    """
    with _named_when_whole(disk, path.with_name(path.name + PARTIAL), path) as file:
        for piece in pieces:
            disk.write(file, piece)


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which appears under its name once all of it is on the disk; a failure leaves nothing."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        with _named_when_whole(Disk(), partial, path) as file, os.fdopen(file, "wb", closefd=False) as stream:
            yield stream
    except OSError as error:
        raise StorageError(f"`{path}` could not be written: {error}; check the folder and the disk.") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


@contextmanager
def _named_when_whole(disk: Disk, partial: Path, path: Path) -> Iterator[int]:
    """A new file under the name ``partial``, open for writing, which is called ``path`` once it is on the disk."""
    file = disk.create(partial)
    try:
        yield file
        if os.fstat(file).st_size:  # of nothing there is nothing to lose
            disk.fsync(file)
    finally:
        disk.close(file)
    disk.rename(partial, path)
    disk.sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in a folder survive a power cut."""
    Disk().sync_folder(path)


@contextmanager
def disk_faults_named(path: Path, remedy: str) -> Iterator[None]:
    """Turn a fault of the disk into a :class:`StorageError` that says what to do."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"`{path}` could not be read or written: {error}; {remedy}.") from error


LOCK = "lock"
"""The file that is locked."""

_mine: set[tuple[int, int, int]] = set()
_guard = threading.Lock()


class Lock:
    """Held from its creation until :meth:`release`."""

    def __init__(self, path: Path):
        self._pid = os.getpid()
        with _guard:
            # A link is not followed: what it points to would be overwritten. Closing a second descriptor of the file would give the lock away: look before opening.
            if path.exists() and self._key(os.stat(path)) in _mine:
                raise _taken(path, "this process has it open already")
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(self._file, 0)
                os.pwrite(self._file, f"process {self._pid} on {platform.node()}".encode(), 0)
            except OSError as error:
                writer = os.pread(self._file, 200, 0).decode(errors="replace")
                os.close(self._file)
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise _taken(path, f"{writer or 'another process'} is writing to it") from None
                raise
            self._held = self._key(os.fstat(self._file))
            _mine.add(self._held)

    def release(self) -> None:
        """Let the next one in; in a child of the process, nothing."""
        with _guard:
            if self._pid == os.getpid() and self._held in _mine:
                _mine.remove(self._held)
                os.close(self._file)

    def _key(self, status: os.stat_result) -> tuple[int, int, int]:
        return self._pid, status.st_dev, status.st_ino


def _taken(path: Path, writer: str) -> InputError:
    remedy = "wait until it is done, or open the store with writable=False"
    return InputError(str(path.parent), "must have one writer at a time", writer, remedy)
