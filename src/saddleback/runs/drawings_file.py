"""What a report draws besides the answer: ``frontier.json``, ``dual.json`` and ``design.json`` of a run folder.

    frontier.json   every policy seen (``columns``, in utilities) with its measured limits, and for each constraint the best
                    mixture at a row of thresholds: what :mod:`saddleback.solving.frontier` found in the samples of the run
    dual.json       the dual's path: multipliers and estimated values, in the user's units, iteration by iteration
    design.json     the sampled pairs with their weights and leverages, heaviest first

They are for people to look at; no proof rests on them. They are read as if a stranger had written them: :func:`check_report_file`
refuses what is too long, not finite, out of range or of the wrong length.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from saddleback.designs.design import Design
from saddleback.errors import InputError
from saddleback.files.json_file import Maybe, check_shape, short
from saddleback.runs.answer import Trace

FRONTIER, DUAL, DESIGN = "frontier.json", "dual.json", "design.json"
REPORT_FILES = (FRONTIER, DUAL, DESIGN)

MOST_BYTES = 1 << 24
"""Of each of the files."""

MOST_COLUMNS = 5_000
"""Policies that a frontier may speak of."""

_MOST_POINTS, _MOST_STEPS, _MOST_PAIRS = 2_000, 2_000, 2_000
_ROUNDING = 1e-6
_FORMATS = {FRONTIER: "saddleback-frontier/1", DUAL: "saddleback-dual/1", DESIGN: "saddleback-design/1"}
_POINT = {
    "threshold": "number",
    "value": "number",
    "constraints": ["number"],
    "multiplier": "number",
    "gap": "number",
    "members": ["whole"],
    "weights": ["number"],
}
_SHAPES: dict[str, dict[str, Any]] = {
    FRONTIER: {
        "format": "text",
        "confidence": "number",
        "columns": [["number"]],
        "limits": [Maybe([["number"]])],
        "curves": [{"constraint": "text", "points": [_POINT]}],
    },
    DUAL: {
        "format": "text",
        "total": "whole",
        "iterations": ["whole"],
        "multipliers": [[Maybe("number")]],
        "values": [["number"]],
    },
    DESIGN: {
        "format": "text",
        "size": "whole",
        "rank": "whole",
        "condition": "number",
        "leverage_bound": "number",
        "lebesgue": "number",
        "complete": "flag",
        "features": Maybe("whole"),
        "states": ["anything"],
        "actions": ["whole"],
        "weights": ["number"],
        "leverages": ["number"],
    },
}

Require = Callable[[bool, str, str, Any], None]


def trace_fields(trace: Trace) -> dict[str, Any]:
    """``dual.json``: at most 2,000 iterations, spread evenly, the first and the last among them."""
    total = len(trace.multipliers)
    kept = np.unique(np.linspace(0, total - 1, min(total, _MOST_STEPS)).round().astype(int))
    multipliers = [[x if math.isfinite(x) else None for x in row] for row in trace.multipliers[kept].tolist()]
    return {
        "format": _FORMATS[DUAL],
        "total": total,
        "iterations": kept.tolist(),
        "multipliers": multipliers,
        "values": trace.values[kept].tolist(),
    }


def design_fields(design: Design) -> dict[str, Any]:
    """``design.json``: at most 2,000 pairs, those with the largest weights."""
    order = np.argsort(-design.weights, kind="stable")[:_MOST_PAIRS]
    leverages = 1 / design.weights[order]
    if design.features is not None:
        leverages = design.leverage(design.features[order])
    return {
        "format": _FORMATS[DESIGN],
        "size": design.size,
        "rank": design.rank,
        "condition": design.condition,
        "leverage_bound": design.leverage_bound,
        "lebesgue": design.lebesgue,
        "complete": design.complete,
        "features": None if design.features is None else design.features.shape[1],
        "states": np.asarray(design.states)[order].tolist(),
        "actions": np.asarray(design.actions)[order].tolist(),
        "weights": design.weights[order].tolist(),
        "leverages": leverages.tolist(),
    }


def frontier_fields(
    confidence: float, columns: list[Any], limits: list[Any], curves: list[dict[str, Any]]
) -> dict[str, Any]:
    """``frontier.json``; ``limits`` holds (low, high) for the policies that are part of a curve, None for the others."""
    return {
        "format": _FORMATS[FRONTIER],
        "confidence": confidence,
        "columns": columns,
        "limits": limits,
        "curves": curves,
    }


def check_report_file(name: str, data: Any, where: str, remedy: str) -> None:
    """Raise an :class:`InputError` unless ``data`` is what ``name`` must hold."""
    if isinstance(data, dict) and data.get("format") != _FORMATS[name]:
        raise InputError(f"{where}.format", f"must be {_FORMATS[name]!r}", short(data.get("format")), remedy)
    check_shape(data, _SHAPES[name], where, remedy)

    def require(right: bool, field: str, rule: str, value: Any) -> None:
        if not right:
            raise InputError(f"{where}.{field}", rule, short(value), remedy)

    {FRONTIER: _check_frontier, DUAL: _check_trace, DESIGN: _check_design}[name](data, require)


def _check_frontier(data: dict[str, Any], require: Require) -> None:
    columns, limits = data["columns"], data["limits"]
    require(0 < data["confidence"] < 1, "confidence", "must lie in (0, 1)", data["confidence"])
    require(1 <= len(columns) <= MOST_COLUMNS, "columns", f"must be 1 to {MOST_COLUMNS:,}", len(columns))
    width = len(columns[0])
    require(width >= 2, "columns[0]", "must hold the reward and a constraint", width)
    require(all(len(x) == width for x in columns), "columns", f"must have {width} numbers each", "others")
    require(len(limits) == len(columns), "limits", f"must be as many as the columns, {len(columns)}", len(limits))
    for i, pair in enumerate(limits):
        right = pair is None or (len(pair) == 2 and all(len(x) == width for x in pair))
        require(right, f"limits[{i}]", f"must be two rows of {width}", pair)
    require(1 <= len(data["curves"]) < width, "curves", f"must be 1 to {width - 1}", len(data["curves"]))
    for k, curve in enumerate(data["curves"]):
        where, points = f"curves[{k}].points", curve["points"]
        require(2 <= len(points) <= _MOST_POINTS, where, f"must be 2 to {_MOST_POINTS:,}", len(points))
        for i, point in enumerate(points):
            members, weights = point["members"], point["weights"]
            require(
                len(point["constraints"]) == width - 1,
                f"{where}[{i}].constraints",
                f"must be {width - 1} numbers",
                len(point["constraints"]),
            )
            right = 1 <= len(members) == len(weights) and max(members) < len(columns)
            require(right, f"{where}[{i}].members", "must name columns, one a weight", members)
            right = min(weights) >= 0 and abs(sum(weights) - 1) <= _ROUNDING
            require(right, f"{where}[{i}].weights", "must be probabilities", weights)
        rising = all(a["threshold"] < b["threshold"] for a, b in pairwise(points))
        require(rising, where, "must have increasing thresholds", "others")


def _check_trace(data: dict[str, Any], require: Require) -> None:
    n, rows = len(data["iterations"]), data["values"]
    require(1 <= n <= _MOST_STEPS, "iterations", f"must be 1 to {_MOST_STEPS:,}", n)
    lengths = (len(data["multipliers"]), len(rows))
    require(lengths == (n, n), "iterations", f"must be as many as multipliers and values, {n}", lengths)
    width = len(rows[0])
    right = width >= 2 and all(len(x) == width for x in rows) and all(len(x) == width - 1 for x in data["multipliers"])
    require(right, "values", "must have one column more than the multipliers", width)
    steps = [-1, *data["iterations"], data["total"]]
    require(all(a < b for a, b in pairwise(steps)), "iterations", "must increase", "others")


def _check_design(data: dict[str, Any], require: Require) -> None:
    n = len(data["weights"])
    require(1 <= n <= min(_MOST_PAIRS, data["size"]), "weights", f"must be 1 to {_MOST_PAIRS:,}, at most size", n)
    lengths = tuple(len(data[k]) for k in ("states", "actions", "leverages"))
    require(lengths == (n, n, n), "weights", "must be as many as states, actions and leverages", lengths)
    for i, (state, weight) in enumerate(zip(data["states"], data["weights"], strict=True)):
        require(0 <= weight <= 1, f"weights[{i}]", "must lie in [0, 1]", weight)
        point = state if isinstance(state, list) else [state]
        right = 1 <= len(point) <= 64 and all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in point)
        require(right, f"states[{i}]", "must be a state: a number, or a few", state)
