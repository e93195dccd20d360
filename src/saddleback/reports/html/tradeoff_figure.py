"""The frontier as a drawing with a slider: the curve and its band are fixed, the script moves one marker and a few numbers.

    F̂(b) = max Σ_i w_i V̂_r^i   s.t.   Σ_i w_i V̂_c^i ≥ b       over the stored columns

With one constraint the script solves this at any threshold as :func:`saddleback.method.master_lp.solve_master` does, on the same
numbers in the same order. What is proved at every threshold comes from the certificate: with σ and U of its bound,
F(b) ≤ (U − σ_cᵀ b)/σ_0, and F(b) ≥ the proved lower limit of this policy's reward wherever its proved limits meet b.

Thresholds, values of constraints and prices are shown in the unit that each constraint was given in. The script does the same sums
in any unit: it is handed base and scale of the signals divided by the unit's size.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from msgspec import structs

from saddleback.certificates.certificate import BoundEvidence
from saddleback.files.json_file import Limits, to_plain
from saddleback.problem.cmdp import CMDP
from saddleback.reports.html.markup import Markup, details, join, table, tag
from saddleback.reports.html.svg import WIDTH, axes, circle, figure, line, path, rectangle, scale
from saddleback.reports.html.view import Row, View
from saddleback.runs.constraint_report import shown_best, shown_price
from saddleback.runs.drawings_file import FrontierRecord, PointRecord
from saddleback.runs.numbers import between, in_unit, number, percent, symbol

_MOST_DOTS = 400
_LEAST_SHARE = 1e-6  # of a mixture: less is rounding of the threshold


def tradeoff(view: View, data: FrontierRecord) -> tuple[Markup, dict[str, Any]]:
    """The section's contents, and the numbers for the script."""
    parts: list[Markup] = []
    curves: list[dict[str, Any]] = []
    index = {c.name: i for i, c in enumerate(view.problem.constraints)}
    for curve in data.curves:
        i = index.get(curve.constraint)
        if i is None or len(data.columns[0]) != 1 + view.problem.num_constraints:
            continue
        points = [_in_units(view.problem, point, i) for point in curve.points]
        band = [_band(view, data, point) for point in points]
        drawing, frame = _figure(view, data, points, band, i, len(curves))
        parts.append(join(_controls(view, data, points, i, len(curves)), drawing, _table(view, points, band, i)))
        rows = [{**to_plain(p), "low": b and b[0], "high": b and b[1]} for p, b in zip(points, band, strict=True)]
        curves.append({"constraint": i, "points": rows, "frame": frame})
    return join(*parts), {**_numbers(view, data), "curves": curves}


def _in_units(problem: CMDP, point: PointRecord, i: int) -> PointRecord:
    """A point of the curve of constraint i with thresholds, values and prices in the units of the constraints."""
    units = problem.units
    values = [unit.of(x) for unit, x in zip(units, point.constraints, strict=True)]
    threshold, price = units[i].of(point.threshold), shown_price(problem, i, point.multiplier)
    return structs.replace(point, threshold=threshold, multiplier=price, constraints=values)


def _numbers(view: View, data: FrontierRecord) -> dict[str, Any]:
    """What the script needs of the problem and of the proof."""
    problem, proof = view.problem, view.proof
    sizes = np.array([1.0, *(unit.size for unit in problem.units)])
    out: dict[str, Any] = {
        "columns": data.columns,
        "limits": data.limits,
        "confidence": data.confidence,
        "base": (problem.base / sizes).tolist(),
        "scale": (problem.scale / sizes).tolist(),
        "horizon": problem.horizon,
        "targets": problem.thresholds.tolist(),
        "names": [c.name for c in problem.constraints],
        "objective": problem.objective,
        "senses": [symbol(c.sense) for c in problem.constraints],
        "asked": [c.threshold for c in problem.constraints],
        "suffixes": [unit.suffix for unit in problem.units],
        "bound": None,
        "floor": None,
    }
    if proof is None:
        return out
    if (bound := _bound(view)) is not None:
        out["bound"] = {"sigma": bound.sigma, "value": bound.value, "confidence": proof.confidence}
    if proof.value is not None:
        rows = zip(proof.constraints, problem.constraints, problem.units, strict=True)
        ends = [unit.of(pair[0] if c.sense == ">=" else pair[1]) for pair, c, unit in rows]
        out["floor"] = {"value": proof.value[int(problem.minimise)], "constraints": ends}
    return out


def _bound(view: View) -> BoundEvidence | None:
    """What bounds the reward of all policies, if it is proved."""
    proof = view.proof
    bound = None if proof is None or proof.upper_bound is None else proof.evidence.bound
    return None if bound is None or bound.sigma[0] <= 0 else bound


