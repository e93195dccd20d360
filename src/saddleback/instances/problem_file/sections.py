"""Tables of a TOML file that know where they stand: every fault names file, line and key, and says what to do.

``tomllib`` keeps no line numbers. The file is cut into its statements (a header, or key = value, which may run over many
lines); each is parsed by itself, and everything it defines is noted with the line it begins on. A key inside a list that
stands in one statement has that statement's line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saddleback.errors import InputError, StorageError, nearest
from saddleback.files.json_file import leaves, plain, short

Place = tuple[str | int, ...]

_MOST_BYTES, _MOST_BITS = 1 << 22, 1023  # a whole number of more bits is no float64
# What may hide a bracket or an end of line, and those themselves.
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}]|\n', re.DOTALL
)
# A key of many parts, quoted or not; tomllib needs the square of their number.
_LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){16}""")
_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "a number": (int, float),
    "a whole number": (int,),
    "a list": (list,),
    "a table": (dict,),
}
_MISSING = object()
_SEE = "see docs/problem_files.md"


@dataclass(frozen=True, eq=False)
class Section:
    """One table of a file: ``values``, and where it stands."""

    file: Path
    text: str
    values: dict[str, Any]
    place: Place = ()

    def fault(self, key: str | None, rule: str, value: Any, remedy: str) -> InputError:
        """The error for a key of this table, or for the table itself."""
        place = self.place if key is None else (*self.place, key)
        name = dotted(place) or "the file"
        return InputError(f"{self.file}:{line_of(self.text, place)}: {name}", rule, value, remedy)

    def allow(self, *names: str) -> None:
        """Refuse keys other than these."""
        for key in self.values:
            if key not in names:
                meant = nearest(key, names, f"known keys are {', '.join(names)}")
                raise self.fault(plain(key), "must be a known key", "an unknown one", meant)

    def get(self, key: str, kind: str, default: Any = _MISSING, remedy: str = _SEE) -> Any:
        """The value of a key, of a kind: "text", "a number", "a whole number", "a list", "a table" or "anything"."""
        if key not in self.values:
            if default is _MISSING:
                raise self.fault(key, "must be given", "nothing", remedy)
            return default
        value = self.values[key]
        if kind != "anything":
            right = isinstance(value, _KINDS[kind]) and not isinstance(value, bool)
            if not right or (isinstance(value, float) and not abs(value) < float("inf")):
                raise self.fault(key, f"must be {kind}", short(value), remedy)
        return value

    def choice(self, key: str, words: Sequence[str], default: Any = _MISSING, remedy: str = "choose one") -> str:
        """The value of a key, one of a few words."""
        word = self.get(key, "text", default, remedy)
        if word not in words:
            raise self.fault(key, f"must be one of {', '.join(words)}", short(word), nearest(word, words, remedy))
        return str(word)

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self.values

    def table(self, key: str, remedy: str = _SEE) -> Section:
        """A table inside this one."""
        return Section(self.file, self.text, self.get(key, "a table", remedy=remedy), (*self.place, key))

    def tables(self, key: str, remedy: str) -> list[Section]:
        """A list of tables, [[key]]."""
        found = self.get(key, "a list", [], remedy)
        for value in found:
            if not isinstance(value, dict):
                raise self.fault(key, "must be a list of tables", short(value), remedy)
        return [Section(self.file, self.text, value, (*self.place, key, i)) for i, value in enumerate(found)]


def read_toml(path: Path) -> Section:
    """The whole file."""
    if not path.is_file():
        raise InputError(str(path), "must be an existing file", "no such file", "check the path")
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise StorageError(f"`{path}` could not be read: {error}; check the disk and the permissions.") from error
    if len(data) > _MOST_BYTES:
        rule, remedy = f"must have at most {_MOST_BYTES:,} bytes", "keep large tables in an .npz file"
        raise InputError(str(path), rule, "more", remedy)
    text = ""
    try:
        text = data.decode().replace("\r\n", "\n")
        if found := _LONG_KEY.search(text):
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"a key of more than sixteen parts (at line {line}, column 1)")
        values = tomllib.loads(text)
        for leaf in leaves(values):
            if isinstance(leaf, int) and leaf.bit_length() > _MOST_BITS:
                raise ValueError(f"a whole number of {leaf.bit_length():,} bits")
        return Section(path, text, values)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path}:{line}", "must be UTF-8", f"byte {data[error.start]:#x}", "save it as UTF-8"
        ) from None
    except (ValueError, RecursionError) as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found.group(1)) if found else text.count("\n") + 1
        what = plain(re.sub(r" \(at .*\)$", "", str(error)), 200)
        raise InputError(f"{path}:{line}", "must be TOML", what, 'text stands in quotes, as in name = "shop"') from None


def dotted(place: Place) -> str:
    """As people write it: constraints[0].limit."""
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in place).removeprefix(".")


def line_of(text: str, place: Place) -> int:
    """The line on which what stands at ``place`` begins, or the nearest table around it."""
    lines = _lines(text)
    while place and place not in lines:
        place = place[:-1]
    return lines[place]


def _lines(text: str) -> dict[Place, int]:
    lines: dict[Place, int] = {(): 1}
    header: Place = ()
    counts: dict[Place, int] = {}
    for line, statement in _statements(text):
        found = tomllib.loads(statement)
        if statement.startswith("["):
            header = _header(found, counts, statement.startswith("[["))
            lines.setdefault(header, line)
        else:
            for place in _places(found, header):
                lines.setdefault(place, line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement of a text that is known to be TOML, with the line it begins on."""
    begin, line, depth, first = 0, 1, 0, 1
    text += "\n"
    for token in _TOKEN.finditer(text):
        piece = token.group()
        if len(piece) == 1:
            depth += (piece in "[{") - (piece in "]}")
        line += piece.count("\n")
        if piece == "\n" and depth == 0:
            statement = text[begin : token.start()].strip()
            if statement and not statement.startswith("#"):
                yield first, statement
            begin, first = token.end(), line


def _header(found: dict[str, Any], counts: dict[Place, int], is_list: bool) -> Place:
    """The place that a header opens; a list's tables are counted as they come."""
    names: list[str] = []
    value: Any = found
    while isinstance(value, dict) and value:
        name = next(iter(value))
        names.append(name)
        value = value[name]
    place: Place = ()
    for i, name in enumerate(names):
        place = (*place, name)
        if is_list and i == len(names) - 1:
            counts[place] = counts.get(place, -1) + 1
        if place in counts:
            place = (*place, counts[place])
    return place


def _places(value: Any, place: Place) -> Iterator[Place]:
    """Every place that a value defines, itself first."""
    yield place
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from _places(inner, (*place, key))
