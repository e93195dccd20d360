"""What saddleback would find on Windows, made on this machine: run as ``python as_on_windows.py ARGUMENTS`` it is the command line.

Only saddleback is deceived (and ``pathlib`` and ``shutil``, which act for it): other packages have a Windows form of their own.

    modules that are not there    fcntl, resource, pwd, grp, termios, tty, pty, posix
    names that are not there      of ``os`` and ``signal``, in ``MISSING``
    open files                    neither they nor a folder that holds one can be renamed or removed
    folders                       cannot be opened, nor replaced by a rename
    files                         are in text mode unless opened with O_BINARY, which is an error here
    locks                         ``msvcrt.locking`` of bytes, which nobody else can read while they are locked
"""

from __future__ import annotations

import builtins
import fcntl
import os
import signal
import struct
import sys
import types
from typing import Any

ABSENT = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix"}
MISSING = {
    "os": "fork forkpty killpg getpgid setpgid setsid getuid geteuid getgid getsid wait wait3 wait4 WNOHANG WIFEXITED WIFSIGNALED"
    " WEXITSTATUS WTERMSIG O_CLOEXEC O_NOFOLLOW O_NONBLOCK O_DIRECTORY O_SYNC pread pwrite preadv pwritev sysconf pathconf"
    " fpathconf statvfs fstatvfs mkfifo mknod getloadavg sched_getaffinity chown fchown fchmod lockf sync fdatasync nice"
    " getpriority uname ttyname openpty posix_fallocate posix_fadvise fchdir chroot sendfile",
    "signal": "SIGKILL SIGHUP SIGALRM SIGCHLD SIGBUS SIGTRAP SIGUSR1 SIGUSR2 SIGPIPE SIGQUIT setitimer getitimer alarm pause"
    " pthread_sigmask pthread_kill sigtimedwait sigwait sigwaitinfo sigpending siginterrupt ITIMER_REAL SIG_BLOCK"
    " SIG_UNBLOCK SIG_SETMASK",
}
O_BINARY = 1 << 28
_NEAREST_LOCK = 1024  # a lock nearer to the file's beginning would hide what the file says
_os_open, _replace, _remove = os.open, os.replace, os.remove


def _is_ours(file: str) -> bool:
    return "/src/saddleback/" in file or "/site-packages/saddleback/" in file


class _Hiding(types.ModuleType):
    """A module some of whose names are not there for saddleback."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        caller = sys._getframe(1)
        ours = _is_ours(caller.f_code.co_filename)
        if ours and name in MISSING[super().__getattribute__("__name__")].split():
            raise AttributeError(f"as on Windows: no {name}")
        if ours and name == "open":
            return _open
        if ours or caller.f_globals.get("__name__") in ("pathlib", "shutil"):
            return STRICTER.get(name, found)
        return found


def _open(path: Any, flags: int, mode: int = 0o777) -> int:
    if os.path.isdir(path):
        raise PermissionError(13, "as on Windows: a folder cannot be opened", str(path))
    if not flags & O_BINARY:
        raise AssertionError(f"as on Windows: {path} was opened in text mode")
    return _os_open(path, flags & ~O_BINARY | os.O_CLOEXEC, mode)


def _as(function: Any, paths: int = 1) -> Any:
    def checked(*arguments: Any, **options: Any) -> Any:
        for path in arguments[:paths]:
            _refuse_open(os.path.abspath(path))
        if paths == 2 and os.path.isdir(arguments[1]):
            raise PermissionError(13, "as on Windows: the target is a folder", str(arguments[1]))
        return function(*arguments, **options)

    return checked


STRICTER = {"replace": _as(_replace, 2), "rename": _as(_replace, 2), "remove": _as(_remove), "unlink": _as(_remove)}


def _refuse_open(path: str) -> None:
    """An error where any process of ours has the file, or one below the folder, open or mapped."""
    for process in {"self", str(os.getppid())}:
        held = set()
        try:
            for number in os.listdir(f"/proc/{process}/fd"):
                try:
                    held.add(os.readlink(f"/proc/{process}/fd/{number}"))
                except OSError:
                    continue
            with open(f"/proc/{process}/maps", encoding="utf-8") as maps:
                held |= {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")}
        except OSError:
            continue
        for name in held:
            if name == path or name.startswith(path + "/"):
                raise PermissionError(32, "as on Windows: another holds the file open", f"{path} ({name})")


def _locking(file: int, mode: int, number: int) -> None:
    at = os.lseek(file, 0, os.SEEK_CUR)
    if at < _NEAREST_LOCK:
        raise AssertionError(f"as on Windows: nobody can read the bytes from {at} on, which are locked")
    kind = fcntl.F_UNLCK if mode == 0 else fcntl.F_WRLCK
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, at, number, 0))
    except BlockingIOError as error:
        raise PermissionError(13, "Permission denied") from error


def deceive() -> None:
    """From now on."""
    msvcrt = types.ModuleType("msvcrt")
    msvcrt.__dict__.update(locking=_locking, LK_UNLCK=0, LK_LOCK=1, LK_NBLCK=2, LK_RLCK=3, LK_NBRLCK=4)
    os.O_BINARY = O_BINARY  # type: ignore[attr-defined]
    ordinary = builtins.__import__

    def importing(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if globals and _is_ours(str(globals.get("__file__"))):
            if name == "msvcrt":
                return msvcrt
            if name.split(".")[0] in ABSENT:
                raise ImportError(f"as on Windows: no module {name}")
        return ordinary(name, globals, locals, fromlist, level)

    builtins.__import__ = importing
    os.__class__ = _Hiding
    signal.__class__ = _Hiding


if __name__ == "__main__":
    deceive()
    import runpy

    sys.argv[0] = "saddleback"
    runpy.run_module("saddleback", run_name="__main__", alter_sys=True)
