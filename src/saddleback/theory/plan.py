"""How many samples an accuracy needs, and what accuracy a number of samples buys: the guarantees, turned round.

What ε asks of the oracles comes from :mod:`~saddleback.theory.meta_theorem`:

                                        error asked of the oracles          ε is
    column generation, relaxed          q = ε                               the loss and the violation
    column generation, strict           q = ε/(1 + H/ζ),  q ≤ ζ             the loss; nothing is violated
    projected descent, relaxed          f = ε/3.5,        f ≤ H²/(5ζ)       the violation (the loss is 1.5f)
    projected descent, strict           f = εζ/(5H),      f ≤ ζ/6           the loss; nothing is violated

How that becomes T, M and a grid is in :mod:`~saddleback.theory.errors`. *Rigorous* are plans that pay for their grid; with
``rounding=False`` the grid is counted in the logarithms only, as if the solver were asked for λ itself, and the plan is
*heuristic*. A rigorous plan rests on what the bounds rest on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from saddleback.errors import InputError, require
from saddleback.method.duals.column_generation import column_shift
from saddleback.method.oracles import OracleErrors
from saddleback.theory.errors import Buffers, Choice, Dual, Setting
from saddleback.theory.meta_theorem import Feasibility, Guarantee, dual_settings

Kind = Literal["linear", "tabular"]
Label = Literal["rigorous", "heuristic"]

_ROUNDING = 1e-12  # keeps the ends of a range inside it
_AIM = 1 - 1e-6  # a plan aims a little lower than asked,
_PRECISION = 1e-7  # by more than the bisection of a budget is off
_COUNT_BYTES = 8  # of an entry of P̂_t, kept as a frequency


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
        rule = "must be 1 for projected-descent, whose guarantee is for one constraint"
        require(m == 1 or self.dual == "column-generation", "num_constraints", rule, m, "use column-generation")
        H, needed = self.setting.horizon, self.dual == "projected-descent" or self.feasibility == "strict"
        rule = f"must lie in (0, H] = (0, {H:g}]"
        remedy = "give a lower bound on max V_c − b; only relaxed feasibility by column generation does without"
        require(0 < self.zeta <= H if self.zeta is not None else not needed, "zeta", rule, self.zeta, remedy)

    @cached_property
    def setting(self) -> Setting:
        """The problem as the bounds see it."""
        C, Gamma = self._size
        return Setting(self.gamma, self.delta, C, Gamma, self.num_constraints, self.dual, self.buffers, self.rounding)

    @property
    def slack(self) -> float:
        """ζ, NaN where it was not given."""
        return math.nan if self.zeta is None else self.zeta

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was assumed of the size."""
        if self.kind == "tabular" or self.coreset_size is not None:
            return ()
        return (f"assumes a coreset of |C| = 2d = {self._size[0]} pairs: a design's own size is what counts",)

    @property
    def label(self) -> Label:
        """What a plan for it is worth."""
        return "rigorous" if self.rounding else "heuristic"

    @property
    def scale(self) -> float:
        """ε over q or f."""
        H, relaxed = self.setting.horizon, self.feasibility == "relaxed"
        if self.dual == "column-generation":
            return 1.0 if relaxed else 1 + H / self.slack
        return 3.5 if relaxed else 5 * H / self.slack

    def error_for(self, epsilon: float) -> float:
        """The largest q or f whose guarantee is ε."""
        return min(epsilon / self.scale, self.errors[1])

    @property
    def errors(self) -> tuple[float, float]:
        """The least and the largest q or f that the guarantees allow, or that is worth a search."""
        H, relaxed, zeta = self.setting.horizon, self.feasibility == "relaxed", self.slack
        if self.dual == "column-generation":
            return 1e-9 * H, 100 * H * H if relaxed else zeta
        least = 2 * H * H / zeta * 1e-9 * (1 + _ROUNDING)  # K ≤ 10¹⁸
        return least, (H * H / (5 * zeta) if relaxed else zeta / 6) * (1 - _ROUNDING)

    @cached_property
    def _size(self) -> tuple[int, float | None]:
        """|C|, and Γ (None: a table)."""
        foreign = ("num_pairs",) if self.kind == "linear" else ("dimension", "coreset_size", "leverage_bound")
        for name in foreign:
            value = getattr(self, name)
            require(value is None, name, f"must be left out for a {self.kind} problem", value, "or change the kind")
        if self.kind == "tabular":
            return _whole("num_pairs", self.num_pairs, 1, "[1, ∞)", "give S·A"), None
        d, C, g = self.dimension, self.coreset_size, self.leverage_bound
        least = 1 if d is None else _whole("dimension", d, 1, "[1, ∞)", "give the number of features")
        if C is None:
            C = 2 * _whole("dimension", d, 1, "[1, ∞)", "or give coreset_size and leverage_bound")
        if g is None:
            g = 2.0 * _whole("dimension", d, 1, "[1, ∞)", "or give coreset_size and leverage_bound")
        _whole("coreset_size", C, least, f"[d, ∞) = [{least}, ∞)", "a coreset spans the features")
        rule = f"must lie in [d, ∞) = [{least}, ∞)"
        require(least <= g < math.inf, "leverage_bound", rule, g, "no design has a smaller g")
        return C, math.sqrt(g)


def _whole(name: str, value: Any, least: int, interval: str, remedy: str) -> int:
    if value is None or value < least:
        raise InputError(name, f"must lie in {interval}", value, remedy)
    return int(value)


