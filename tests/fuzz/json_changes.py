"""Changes of JSON texts: any value in it becomes another text, fields come and go, and what is no JSON at all."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fuzz import byte_changes

Random = np.random.Generator

_MARK = "a mark that stands for any text"
LITERALS = (
    "null", "true", "false", "0", "-1", "1", "1.5", "-0.0", "1e308", "1e400", "-1e999", "5e-324", "NaN", "-Infinity",
    "1" + "0" * 30, "1" + "0" * 400, "-1" + "0" * 320, "9" * 5000, "18446744073709551616", '""', '"x"', '">="', '"\\ud800"',
    '"\\u0000"', '"\\u001b[2J"', '"a\\nb"', '"' + "y" * 3000 + '"', "[]", "{}", "[[]]", "[null]", "[1, 0]", "[0, 1, 2]",
    '{"a": 1}', '{"a": 1, "a": 2}', "tru", "", "1, 2", "0x10", "1_000", "'x'", '"../../x"', '"x.npz"',
)  # fmt: skip
KEYS = ("", "x", "__proto__", "\ud800", "a\nb", "\x1b[2J", "k" * 3000, "check", "files", "../x", "format")
DEPTHS = (5, 60, 99, 100, 101, 150, 900, 940, 960, 975, 985, 990, 995, 1000, 2000, 50_000)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        x = waiting.pop()
        items = list(x.items()) if isinstance(x, dict) else list(enumerate(x)) if isinstance(x, list) else []
        found += [(x, key) for key, _ in items]
        waiting += [inner for _, inner in items]
    return found


def _deep(rng: Random) -> str:
    depth = int(rng.choice(DEPTHS))
    opening, closing = [("[", "]"), ('{"a":', "}")][int(rng.integers(2))]
    return opening * depth + ("1" if opening != "[" else "") + closing * depth


def _dumped(value: Any, literal: str) -> bytes:
    return json.dumps(value).replace(json.dumps(_MARK), literal).encode()


def literal(data: bytes, rng: Random) -> bytes:
    """Any value becomes any text."""
    value = json.loads(data)
    places = _places(value)
    container, key = places[int(rng.integers(len(places)))]
    container[key] = _MARK
    return _dumped(value, _deep(rng) if rng.random() < 0.2 else str(rng.choice(LITERALS)))


def exchanged(data: bytes, rng: Random) -> bytes:
    """A value takes the place of another, or moves a little."""
    value = json.loads(data)
    places = _places(value)
    (a, i), (b, j) = (places[int(k)] for k in rng.integers(len(places), size=2))
    if isinstance(a[i], (int, float)) and rng.random() < 0.7:
        a[i] = float(a[i] * (1 + 1e-6)) if rng.random() < 0.5 else a[i] + int(rng.choice([-1, 1]))
    else:
        b[j] = json.loads(json.dumps(a[i]))
    return json.dumps(value).encode()


def field(data: bytes, rng: Random) -> bytes:
    """A field is missing, renamed, given twice, or one too many."""
    value = json.loads(data)
    places = _places(value)
    container, key = places[int(rng.integers(len(places)))]
    new = KEYS[int(rng.integers(len(KEYS)))]
    match int(rng.integers(4)):
        case 0:
            del container[key]
        case 1:
            if isinstance(container, dict):
                container[new] = container.pop(key)
            else:
                container.insert(0, container[key])
        case 2:
            if isinstance(container, dict):
                inner = json.dumps(container[key])
                container[key] = _MARK
                return _dumped(value, f"{inner}, {json.dumps(key)}: {inner}")
            container.append(None)
        case 3:
            (container if isinstance(container, dict) else value)[new] = json.loads('{"a": [1]}')
    return json.dumps(value).encode()


def encoding(data: bytes, rng: Random) -> bytes:
    """Bytes that are no UTF-8, another encoding, a mark at the beginning, no text, or only brackets."""
    at = int(rng.integers(len(data) + 1))
    return [
        data[:at] + bytes([int(rng.integers(128, 256))]) + data[at:],
        data.decode().encode("utf-16"),
        b"\xef\xbb\xbf" + data,
        b"",
        b"\0" * len(data),
        _deep(rng).encode(),
        data + data,
        b"[" + data + b"]",
        data.replace(b" ", b"\n"),
    ][int(rng.integers(9))]


def raw(data: bytes, rng: Random) -> bytes:
    """The bytes, whatever they mean."""
    names = sorted(byte_changes.BY_NAME)
    return byte_changes.BY_NAME[names[int(rng.integers(len(names)))]](data, rng)


NUMBERS = (
    "4", "3", "0", "-1", "", "1000000000", "99999999999999999999", "1" + "0" * 90, "1" + "0" * 400, "9" * 5000, "nan", "inf",
    "1e9", "0x10", " 4 ", "4_0", "\u0664", "x", "\x1b[2J", "1.5", "true", "None", "=", "4\n5", "y" * 3000, "\ud800",
)  # fmt: skip
PARAMETERS = (
    "states",
    "actions",
    "successors",
    "gamma",
    "constraints",
    "seed",
    "nothing",
    "",
    "k" * 300,
    "a\nb",
    "\x1b[2J",
)
PROBLEMS = (
    "garnet",
    "wireless",
    "gridworld",
    "queue",
    "random-linear",
    "hard-instance",
    "nothing",
    "",
    "x.npz",
    "../x.npz",
)


def with_settings(files: dict[str, Any], name: str, rng: Random) -> dict[str, Any]:
    """A problem by name that is another, or has settings that nobody would choose: huge above all."""
    try:
        value = json.loads(files[name])
        at = value["target"] if isinstance(value["target"], dict) else value
        if rng.random() < 0.2:
            at["name" if at is not value else "target"] = str(rng.choice(PROBLEMS))
        given = [f"{PARAMETERS[int(rng.integers(len(PARAMETERS)))]}={NUMBERS[int(rng.integers(len(NUMBERS)))]}"]
        at["settings"] = [*at["settings"], *given] if rng.random() < 0.8 else given
        return {**files, name: json.dumps(value).encode()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return files


BY_NAME = {f.__name__: f for f in (literal, exchanged, field, encoding, raw)}


def changed(data: bytes, rng: Random) -> bytes:
    """One of these changes, mostly of values and fields."""
    name = rng.choice(["literal", "exchanged", "field", "encoding", "raw"], p=[0.4, 0.15, 0.25, 0.1, 0.1])
    return BY_NAME[str(name)](data, rng)
