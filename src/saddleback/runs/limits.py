"""Other limits than the problem's own, "what if", as part of a target's settings: whatever keeps those keeps these.

    --set capacity=4 --limit energy=5     →     ["capacity=4", "limit energy=5"]

A limit is in the unit in which the problem gives it: one given per step stays per step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from saddleback.errors import require
from saddleback.files.json_file import short
from saddleback.problem.names import LONGEST_NAME

_LIMIT = "limit "
_HASH = "sha256="  # how a problem file is known again
_LONGEST = LONGEST_NAME + 100
_EXAMPLE = "for example --limit energy=5; the number is in the unit in which the problem gives its limit"


def with_limit_settings(settings: Sequence[str] | None, limits: Sequence[str] | None) -> list[str]:
    """The settings of a target, "name=value" limits of its constraints among them."""
    for text in limits or ():
        fits = text.isprintable() and len(text) <= _LONGEST
        require(fits, "--limit", f"must be at most {_LONGEST} printable characters", short(text), _EXAMPLE)
    return [*(settings or ()), *(f"{_LIMIT}{text}" for text in limits or ())]


def limit_settings(settings: Sequence[str]) -> list[str]:
    """Those of the settings that are limits."""
    return [text for text in settings if text.startswith(_LIMIT)]


def own_settings(settings: Sequence[str]) -> list[str]:
    """Those that are neither limits nor the hash by which a problem file is known again."""
    return [text for text in settings if not text.startswith((_LIMIT, _HASH))]


def limits_of(settings: Sequence[str]) -> dict[str, float]:
    """The limits among the settings, by constraint."""
    limits: dict[str, float] = {}
    for text in (s.removeprefix(_LIMIT) for s in limit_settings(settings)):
        name, _, value = text.rpartition("=")  # a name may hold one
        try:
            limit = float(value)
        except ValueError:
            limit = math.nan
        good = bool(name) and math.isfinite(limit)
        require(good, "--limit", "must look like name=value with a finite number", short(text), _EXAMPLE)
        require(name not in limits, "--limit", "must be given once for a constraint", short(text), "leave one out")
        limits[name] = limit
    return limits


def options_of(settings: Sequence[str]) -> list[str]:
    """Words of a command line that give these settings again."""
    words = [word for text in own_settings(settings) for word in ("--set", text)]
    return words + [word for text in limit_settings(settings) for word in ("--limit", text.removeprefix(_LIMIT))]
