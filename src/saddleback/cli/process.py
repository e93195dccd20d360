"""The process that a verb runs in: where answers go, what user code may not change, and how signals end it.

Answers have a stream of their own, a duplicate of stdout. While a verb runs, stdout is stderr: what user code prints, by
Python, by C or in the processes it starts, never comes between the lines of an answer. After each call of user code
(:class:`saddleback.problem.user_code.calling`) everything that it has changed for others is put back; the folder that it has
chosen to work in is its own, and waits for its next call.
"""

from __future__ import annotations

import functools
import io
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TextIO

import numpy as np

from saddleback.errors import SaddlebackError
from saddleback.problem.alarm import ALARM, HAS_TIMER, time_limit
from saddleback.problem.user_code import fail, state

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_ONCE = (
    1.0  # seconds within which further signals are the same one: a terminal, a shell and a parent may all send theirs
)


def answers() -> TextIO:
    """Where answers are written."""
    return sys.stdout if state.answers is None else state.answers


def as_verb(function: Callable[..., None]) -> Callable[..., None]:
    """The function of a verb, whose user code is kept apart: what it raises to end the process does not."""

    @functools.wraps(function)
    def verb(**options: Any) -> None:
        try:
            with time_limit(options.get("timeout")), _apart(state.own_process):  # which puts back its alarm, too
                function(**options)
        except EOFError as error:  # which would be taken for the end of a question to the user
            raise RuntimeError("the end of a file") from error
        except BaseException as error:
            if isinstance(error, Exception) or not (state.own_process or isinstance(error, SystemExit)):
                raise
            fail(error, lambda said: SaddlebackError(f"code that was called {said}; mend it."))

    return verb


@contextmanager
def _apart(own_process: bool) -> Iterator[None]:
    """Answers here, all else that is printed to stderr."""
    before = sys.stdout
    before.flush()
    try:
        state.answers = _private(1, before) if own_process else before
        if own_process:
            os.dup2(2, 1)
            _listen()
        state.surroundings = surroundings = _Surroundings(own_process)
        try:
            yield
        finally:
            surroundings.end()
            _hand_over(state.answers)
    finally:
        state.answers, state.surroundings = None, None
        if own_process:  # it ends now: what is printed on its way out is no answer, and there is nothing to interrupt
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
        else:
            sys.stdout = before


def _hand_over(stream: TextIO | None) -> None:
    """Write out what is left; a reader who has gone, or a full disk, is an error now, and no more at the end of the process."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        if state.own_process:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


def _private(number: int, like: TextIO) -> TextIO:
    """A stream of our own to where descriptor ``number`` goes, which can write any text in its encoding."""
    return open(os.dup(number), "w", encoding=like.encoding, errors="backslashreplace")


# Without the wrapping of Python's module, which takes 7 µs: this is asked after every call of user code.
_handler_of: Callable[[int], Any] = getattr(sys.modules.get("_signal"), "getsignal", signal.getsignal)
_MASKS = hasattr(signal, "pthread_sigmask")  # not on Windows
_set_mask: Any = getattr(sys.modules.get("_signal"), "pthread_sigmask", None)


class _Aside(io.TextIOBase):
    """A stdout that is stderr, for a program that has called us."""

    def write(self, text: str, /) -> int:
        return sys.stderr.write(text)

    def writable(self) -> bool:
        return True


class _Surroundings:
    """What user code must not change for others; descriptors and handlers of signals in a process of our own only."""

    def __init__(self, own_process: bool) -> None:
        self._own_process = own_process
        self._home = self._theirs = _folder()
        self._error = os.dup(2) if own_process else -1
        self._error_file = _file_of(self._error)
        self._stderr = sys.stderr
        self._stdout: Any = None
        listened = (*SIGNALS, signal.SIGALRM) if HAS_TIMER else SIGNALS
        self._handlers = {number: _handler_of(number) for number in listened} if own_process else {}
        self._signal_mask = signal.pthread_sigmask(signal.SIG_BLOCK, []) if _MASKS else set()
        self._file_mask = os.umask(0o077)
        os.umask(self._file_mask)
        self._answers = -1 if state.answers is None or not own_process else state.answers.fileno()
        self._answers_file = _file_of(self._answers)
        self._floats, self._depth = np.geterr(), sys.getrecursionlimit()
        self._filters = list(warnings.filters)
        self._put_streams_back()

    def theirs(self) -> None:
        """Back to the folder that user code has chosen."""
        if self._theirs != self._home and self._theirs is not None:
            with suppress(OSError):
                os.chdir(self._theirs)

    def ours(self) -> None:
        """Everything as it was."""
        self._theirs = _folder()
        if self._theirs != self._home and self._home is not None:
            os.chdir(self._home)
        self._put_streams_back()
        if self._own_process:
            ALARM.clear()  # one of theirs would ring in the middle of our work
            if _MASKS:
                _set_mask(signal.SIG_SETMASK, self._signal_mask)
            os.umask(self._file_mask)
        for number, handler in self._handlers.items():
            if _handler_of(number) is not handler:
                signal.signal(number, handler)
        if np.geterr() != self._floats:
            np.seterr(**self._floats)
        if sys.getrecursionlimit() != self._depth:
            sys.setrecursionlimit(self._depth)
        if warnings.filters != self._filters:
            warnings.filters[:] = self._filters  # type: ignore[index]
        if self._own_process and _file_of(self._answers) != self._answers_file:
            state.answers = None  # its descriptor may be a file of theirs by now: nothing is written to it any more
            raise SaddlebackError("code that was called has closed files that are not its own; mend it.")

    def end(self) -> None:
        """What is said from now on is heard, whatever they have made of stderr."""
        if self._own_process:
            self._put_back(2)

    def _put_back(self, number: int) -> None:
        """A standard descriptor goes to stderr again; nowhere, if they have closed what was kept for it."""
        if _file_of(self._error) == self._error_file:
            os.dup2(self._error, number)
        elif _file_of(number) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)

    def _put_streams_back(self) -> None:
        if self._own_process:
            for number in (1, 2):
                try:
                    os.get_inheritable(number)  # the cheapest question that a closed one does not answer
                except OSError:
                    self._put_back(number)
        if sys.stderr is not self._stderr or self._stderr.closed:
            if self._stderr.closed and self._own_process:
                self._put_back(2)
                self._stderr = _stream(2)
            sys.stderr = self._stderr
        if self._stdout is None or sys.stdout is not self._stdout or self._stdout.closed:
            sys.stdout = self._stdout = _stream(1) if self._own_process else _Aside()


def _file_of(number: int) -> tuple[int, int] | None:
    """Where a descriptor goes; None where it is closed."""
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _stream(number: int) -> TextIO:
    """A new stream for a standard descriptor, which stays open when the stream is closed."""
    return open(number, "w", buffering=1, encoding="locale", errors="backslashreplace", closefd=False)


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


# ---- signals --------------------------------------------------------------------------------------------------------------


def _listen() -> None:
    """Let SIGINT, SIGTERM and SIGHUP end the work as Ctrl-C does; those that the caller has turned off stay so."""
    last = -_ONCE

    def caught(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() - last < _ONCE:
            return
        state.caught, last = number, time.monotonic()
        raise KeyboardInterrupt

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, caught)
    state.watching = True
    sys.unraisablehook = _unraisable


_report = sys.unraisablehook


def _unraisable(event: Any) -> None:
    """An interrupt that came where it cannot be raised is taken notice of at the next call of user code."""
    if not isinstance(event.exc_value, KeyboardInterrupt):
        _report(event)
