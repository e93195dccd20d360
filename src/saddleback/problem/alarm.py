"""A time limit for calls of the user's code, kept by an alarm that interrupts the main thread: the system's timer where there is one, else a thread that watches the clock.

The system's (SIGALRM) interrupts calls of C code that lets signals through. The thread's, on Windows, raises its exception
between two steps of Python code: a call of C that never returns is not interrupted there.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from saddleback.errors import number
from saddleback.problem.user_code import TimeUp, state

MOST_SECONDS = 1e9  # thirty years
_MAIN = threading.main_thread()
HAS_TIMER = hasattr(signal, "SIGALRM") and hasattr(signal, "setitimer")


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Calls may take so long. Only where this thread gets signals, and nobody else has an alarm of his own."""
    if seconds is not None:
        number("timeout", seconds, 0, MOST_SECONDS, open_low=True, remedy="give seconds for one task")
    undo = None if seconds is None else prepare(_time_is_up)
    if undo is None:
        yield
        return
    before = state.limit
    state.alarm = ALARM
    state.limit, state.depth = seconds, 0  # whatever an interrupt has left of the last run in this process
    try:
        yield
    finally:
        state.limit = before
        undo()


def _time_is_up() -> None:
    if state.armed:
        raise TimeUp


def prepare(ring: Callable[[], None]) -> Callable[[], None] | None:
    """Let ``ring()`` be called in the main thread when the alarm goes off; it may raise.

    What undoes it is returned; None where nothing can be prepared: in another thread, or with another's alarm.
    """
    if threading.current_thread() is not _MAIN:
        return None
    if not HAS_TIMER:
        before, _watch.ring = _watch.ring, ring
        return lambda: setattr(_watch, "ring", before)
    found = signal.getsignal(signal.SIGALRM)
    if found is not signal.SIG_DFL and not isinstance(found, _Handler):
        return None
    signal.signal(signal.SIGALRM, _Handler(ring))

    def undo() -> None:
        signal.signal(signal.SIGALRM, found)

    return undo


class _Alarm:
    """The system's, or that of the thread."""

    def set(self, seconds: float, again: float) -> None:
        """Ring in so many seconds, and ``again`` so many seconds after each ring."""
        if HAS_TIMER:
            signal.setitimer(signal.ITIMER_REAL, seconds, again)
        else:
            _watch.set(seconds, again)

    def clear(self) -> None:
        """It does not ring any more; nor does one of somebody else."""
        if HAS_TIMER:
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            _watch.clear()


ALARM = _Alarm()


class _Handler:
    """What SIGALRM calls: ours is known by its type."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._ring()


class _Watch:
    """The alarm of systems without SIGALRM: a thread, begun with the first alarm."""

    def __init__(self) -> None:
        self.ring: Callable[[], None] | None = None
        self._changed = threading.Condition()
        self._deadline: float | None = None
        self._again = 0.0
        self._sent = False  # something was sent to the main thread, which may not have raised it yet
        self._thread: threading.Thread | None = None

    def set(self, seconds: float, again: float) -> None:
        with self._changed:
            self._deadline, self._again = time.monotonic() + seconds, again
            if self._thread is None:
                self._thread = threading.Thread(target=self._go, name="saddleback-alarm", daemon=True)
                self._thread.start()
            self._changed.notify()

    def clear(self) -> None:
        with self._changed:
            self._deadline = None
            if self._sent and threading.current_thread() is _MAIN:  # one that is under way comes to nothing
                self._sent = False
                _take_back()

    def _go(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                if self._deadline is None or now < self._deadline:
                    self._changed.wait(None if self._deadline is None else self._deadline - now)
                    continue
                self._deadline = now + self._again
                if (kind := self._what_it_raises()) is not None:
                    self._sent = True
                    _raise_in_main(kind)

    def _what_it_raises(self) -> type[BaseException] | None:
        try:
            if self.ring is not None:
                self.ring()
        except BaseException as error:
            return type(error)
        return None


class _NothingHappened(BaseException):
    """Stands in for an exception that comes too late."""


def _take_back() -> None:
    """See that the main thread, which calls this, does not raise what was sent to it later.

    Another is sent in its place and raised here: one that is only withdrawn leaves a flag behind that nobody lowers, and with it
    a debugger or a coverage tool hangs at the next call (Python 3.11).
    """
    try:
        _raise_in_main(_NothingHappened)
        while True:
            pass
    except _NothingHappened:
        pass


def _raise_in_main(kind: type[BaseException]) -> None:
    """Let the main thread raise this before its next step, in the place of what it has not raised yet."""
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(_MAIN.ident or 0), ctypes.py_object(kind))


_watch = _Watch()
