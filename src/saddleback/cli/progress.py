"""What a run under way shows on stderr: a live bar on a terminal, a plain line now and then in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console

_LOG_SECONDS = 10.0
_FRAME_SECONDS = 0.05


class Display(Protocol):
    """Told how far the run is; ``failures`` are those that were survived, such as workers that died and were replaced."""

    def __call__(self, what: str, done: int, total: int, failures: int = 0) -> None:
        """``done`` of ``total``; a smaller number than before begins anew."""
        ...


@contextmanager
def display() -> Iterator[Display]:
    """The display that suits where stderr goes."""
    if not sys.stderr.isatty():
        yield LogLines()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Bars(bar)


class _Bars:
    """One bar for each thing that is counted."""

    def __init__(self, bar: Any):
        self._bar, self._tasks = bar, dict[str, Any]()
        self._paces: dict[str, _Pace] = {}
        self._shown = 0.0

    def __call__(self, what: str, done: int, total: int, failures: int = 0) -> None:
        if what in self._tasks and done < total and time.monotonic() - self._shown < _FRAME_SECONDS:
            return  # small blocks come by the thousand
        self._shown = time.monotonic()
        if what not in self._tasks:
            self._tasks[what], self._paces[what] = self._bar.add_task(what, total=total, rate=""), _Pace()
        elif done < self._paces[what].done:
            self._bar.reset(self._tasks[what])
        rate = self._paces[what].rate(done)
        shown = "" if rate is None else f"{rate:,.0f}/s"
        text = what if not failures else f"{what}, {failures} tried again"
        self._bar.update(self._tasks[what], completed=done, total=total, description=text, rate=shown)


class LogLines:
    """A line every ten seconds: nothing at all for a run that is quick."""

    def __init__(self, seconds: float = _LOG_SECONDS):
        self._seconds, self._last = seconds, time.monotonic()
        self._paces: dict[str, _Pace] = {}

    def __call__(self, what: str, done: int, total: int, failures: int = 0) -> None:
        """A line, if the last one is old enough."""
        rate = self._paces.setdefault(what, _Pace()).rate(done)
        if time.monotonic() - self._last < self._seconds:
            return
        self._last = time.monotonic()
        words = [f"{what}: {done:,} of {total:,}"]
        if rate:
            words += [f"{rate:,.0f}/s", f"{(total - done) / rate:,.0f} s left"]
        if failures:
            words.append(f"{failures} tried again")
        sys.stderr.write(", ".join(words) + "\n")
        sys.stderr.flush()


class _Pace:
    """How fast something grows, from when it was first seen."""

    def __init__(self) -> None:
        self._began, self._first, self.done = time.monotonic(), 0, 0

    def rate(self, done: int) -> float | None:
        """Per second; None while there is nothing to tell."""
        if done < self.done:
            self._began, self._first = time.monotonic(), done
        self.done = done
        seconds = time.monotonic() - self._began
        return (done - self._first) / seconds if seconds > 0.05 and done > self._first else None
