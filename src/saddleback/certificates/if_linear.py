"""The statements of a certificate that need P to be linear in the features, with the misfit that each of them withstands.

They are a bound from a coreset with the gap to it, infeasibility, and limits of values from a coreset; :mod:`.linearity.misfit` says what
*withstand* means. The bounds that hold at the misfits that were tried are kept, so that others can see that it follows.
"""

from __future__ import annotations

from typing import NamedTuple

from saddleback.certificates.assumptions import rests_on
from saddleback.certificates.bounds.bound import Bound
from saddleback.certificates.certificate import IfLinear, Limits, LinearValues, Withstood
from saddleback.certificates.linearity.misfit import withstood
from saddleback.certificates.values.linear_plan import enumerable
from saddleback.problem.cmdp import CMDP


class Conditional(NamedTuple):
    """The statements, None where nothing assumes linearity; and the rows ``bent`` of the bound's evidence."""

    statements: IfLinear | None
    bent: tuple[tuple[float, ...], ...] = ()


def of_policy(problem: CMDP, bound: Bound | None, value: Limits, values: LinearValues | None) -> Conditional:
    """What is said of a policy whose reward has these limits, which assume nothing, and of the best one."""
    if bound is None or not rests_on(bound.assumes, "linear"):
        return Conditional(None if values is None else _of_values(problem, values))
    beside = None if values is None else _of_values(problem, values)
    tried, gap, top = _Tried(bound), bound.on_gap(problem, value), bound.on_reward(problem)
    above = problem.loss(top, value)
    limits = (None, ()) if beside is None else (beside.value, beside.constraints)
    alone = Withstood() if beside is None or beside.withstands is None else beside.withstands
    return Conditional(
        IfLinear(
            str(bound.assumes) if beside is None else beside.assumes,
            *limits,
            upper_bound=top,
            gap=gap,
            on_candidates=rests_on(bound.assumes, "candidates") or not enumerable(problem),
            withstands=Withstood(
                alone.value,
                alone.constraints,
                upper_bound=withstood(lambda e: problem.loss(tried.at(e).on_reward(problem), value) <= 2 * above),
                gap=withstood(lambda e: tried.at(e).on_gap(problem, value) <= 2 * gap),
            ),
        ),
        tried.rows(),
    )


def of_room(problem: CMDP, bound: Bound | None) -> Conditional:
    """What is said of the room that all policies leave, where none was found feasible."""
    if bound is None or not rests_on(bound.assumes, "linear"):
        return Conditional(None)
    tried, room = _Tried(bound), bound.on_slack(problem)
    holds = withstood(lambda e: tried.at(e).on_slack(problem) < 0) if room < 0 else None
    on_candidates = rests_on(bound.assumes, "candidates") or not enumerable(problem)
    each = Withstood(slack_bound=holds)
    stated = IfLinear(str(bound.assumes), slack_bound=room, on_candidates=on_candidates, withstands=each)
    return Conditional(stated, tried.rows())


def _of_values(problem: CMDP, values: LinearValues) -> IfLinear:
    each = Withstood(values.withstand[0], values.withstand[1:])
    limits = values.limits[0], values.limits[1:]
    return IfLinear(values.assumes, *limits, on_candidates=not enumerable(problem), withstands=each)


class _Tried:
    """A bound at the misfits that were tried."""

    def __init__(self, bound: Bound):
        self._bound, self._at = bound, dict[float, Bound]()

    def at(self, misfit: float) -> Bound:
        """The bound that holds there."""
        if misfit not in self._at:
            self._at[misfit] = self._bound.bent(misfit)
        return self._at[misfit]

    def rows(self) -> tuple[tuple[float, ...], ...]:
        """By the misfit."""
        return tuple((misfit, *bound.numbers) for misfit, bound in sorted(self._at.items(), key=lambda row: row[0]))
