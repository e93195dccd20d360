"""The lines of a DRN file and the numbers in them, read with bounds on the size of the file, its lines and its numbers."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from saddleback.errors import InputError, StorageError, require

MOST_BYTES = 4 * 10**9
"""The largest file that is read unless the caller says otherwise."""

_MOST_LINE = 1 << 16
_MOST_DIGITS = 400
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_FRACTION = re.compile(r"([+-]?[0-9]+)/([0-9]+)")
_WHOLE = re.compile(r"[0-9]{1,18}")
NAME = re.compile(r"[^\s,\[\]\"@]+")


def plain_name(name: str) -> str:
    """A name of a reward model, refused where the format could not hold it."""
    rule = "must be printable, without blanks, commas, brackets, quotes or @, to be a reward model's name"
    require(bool(NAME.fullmatch(name)) and name.isprintable(), "name", rule, repr(name), "rename it")
    return name


class Lines:
    """The lines that hold something, with their numbers; comments and empty lines are skipped on request."""

    def __init__(self, path: str | os.PathLike[str], most_bytes: int):
        self.path, self.at = Path(path), 0
        self._lines = self._read(most_bytes)

    def _read(self, most_bytes: int) -> Iterator[str]:
        try:
            found = None if self.path.is_file() else "a directory" if self.path.is_dir() else "no such file"
            require(found is None, str(self.path), "must be an existing DRN file", found, "check the path")
            size = self.path.stat().st_size
            remedy = "raise most_bytes if you trust the file"
            require(size <= most_bytes, str(self.path), f"must have at most {most_bytes:,} bytes", f"{size:,}", remedy)
            with open(self.path, "rb") as file:
                while line := file.readline(_MOST_LINE + 1):
                    self.at += 1
                    if len(line) > _MOST_LINE:
                        self.refuse(f"must have lines of at most {_MOST_LINE:,} bytes", "a longer one", "break it up")
                    yield self._text(line)
        except OSError as error:
            raise StorageError(f"`{self.path}` could not be read: {error}; check the disk and the rights.") from error

    def _text(self, line: bytes) -> str:
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            text = "\0"
        if not text.replace("\t", " ").isprintable():
            self.refuse("must be plain text", repr(line[:40]), "unpack it if it is compressed, or write it again")
        return text

    def next(self, what: str) -> str:
        """The next line as it is, for the fields of the header that may be empty."""
        text = next(self._lines, None)
        if text is None:
            self.at += 1
            self.refuse(f"must go on with {what}", "the end of the file", "the file is cut short: write it again")
        return text

    def __iter__(self) -> Iterator[str]:
        for text in self._lines:
            stripped = text.strip()
            if stripped and not stripped.startswith("//"):
                yield stripped

    def whole(self, text: str, what: str) -> int:
        """A whole number in digits."""
        if not _WHOLE.fullmatch(text):
            self.refuse(f"must hold {what}, a whole number", quoted(text), "write it in digits")
        return int(text)

    def number(self, text: str) -> float:
        """A finite number, decimal or a fraction of whole ones."""
        value = float("nan")
        if len(text) <= _MOST_DIGITS:
            if _NUMBER.fullmatch(text):
                value = float(text)
            elif (match := _FRACTION.fullmatch(text)) and int(match.group(2)) > 0:
                try:
                    value = int(match.group(1)) / int(match.group(2))
                except OverflowError:
                    value = float("inf")
        if not math.isfinite(value):
            self.refuse("must hold finite numbers such as 0.25, 1e-3 or 1/4", quoted(text), "write plain numbers")
        return value

    def refuse(self, rule: str, value: Any, remedy: str) -> NoReturn:
        """Raise the error that names file and line."""
        raise InputError(f"{self.path}, line {self.at}", rule, value, remedy)


def quoted(text: str) -> str:
    """A stranger's text, escaped and shortened."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
