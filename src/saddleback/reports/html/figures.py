"""The figures of a report: intervals against thresholds, start states, the dual's path, the sampled pairs."""

from __future__ import annotations

import math

import numpy as np

from saddleback.certificates.certificate import StartValues
from saddleback.method.master_lp import solve_master
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.reports.html.markup import Markup, join
from saddleback.reports.html.svg import WIDTH, Scale, axes, circle, figure, line, path, rectangle, scale, text, ticks
from saddleback.reports.html.view import Row, View
from saddleback.runs.constraint_report import shown_price
from saddleback.runs.drawings_file import DesignRecord, DualRecord
from saddleback.runs.numbers import between, number, percent

_ROW = 90
_MOST_BARS = 60
_MOST_GAPS = 80


def intervals(view: View) -> Markup:
    """Reward and constraints, each on its own scale: limits as a bar, the estimate as a dot, the threshold as a line."""
    bound = view.bound
    rows = [r for r in (view.reward, *view.constraints) if r.limits is not None or r.estimate is not None]
    shapes, said = [], []
    for k, row in enumerate(rows):
        top = bound if row.threshold is None else None
        shapes.append(_interval(row, top, k * _ROW, "costs less than" if view.problem.minimise else "earns more than"))
        limits = "" if row.limits is None else f" from {between(row.limits)}"
        against = "" if row.threshold is None else f", wanted {row.wanted}: {row.verdict}"
        said.append(f"{row.name} {number(row.estimate)},{limits}{against}")
    sure = "is proved to hold" if view.reward.worth == "proved" else "is likely to hold"
    caption = (
        f"The bar {sure} the true value; the dot is the estimate; the line is the limit, its forbidden side shaded."
    )
    if bound is not None:
        caption += f" The dashed line is what no policy that meets the constraints can {'undercut' if view.problem.minimise else 'exceed'}."
    return figure(len(rows) * _ROW + 4, "Limits against thresholds", "; ".join(said) + ".", *shapes, caption=caption)


def _interval(row: Row, bound: float | None, top: float, beyond: str) -> Markup:
    values = [x for x in (row.estimate, row.threshold, bound, *(row.limits or ())) if x is not None]
    x, y = scale(values, 8, WIDTH - 8, 0.3), top + 44
    shapes: list[Markup] = []
    if row.threshold is not None:
        at = x(row.threshold)
        start, width = (x.start, at - x.start) if row.sense == ">=" else (at, x.end - at)
        shapes.append(rectangle(start, y - 14, width, 28, "forbidden"))
    shapes.append(line(x.start, y, x.end, y, "grid"))
    if row.threshold is not None:
        shapes.append(line(x(row.threshold), y - 16, x(row.threshold), y + 16, "threshold"))
    if bound is not None:
        shapes.append(line(x(bound), y - 16, x(bound), y + 16, "ceiling"))
        side = "end" if x(bound) > WIDTH / 2 else "start"
        shapes.append(text(x(bound), y + 28, f"no policy {beyond} {number(bound)}", anchor=side))
    if row.limits is not None:
        low, high = row.limits
        shapes.append(rectangle(x(low), y - 5, max(x(high) - x(low), 2.0), 10, f"bar {row.worth}"))
        shapes.append(text(x(low) - 5, y - 9, number(low), "strong", "end"))
        shapes.append(text(x(high) + 5, y - 9, number(high), "strong"))
    if row.estimate is not None:
        shapes.append(circle(x(row.estimate), y, 5, "estimate", f"estimate {number(row.estimate)}"))
    name = f"{row.name} {row.wanted}".strip()
    shapes.append(text(8, top + 14, name if len(name) <= 40 else name[:38] + "…", "heading"))
    return join(*shapes, text(WIDTH - 8, top + 14, row.verdict, "name", "end"))


def by_start(view: View, rows: list[StartValues]) -> Markup:
    """The reward from each start state, with limits."""
    shown = rows[:12]
    x = scale([e for r in shown for e in r.value], 8, WIDTH - 8, 0.08)
    shapes, said = [], []
    for k, row in enumerate(shown):
        y, (low, high) = 30 + 38 * k, row.value
        name = view.state_name(row.state)
        shapes.append(text(8, y - 12, name if len(name) <= 48 else name[:46] + "…"))
        shapes.append(line(x.start, y, x.end, y, "grid"))
        shapes.append(rectangle(x(low), y - 5, x(high) - x(low), 10, "bar proved", between(row.value)))
        said.append(f"{name}: {between(row.value)}")
    bottom = 30 + 38 * len(shown)
    marks = _across(x, bottom - 18, "reward from this start")
    return figure(bottom + 24, "Reward by start state", "; ".join(said) + ".", marks, *shapes)


def multipliers(view: View, trace: DualRecord) -> Markup:
    """λ by iteration, one line a constraint; where the reward had no part in the question λ has no value."""
    steps = trace.iterations
    rows = zip(*trace.multipliers, strict=True)
    prices = [[None if v is None else shown_price(view.problem, i, v) for v in row] for i, row in enumerate(rows)]
    finite = [v for row in prices for v in row if v is not None] or [0.0]
    x, y = scale([*steps, steps[0] + 1], 52, WIDTH - 12, 0.03), scale([0.0, *finite], 210, 24, 0.05)
    y = y._replace(low=0.0) if min(finite) >= 0 else y
    shapes = [axes(x, y, "iteration", "price λ (reward per unit of threshold)", whole=True)]
    for i, row in enumerate(view.constraints):
        points = [(x(k), y(price)) for k, price in zip(steps, prices[i], strict=True) if price is not None]
        shapes.append(path(points, f"curve series-{i % 4}"))
        if len(points) <= 60:
            shapes += [circle(px, py, 3, f"dot series-{i % 4}") for px, py in points]
        if len(view.constraints) > 1 and points:
            shapes.append(text(points[-1][0], points[-1][1] - 7, row.name[:20], "name", "end"))
    last = ", ".join(f"{row.name} {number(row.price)}" for row in view.constraints)
    missing = any(v is None for row in prices for v in row)
    caption = "A missing dot: the constraint alone was asked about, without the reward." if missing else None
    return figure(250, "Price by iteration", f"{trace.total} iterations, ending at {last}.", *shapes, caption=caption)


