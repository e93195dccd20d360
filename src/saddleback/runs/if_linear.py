"""What holds only if P is linear in the features, in words: never called proved, and beside each statement the misfit that it withstands.

ε is the distance of P from linear in total variation (:mod:`saddleback.certificates.linearity.misfit` defines it, and what *withstand* means).
"""

from __future__ import annotations

from typing import NamedTuple

from rich.console import Console
from rich.markup import escape

from saddleback.certificates.assumptions import condition
from saddleback.certificates.certificate import Certificate, IfLinear, Withstood
from saddleback.problem.cmdp import CMDP
from saddleback.runs.numbers import add_row, at_most, confidence, empty_table, limits_in, number, percent, wanted
from saddleback.runs.words import empty_bound

HEADS = "statement", "limits", "up to ε ="
POWER = "nine times in ten"
_NONE = Withstood()


class Row(NamedTuple):
    """A statement, its limits, and the misfit that it withstands."""

    statement: str
    limits: str
    withstands: str


def heading(given: IfLinear) -> str:
    """What everything below it needs, as a title."""
    needs = condition(given.on_candidates)
    return f"{needs[0].upper()}{needs[1:]} (assumed, not proved)"


def rows(problem: CMDP, given: IfLinear) -> list[Row]:
    """The statements in the order in which those that are proved stand."""
    each, out = given.withstands or _NONE, list[Row]()
    if given.value is not None:
        whose = f"{problem.objective} of this policy"
        out.append(Row(whose, limits_in(problem.reward_unit, given.value), _up_to(each.value)))
        found = zip(problem.constraints, problem.units, given.constraints, each.constraints or (), strict=False)
        for c, unit, limits, e in found:
            out.append(Row(f"{c.name} {wanted(c, unit)}", limits_in(unit, limits), _up_to(e)))
    if given.upper_bound is not None:
        top = empty_bound(problem, given.upper_bound) or at_most(given.upper_bound, problem.minimise)
        out.append(Row(f"{problem.objective} of the best policy", top, _up_to(each.upper_bound)))
        out.append(Row("what this policy loses to it", at_most(given.gap), _up_to(each.gap)))
    return out


def print_statements(console: Console, problem: CMDP, certificate: Certificate) -> None:
    """Under their own heading; nothing where nothing assumes linearity."""
    given, report = certificate.linear, certificate.linearity
    if given is None:
        return
    (statement, limits, misfit), sure = HEADS, confidence(certificate.confidence)
    title = f"{heading(given)}, with {sure} confidence"
    table = empty_table(title, [statement], [limits, misfit], ranges=[limits])
    for row in rows(problem, given):
        add_row(table, *row)
    console.print(table)
    console.print(escape(misfit_line(given, None if report is None else report.detectable)))


def misfit_line(given: IfLinear, detectable: float | None) -> str:
    """What the column of misfits means, and what the tests of linearity would have noticed, in one line."""
    means = "ε is how far P may be from linear, in total variation, before a statement can be off by as much as its own margin"
    return (
        f"{means}; {noticed(detectable)}." if given.withstands is not None else f"{noticed(detectable).capitalize()}."
    )


def noticed(detectable: float | None) -> str:
    """What the held-out test would have seen."""
    if detectable is None:
        return "linearity was not tested, for want of samples"
    if detectable >= 1:
        return "the tests of linearity, which passed, are not sure to notice any ε with so few samples"
    return f"the tests of linearity, which passed, notice ε = {number(detectable)} or more ({POWER}) at the pairs that they try"


def no_policy(problem: CMDP, given: IfLinear) -> str:
    """That no policy meets the constraints, as far as that goes."""
    assert given.slack_bound is not None
    room, each = -given.slack_bound, given.withstands or _NONE
    if problem.num_constraints > 1:
        missed = f"one of them by {percent(room / problem.horizon)} or more of the range of its values"
    else:
        missed = f"'{problem.constraints[0].name}' by {problem.units[0].say(room * abs(float(problem.scale[1])), number)} or more"
    held = "" if each.slack_bound is None else f" (up to ε = {_up_to(each.slack_bound)})"
    return f"{heading(given)}, no policy meets the constraints, and every policy misses {missed}{held}."


def _up_to(misfit: float | None) -> str:
    """A misfit to two digits."""
    return "–" if misfit is None else "any" if misfit >= 1 else f"{misfit:.2g}" if misfit > 0 else "0"
