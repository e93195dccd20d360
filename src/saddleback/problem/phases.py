"""What is being done now, for whoever waits: long computations say what they are, and a display says so.

    with phase("choosing where to sample: 6,000 pairs, 921 features") as advance:
        ...
        advance("round 3")

Nothing is said where nobody listens. A display (:mod:`saddleback.solving.progress`) listens for as long as a command runs; it
shows a phase only if it takes a while, and goes on showing it inside one long call of a library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Announcer(Protocol):
    """Told when a phase begins, how far it is, and when it has ended; phases may lie in one another."""

    def begin(self, what: str) -> None:
        """A phase begins."""
        ...

    def advance(self, note: str) -> None:
        """How far the innermost phase is, in a few words."""
        ...

    def end(self) -> None:
        """The innermost phase has ended."""
        ...


_announcer: ContextVar[Announcer | None] = ContextVar("announcer", default=None)


@contextmanager
def announced_by(announcer: Announcer) -> Iterator[None]:
    """Let ``announcer`` hear of the phases inside the ``with`` block."""
    token = _announcer.set(announcer)
    try:
        yield
    finally:
        _announcer.reset(token)


@contextmanager
def phase(what: str) -> Iterator[Callable[[str], None]]:
    """A part of the work that may take long; what is given takes a note of how far it is."""
    announcer = _announcer.get()
    if announcer is None:
        yield lambda note: None
        return
    announcer.begin(what)
    try:
        yield announcer.advance
    finally:
        announcer.end()
