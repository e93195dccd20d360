"""A KeyboardInterrupt at a line: Ctrl-C is raised between any two lines of ours, not only where we wait."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import saddleback

_HOME = str(Path(saddleback.__file__).parent)
Line = tuple[str, int]


@contextmanager
def interrupted_at(files: tuple[str, ...], at: int) -> Iterator[list[Line]]:
    """Within, the line number ``at`` (-1: none) of those that are reached in ``files`` raises; all that were reached so far."""
    reached: list[Line] = []

    def at_line(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if event == "line":
            reached.append((frame.f_code.co_filename[len(_HOME) + 1 :], frame.f_lineno))
            if len(reached) - 1 == at:
                sys.settrace(None)
                frame.f_trace = None
                raise KeyboardInterrupt
        return at_line

    def at_call(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        name = frame.f_code.co_filename
        return at_line if name.startswith(_HOME) and name[len(_HOME) + 1 :].startswith(files) else None

    before = sys.gettrace()
    sys.settrace(at_call)
    try:
        yield reached
    finally:
        sys.settrace(before)
