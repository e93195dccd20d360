"""What a report draws besides the answer: ``frontier.json``, ``dual.json`` and ``design.json`` of a run folder.

    frontier.json   every policy seen (``columns``, in utilities) with its measured limits, and for each constraint the best
                    mixture at a row of thresholds: what :mod:`saddleback.solving.frontier` found in the samples of the run
    dual.json       the dual's path: multipliers and estimated values, in the user's units, iteration by iteration
    design.json     the sampled pairs with their weights and leverages, heaviest first

They are for people to look at; no proof rests on them. They are read as if a stranger had written them: what is too long, out
of range or of the wrong length is refused.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from saddleback.designs.design import Design
from saddleback.files.json_file import Record, Share, Whole, check
from saddleback.problem.spaces import Array

MOST_BYTES = 1 << 24
"""Of each of the files."""

MOST_COLUMNS = 5_000
"""Policies that a frontier may speak of."""

_MOST_POINTS, _MOST_STEPS, _MOST_PAIRS, _MOST_COORDINATES = 2_000, 2_000, 2_000, 64
_ROUNDING = 1e-6


class PointRecord(Record, frozen=True):
    """The best mixture at one threshold: weights of some of the columns."""

    threshold: float
    value: float
    constraints: list[float]
    multiplier: float
    gap: float
    members: list[Whole]
    weights: list[Annotated[float, Meta(ge=0)]]

    def __post_init__(self) -> None:
        check(1 <= len(self.members) == len(self.weights), "members must name columns, one a weight")
        check(abs(sum(self.weights) - 1) <= _ROUNDING, "weights must be probabilities")


class CurveRecord(Record, frozen=True):
    """The best reward against the threshold of one constraint."""

    constraint: str
    points: Annotated[list[PointRecord], Meta(min_length=2, max_length=_MOST_POINTS)]

    def __post_init__(self) -> None:
        rising = all(a.threshold < b.threshold for a, b in pairwise(self.points))
        check(rising, "points must have increasing thresholds")


class FrontierRecord(Record, frozen=True):
    """``frontier.json``; ``limits`` holds [low, high] for the policies that are part of a curve, None for the others."""

    format: Literal["saddleback-frontier/1"]
    confidence: Share
    columns: list[list[float]]
    limits: list[tuple[list[float], list[float]] | None]
    curves: list[CurveRecord]

    def __post_init__(self) -> None:
        check(1 <= len(self.columns) <= MOST_COLUMNS, f"columns must be 1 to {MOST_COLUMNS:,}")
        width = len(self.columns[0])
        check(width >= 2, "columns must hold the reward and a constraint")
        check(all(len(x) == width for x in self.columns), f"columns must have {width} numbers each")
        check(len(self.limits) == len(self.columns), f"limits must be as many as the columns, {len(self.columns)}")
        for i, pair in enumerate(self.limits):
            check(all(len(x) == width for x in pair or ()), f"limits[{i}] must be two rows of {width}")
        check(1 <= len(self.curves) < width, f"curves must be 1 to {width - 1}")
        for point in (point for curve in self.curves for point in curve.points):
            check(len(point.constraints) == width - 1, f"constraints of a point must be {width - 1} numbers")
            check(max(point.members) < len(self.columns), "members must name columns")


class DualRecord(Record, frozen=True):
    """``dual.json``: at most 2,000 iterations, spread evenly, the first and the last among them."""

    format: Literal["saddleback-dual/1"]
    total: Whole
    iterations: Annotated[list[Whole], Meta(min_length=1, max_length=_MOST_STEPS)]
    multipliers: list[list[float | None]]
    values: list[list[float]]

    def __post_init__(self) -> None:
        n = len(self.iterations)
        same = len(self.multipliers) == len(self.values) == n
        check(same, f"iterations must be as many as multipliers and values, {n}")
        width = len(self.values[0])
        wide = width >= 2 and all(len(x) == width for x in self.values)
        wide = wide and all(len(x) == width - 1 for x in self.multipliers)
        check(wide, "values must have one column more than the multipliers")
        check(all(a < b for a, b in pairwise([*self.iterations, self.total])), "iterations must increase")

    @staticmethod
    def of(multipliers: Array, values: Array) -> DualRecord:
        """From the dual's path, multipliers ``(K, m)`` and values ``(K, 1+m)``."""
        total = len(multipliers)
        kept = np.unique(np.linspace(0, total - 1, min(total, _MOST_STEPS)).round().astype(int))
        finite = [[x if math.isfinite(x) else None for x in row] for row in multipliers[kept].tolist()]
        return DualRecord("saddleback-dual/1", total, kept.tolist(), finite, values[kept].tolist())


class DesignRecord(Record, frozen=True):
    """``design.json``: at most 2,000 pairs, those with the largest weights."""

    format: Literal["saddleback-design/1"]
    size: Whole
    rank: Whole
    condition: float
    leverage_bound: float
    lebesgue: float
    complete: bool
    features: Whole | None
    states: list[int | float | Annotated[list[float], Meta(min_length=1, max_length=_MOST_COORDINATES)]]
    actions: list[Whole]
    weights: Annotated[list[Annotated[float, Meta(ge=0, le=1)]], Meta(min_length=1, max_length=_MOST_PAIRS)]
    leverages: list[float]

    def __post_init__(self) -> None:
        n = len(self.weights)
        check(n <= self.size, "weights must be at most size")
        same = len(self.states) == len(self.actions) == len(self.leverages) == n
        check(same, "weights must be as many as states, actions and leverages")

    @staticmethod
    def of(design: Design) -> DesignRecord:
        """From the design itself."""
        order = np.argsort(-design.weights, kind="stable")[:_MOST_PAIRS]
        leverages = 1 / design.weights[order]
        if design.features is not None:
            leverages = design.leverage(design.features[order])
        return DesignRecord(
            "saddleback-design/1",
            design.size,
            design.rank,
            design.condition,
            design.leverage_bound,
            design.lebesgue,
            design.complete,
            None if design.features is None else design.features.shape[1],
            np.asarray(design.states)[order].tolist(),
            np.asarray(design.actions)[order].tolist(),
            design.weights[order].tolist(),
            leverages.tolist(),
        )


class Drawings(Record, frozen=True):
    """What is there of the three."""

    frontier: FrontierRecord | None = None
    dual: DualRecord | None = None
    design: DesignRecord | None = None

    def files(self) -> dict[str, Record]:
        """Those that are there, by the name of the file."""
        found = {"frontier.json": self.frontier, "dual.json": self.dual, "design.json": self.design}
        return {name: record for name, record in found.items() if record is not None}


NOTHING_DRAWN = Drawings()
