"""Why no policy meets the constraints, constraint by constraint: a smallest set that cannot be met together, and what each
of them can reach at best where the others of the set are met.

    K = all;   for j ∈ K:   drop j where K \\ {j} cannot be met either          what is left contradicts itself
    for i ∈ K:  best_i = max V_{c_i}  s.t.  V_{c_j} ≥ b_j,  j ∈ K \\ {i}          "with orders <= 0.5 the least lost sales are 18.5"
    for all i:  the same with all others held, where they can be met

``best`` comes from whoever asks: from the table itself, or from the estimates of a run's samples, which prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from saddleback.files.json_file import Record
from saddleback.problem.cmdp import CMDP, Constraint

Label = Literal["exact", "estimated"]
Best = Callable[[int, Sequence[int]], float | None]
"""``best(i, others)``: the best total of constraint i in the user's units where the others are met; None where they cannot be."""

_MOST_CONSTRAINTS = 20  # each takes a solve of its own
_ROUNDING = 1e-9  # of the largest total
_ALIKE = 1e-4  # of the largest total: a constraint more that changes no more than this is left out


class ConflictReport(Record, frozen=True):
    """One constraint that cannot be met with those in ``given``: ``best`` is what it can reach where they are met.

    ``limit`` and ``best`` are in ``units``, the unit in which the limit was given; ``label`` says whether they are exact.
    """

    name: str
    sense: str
    limit: float
    best: float
    units: str
    given: tuple[str, ...]
    label: str


def contradiction(problem: CMDP, best: Best, label: Label) -> tuple[ConflictReport, ...]:
    """What contradicts what, a smallest set first, then each constraint under all others that can be met.

    Empty where ``best`` sees no contradiction.
    """
    m, H = problem.num_constraints, problem.horizon
    if m > _MOST_CONSTRAINTS:
        return ()
    totals, rounding = problem.user_thresholds(), _ROUNDING * H * np.abs(problem.scale[1:])

    def impossible(constraints: list[int]) -> bool:
        i, *others = constraints
        found = best(i, others)
        return found is None or _missed(problem.constraints[i], found, float(totals[i])) > rounding[i]

    core = list(range(m))
    if not impossible(core):
        return ()
    for j in range(m):
        rest = [i for i in core if i != j]
        if rest and impossible(rest):
            core = rest
    rows, known = list[ConflictReport](), dict[int, float]()
    for held in (core, list(range(m))) if len(core) < m else (core,):
        for i in held:
            others = [j for j in held if j != i]
            found, c = best(i, others), problem.constraints[i]
            nothing_new = found is not None and abs(found - known.get(i, np.inf)) <= _ALIKE * rounding[i] / _ROUNDING
            if found is not None and not nothing_new:
                known.setdefault(i, found)
                given = tuple(problem.constraints[j].name for j in others)
                found = 0.0 if abs(found) <= rounding[i] else found
                rows.append(ConflictReport(c.name, c.sense, c.threshold, found / _unit(c, H), c.units, given, label))
    return tuple(rows)


def conflict_sentences(problem: CMDP, rows: Sequence[ConflictReport]) -> list[str]:
    """What contradicts what, in the user's units, without full stops."""
    limits = {c.name: f"{c.name} {c.sense} {c.threshold:.6g}{_per(c.units)}" for c in problem.constraints}
    said = []
    for row in rows:
        least, verb = "least" if row.sense == "<=" else "most", "are" if row.name.endswith("s") else "is"
        held = " and ".join(limits[name] for name in row.given if name in limits)
        start = f"with {held} the" if held else "the"
        wanted = f"wanted: {row.sense} {row.limit:.6g}{_per(row.units)}"
        said.append(f"{start} {least} {row.name} {verb} {row.best:.6g}{_per(row.units)} ({wanted})")
    return said


def _missed(c: Constraint, value: float, threshold: float) -> float:
    return threshold - value if c.sense == ">=" else value - threshold


def _unit(c: Constraint, horizon: float) -> float:
    return horizon if c.units == "per-step" else 1.0


def _per(units: str) -> str:
    return " per step" if units == "per-step" else ""
