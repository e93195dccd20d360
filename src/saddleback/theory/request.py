"""What a plan is made for, checked: every argument out of its range is named with the range.

                                        error asked of the oracles          ε is
    column generation, relaxed          q = ε                               the loss and the violation
    column generation, strict           q = ε/(1 + H/ζ),  q ≤ ζ             the loss; nothing is violated
    projected descent, relaxed          f = ε/3.5,        f ≤ H²/(5ζ)       the violation (the loss is 1.5f)
    projected descent, strict           f = εζ/(5H),      f ≤ ζ/6           the loss; nothing is violated

They come from :mod:`~saddleback.theory.columns` and :mod:`~saddleback.theory.meta_theorem`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from saddleback.errors import InputError, require
from saddleback.theory.inversion import Buffers, Dual, Setting
from saddleback.theory.meta_theorem import Feasibility

Kind = Literal["linear", "tabular"]

_ROUNDING = 1e-12  # keeps the ends of a range inside it


class Size(NamedTuple):
    """What a user says of the size of a problem; None where it was not said."""

    dimension: int | None
    coreset_size: int | None
    leverage_bound: float | None
    num_pairs: int | None


@dataclass(frozen=True)
class Request:
    """A setting, and what is asked of its dual."""

    setting: Setting
    feasibility: Feasibility
    zeta: float
    remarks: tuple[str, ...]

    @property
    def scale(self) -> float:
        """ε over q or f."""
        H, relaxed = self.setting.horizon, self.feasibility == "relaxed"
        if self.setting.dual == "column-generation":
            return 1.0 if relaxed else 1 + H / self.zeta
        return 3.5 if relaxed else 5 * H / self.zeta

    @property
    def errors(self) -> tuple[float, float]:
        """The least and the largest q or f that the guarantees allow, or that is worth a search."""
        H, relaxed = self.setting.horizon, self.feasibility == "relaxed"
        if self.setting.dual == "column-generation":
            return 1e-9 * H, 100 * H * H if relaxed else self.zeta
        least = 2 * H * H / self.zeta * 1e-9 * (1 + _ROUNDING)  # K ≤ 10¹⁸
        return least, (H * H / (5 * self.zeta) if relaxed else self.zeta / 6) * (1 - _ROUNDING)


def checked(
    delta: float,
    kind: Kind,
    gamma: float,
    feasibility: Feasibility,
    zeta: float | None,
    dual: Dual,
    size: Size,
    num_constraints: int,
    rounding: bool,
    buffers: Buffers,
) -> Request:
    """The request, or an :class:`~saddleback.errors.InputError`."""
    require(0 < delta < 1, "delta", "must lie in (0, 1)", delta, "give the failure probability you accept, such as 0.1")
    require(0 <= gamma < 1, "gamma", "must lie in [0, 1)", gamma, "for undiscounted problems set a horizon")
    for name, value, allowed in (
        ("kind", kind, Kind),
        ("feasibility", feasibility, Feasibility),
        ("dual", dual, Dual),
        ("buffers", buffers, Buffers),
    ):
        words = get_args(allowed)
        require(value in words, name, f"must be {words[0]!r} or {words[1]!r}", repr(value), "use one of the two")
    m = num_constraints
    require(m >= 1, "num_constraints", "must be at least 1", m, "without constraints any solver will do")
    require(
        m == 1 or dual == "column-generation",
        "num_constraints",
        "must be 1 for projected-descent, whose guarantee is for one constraint",
        m,
        "use column-generation",
    )
    needed = dual == "projected-descent" or feasibility == "strict"
    pairs, lebesgue, remarks = _sizes(kind, size)
    setting = Setting(gamma, delta, pairs, lebesgue, m, dual, buffers, rounding)
    return Request(setting, feasibility, _slack(zeta, setting.horizon, needed), remarks)


def _slack(zeta: float | None, H: float, needed: bool) -> float:
    if zeta is None and not needed:
        return math.nan
    require(
        zeta is not None and 0 < zeta <= H,
        "zeta",
        f"must lie in (0, H] = (0, {H:g}]",
        zeta,
        "give a lower bound on max V_c − b; only relaxed feasibility by column generation does without",
    )
    assert zeta is not None
    return zeta


def _sizes(kind: Kind, size: Size) -> tuple[int, float | None, tuple[str, ...]]:
    """|C|, Γ and what was assumed of them."""
    foreign = ("num_pairs",) if kind == "linear" else ("dimension", "coreset_size", "leverage_bound")
    for name in foreign:
        value = getattr(size, name)
        require(value is None, name, f"must be left out for a {kind} problem", value, "or change the kind")
    if kind == "tabular":
        SA = _whole("num_pairs", size.num_pairs, 1, "[1, ∞)", "give S·A")
        return SA, None, ()
    d, C, g = size.dimension, size.coreset_size, size.leverage_bound
    least = 1 if d is None else _whole("dimension", d, 1, "[1, ∞)", "give the number of features")
    remarks = []
    if C is None:
        C = 2 * _whole("dimension", d, 1, "[1, ∞)", "or give coreset_size and leverage_bound")
        remarks.append(f"assumes a coreset of |C| = 2d = {C} pairs: a design's own size is what counts")
    if g is None:
        g = 2.0 * _whole("dimension", d, 1, "[1, ∞)", "or give coreset_size and leverage_bound")
    _whole("coreset_size", C, least, f"[d, ∞) = [{least}, ∞)", "a coreset spans the features")
    require(
        least <= g < math.inf, "leverage_bound", f"must lie in [d, ∞) = [{least}, ∞)", g, "no design has a smaller g"
    )
    return C, math.sqrt(g), tuple(remarks)


def _whole(name: str, value: Any, least: int, interval: str, remedy: str) -> int:
    if value is None or value < least:
        raise InputError(name, f"must lie in {interval}", value, remedy)
    return int(value)
