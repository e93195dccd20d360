"""Two golden records side by side.

    python tests/golden/compare.py FILE_A FILE_B [--values 1e-9]

Calls, samples, counts, actions and facts must be equal. Numbers a and b may differ by |a − b| / max(1, |a|, |b|) of at most
``--values``: relative for large numbers, absolute for small ones, whose rounding errors come from larger terms. The program
ends with code 1 if anything differs by more, and names the first field that does.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

EXACT = ("calls", "counts", "samples", "actions", "exact")
"""Fields that must be equal, in the order in which a run decides them."""

USUAL_LIMIT = 1e-9


class Difference(NamedTuple):
    """How two entries of one case differ: which exact fields, the largest difference of a number, and where it begins."""

    fields: tuple[str, ...]
    largest: float
    where: str
    first: str

    def beyond(self, limit: float) -> bool:
        """Whether it is more than is allowed."""
        return bool(self.fields) or not self.largest <= limit


def relative(a: float, b: float) -> float:
    """|a − b| / max(1, |a|, |b|); equal infinities and two NaN differ by 0, other infinities and NaN by infinity."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(1.0, abs(a), abs(b))


def difference(a: dict[str, Any], b: dict[str, Any]) -> Difference:
    """The difference of two entries."""
    fields = tuple(field for field in EXACT if a[field] != b[field])
    ours, theirs = a["values"], b["values"]
    largest, where = 0.0, ""
    for name in ours.keys() & theirs.keys():
        apart = relative(ours[name], theirs[name])
        if apart > largest or (apart == largest > 0 and name < where):
            largest, where = apart, name
    alone = sorted(ours.keys() ^ theirs.keys())
    if alone:
        largest, where = math.inf, f"{alone[0]} (in one of the two only)"
    first = _first(a, b, fields[0]) if fields else f"values: {where}" if largest > 0 else ""
    return Difference(fields, largest, where, first)


def _first(a: dict[str, Any], b: dict[str, Any], field: str) -> str:
    """Where the difference begins: the first draw that is another one, or the field."""
    draws = zip(a["draws"], b["draws"], strict=False)
    for number, (ours, theirs) in enumerate(draws):
        if ours != theirs:
            return f"draws[{number}]: {ours}  |  {theirs}"
    if len(a["draws"]) != len(b["draws"]):
        return f"draws: {len(a['draws'])} and {len(b['draws'])} of them"
    if field == "exact":
        names = sorted(a["exact"].keys() | b["exact"].keys())
        name = next(n for n in names if a["exact"].get(n) != b["exact"].get(n))
        return f"exact: {name} is {a['exact'].get(name)} and {b['exact'].get(name)}"
    return field


def compare(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Difference | str]:
    """All cases of two records; a text where a case is in one of them only."""
    found: dict[str, Difference | str] = {}
    for name in [*a, *(n for n in b if n not in a)]:
        if name in a and name in b:
            found[name] = difference(a[name], b[name])
        else:
            found[name] = f"only in the {'first' if name in a else 'second'} record"
    return found


def too_far(found: dict[str, Difference | str], limit: float) -> list[str]:
    """The cases that differ by more than is allowed."""
    return [name for name, diff in found.items() if isinstance(diff, str) or diff.beyond(limit)]


def print_table(found: dict[str, Difference | str], limit: float) -> None:
    """One line a case, and what differs beyond the limit."""
    width = max(map(len, found), default=4)
    print(f"{'case':{width}}  {'  '.join(f'{field:7}' for field in EXACT)}  largest difference of a value")
    for name, diff in found.items():
        if isinstance(diff, str):
            print(f"{name:{width}}  {diff}")
            continue
        marks = "  ".join(f"{'DIFFERS' if field in diff.fields else 'equal':7}" for field in EXACT)
        print(f"{name:{width}}  {marks}  {diff.largest:.1e} {diff.where}")
    failed = too_far(found, limit)
    print(f"\n{len(found)} cases, {len(failed)} beyond what is allowed (values: {limit:g})")
    for name in failed:
        diff = found[name]
        print(f"  {name}: {diff if isinstance(diff, str) else f'first at {diff.first}'}")


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="Compare two golden records.")
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    help_text = f"allowed |a - b| / max(1, |a|, |b|) of every number (default: {USUAL_LIMIT:g}; 0: none)"
    parser.add_argument("--values", type=float, default=USUAL_LIMIT, help=help_text)
    given = parser.parse_args()
    found = compare(json.loads(given.first.read_text()), json.loads(given.second.read_text()))
    print_table(found, given.values)
    sys.exit(1 if too_far(found, given.values) else 0)


if __name__ == "__main__":
    main()
