"""Where states lie, read from their names: "queue 3, channel fair" is a place in a plane, "4 in system" one on a line.

Names are cut at ", ". Of each part the words that all states share at its start and end are what it measures ("queue",
"in system"), the rest is the coordinate; what stands in brackets at the end ("(lake)") is a remark. If the coordinates tell all
states apart, and number at most two, the policy can be drawn as a map.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_MOST_STATES = 1_500
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


class Places(NamedTuple):
    """Axis names, their coordinates in order, and for each state its (column, row) and its remark."""

    names: tuple[str, str]
    across: list[str]
    up: list[str]
    at: list[tuple[int, int]]
    remarks: list[str]


def places_of(names: Sequence[str] | None) -> Places | None:
    """The places, or None where the names do not tell."""
    if names is None or not 2 <= len(names) <= _MOST_STATES:
        return None
    bare, remarks = [], []
    for name in names:
        found = re.fullmatch(r"(.*?)\s*\(([^()]*)\)", name)
        bare.append(found.group(1) if found else name)
        remarks.append(found.group(2) if found else "")
    cut = [name.split(", ") for name in bare]
    if {len(parts) for parts in cut} not in ({1}, {2}):
        return None
    columns = [_coordinate([parts[j] for parts in cut]) for j in range(len(cut[0]))]
    if len(columns) == 1:
        columns.append(("", [""] * len(names)))
    (first, xs), (second, ys) = columns
    across, up = _in_order(xs), _in_order(ys)
    at = [(across.index(x), up.index(y)) for x, y in zip(xs, ys, strict=True)]
    if len(set(at)) < len(at) or len(across) * len(up) > 1.5 * len(at) or len(across) < 2 or not _numbers(across):
        return None
    return Places((first, second), across, up, at, remarks)


def _coordinate(texts: list[str]) -> tuple[str, list[str]]:
    """What a part measures, and its values."""
    words = [t.split(" ") for t in texts]
    shortest = min(map(len, words))
    head = tail = 0
    while head < shortest - 1 and len({w[head] for w in words}) == 1:
        head += 1
    while tail < shortest - 1 - head and len({w[-1 - tail] for w in words}) == 1:
        tail += 1
    name = " ".join([*words[0][:head], *words[0][len(words[0]) - tail :]])
    return name, [" ".join(w[head : len(w) - tail]) for w in words]


def _in_order(values: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(values))
    return sorted(distinct, key=float) if _numbers(distinct) else distinct


def _numbers(values: list[str]) -> bool:
    return all(_NUMBER.fullmatch(v) for v in values)
