"""HTML and SVG that cannot be broken by a name: whatever is not :class:`Markup` already is escaped where it is put in.

Run folders hold other people's text (names of problems, constraints and states, remarks). No function of the report joins
strings into tags by hand; all of them go through :func:`tag`.
"""

from __future__ import annotations

import html
import json
from typing import Any

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
