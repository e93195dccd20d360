"""What is said beside an answer: a kind that programs may ask for, and a sentence that people read."""

from __future__ import annotations

from typing import NamedTuple


class Remark(NamedTuple):
    """Something a user should know: its kind is for programs, its text for people."""

    kind: str
    text: str

    def __str__(self) -> str:
        return self.text
