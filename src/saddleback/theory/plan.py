"""How many samples an accuracy needs, and what accuracy a number of samples buys: the guarantees, turned round.

What ε asks of the oracles (q for column generation, f for the paper's dual) is in :mod:`~saddleback.theory.question`, how
that becomes T, M and a grid in :mod:`~saddleback.theory.inversion`. *Rigorous* are plans that pay for their grid; with
``rounding=False`` the grid is counted in the logarithms only, as if the solver were asked for λ itself, and the plan is
*heuristic*. A rigorous plan rests on what the bounds rest on: see :mod:`~saddleback.theory.errors`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from saddleback.errors import require
from saddleback.theory.inversion import Choice, Setting, Stage
from saddleback.theory.meta_theorem import Guarantee, dual_settings
from saddleback.theory.question import Question

Label = Literal["rigorous", "heuristic"]

_AIM = 1 - 1e-6  # a plan aims a little lower than asked,
_PRECISION = 1e-7  # by more than the bisection of a budget is off
_COUNT_BYTES = 8  # of an entry of P̂_t, kept as a frequency


@dataclass(frozen=True)
class Plan:
    """A budget and what it buys with probability 1 − δ, in the paper's units.

    ``solver`` and ``evaluation`` are (T, M) of the two buffers over ``num_pairs`` pairs each. ``error`` is q or f,
    ``rounding`` the part of it that the grid of ``resolution`` costs, ``tolerance`` column generation's τ.
    ``dual_iterations`` is K (None: column generation needs no number of rounds), ``target_shift`` is b' − b. ``bytes`` is
    the smaller of keeping the samples and, on a finite space, their counts.
    """

    epsilon: float
    delta: float
    solver: Stage
    evaluation: Stage
    num_pairs: int
    samples: int
    bytes_as_samples: int
    bytes_as_counts: int | None
    seconds: float | None
    error: float
    rounding: float
    tolerance: float | None
    resolution: int
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
    asked:                        the other fields of :class:`~saddleback.theory.question.Question`
    """
    question = Question(delta=delta, **asked)
    S, seconds = num_states, simulator_seconds_per_call
    require(bytes_per_sample >= 1, "bytes_per_sample", "must be at least 1", bytes_per_sample, "use 4")
    require(S is None or S >= 1, "num_states", "must be at least 1", S, "leave it out where there are infinitely many")
    require(
        seconds is None or 0 <= seconds < math.inf,
        "simulator_seconds_per_call",
        "must lie in [0, ∞)",
        seconds,
        "measure it, or leave it out",
    )
    H, (least, most) = question.setting.horizon, question.errors
    low = question.scale * least
    require(
        low <= epsilon <= H,
        "epsilon",
        f"must lie in [{low:.3g}, H] = [{low:.3g}, {H:g}]",
        epsilon,
        "values lie in [0, H], so any policy is H-optimal; far below that range nobody could draw the samples",
    )
    error = min(epsilon / question.scale, most)
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
        epsilon=epsilon,
        delta=s.delta,
        solver=choice.solver,
        evaluation=choice.evaluation,
        num_pairs=s.num_pairs,
        samples=choice.samples,
        bytes_as_samples=choice.samples * bytes_per_sample,
        bytes_as_counts=None if num_states is None else entries * num_states * _COUNT_BYTES,
        seconds=None if seconds_per_call is None else choice.samples * seconds_per_call,
        error=error,
        rounding=choice.rounding,
        tolerance=choice.tolerance if s.dual == "column-generation" else None,
        resolution=choice.resolution,
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
    if feasibility == "strict":
        return None, f_e, Guarantee(question.scale * error, 0.0, "column generation")
    return None, -(f_m + choice.rounding + f_e + choice.tolerance), Guarantee(error, error, "column generation")