def gaps(problem: CMDP, trace: DualRecord) -> tuple[list[int], list[float]]:
    """How far the best mixture so far was from the least bound so far, in the user's reward, at some iterations.

    L(π_k, λ_k) = V_r + λᵀ(V_c − b) bounds what any policy reaches, up to the solver's error; the mixture comes from the
    policies of the first k iterations.
    """
    values = problem.unit_values_of(np.array(trace.values))
    prices = np.array([[np.inf if v is None else v for v in row] for row in trace.multipliers])
    prices = prices * np.abs(problem.scale[1:]) / problem.reward_span
    b = problem.thresholds
    bounds = np.full(len(values), np.inf)
    known = np.all(np.isfinite(prices), axis=1)
    bounds[known] = values[known, 0] + np.sum(prices[known] * (values[known, 1:] - b), axis=1)
    least = np.minimum.accumulate(bounds)
    steps, found = [], []
    for k in np.unique(np.linspace(0, len(values) - 1, min(len(values), _MOST_GAPS)).round().astype(int)):
        master = solve_master(_distinct(values[: k + 1]), b)
        if master is not None and np.isfinite(least[k]):
            steps.append(int(trace.iterations[k]))
            found.append(max(0.0, float(least[k] - master.value)) * problem.reward_span)
    return steps, found


def gap_figure(problem: CMDP, trace: DualRecord) -> Markup | None:
    """The gap by iteration, on a logarithmic scale."""
    steps, found = gaps(problem, trace)
    shown = [(k, g) for k, g in zip(steps, found, strict=True) if g > 0]
    if len(shown) < 2:
        return None
    logs = [math.log10(g) for _, g in shown]
    x = scale([0, trace.iterations[-1], trace.iterations[0] + 1], 60, WIDTH - 12, 0.03)
    y = Scale(math.floor(min(logs)), max(math.ceil(max(logs)), math.floor(min(logs)) + 1), 210, 24)
    marks = []
    every = max(1, round((y.high - y.low) / 5))
    for power in range(int(y.low), int(y.high) + 1, every):
        marks += [line(x.start, y(power), x.end, y(power), "grid")]
        marks += [text(x.start - 6, y(power) + 4, f"{10.0**power:g}", anchor="end")]
    points = [(x(k), y(math.log10(g))) for k, g in shown]
    dots = [circle(px, py, 3, "dot series-0") for px, py in points] if len(points) <= 60 else []
    marks += [path(points, "curve series-0"), *dots, _across(x, y.start, "iteration", whole=True)]
    marks.append(text(x.start, y.end - 8, "gap (reward left open by the dual)", "name"))
    said = f"From {number(shown[0][1])} at iteration {shown[0][0]} to {number(shown[-1][1])} at {shown[-1][0]}."
    caption = "A gap of zero has no place on this scale." if len(shown) < len(found) else None
    return figure(250, "Gap by iteration", said, *marks, caption=caption)


def _across(x: Scale, y: float, name: str, *, whole: bool = False) -> Markup:
    """A lower axis at height y, where the other axis is not linear or there is none."""
    marks = [text(x(v), y + 17, number(v), anchor="middle") for v in ticks(x) if not whole or v == int(v)]
    return join(*marks, line(x.start, y, x.end, y, "axis"), text(x.end, y + 35, name, "name", "end"))


def _distinct(columns: Array) -> Array:
    return np.unique(columns, axis=0)


def design(view: View, data: DesignRecord) -> Markup:
    """Weights as bars, leverages as dots, heaviest pairs first."""
    weights, leverages = data.weights[:_MOST_BARS], data.leverages[:_MOST_BARS]
    n = len(weights)
    x = Scale(-0.5, n - 0.5, 52, WIDTH - 44)
    y = Scale(0.0, 1.5 * max(weights), 210, 24)  # the bars stay below the dots of a good design
    z = scale([0.0, data.leverage_bound, *leverages], 210, 24, 0.08)._replace(low=0.0)
    width = (x.end - x.start) / n
    shapes = [axes(x._replace(low=0.5, high=n + 0.5), y, "sampled pair, heaviest first", "weight (bars)", whole=True)]
    for k, (w, g) in enumerate(zip(weights, leverages, strict=True)):
        name = f"{view.state_name(data.states[k])}, {view.action_name(data.actions[k])}"
        title = f"{name}: weight {percent(w)}, leverage {number(g)}"
        shapes.append(rectangle(x(k) - 0.4 * width, y(w), 0.8 * width, 210 - y(w), "bar weight", title))
        shapes.append(circle(x(k), z(g), 3.2, "dot leverage", title))
    at = z(data.leverage_bound)
    shapes.append(line(x.start, at, x.end, at, "ceiling"))
    shapes.append(text(x.end + 4, at + 4, number(data.leverage_bound)))
    shapes.append(text(x.end + 40, y.end - 8, "leverage (dots)", "name", "end"))
    said = f"{data.size} pairs; the largest leverage of any pair is {number(data.leverage_bound)}."
    caption = "Dashed: the largest leverage of any pair, the factor by which noise can grow; no design does better than the rank."
    return figure(250, "Sampled pairs and their leverages", said, *shapes, caption=caption)
