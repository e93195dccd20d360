"""All that is done to a disk, in one place, so that tests can record it or make it fail.

What a power cut leaves of these operations:

    write, create, rename, remove    perhaps nothing, perhaps a part, in any order
    after fsync(file)                what had been written to the file, but not its name
    after sync_folder(folder)        the names in the folder

So a file gets its name in this order: create under another name → write → fsync → rename → sync the folder. An fsync that failed must not be tried again: the system may have dropped the data and would report success. Its
bytes stay unknown until they are written anew, to another file.

One writer at a time is held to by a lock that the system takes back when its process dies, however it dies: on a file of the
folder, as the system offers it (:mod:`saddleback.files.locks`). A lock that only exists as a file would outlive a killed writer, and the number written in it may
by then belong to another process; this one cannot be stale, and a copy of the folder is not locked. The file names the writer
(process, machine, since when) for the message of whoever comes second. POSIX record locks do not work between the threads of a
process nor pass to its children, so a table of our own covers the first, and the children have to open the store themselves.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import platform
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from saddleback.errors import InputError, StorageError
from saddleback.files import locks

PARTIAL = ".partial"
"""How the name of a file ends until all of it is on the disk."""

_PATIENCE = 20.0  # seconds that one waits for another who writes the same file
_RENAMED = 2.0  # seconds after its last byte by which a file has its name, where it must be closed to be renamed

_PLAIN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # no child has it, no byte is changed on its way
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for its writer
_NO_TRAP = _NO_WAIT | getattr(os, "O_NOFOLLOW", 0)  # nor is a link followed

Mapped = bytes | mmap.mmap


class Disk:
    """The operations as the system has them; every failure is an OSError."""

    def make_folder(self, path: Path) -> None:
        """A new folder."""
        os.mkdir(path)

    def create(self, path: Path) -> int:
        """A new file, open for writing."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o666)

    def open_append(self, path: Path) -> int:
        """A file that is there, open for writing at its end; a link is not followed."""
        return os.open(path, os.O_WRONLY | os.O_APPEND | _PLAIN | _NO_TRAP)

    def open_lock(self, path: Path) -> int:
        """The file that a lock is on, made if it is not there; a link is not followed."""
        return os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN | _NO_TRAP, 0o666)

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
        """Give a file or folder another name, in place of the file or empty folder that had it."""
        os.replace(path, new)

    def remove(self, path: Path) -> None:
        """Remove a file, or a link itself."""
        os.remove(path)

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        os.rmdir(path)

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder survive a power cut; Windows has nothing to ask for, and journals them itself."""
        if locks.OPEN_FILES_STAY:
            return
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
        file = os.open(path, os.O_RDONLY | _PLAIN | _NO_WAIT)
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
    """A file to write to, which appears under its name once all of it is on the disk; a failure leaves nothing.

    What a kill leaves is :func:`partial_of` the file, which the next one who writes the file removes.
    """
    try:
        with (
            _named_when_whole(Disk(), partial_of(path), path, shared=True) as file,
            io.BufferedWriter(_Stream(file, "wb", closefd=False), 1 << 20) as stream,
        ):
            yield stream
    except OSError as error:
        raise StorageError(f"`{path}` could not be written: {error}; check the folder and the disk.") from error


class _Stream(io.FileIO):
    """An open file whose bytes are written by a :class:`Disk`."""

    def write(self, data: Any, /) -> int:
        Disk().write(self.fileno(), data)
        return memoryview(data).nbytes


def partial_of(path: Path) -> Path:
    """What a file is called until all of it is on the disk."""
    return path.with_name(f".{path.name}{PARTIAL}")


@contextmanager
def _named_when_whole(disk: Disk, partial: Path, path: Path, *, shared: bool = False) -> Iterator[int]:
    """A new file under the name ``partial``, open for writing, which is called ``path`` once it is on the disk.

    ``shared``: others may write the same file, so the name is claimed, and left to nobody if this fails.
    """
    file, is_open = _claimed(disk, partial) if shared else disk.create(partial), True
    try:
        yield file
        if os.fstat(file).st_size:  # of nothing there is nothing to lose
            disk.fsync(file)
        if locks.OPEN_FILES_STAY:
            is_open = False
            disk.close(file)
        disk.rename(partial, path)
    except BaseException:
        if locks.OPEN_FILES_STAY and is_open:
            is_open = False
            disk.close(file)
        if shared:
            with suppress(OSError):
                disk.remove(partial)
        raise
    finally:
        if is_open:
            disk.close(file)
    disk.sync_folder(path.parent)


def _claimed(disk: Disk, partial: Path) -> int:
    """A new file, locked while it is open; one of that name that nobody has locked was left by a kill, and goes.

    What was left is removed and never written to: it might be another name of somebody's file.
    """
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            file, new = disk.create(partial), True
        except FileExistsError:
            try:
                file, new = disk.open_append(partial), False
            except FileNotFoundError:
                continue
        left = _locks(file) and _is_named(file, partial)
        if left and new:
            return file
        if locks.OPEN_FILES_STAY:
            left = left and time.time() > os.fstat(file).st_mtime + _RENAMED  # or its writer has closed it to rename it
            disk.close(file)
        if left:
            disk.remove(partial)
        if not locks.OPEN_FILES_STAY:
            disk.close(file)
        time.sleep(0.005)
    raise OSError(errno.EAGAIN, "another process is writing it", str(partial))


def _locks(file: int) -> bool:
    """Lock an open file, unless another has; a file system without locks is taken as it is."""
    try:
        return locks.take(file)
    except OSError:
        return True


def _is_named(file: int, path: Path) -> bool:
    """Whether the open file is the one that has this name now."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(file))


