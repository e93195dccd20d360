"""What each statement of a certificate rests on, and what the samples say of it.

The intervals assume bounded signals and independent calls. A bound from a coreset also assumes linearity, which is tested
(:mod:`~saddleback.certificates.linearity`): where the tests refute it, no bound is given. The comparison of the fit with the
rollouts rests on the central limit theorem and only warns.
"""

from __future__ import annotations

import numpy as np

from saddleback.certificates.certificate import user_limits
from saddleback.certificates.linearity import (
    LinearityReport,
    check_linearity,
    constant_finding,
    rollout_finding,
    signal_findings,
)
from saddleback.certificates.plan import HELD_OUT, Guide, Request
from saddleback.method.evaluators import LSTD
from saddleback.problem.spaces import Array
from saddleback.simulators.generative_model import GenerativeModel

BOUNDED = "rewards and constraint signals within their declared ranges, independent simulator calls"


def bound_assumes(guide: Guide) -> str:
    """What a bound over all policies needs."""
    if guide.design.operator is None:
        return BOUNDED
    features = guide.problem.required_features()
    searched = guide.problem.num_states is not None and not features.direct  # pair by pair, rewards as they are
    known = searched and not np.any(guide.problem.observed)
    needs = f"{BOUNDED}; {'' if known else 'rewards and '}transition probabilities linear in the features"
    if searched or guide.design.complete:
        return needs
    return f"{needs}; features of all pairs in the span of the candidates', where the design's Lebesgue constant is no larger"


def examine_linearity(
    guide: Guide, model: GenerativeModel, request: Request, samples: int, limits: tuple[Array, Array] | None = None
) -> LinearityReport | None:
    """The tests of linearity from ``samples`` calls (0: those that need none); None where nothing is assumed.

    ``limits`` are those of the mixture's values, against which the fitted ones are held.
    """
    problem = guide.problem
    if guide.design.operator is None:
        return None
    if samples:
        report = check_linearity(
            problem,
            guide.design,
            model,
            samples=samples,
            seed=request.seed,
            delta=request.delta,
            num_pairs=HELD_OUT,
            executor=request.executor,
        )
    else:
        exact = (*signal_findings(problem, guide.design), constant_finding(problem, guide.design))
        report = LinearityReport(True, exact, 0, request.delta)
    if limits is None or guide.mixture is None:
        return report
    buffer, w = guide.earlier[-1], guide.mixture.weights
    fitted = w @ np.array([LSTD().evaluate(problem, buffer, p) for p in guide.mixture.members])
    confidence = 1 - 1e-6 / (1 + problem.num_constraints)  # the fit's own error, by the central limit: only to warn
    widths = np.array([np.ptp(LSTD().interval(problem, buffer, p, confidence), axis=0) for p in guide.mixture.members])
    (lows, highs), scale = np.array(user_limits(problem, *limits)).T, np.abs(problem.scale)
    agreed = rollout_finding(problem, problem.values_of(fitted), lows, highs, scale * (w @ widths) / 2)
    return report.joined(agreed)


def refuted(report: LinearityReport | None) -> bool:
    """Whether the samples speak against linearity."""
    return report is not None and not report.passed
