"""Locks of open files that the system takes back when their process dies, on POSIX systems and on Windows.

    POSIX      advisory: ``flock`` belongs to the open file, a record lock (``lockf``) to the process
    Windows    ``msvcrt.locking`` of one byte; it belongs to the open file, and nobody else can read a byte that is locked

On Windows the byte lies far beyond the end of the file, so that whoever comes second can still read who came first. There an
open file, and a folder that holds one, can be neither renamed nor removed: :data:`OPEN_FILES_STAY`. That is a lock of its own
kind, and whoever removes a file there has to close it first.
"""

from __future__ import annotations

import errno
import os
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

OPEN_FILES_STAY = fcntl is None
"""Whether files that are open can be neither renamed nor removed, as on Windows."""

_FAR_BEYOND = 1 << 30  # the byte that is locked on Windows: no file that we lock is as long


def take(file: int, *, for_process: bool = False) -> bool:
    """Lock an open file until it is closed; False where another has it.

    for_process    the lock is the process's, not the open file's: a child does not inherit it (POSIX only; on Windows
                   open files are not inherited)
    """
    try:
        if fcntl is not None:
            (fcntl.lockf if for_process else fcntl.flock)(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            _take_byte(file)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def _take_byte(file: int) -> None:
    import msvcrt

    at = os.lseek(file, 0, os.SEEK_CUR)
    os.lseek(file, _FAR_BEYOND, os.SEEK_SET)
    try:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    finally:
        os.lseek(file, at, os.SEEK_SET)


def read_at_start(file: int, number: int) -> bytes:
    """The first bytes of an open file."""
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, number)


def write_anew(file: int, data: bytes) -> None:
    """Replace what an open file says."""
    os.ftruncate(file, 0)
    os.lseek(file, 0, os.SEEK_SET)
    os.write(file, data)
