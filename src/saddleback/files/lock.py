"""One writer at a time: a lock that the system takes back when its process dies, however it dies.

It is a POSIX record lock on a file of the folder. A lock that only exists as a file would outlive a killed writer, and the
number written in it may by then belong to another process; this one cannot be stale. The file names the writer, for the
message of whoever comes second. Record locks do not work between the threads of a process nor pass to its children, so a
table of our own covers the first, and the children have to open the store themselves.
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import threading
from pathlib import Path

from saddleback.errors import InputError

LOCK = "lock"
"""The file."""

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
