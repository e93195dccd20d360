"""One constraint of an answer or of the truth, as discounted totals and in the unit that it was given in."""

from __future__ import annotations

from collections.abc import Sequence

from saddleback.files.json_file import Record
from saddleback.problem.cmdp import CMDP
from saddleback.problem.criteria import UNSEEN, UnitName


class InUnits(Record, frozen=True):
    """The numbers of a :class:`ConstraintReport` in the unit that the constraint was given in."""

    value: float
    threshold: float
    slack: float
    low: float | None = None
    high: float | None = None


class ConstraintReport(Record, frozen=True):
    """One constraint of the answer, as discounted totals; ``slack`` is positive when the constraint holds.

    ``units`` is what it was given in (None in files of earlier versions); where that is not the total, ``in_units`` has the
    same numbers in it.
    """

    name: str
    value: float
    threshold: float
    sense: str
    slack: float
    low: float | None = None
    high: float | None = None
    units: UnitName | None = None
    in_units: InUnits | None = None


def constraint_report(
    problem: CMDP, i: int, value: float, limits: tuple[float, float] | None = None, rounding: float = 0.0
) -> ConstraintReport:
    """Row i of an answer, from discounted totals; slacks up to ``rounding`` (of the largest total) are zero."""
    c, unit, threshold = problem.constraints[i], problem.units[i], float(problem.user_thresholds()[i])
    slack = value - threshold if c.sense == ">=" else threshold - value
    if abs(slack) <= rounding * problem.horizon * abs(problem.scale[1 + i]):
        slack = 0.0  # met exactly, up to rounding
    low, high = limits or (None, None)
    shown = None
    if unit.per_step:
        ends = (None if x is None else unit.of(x) for x in (low, high))
        shown = InUnits(unit.of(value), c.threshold, unit.of(slack), *ends)
    return ConstraintReport(c.name, value, threshold, c.sense, slack, low, high, unit.name, shown)


def shown_price(problem: CMDP, i: int, multiplier: float) -> float:
    """The price of constraint i in its unit, for people: 0 where it is rounding."""
    rounding = UNSEEN * problem.reward_span / abs(float(problem.scale[1 + i]))
    return 0.0 if abs(multiplier) <= rounding else problem.units[i].price_of(multiplier)


def shown_best(problem: CMDP, i: int, value: float, multiplier: float) -> float:
    """The best reward at a threshold of constraint i, for people: 0 where it is no more than the threshold's rounding buys."""
    bought = abs(multiplier) * problem.units[i].rounding
    return 0.0 if abs(value) <= bought else problem.reward_unit.shown(value)


def shown_prices(problem: CMDP, multipliers: Sequence[float]) -> list[float]:
    """As :func:`prices_in_units`, for people."""
    return [shown_price(problem, i, x) for i, x in enumerate(multipliers)]


def prices_in_units(problem: CMDP, multipliers: Sequence[float]) -> list[float]:
    """Reward per one of the unit that each constraint was given in; none where there are no multipliers."""
    units = problem.units if multipliers else ()
    return [unit.price_of(x) for unit, x in zip(units, multipliers, strict=True)]
