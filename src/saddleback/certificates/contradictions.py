"""Evidence against what a certificate assumes, or against the user's code: its own statements contradict each other.

    (a)  σᵀV_low > U        the rollouts' lower limits of this policy, weighed as the bound U ≥ max_π σᵀV^π weighs them
    (b)  V̂ ± e misses [V_low, V_high]        what earlier samples made of this policy, e its own error, and its limits

On a sound problem (a) happens with probability δ at most, since limits and bound hold together at 1 − δ. (b) needs besides
that V̂ is further from V than e, the empirical Bernstein limit at 10⁻⁶: V̂ − V = γ Σ_x a_x ((P̂ − P)V)(x) with the influence
a_x of the pairs, where a and the variance come from the same samples (first order). Nothing is said where the samples refute
linearity: the bound is withheld then, and the fit is known to be off. Nor is (b) where features are given, no bound rests on
them, and the constraints are certified: then nothing that is concluded does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from saddleback.certificates.bounds.bound import Bound
from saddleback.certificates.certificate import FittedEvidence
from saddleback.certificates.guide import Guide
from saddleback.certificates.values.intervals import deviation_limit
from saddleback.certificates.values.rollouts import Baseline
from saddleback.errors import NumericalError, Remark
from saddleback.method.evaluators.lstd import LSTD, cautious_variance
from saddleback.problem.cmdp import CMDP
from saddleback.problem.criteria import TOTAL
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array

FALSE_ALARM = 1e-6
"""Of (b), once the limits hold."""

_ROUNDING = 1e-9  # of H


def fit_again(guide: Guide, baseline: Baseline) -> FittedEvidence | None:
    """V̂ of the mixture from the last earlier buffer, with its error e, in utilities; None where there is no fit."""
    assert guide.mixture is not None
    weights, members = guide.mixture.weights, guide.mixture.members
    try:
        values = weights @ np.array([LSTD().evaluate(guide.problem, guide.earlier[-1], p) for p in members])
        errors = weights @ np.array([_error(guide, p, baseline.high - baseline.low) for p in members])
    except NumericalError:
        return None
    return FittedEvidence(tuple(values.tolist()), tuple(np.minimum(errors, guide.problem.horizon).tolist()))


def _error(guide: Guide, member: Policy, span: Array) -> Array:
    """e of one member ``(1+m,)``, whose V̂ varies by ``span``: the sum of |a_x| times the mean at x, pair by pair."""
    problem, buffer = guide.problem, guide.earlier[-1]
    a, V = LSTD().influence_and_values(problem, buffer, member)
    noise = buffer.signal_noise(problem) + problem.gamma * np.sqrt(cautious_variance(buffer, V))
    spare = np.maximum(buffer.counts - 1, 1e-9)  # one sample of a pair says nothing of its variance
    largest = (np.abs(a) / spare).max() * (problem.gamma * span + problem.observed)
    L = math.log(2 * (1 + problem.num_constraints) / FALSE_ALARM)
    return deviation_limit((a**2 / buffer.counts) @ noise**2, largest, L)


def find_contradictions(
    problem: CMDP, low: Array, high: Array, bound: Bound | None, fitted: FittedEvidence | None
) -> tuple[Remark, ...]:
    """What limits ``(1+m,)`` in utilities contradict: the ``bound`` over all policies, the ``fitted`` values."""
    found, slack = list[str](), _ROUNDING * problem.horizon
    if bound is not None and float(bound.sigma @ low) > bound.value + slack:
        found.append(_above_the_best(problem, low, bound))
    if fitted is not None:
        V, e = np.array(fitted.values), np.array(fitted.errors)
        far = np.maximum(low - V, V - high) - e
        j = int(np.argmax(far))
        if far[j] > slack:
            found.append(_far_off(problem, j, (V[j], e[j]), (low[j], high[j])))
    return tuple(Remark("contradiction", text) for text in found)


def _above_the_best(problem: CMDP, low: Array, bound: Bound) -> str:
    """(a) in the user's reward, constraints counted at their prices."""
    priced = float(bound.sigma @ low - bound.sigma[1:] @ problem.thresholds) / float(bound.sigma[0])
    mine, best = (x * problem.scale[0] + problem.base[0] * problem.horizon for x in (priced, bound.on_optimum(problem)))
    least, more = ("at most", "less") if problem.minimise else ("at least", "more")
    counted = "with its constraints at their prices, " if np.any(bound.sigma[1:]) else ""
    return f"{counted}this policy is proved to have a {problem.objective} of {least} {mine:.6g}, and no policy {more} than {best:.6g}"


def _far_off(problem: CMDP, j: int, fit: Sequence[float], limits: Sequence[float]) -> str:
    name = problem.objective if j == 0 else f"'{problem.signals[j].name}'"
    scale, base = float(problem.scale[j]), float(problem.base[j] * problem.horizon)
    unit = TOTAL if j == 0 else problem.units[j - 1]
    low, high = sorted(unit.of(x * scale + base) for x in limits)
    return (
        f"the estimate of {name}, {unit.of(fit[0] * scale + base):.6g} ± {unit.of(fit[1] * abs(scale)):.3g}{unit.suffix}, lies "
        f"outside its proved limits, {low:.6g} to {high:.6g}{unit.suffix}"
    )
