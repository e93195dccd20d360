"""What a user with an eighty-column terminal reads."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

WIDTH = 80


def printed(print_it: Any, *arguments: Any, **options: Any) -> str:
    """The text, after checking that it all fits."""
    console = Console(file=io.StringIO(), width=WIDTH)
    print_it(console, *arguments, **options)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert fits(text), text
    return str(text)


def fits(text: str) -> bool:
    return "…" not in text and all(len(line) <= WIDTH for line in text.splitlines())


def words(text: str) -> str:
    return " ".join(text.split())
