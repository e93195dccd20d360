"""The numbers of an event by name, for those that draw curves: ``dual/gap``, ``dual/multipliers/0``, ``round/error``."""

from __future__ import annotations

from collections.abc import Iterator

from saddleback.runs.events import Event

_COUNTS = {"attempt", "iteration", "round"}


def scalars(event: Event) -> Iterator[tuple[str, float]]:
    """Name and value of every number in the event; what is missing or text is left out."""
    for name, value in event.items():
        if name in _COUNTS:
            continue
        for i, entry in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(entry, (int, float)) and not isinstance(entry, bool):
                tag = f"{event['event']}/{name}"
                yield (f"{tag}/{i}" if isinstance(value, list) else tag), float(entry)


class Steps:
    """A running number for each kind of event: the horizontal axis of its curves."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def next(self, event: Event) -> int:
        """1, 2, 3 … for each kind."""
        kind = str(event["event"])
        self._seen[kind] = self._seen.get(kind, 0) + 1
        return self._seen[kind]
