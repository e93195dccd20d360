"""How much memory there is to take, and the refusal of what would not fit: before anything is allocated.

The limit is nine tenths of what the machine has left (MemAvailable), or the control group if that is less, its cache of
files counted as free; the environment variable SADDLEBACK_MEMORY sets it by hand: bytes, or a text such as 2GB.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from saddleback.errors import InputError, require

LIMIT_VARIABLE = "SADDLEBACK_MEMORY"  # of the environment: sets the limit by hand
SHARE = 0.9  # of what is left, how much a solve may plan to take
_UNITS = {"": 1} | {u + i: (1024 if i else 1000) ** (1 + n) for n, u in enumerate("KMGT") for i in ("", "I")}
_GROUPS = (  # limit, use, statistics and the name of the cache in them: control groups of version 2 and 1
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)


class Limit(NamedTuple):
    """Bytes that a solve may take, and who says so."""

    bytes: int
    source: str


def limit() -> Limit:
    """What a solve may take: as :data:`LIMIT_VARIABLE` says, or nine tenths of what machine and control group have left."""
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if given:
        return Limit(parse_bytes(given, LIMIT_VARIABLE), LIMIT_VARIABLE)
    left, source = _machine(Path("/proc/meminfo"))
    for group in _GROUPS:
        found = _group(Path("/sys/fs/cgroup"), *group)
        if found is not None and found < left:
            left, source = found, "the control group"
    return Limit(int(SHARE * left), f"{SHARE:.0%} of what is left of {source}")


def require_room(needed: float, what: str, remedy: str, name: str = "memory", within: Limit | None = None) -> None:
    """Refuse what takes so many bytes where there is less."""
    found = within or limit()
    value = f"a limit of {spelled(found.bytes)} ({found.source})"
    rule = f"must hold {what}, about {spelled(needed)}"
    require(needed <= found.bytes, name, rule, value, f"{remedy}, or set {LIMIT_VARIABLE}")


def parse_bytes(text: str, name: str = "memory") -> int:
    """``"2GB"``, ``"1.5 GiB"`` or ``"800000000"`` as a number of bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([KMGT]I?)?B?", text.strip().upper())
    if match is None:
        raise InputError(name, "must be a number of bytes", repr(text), "write 800000000, 2GB or 1.5GiB")
    number = float(match[1]) * _UNITS[match[2] or ""]
    require(1 <= number < 1e18, name, "must be between 1 byte and 10^18", repr(text), "write 800000000, 2GB or 1.5GiB")
    return int(number)


def spelled(count: float) -> str:
    """Bytes with three digits, in the unit that suits them."""
    for unit, name in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count / 1e3:.3g} kB"


def _machine(meminfo: Path) -> tuple[float, str]:
    """What the machine has left; all it has where the kernel does not say."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text("ascii"), re.MULTILINE)
    except OSError:
        found = None
    if found is not None:
        return 1024.0 * int(found[1]), "the machine's memory"
    return _whole_machine(), "the machine's memory"


def _whole_machine() -> float:
    """All the memory of the machine, by the system's own call; no limit where it has none."""
    if hasattr(os, "sysconf"):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    import ctypes

    class Status(ctypes.Structure):  # MEMORYSTATUSEX
        _fields_ = (
            *((n, ctypes.c_ulong) for n in ("length", "load")),
            *((f"n{i}", ctypes.c_ulonglong) for i in range(7)),
        )

    windows, status = getattr(ctypes, "windll", None), Status(length=ctypes.sizeof(Status))
    if windows is None or not windows.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return float("inf")
    return float(status.n1)  # ullAvailPhys


def _group(root: Path, most: str, used: str, statistics: str, cache: str) -> float | None:
    """What the control group has left, its cache of files counted as free; None where it has no limit."""
    try:
        words = (root / most).read_text("ascii").split()
        if words[:1] in ([], ["max"]):
            return None
        left = int(words[0]) - int((root / used).read_text("ascii"))
        found = re.search(rf"^{cache} (\d+)$", (root / statistics).read_text("ascii"), re.MULTILINE)
    except (OSError, ValueError):
        return None
    return max(0.0, float(left + (0 if found is None else int(found[1]))))