def _band(view: View, data: FrontierRecord, point: PointRecord) -> Limits | None:
    """The likely range of the mixture's reward: the weighted sum of its members' limits."""
    known = [pair for k in point.members if (pair := data.limits[k]) is not None]
    if len(known) < len(point.members):
        return None
    base, factor = float(view.problem.base[0] * view.problem.horizon), float(view.problem.scale[0])
    ends = (sum(w * pair[e][0] for w, pair in zip(point.weights, known, strict=True)) for e in (0, 1))
    low, high = sorted(end * factor + base for end in ends)
    return low, high


def _ceiling(view: View, i: int, threshold: float) -> float | None:
    """What no policy that meets this threshold, in the unit of its constraint, can earn more than, by the certificate."""
    bound = _bound(view)
    if bound is None:
        return None
    problem = view.problem
    b = problem.thresholds.copy()
    total = problem.units[i].total(threshold)
    b[i] = (total - problem.base[1 + i] * problem.horizon) / problem.scale[1 + i]
    sigma = bound.sigma
    unit = min(problem.horizon, (bound.value - sum(s * x for s, x in zip(sigma[1:], b, strict=True))) / sigma[0])
    return float(unit * problem.scale[0] + problem.base[0] * problem.horizon)


def _figure(
    view: View, data: FrontierRecord, points: list[PointRecord], band: list[Limits | None], i: int, k: int
) -> tuple[Markup, dict[str, list[float]]]:
    row = view.constraints[i]
    thresholds, values = [p.threshold for p in points], [p.value for p in points]
    chosen = None if view.reward.estimate is None or row.estimate is None else (row.estimate, view.reward.estimate)
    known = [pair for pair in band if pair is not None]
    x = scale([*thresholds, *([chosen[0]] if chosen else []), row.threshold or thresholds[0]], 52, WIDTH - 12, 0.04)
    heights = [*values, *itertools.chain(*known), *([chosen[1]] if chosen else []), *(view.reward.limits or ())]
    y = scale(heights, 250, 26, 0.08)
    shapes = [axes(x, y, f"{_name(row)} {symbol(row.sense)} threshold", f"best {view.problem.objective}")]
    if len(known) == len(band):
        around = [(x(t), y(high)) for t, (_, high) in zip(thresholds, known, strict=True)]
        around += [(x(t), y(low)) for t, (low, _) in zip(thresholds[::-1], known[::-1], strict=True)]
        shapes.append(path(around, "band", closed=True))
    if view.problem.num_constraints == 1:
        for column in data.columns[:_MOST_DOTS]:
            value, against = view.problem.values_of(np.array(column)) / (1.0, row.unit.size)
            if x.low <= against <= x.high and y.low <= value <= y.high:
                shapes.append(circle(x(against), y(value), 2.2, "seen"))
    ceiling = [(t, c) for t in thresholds if (c := _ceiling(view, i, t)) is not None and y.low <= c <= y.high]
    if len(ceiling) > 1:
        shapes.append(path([(x(t), y(c)) for t, c in ceiling], "ceiling"))
    shapes.append(path([(x(t), y(v)) for t, v in zip(thresholds, values, strict=True)], "curve series-0"))
    if chosen and row.limits and view.reward.limits:
        (left, right), (low, high) = row.limits, view.reward.limits
        a, b = x.inside(left), y.inside(high)
        shapes.append(rectangle(a, b, x.inside(right) - a, y.inside(low) - b, "box", "proved limits of this policy"))
    if row.threshold is not None:
        shapes.append(line(x.inside(row.threshold), y.start, x.inside(row.threshold), y.end, "threshold"))
    if chosen:
        shapes.append(circle(x(chosen[0]), y(chosen[1]), 9, "ring", "this policy"))
    shapes.append(line(x.start, y.start, x.start, y.end, "marker", id=f"marker-{k}"))
    shapes.append(circle(x.start, y.end, 6, "pointer", id=f"pointer-{k}"))
    said = _course(view, points, i)
    frame = {"x": [x.low, x.high, x.start, x.end], "y": [y.low, y.high, y.start, y.end]}
    title, caption = (
        f"Best {view.problem.objective} against {row.name}",
        _legend(view, bool(ceiling), len(known) == len(band)),
    )
    return figure(290, title, said, *shapes, caption=caption), frame


def _course(view: View, points: list[PointRecord], i: int) -> str:
    """The curve in a sentence."""
    row, objective = view.constraints[i], view.problem.objective
    top, bottom = max(points, key=lambda p: p.value), min(points, key=lambda p: p.value)
    high, low = (number(_best(view, p, i, p.value)) for p in (top, bottom))
    if high == low:
        free = not any(p.multiplier for p in points)  # else it does, by less than the digits show
        said = "does not bind" if free else "hardly matters"
        return f"By the estimates, the limit of {row.name} {said}: the best {objective} is {high} at every threshold shown."
    ends = (_threshold(row, p.threshold) for p in (top, bottom))
    course = f"The best {objective} falls from {high} to {low} as the threshold of {_name(row)} goes from"
    return f"{course} {' to '.join(ends)}."


