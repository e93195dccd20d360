"""HTML and SVG that cannot be broken by a name: whatever is not :class:`Markup` already is escaped where it is put in.

Run folders hold other people's text (names of problems, constraints and states, remarks). No function of the report joins
strings into tags by hand; all of them go through :func:`tag`. The shapes that the figures are made of follow: linear scales,
ticks, axes, and a frame with a title and a description. Drawings are 480 units wide and are scaled to the page; colours and
sizes of text are the style sheet's, so that they follow the colour scheme and stay readable on a telephone.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from saddleback.runs.numbers import number

WIDTH = 480
"""Of every drawing."""

_VOID = {"meta", "input", "br", "link", "hr"}


class Markup(str):
    """Text that is HTML already."""


Content = str | Markup | None


def safe(content: Content) -> Markup:
    """The content as HTML: escaped, unless it is Markup."""
    if content is None:
        return Markup("")
    return content if isinstance(content, Markup) else Markup(html.escape(_plain(content), quote=True))


def tag(name: str, /, *children: Content, **attributes: Any) -> Markup:
    """One element. ``class_`` and ``aria_label`` become class and aria-label; None is left out, True has no value."""
    parts = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        parts.append(f" {key}" if value is True else f' {key}="{html.escape(_plain(text), quote=True)}"')
    start = f"<{name}{''.join(parts)}>"
    return Markup(start if name in _VOID else f"{start}{join(*children)}</{name}>")


def join(*children: Content) -> Markup:
    """The contents one after another."""
    return Markup("".join(map(safe, children)))


def data_block(identity: str, data: Any) -> Markup:
    """Numbers for the page's script, as JSON that no browser takes for anything else."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{html.escape(identity)}">{text}</script>')


def table(heads: list[str], rows: list[list[Content]], caption: str, *, words: tuple[int, ...] = (0,)) -> Markup:
    """A table with a caption and headers, which scrolls by itself; the columns ``words`` are to the left, numbers right."""
    kinds = [None if j in words else "number" for j in range(len(heads))]
    head = tag(
        "tr",
        *(tag("th" if h else "td", h, scope="col" if h else None, class_=k) for h, k in zip(heads, kinds, strict=True)),
    )
    body = []
    for row in rows:
        first = tag("th", row[0], scope="row", class_=kinds[0])
        rest = (tag("td", cell, class_=kind) for cell, kind in zip(row[1:], kinds[1:], strict=True))
        body.append(tag("tr", first, *rest))
    inner = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def details(summary: str, *children: Content) -> Markup:
    """What is folded away until it is asked for."""
    return tag("details", tag("summary", summary), *children)


def _plain(text: str) -> str:
    """Without the control characters that HTML has no place for, and without lone surrogates."""
    shown = "".join(c if c.isprintable() or c in "\n\t\u00a0" else "\ufffd" for c in text)
    return shown.encode("utf-8", "replace").decode("utf-8")


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
        room = 0.5 * max(abs(high), 1e-9)
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
