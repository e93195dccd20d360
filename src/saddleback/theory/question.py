"""What a plan is made for, checked: every argument out of its range is named with the range.

                                        error asked of the oracles          ε is
    column generation, relaxed          q = ε                               the loss and the violation
    column generation, strict           q = ε/(1 + H/ζ),  q ≤ ζ             the loss; nothing is violated
    projected descent, relaxed          f = ε/3.5,        f ≤ H²/(5ζ)       the violation (the loss is 1.5f)
    projected descent, strict           f = εζ/(5H),      f ≤ ζ/6           the loss; nothing is violated

They come from :mod:`~saddleback.theory.meta_theorem`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from saddleback.errors import InputError, require
from saddleback.theory.inversion import Buffers, Dual, Setting
from saddleback.theory.meta_theorem import Feasibility

Kind = Literal["linear", "tabular"]

_ROUNDING = 1e-12  # keeps the ends of a range inside it


class _Size(NamedTuple):
    """|C|, Γ (None: a table) and what was assumed of them."""

    num_pairs: int
    lebesgue: float | None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Question:
    """A problem as plans see it, and what is asked of its answer; all in the paper's units.

    delta:             the failure probability δ
    kind:              "linear", with its size in the next three fields, or "tabular", with num_pairs
    dimension:         d; then g = |C| = 2d unless the next two fields say otherwise
    coreset_size:      |C|
    leverage_bound:    g
    num_pairs:         S·A
    gamma:             the discount factor γ
    feasibility:       "relaxed" or "strict"
    zeta:              a lower bound on max V_c − b; column generation's relaxed form does without
    dual:              "column-generation" or "projected-descent"
    num_constraints:   m; projected descent is for one
    rounding:          whether the grid of rewards is paid for; if not, a plan is heuristic
    buffers:           "own" gives each oracle its own T and M, "alike" both the same
    """

    delta: float
    kind: Kind
    gamma: float
    feasibility: Feasibility
    zeta: float | None = None
    dual: Dual = "column-generation"
    dimension: int | None = None
    coreset_size: int | None = None
    leverage_bound: float | None = None
    num_pairs: int | None = None
    num_constraints: int = 1
    rounding: bool = True
    buffers: Buffers = "own"

    def __post_init__(self) -> None:
        delta, gamma, m = self.delta, self.gamma, self.num_constraints
        remedy = "give the failure probability you accept, such as 0.1"
        require(0 < delta < 1, "delta", "must lie in (0, 1)", delta, remedy)
        require(0 <= gamma < 1, "gamma", "must lie in [0, 1)", gamma, "for undiscounted problems set a horizon")
        for name, allowed in (("kind", Kind), ("feasibility", Feasibility), ("dual", Dual), ("buffers", Buffers)):
            value, words = getattr(self, name), get_args(allowed)
            require(value in words, name, f"must be {words[0]!r} or {words[1]!r}", repr(value), "use one of the two")
        require(m >= 1, "num_constraints", "must be at least 1", m, "without constraints any solver will do")
        require(
            m == 1 or self.dual == "column-generation",
            "num_constraints",
            "must be 1 for projected-descent, whose guarantee is for one constraint",
            m,
            "use column-generation",
        )
        H, needed = self.setting.horizon, self.dual == "projected-descent" or self.feasibility == "strict"
        require(
            0 < self.zeta <= H if self.zeta is not None else not needed,
            "zeta",
            f"must lie in (0, H] = (0, {H:g}]",
            self.zeta,
            "give a lower bound on max V_c − b; only relaxed feasibility by column generation does without",
        )

    @cached_property
    def setting(self) -> Setting:
        """The problem as the bounds see it."""
        C, Gamma, _ = self._size
        return Setting(self.gamma, self.delta, C, Gamma, self.num_constraints, self.dual, self.buffers, self.rounding)

    @property
    def slack(self) -> float:
        """ζ, NaN where it was not given."""
        return math.nan if self.zeta is None else self.zeta

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was assumed of the size."""
        return self._size.remarks

    @property
    def label(self) -> Literal["rigorous", "heuristic"]:
        """What a plan for it is worth."""
        return "rigorous" if self.rounding else "heuristic"

    @property
    def scale(self) -> float:
        """ε over q or f."""
        H, relaxed = self.setting.horizon, self.feasibility == "relaxed"
        if self.dual == "column-generation":
            return 1.0 if relaxed else 1 + H / self.slack
        return 3.5 if relaxed else 5 * H / self.slack

    @property
    def errors(self) -> tuple[float, float]:
        """The least and the largest q or f that the guarantees allow, or that is worth a search."""
        H, relaxed, zeta = self.setting.horizon, self.feasibility == "relaxed", self.slack
        if self.dual == "column-generation":
            return 1e-9 * H, 100 * H * H if relaxed else zeta
        least = 2 * H * H / zeta * 1e-9 * (1 + _ROUNDING)  # K ≤ 10¹⁸
        return least, (H * H / (5 * zeta) if relaxed else zeta / 6) * (1 - _ROUNDING)

    @cached_property
    def _size(self) -> _Size:
        foreign = ("num_pairs",) if self.kind == "linear" else ("dimension", "coreset_size", "leverage_bound")
        for name in foreign:
            value = getattr(self, name)
            require(value is None, name, f"must be left out for a {self.kind} problem", value, "or change the kind")
        if self.kind == "tabular":
            return _Size(_whole("num_pairs", self.num_pairs, 1, "[1, ∞)", "give S·A"), None)
        d, C, g = self.dimension, self.coreset_size, self.leverage_bound
        least = 1 if d is None else _whole("dimension", d, 1, "[1, ∞)", "give the number of features")
        remarks: tuple[str, ...] = ()
        if C is None:
            C = 2 * _whole("dimension", d, 1, "[1, ∞)", "or give coreset_size and leverage_bound")
            remarks = (f"assumes a coreset of |C| = 2d = {C} pairs: a design's own size is what counts",)
        if g is None:
            g = 2.0 * _whole("dimension", d, 1, "[1, ∞)", "or give coreset_size and leverage_bound")
        _whole("coreset_size", C, least, f"[d, ∞) = [{least}, ∞)", "a coreset spans the features")
        rule = f"must lie in [d, ∞) = [{least}, ∞)"
        require(least <= g < math.inf, "leverage_bound", rule, g, "no design has a smaller g")
        return _Size(C, math.sqrt(g), remarks)


def _whole(name: str, value: Any, least: int, interval: str, remedy: str) -> int:
    if value is None or value < least:
        raise InputError(name, f"must lie in {interval}", value, remedy)
    return int(value)
