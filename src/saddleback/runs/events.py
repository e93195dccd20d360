"""Events of a run, and whoever listens to them: plain dictionaries, ready for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Event = dict[str, Any]


class Callback(Protocol):
    """Anything that can be called with an event."""

    def __call__(self, event: Event, /) -> None:
        """Take notice of ``event``; an exception ends the solve."""
        ...


def tell(callbacks: Sequence[Callback], event: Event) -> None:
    """Every callback in turn."""
    for callback in callbacks:
        callback(event)
