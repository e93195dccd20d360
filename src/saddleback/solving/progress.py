"""What a run under way shows on stderr: live bars on a terminal, a plain line now and then in a log.

Bars count samples, with their rate and the time left, dual iterations, with the gap that is still open, and rounds, with the
error that is proved or expected so far.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console

from saddleback.runs.events import Event
from saddleback.sampling.executors.watched import ShowProgress

_LOG_SECONDS = 10.0
_FRAME_SECONDS = 0.05


class Display(ShowProgress, Protocol):
    """Told how far the run is, and what the solve says on its way."""

    def notice(self, event: Event) -> None:
        """Take up what an event of the solve says: the gap, the bound."""
        ...


@contextmanager
def display() -> Iterator[Display]:
    """The display that suits where stderr goes."""
    if not sys.stderr.isatty():
        yield LogLines()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    rate, note = TextColumn("{task.fields[rate]}"), TextColumn("{task.fields[note]}")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        rate,
        TimeRemainingColumn(),
        note,
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Bars(bar)


class _Bars:
    """One bar for each thing that is counted."""

    def __init__(self, bar: Any):
        self._bar, self._tasks = bar, dict[str, Any]()
        self._paces: dict[str, _Pace] = {}
        self._notes: dict[str, str] = {}
        self._shown = 0.0

    def __call__(self, what: str, done: int, total: int, failures: int = 0) -> None:
        many = _subject(what) != "dual"
        if many and what in self._tasks and done < total and time.monotonic() - self._shown < _FRAME_SECONDS:
            return  # small blocks come by the thousand
        self._shown = time.monotonic()
        if what not in self._tasks:
            self._tasks[what], self._paces[what] = self._bar.add_task(what, total=total, rate="", note=""), _Pace()
        elif done < self._paces[what].done:
            self._bar.reset(self._tasks[what])
        rate = self._paces[what].rate(done)
        shown = "" if rate is None else f"{rate:,.0f}/s"
        text = what if not failures else f"{what}, {failures} tried again"
        note = self._notes.get(_subject(what), "")
        self._bar.update(self._tasks[what], completed=done, total=total, description=text, rate=shown, note=note)

    def notice(self, event: Event) -> None:
        """Beside the bar of the same subject, at once."""
        text = _note(event)
        if text is None:
            return
        self._notes[event["event"]] = text
        for what in [w for w in self._tasks if _subject(w) == event["event"]][-1:]:
            self._bar.update(self._tasks[what], note=text)


class LogLines:
    """A line every ten seconds: nothing at all for a run that is quick."""

    def __init__(self, seconds: float = _LOG_SECONDS):
        self._seconds, self._last = seconds, time.monotonic()
        self._paces: dict[str, _Pace] = {}
        self._notes: dict[str, str] = {}

    def notice(self, event: Event) -> None:
        """For the next line of the same subject."""
        self._notes[event["event"]] = _note(event) or ""

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
        if note := self._notes.get(_subject(what)):
            words.append(note)
        sys.stderr.write(", ".join(words) + "\n")
        sys.stderr.flush()


def _subject(what: str) -> str:
    """The kind of event that has something to say about what is counted."""
    return "dual" if what == "dual iterations" else what.partition(" ")[0]


def _note(event: Event) -> str | None:
    """What an event adds to the numbers that are counted."""
    if event["event"] == "dual":
        open_gap, worst = event["gap"], max(event["violation"], default=0.0)
        return f"violation {worst:.3g}" if open_gap is None else f"gap {open_gap:.3g}"
    if event["event"] == "round":
        kind = "proved" if event["proved"] else "expected"
        error = "no bound yet" if event["error"] is None else f"error {event['error']:.3g} {kind}"
        return f"{error}, {event['wanted']:g} wanted"
    return None


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
