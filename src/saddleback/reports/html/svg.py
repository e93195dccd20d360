"""The few shapes that the figures are made of: linear scales, ticks, axes, and a frame with a title and a description.

Drawings are 480 units wide and are scaled to the page; colours and sizes of text are the style sheet's, so that they follow
the colour scheme and stay readable on a telephone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from saddleback.reports.html.markup import Content, Markup, join, tag
from saddleback.runs.numbers import number

WIDTH = 480


class Scale(NamedTuple):
    """From ``[low, high]`` in the data to ``[start, end]`` on the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, x: float) -> float:
        """Where x is drawn."""
        return self.start + (x - self.low) / (self.high - self.low) * (self.end - self.start)

    def inside(self, x: float) -> float:
        """Where x is drawn, or the end beyond which it lies."""
        return self(min(max(x, self.low), self.high))


def scale(values: Sequence[float], start: float, end: float, padding: float = 0.06) -> Scale:
    """A scale on which all values fit, with some room."""
    low, high = min(values), max(values)
    if high - low <= 1e-9 * max(1e-300, abs(low), abs(high)):
        room = 0.5 * abs(high) if abs(high) > 1e-9 else 0.5
    else:
        room = padding * (high - low)
    return Scale(low - room, high + room, start, end)


def ticks(scale: Scale, most: int = 5) -> list[float]:
    """Round numbers within the scale."""
    span = scale.high - scale.low
    step = 10.0 ** math.floor(math.log10(span / most))
    step = next(step * k for k in (1, 2, 5, 10, 20) if span / (step * k) <= most)
    first = math.ceil(scale.low / step)
    return [round(k * step, 12) for k in range(first, math.floor(scale.high / step) + 1)]


def figure(
    height: float, title: str, description: str, /, *shapes: Content, caption: Content = None, **more: Any
) -> Markup:
    """A drawing with its title and description for those who cannot see it, and a caption for all."""
    drawing = tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *shapes,
        viewBox=f"0 0 {WIDTH} {height:g}",
        role="img",
        aria_label=f"{title}. {description}",
        class_="chart",
        **more,
    )
    return tag("figure", drawing, tag("figcaption", caption) if caption else None)


def text(x: float, y: float, content: str, class_: str = "", anchor: str = "start") -> Markup:
    """A line of text."""
    return tag("text", content, x=x, y=y, class_=class_ or None, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str, **more: Any) -> Markup:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_, **more)


def circle(x: float, y: float, radius: float, class_: str, title: str | None = None, **more: Any) -> Markup:
    """A dot, which says what it is when pointed at."""
    return tag("circle", tag("title", title) if title else None, cx=x, cy=y, r=radius, class_=class_, **more)


def rectangle(x: float, y: float, width: float, height: float, class_: str, title: str | None = None) -> Markup:
    """A box."""
    inner = tag("title", title) if title else None
    return tag("rect", inner, x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), class_=class_)


def path(points: Sequence[tuple[float, float]], class_: str, *, closed: bool = False) -> Markup:
    """A line through points, or the area that they enclose."""
    steps = " ".join(f"{'M' if i == 0 else 'L'}{x:.2f} {y:.2f}" for i, (x, y) in enumerate(points))
    return tag("path", d=steps + (" Z" if closed else ""), class_=class_)


def axes(x: Scale, y: Scale, across: str, up: str, *, whole: bool = False) -> Markup:
    """Both axes with light lines, numbers, and what they measure."""
    marks = []
    for value in ticks(y):
        marks += [line(x.start, y(value), x.end, y(value), "grid")]
        marks += [text(x.start - 6, y(value) + 4, number(value), anchor="end")]
    for value in ticks(x):
        if whole and value != int(value):
            continue
        marks.append(text(x(value), y.start + 17, number(value), anchor="middle"))
    marks.append(line(x.start, y.start, x.end, y.start, "axis"))
    marks.append(text(x.end, y.start + 35, across, "name", "end"))
    marks.append(text(x.start, y.end - 8, up, "name"))
    return join(*marks)