def _best(view: View, point: PointRecord, i: int, reward: float) -> float:
    """A reward at a point of the curve, or an end of its range, without the noise of rounding."""
    return shown_best(view.problem, i, reward, point.multiplier / view.constraints[i].unit.size)


def _legend(view: View, ceiling: bool, band: bool) -> Markup:
    words = [tag("span", f"best {view.problem.objective}, estimated", class_="key key-curve")]
    if band:
        words.append(tag("span", "likely range", class_="key key-band"))
    if ceiling:
        limit = "proved floor" if view.problem.minimise else "proved ceiling"
        words.append(tag("span", limit, class_="key key-ceiling"))
    words.append(tag("span", "this policy", class_="key key-estimate"))
    if view.problem.num_constraints == 1:
        words.append(tag("span", "single policies", class_="key key-seen"))
    return tag("span", *words, class_="legend")


def _name(row: Row) -> str:
    """A constraint and its unit."""
    return row.name + row.unit.suffix


def _threshold(row: Row, threshold: float) -> str:
    """A threshold in the unit of its constraint, without the noise of rounding."""
    return in_unit(row.unit, row.unit.total(threshold))


def _controls(view: View, data: FrontierRecord, points: list[PointRecord], i: int, k: int) -> Markup:
    row = view.constraints[i]
    asked = points[0].threshold if row.threshold is None else row.threshold
    nearest = min(range(len(points)), key=lambda j: abs(points[j].threshold - asked))
    slider = tag(
        "input",
        type="range",
        id=f"slider-{k}",
        min=0,
        max=len(points) - 1,
        step=1,
        value=nearest,
        aria_valuetext=f"{row.name} {symbol(row.sense)} {_threshold(row, points[nearest].threshold)}{row.unit.suffix}",
        aria_describedby=f"how-{k}",
    )
    ends = " to ".join(dict.fromkeys(_threshold(row, p.threshold) for p in (points[0], points[-1])))
    exact = tag("input", type="number", step="any", id=f"exact-{k}", value=f"{points[nearest].threshold:.6g}")
    objective, beyond = view.problem.objective, "costs less than" if view.problem.minimise else "earns more than"
    outputs = [
        ("value", f"Best {objective}"),
        ("range", f"Likely range, {percent(data.confidence)} (measured)"),
        ("ceiling", f"No policy {beyond} (proved)"),
        ("floor", f"Within reach: at {'most' if view.problem.minimise else 'least'} (proved)"),
        ("price", f"Price: {objective} per unit of {_name(row)}"),
    ]
    cells = [
        tag("div", tag("dt", words), tag("dd", tag("output", "–", id=f"{name}-{k}", for_=f"slider-{k}")))
        for name, words in outputs
    ]
    label = tag("label", f"{_name(row)} {symbol(row.sense)}", for_=f"exact-{k}")
    # The threshold that was asked for may be out of reach: it leads back to where the slider began.
    back = tag("button", f"Back to {_threshold(row, points[nearest].threshold)}", type="button", id=f"back-{k}")
    whole = tag("label", f"Threshold of {row.name}, {ends}{row.unit.suffix}", for_=f"slider-{k}")
    return join(
        tag("h3", f"If the threshold of {row.name} were different"),
        tag("div", whole, slider, tag("div", label, exact, back, class_="exact"), class_="slider"),
        tag("p", "", id=f"how-{k}", class_="note"),
        tag("dl", *cells, class_="readout"),
        tag("h4", "Mixture that reaches it"),
        tag("div", "", id=f"mixture-{k}", class_="mixture"),
        tag("noscript", tag("p", "The slider needs a script; the table below holds the same numbers.")),
    )


def _table(view: View, points: list[PointRecord], band: list[Limits | None], i: int) -> Markup:
    row = view.constraints[i]
    shown = sorted({round(k * (len(points) - 1) / 10) for k in range(11)})
    rows: list[list[Any]] = []
    for k in shown:
        p, limits = points[k], band[k]
        shares = [(w, c) for w, c in zip(p.weights, p.members, strict=True) if w >= _LEAST_SHARE]
        mixture = " + ".join(f"{percent(w)} of #{c + 1}" for w, c in shares)
        best = number(_best(view, p, i, p.value))
        likely = between(None if limits is None else [_best(view, p, i, x) for x in limits])
        rows.append([_threshold(row, p.threshold), best, likely, number(p.multiplier), mixture])
    heads = [f"{_name(row)} {symbol(row.sense)}", f"best {view.problem.objective}", "likely range", "price", "mixture"]
    whole = table(heads, rows, f"Best {view.problem.objective} against {row.name}", words=(4,))
    return details("The same as a table", whole)