@contextmanager
def disk_faults_named(path: Path, remedy: str) -> Iterator[None]:
    """Turn a fault of the disk into a :class:`StorageError` that says what to do."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"`{path}` could not be read or written: {error}; {remedy}.") from error


LOCK = "lock"
"""The file that is locked."""

_SIGNATURE, _MOST_SIGNATURE = "process ", 400

_mine: set[tuple[int, int, int]] = set()
# An interrupt between the last line of a `with` and its end leaves the guard held: the interrupted thread must be able to take it again.
_guard = threading.RLock()


class Lock:
    """Held from its creation until :meth:`release`; the file must be the lock of a writer of ours, past or present."""

    def __init__(self, path: Path, remedy: str = "wait until it is done, or open the store with writable=False"):
        self._pid, self._remedy = os.getpid(), remedy
        with _guard:
            while (
                True
            ):  # until the file that is locked is the one that has the name: its owner may just have removed it
                # Closing a second descriptor of the file would give the lock away: look before opening.
                if path.exists() and self._key(os.stat(path)) in _mine:
                    raise self._taken(path, "this process has it open already")
                self._file = Disk().open_lock(path)
                try:
                    held = self._take(path)
                except BaseException:
                    os.close(self._file)
                    raise
                if held:
                    break
                os.close(self._file)
            self._held = self._key(os.fstat(self._file))
            _mine.add(self._held)

    def release(self, remove: Path | None = None) -> None:
        """Let the next one in; in a child of the process, nothing. The file goes, too, if its name is given.

        It goes first, while nobody else can have it. Where open files stay it goes last: one that the next has opened stays.
        """
        try:
            if remove is not None and not locks.OPEN_FILES_STAY:
                with suppress(OSError):
                    Disk().remove(remove)
        finally:
            with _guard:
                if self._pid == os.getpid() and self._held in _mine:
                    _mine.remove(self._held)
                    os.close(self._file)
        if remove is not None and locks.OPEN_FILES_STAY:
            with suppress(OSError):
                Disk().remove(remove)

    def is_replaced(self, path: Path) -> bool:
        """Whether ``path`` is a lock now that is not this one: the folder was moved away, and somebody has made it anew."""
        return os.path.lexists(path) and not _is_named(self._file, path)

    def _take(self, path: Path) -> bool:
        if not locks.take(self._file, for_process=True):
            raise self._taken(path, f"{self._signature() or 'another process'} is writing to it")
        if not _is_named(self._file, path):
            return False
        self._sign(path)
        return True

    def _sign(self, path: Path) -> None:
        """Write down who has the lock, in a file that is ours to write."""
        status = os.fstat(self._file)
        ours = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size <= _MOST_SIGNATURE
        signature = self._signature() if ours else ""
        if not ours or not (signature.startswith(_SIGNATURE) or not signature):
            remedy = "remove it, or choose another place"
            raise InputError(str(path), "must be the lock of a writer of samples", "a file of another kind", remedy)
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        with suppress(OSError):  # a full disk: the lock holds all the same
            locks.write_anew(self._file, f"{_SIGNATURE}{self._pid} on {platform.node()} since {since}".encode())

    def _signature(self) -> str:
        said = locks.read_at_start(self._file, _MOST_SIGNATURE)
        text = said.decode(errors="replace").strip("\0")  # zeros: after a power cut
        return text if text.isprintable() else repr(text)

    def _key(self, status: os.stat_result) -> tuple[int, int, int]:
        return self._pid, status.st_dev, status.st_ino

    def _taken(self, path: Path, writer: str) -> InputError:
        return InputError(str(path.parent), "must have one writer at a time", writer, self._remedy)
