"""One way to call ``solve`` with everything spelled out: how many samples find the policy, how many prove it, which parts.

Most tests are about one part of the method and say so by keyword; :func:`solve` puts those into a Method.
"""

from __future__ import annotations

from typing import Any

import saddleback
from saddleback import Method, Part, Solution

DUAL_OPTIONS = {"iterations", "upper", "step_size", "tolerance", "max_columns"}
METHOD = set(Method.__dataclass_fields__) - {"certificate"}


def solve(
    problem: Any, simulator: Any = None, *, samples: int | None = None, certificate: int = 0, **given: Any
) -> Solution:
    """``samples`` find the policy, ``certificate`` more prove it; parts and their options go into the method."""
    given.setdefault("feasibility", "relaxed")
    choices = {name: given.pop(name) for name in METHOD & set(given)}
    options = {name: given.pop(name) for name in DUAL_OPTIONS & set(given)}
    if options:
        literal = choices.get("mode") == "literal"
        name = choices.get("dual") or ("projected-descent" if literal else "column-generation")
        known = {
            "projected-descent": {"iterations", "upper", "step_size"},
            "column-generation": {"tolerance", "max_columns"},
        }
        fitting = known.get(name, set()) & {k for k, v in options.items() if v is not None}
        choices["dual"] = Part(name, {k: options[k] for k in fitting})
    if given.get("store") is not None:
        given["reuse"] = given.pop("store")
    given.pop("store", None)
    if choices.get("target") is not None:
        choices["target"] = tuple(choices["target"])
    if given.get("epsilon") is not None:
        more = {"certificate": certificate or None, **choices}
        return saddleback.solve(problem, simulator, samples=samples, method=Method(**more), **given)
    total = None if samples is None else samples + certificate
    if given.get("reuse") is not None:
        total = certificate or None
    elif samples is None:
        total = 1_000_000 + certificate
    return saddleback.solve(
        problem, simulator, samples=total, method=Method(certificate=certificate, **choices), **given
    )