@dataclass(frozen=True)
class Plan(Choice):
    """A budget and what it buys with probability 1 − δ, in the paper's units.

    ``solver`` and ``evaluation`` are (T, M) of the two buffers over ``num_pairs`` pairs each. ``error`` is q or f,
    ``rounding`` the part of it that the grid of ``resolution`` costs, ``tolerance`` column generation's τ.
    ``dual_iterations`` is K (None: column generation needs no number of rounds), ``target_shift`` is b' − b. ``bytes`` is
    the smaller of keeping the samples and, on a finite space, their counts.
    """

    epsilon: float
    delta: float
    num_pairs: int
    bytes_as_samples: int
    bytes_as_counts: int | None
    seconds: float | None
    error: float
    dual_iterations: int | None
    target_shift: float
    guarantee: Guarantee
    label: Label
    remarks: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """What has to be stored."""
        counts = self.bytes_as_counts
        return self.bytes_as_samples if counts is None else min(self.bytes_as_samples, counts)


@dataclass(frozen=True)
class Guaranteed:
    """The smallest ε that is proved for a budget, and the plan for it; infinite, without one, where nothing is proved."""

    epsilon: float
    vacuous: bool
    label: Label
    remark: str
    plan: Plan | None


def plan(
    epsilon: float,
    delta: float,
    *,
    bytes_per_sample: int = 4,
    num_states: int | None = None,
    simulator_seconds_per_call: float | None = None,
    **asked: Any,
) -> Plan:
    """The cheapest plan found for accuracy ε with probability 1 − δ.

    epsilon, delta:               ε and δ
    bytes_per_sample, num_states: what a sample and a table of counts take on disk; None: there are infinitely many states
    simulator_seconds_per_call:   for an estimate of the time; None: unknown
    asked:                        the other fields of :class:`~saddleback.theory.plan.Question`
    """
    question = Question(delta=delta, **asked)
    S, seconds = num_states, simulator_seconds_per_call
    require(bytes_per_sample >= 1, "bytes_per_sample", "must be at least 1", bytes_per_sample, "use 4")
    require(S is None or S >= 1, "num_states", "must be at least 1", S, "leave it out where there are infinitely many")
    rule, remedy = "must lie in [0, ∞)", "measure it, or leave it out"
    require(seconds is None or 0 <= seconds < math.inf, "simulator_seconds_per_call", rule, seconds, remedy)
    H, low = question.setting.horizon, question.scale * question.errors[0]
    remedy = "values lie in [0, H], so any policy is H-optimal; far below that range nobody could draw the samples"
    require(low <= epsilon <= H, "epsilon", f"must lie in [{low:.3g}, H] = [{low:.3g}, {H:g}]", epsilon, remedy)
    error = question.error_for(epsilon)
    choice = question.setting.choose(_AIM * error)
    return _assemble(question, epsilon, error, choice, bytes_per_sample, num_states, simulator_seconds_per_call)


def guaranteed_epsilon(samples: int, delta: float, **asked: Any) -> Guaranteed:
    """The least ε that ``samples`` in all are enough for; the other arguments are those of a question, as in :func:`plan`."""
    question = Question(delta=delta, **asked)
    require(samples >= 1, "samples", "must be at least 1", samples, "count the simulator calls of both buffers")
    label, H, (least, most) = question.label, question.setting.horizon, question.errors
    error = _least_error(question.setting, samples, least, most)
    if error is None:
        return Guaranteed(
            math.inf, True, label, f"nothing is proved for {samples:,} samples: draw more, or measure", None
        )
    epsilon = question.scale * error
    vacuous = epsilon >= H
    remark = f"vacuous: any policy is within H = {H:g}; measured intervals say more" if vacuous else ""
    found = _assemble(question, epsilon, error, question.setting.choose(error), 4, None, None)
    return Guaranteed(epsilon, vacuous, label, remark, found)


def _least_error(setting: Setting, samples: int, least: float, most: float) -> float | None:
    """The smallest error in [least, most] whose price is at most ``samples``; the price never rises with the error."""
    high = low = most
    if setting.choose(high).samples > samples:
        return None
    while setting.choose(low).samples <= samples:
        high, low = low, low / 4
        if high <= least:
            return least
    while high > low * (1 + _PRECISION):
        middle = math.sqrt(low * high)
        if setting.choose(middle).samples <= samples:
            high = middle
        else:
            low = middle
    return max(high, least)


def _assemble(
    question: Question,
    epsilon: float,
    error: float,
    choice: Choice,
    bytes_per_sample: int,
    num_states: int | None,
    seconds_per_call: float | None,
) -> Plan:
    """The plan that follows from what was chosen."""
    s = question.setting
    entries = s.num_pairs * (choice.solver.num_iterations + choice.evaluation.num_iterations)
    K, shift, guarantee = _dual(question, error, choice)
    return Plan(
        **vars(choice),
        epsilon=epsilon,
        delta=s.delta,
        num_pairs=s.num_pairs,
        bytes_as_samples=choice.samples * bytes_per_sample,
        bytes_as_counts=None if num_states is None else entries * num_states * _COUNT_BYTES,
        seconds=None if seconds_per_call is None else choice.samples * seconds_per_call,
        error=error,
        dual_iterations=K,
        target_shift=shift,
        guarantee=guarantee,
        label=question.label,
        remarks=question.remarks,
    )


def _dual(question: Question, error: float, choice: Choice) -> tuple[int | None, float, Guarantee]:
    """K, b' − b and what is promised."""
    s, feasibility = question.setting, question.feasibility
    if s.dual == "projected-descent":
        told = dual_settings(error, horizon=s.horizon, zeta=question.slack, threshold=0.0, feasibility=feasibility)
        return told.num_iterations, told.target, told.guarantee
    f_m, f_e = s.errors(choice)
    shift = column_shift(OracleErrors(f_m + choice.rounding, f_e), choice.tolerance or 0.0, feasibility == "strict")
    missed = 0.0 if feasibility == "strict" else error
    return None, shift, Guarantee(question.scale * error, missed, "column generation")
