"""What a solve tells while it runs: events for callbacks, and what is shown of them on stderr.

Events are plain dictionaries, ready for JSON, in the user's units, without times, so that the same request leaves the same
trace.

    samples       drawn: simulator calls that the solve rests on
    dual          attempt, iteration, multipliers λ_k (None: the constraints alone), value and constraints of π_k as estimated,
                  violation: by how much π_k misses each constraint, gap: what the dual still leaves open (None: not known)
    round         of a solve to an accuracy: round, samples so far, error proved or expected (None: none), proved, wanted
    certificate   confidence, value, constraints, upper_bound, gap, feasible, samples
    finished      status, message, value, constraints, samples

On a terminal there are live bars, in a log a plain line every few seconds. They count samples, with their rate and the time left,
dual iterations, with the gap that is still open, and rounds, with the error that is proved or expected so far.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from saddleback.certificates import Certificate
from saddleback.method.oracles import Dual, Step
from saddleback.problem.cmdp import CMDP
from saddleback.problem.phases import Announcer, announced_by
from saddleback.runs.answer import Answer
from saddleback.runs.events import Callback, Event, tell
from saddleback.sampling.executors.watched import ShowProgress

_LOG_SECONDS = 5.0
_FRAME_SECONDS = 0.05

Progress = Callable[[str, int, int], None]
"""Called with (what, done, total) while a solve runs."""


def dual_watcher(
    callbacks: Sequence[Callback], progress: Progress | None, problem: CMDP, dual: Dual, attempt: int
) -> Callable[[int, Step], None] | None:
    """A watcher of Alg. 1 that makes an event of every iteration; None where nobody listens."""
    if not callbacks and progress is None:
        return None
    steps: list[Step] = []

    def watch(iteration: int, step: Step) -> None:
        steps.append(step)
        if callbacks:
            event = {"event": "dual", "attempt": attempt, "iteration": iteration}
            tell(callbacks, {**event, **_iterate(problem, dual, steps)})
        if progress is not None:
            progress("dual iterations", iteration, max(dual.num_steps, iteration))

    return watch


def _iterate(problem: CMDP, dual: Dual, steps: list[Step]) -> Event:
    multipliers, values = np.array(steps[-1].multipliers), problem.values_of(steps[-1].values)
    missed = [
        max(0.0, b - v if c.sense == ">=" else v - b)
        for c, b, v in zip(problem.constraints, problem.user_thresholds(), values[1:], strict=True)
    ]
    finite = bool(np.all(np.isfinite(multipliers)))
    known = dual.gap(steps) * problem.reward_span  # infinite where the dual has no bound
    return {
        "multipliers": problem.multipliers_of(multipliers).tolist() if finite else None,
        "value": float(values[0]),
        "constraints": [float(v) for v in values[1:]],
        "violation": [float(x) for x in missed],
        "gap": known if math.isfinite(known) else None,
    }


def round_event(number: int, samples: int, error: float, proved: bool, wanted: float) -> Event:
    """One round of a solve to an accuracy."""
    shown = error if math.isfinite(error) else None
    return {"event": "round", "round": number, "samples": samples, "error": shown, "proved": proved, "wanted": wanted}


def certificate_event(certificate: Certificate) -> Event:
    """What is proved, in short."""
    whole = certificate.to_json()
    names = "confidence", "value", "constraints", "upper_bound", "gap", "feasible", "samples"
    return {"event": "certificate", **{name: whole.get(name) for name in names}}


def finished_event(solution: Answer) -> Event:
    """The answer, in short."""
    return {
        "event": "finished",
        "status": solution.status.value,
        "message": solution.message,
        "value": solution.value,
        "constraints": [c.value for c in solution.constraints],
        "samples": solution.samples,
    }


# ---- what is shown -------------------------------------------------------------------------------------------------------


class Display(ShowProgress, Announcer, Protocol):
    """Told how far the run is, and what the solve says on its way."""

    def notice(self, event: Event) -> None:
        """Take up what an event of the solve says: the gap, the bound."""
        ...


@contextmanager
def display() -> Iterator[Display]:
    """The display that suits where stderr goes."""
    if not sys.stderr.isatty():
        lines = LogLines()
        with announced_by(lines):
            yield lines
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    what, rate, note = (TextColumn(f"{{task.{name}}}") for name in ("description", "fields[rate]", "fields[note]"))
    columns = (what, BarColumn(bar_width=16), MofNCompleteColumn(), rate, TimeRemainingColumn(), note)
    with Bars(*columns, console=Console(stderr=True), transient=True) as bar:
        bars = _Bars(bar)
        with announced_by(bars):
            yield bars


class _Bars:
    """One bar for each thing that is counted."""

    def __init__(self, bar: Any):
        self._bar, self._tasks, self._shown = bar, dict[str, Any](), 0.0
        self._paces, self._notes = dict[str, _Pace](), dict[str, str]()
        self._phases: list[Any] = []

    def begin(self, what: str) -> None:
        """A bar without an end."""
        self._phases.append(self._bar.add_task(what, total=None, rate="", note=""))

    def advance(self, note: str) -> None:
        """Beside it."""
        if self._phases:
            self._bar.update(self._phases[-1], note=note)

    def end(self) -> None:
        """It goes."""
        self._bar.remove_task(self._phases.pop())

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
    """A line every five seconds, during a phase too: nothing at all for a run that is quick.

    Phases are watched by a thread, which is there as long as they last: a single call of a library may take minutes.
    """

    def __init__(self, seconds: float = _LOG_SECONDS):
        self._seconds, self._last = seconds, time.monotonic()
        self._paces, self._notes = dict[str, _Pace](), dict[str, str]()
        self._phases: list[list[Any]] = []  # what, since when, how far
        self._watch: tuple[threading.Thread, threading.Event] | None = None

    def begin(self, what: str) -> None:
        """A line about it, if it takes long."""
        self._phases.append([what, time.monotonic(), ""])
        if self._watch is None:
            stop = threading.Event()
            self._watch = threading.Thread(target=self._keep_saying, args=(stop,), daemon=True), stop
            self._watch[0].start()

    def advance(self, note: str) -> None:
        """For the next line."""
        if self._phases:
            self._phases[-1][2] = note

    def end(self) -> None:
        """Nothing more of it."""
        self._phases.pop()
        if not self._phases and self._watch is not None:
            thread, stop = self._watch
            self._watch = None
            stop.set()
            thread.join()

    def _keep_saying(self, stop: threading.Event) -> None:
        while not stop.wait(max(0.01, self._seconds / 5)):
            phases = list(self._phases)
            if phases and time.monotonic() - self._last >= self._seconds:
                what, since, note = phases[-1]
                self._say([what, *([note] if note else []), f"{time.monotonic() - since:,.0f} s so far"])

    def _say(self, words: list[str]) -> None:
        self._last = time.monotonic()
        sys.stderr.write(", ".join(words) + "\n")
        sys.stderr.flush()

    def notice(self, event: Event) -> None:
        """For the next line of the same subject."""
        self._notes[event["event"]] = _note(event) or ""

    def __call__(self, what: str, done: int, total: int, failures: int = 0) -> None:
        """A line, if the last one is old enough."""
        rate = self._paces.setdefault(what, _Pace()).rate(done)
        if time.monotonic() - self._last < self._seconds:
            return
        words = [f"{what}: {done:,} of {total:,}"]
        if rate:
            words += [f"{rate:,.0f}/s", f"{(total - done) / rate:,.0f} s left"]
        if failures:
            words.append(f"{failures} tried again")
        if note := self._notes.get(_subject(what)):
            words.append(note)
        self._say(words)


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
