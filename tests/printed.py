"""What a page says is printed, beside what is printed: words must be equal, numbers nearly so.

Processors differ in the last digits of a sum, and a digit that was rounded up on one is rounded down on another. So a text
is taken apart into words and numbers:

    words     must be equal; how wide the white space between them is does not count
    numbers   with a decimal point or an exponent may differ by one unit in the last printed digit, by what rounding errors
              are (1e-12) and by a relative tolerance: 1e-6, or what a page states
    counts    are numbers with neither: they must be equal, unless a page states otherwise
    times     such as "1.2 s" are those of a machine and do not count
    rules     as in tables are of any length, which follows from the widths of the numbers
    ...       on a page stands for any words and numbers, or none

Numbers are read with signs (also the Unicode minus), thousands separators and exponents, wherever no letter touches them; a
percent sign is a word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

SPECIAL = re.compile(
    r"""(?P<dots>\.\.\.)
    |(?P<time>(?<![\w.])\d[\d.]*\s+(?:µs|ms|s|min|h|hours|days|years)\b)
    |(?P<number>(?<![\w.])[-+−]?(?>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+−]?\d+)?)(?!\w))
    |(?P<rule>([-=─━═])\5{2,})""",
    re.VERBOSE,
)
STATED = re.compile(r"(?P<number>[\d.]+(?:e-?\d+)?)(?P<percent> ?%)?(?P<counts>, counts too)?")
ROUNDING = 1e-12  # what is smaller than this is a rounding error, and may as well be zero


@dataclass(frozen=True)
class Tolerance:
    """How far apart numbers may be, relative to the larger one, and whether this is meant for counts too."""

    relative: float = 1e-6
    counts: bool = False

    @classmethod
    def stated(cls, text: str) -> Tolerance:
        """From the words of a page: ``0.5%``, ``1e-3`` or ``2%, counts too``."""
        found = STATED.fullmatch(text)
        if found is None:
            raise ValueError(
                f"a tolerance must be like '0.5%', '1e-3' or '2%, counts too', got {text!r}; correct the page"
            )
        return cls(float(found["number"]) / (100 if found["percent"] else 1), bool(found["counts"]))


DEFAULT = Tolerance()


class Token(NamedTuple):
    """A piece of a text; ``glued`` says that no white space stands before it."""

    kind: str
    text: str
    start: int
    glued: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Pair(NamedTuple):
    """A stretch of a page between two ellipses, and what was printed there."""

    said: list[Token]
    printed: list[Token]


def tokens(text: str) -> list[Token]:
    """A text taken apart into words, numbers, times, rules and ellipses."""

    def words(start: int, end: int) -> Iterator[tuple[str, str, int]]:
        for word in re.finditer(r"\S+", text[start:end]):
            yield "word", word.group(), start + word.start()

    pieces, at = list[tuple[str, str, int]](), 0
    for found in SPECIAL.finditer(text):
        kind = next(name for name, piece in found.groupdict().items() if piece is not None)
        pieces += [*words(at, found.start()), (kind, found.group(), found.start())]
        at = found.end()
    pieces += words(at, len(text))
    return [Token(*piece, glued=i > 0 and not text[piece[2] - 1].isspace()) for i, piece in enumerate(pieces)]


def value(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def is_count(text: str) -> bool:
    return not re.search(r"[.eE]", text)


def last_place(text: str) -> float:
    """One unit in the last digit; where a format has dropped the zero after the point (5e+08), in the one that it dropped."""
    mantissa, _, exponent = text.replace("−", "-").lower().partition("e")
    decimals = len(mantissa.partition(".")[2]) or (1 if exponent else 0)
    return 10.0 ** (int(exponent or 0) - decimals)


def near(a: str, b: str, tolerance: Tolerance) -> bool:
    """Whether two printed numbers may be the same one."""
    x, y = value(a), value(b)
    if x == y:
        return True
    allowed = tolerance.relative * max(abs(x), abs(y))
    if is_count(a) and is_count(b):
        return tolerance.counts and abs(x - y) <= allowed
    digit = min(last_place(a), last_place(b)) * (1 + 1e-9)  # the page's decimal fractions are no binary ones
    return abs(x - y) <= digit + allowed + ROUNDING


def same(a: Token, b: Token, tolerance: Tolerance) -> bool:
    if a.kind != b.kind:
        return False
    match a.kind:
        case "number":
            return near(a.text, b.text, tolerance)
        case "rule":
            return a.text[0] == b.text[0]
        case "time":
            return True
    return a.text == b.text


def align(printed: str, said: str, tolerance: Tolerance) -> list[Pair] | None:
    """The stretches of a page between its ellipses, each with what was printed for it; None where there is no such thing."""
    got, stretches = tokens(printed), [list[Token]()]
    for token in tokens(said):
        if token.kind == "dots":
            stretches.append([])
        else:
            stretches[-1].append(token)

    def fits(stretch: list[Token], at: int) -> bool:
        there = got[at : at + len(stretch)]
        return len(there) == len(stretch) and all(
            same(a, b, tolerance) and (i == 0 or a.glued == b.glued)
            for i, (a, b) in enumerate(zip(stretch, there, strict=True))
        )

    pairs, at = list[Pair](), 0
    for i, stretch in enumerate(stretches):
        end = len(got) - len(stretch)  # the last place where it can stand
        last = i == len(stretches) - 1
        places = range(1) if i == 0 else range(end if last else at, end + 1)
        found = next((place for place in places if place >= at and fits(stretch, place)), None)
        if found is None:
            return None
        at = found + len(stretch)
        pairs.append(Pair(stretch, got[found:at]))
    return pairs if at == len(got) else None


def agrees(printed: str, said: str, tolerance: Tolerance = DEFAULT) -> bool:
    """Whether a page says what is printed."""
    return align(printed, said, tolerance) is not None


def differences(printed: str, said: str, tolerance: Tolerance = DEFAULT) -> list[str]:
    """Why a page does not say what is printed, number by number; empty where it does."""
    if agrees(printed, said, tolerance):
        return []
    pairs = align(printed, said, Tolerance(math.inf, counts=True))
    if pairs is None:
        return ["the words differ"]
    both = ((a.text, b.text) for pair in pairs for a, b in zip(pair.said, pair.printed, strict=True))
    kinds = [t.kind for pair in pairs for t in pair.said]
    return [
        f"{a} said, {b} printed"
        for (a, b), kind in zip(both, kinds, strict=True)
        if kind == "number" and not near(a, b, tolerance)
    ]


def rewritten(printed: str, said: str, words: bool = False) -> str | None:
    """What a page should say: the printed text with the page's ellipses.

    None where the words differ, but with ``words`` and without ellipses the printed ones are taken.
    """
    pairs = align(printed, said, Tolerance(math.inf, counts=True))
    if pairs is None and words and not any(token.kind == "dots" for token in tokens(said)):
        pairs = [Pair(tokens(said), tokens(printed))]
    if pairs is None or any(bool(pair.said) != bool(pair.printed) for pair in pairs):
        return None
    text, at = "", 0
    for pair in pairs:
        if pair.said:
            start, new = line_start(said, pair.said[0].start), line_start(printed, pair.printed[0].start)
            text += said[at:start] + re.sub(r"[ \t]+$", "", printed[new : pair.printed[-1].end], flags=re.MULTILINE)
            at = pair.said[-1].end
    return text + said[at:]


def line_start(text: str, at: int) -> int:
    """Where the white space begins that stands before a place and is the beginning of its line; else the place itself."""
    begin = text.rfind("\n", 0, at) + 1
    return begin if not text[begin:at].strip() else at
