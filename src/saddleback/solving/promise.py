"""What a run promises before it is measured: the guarantee that follows from the dual's terms and the oracles' errors.

    projected descent    Theorem thm_main2 and its corrections (:func:`saddleback.theory.meta_theorem.guarantee_of`)
    column generation    :func:`saddleback.theory.meta_theorem.column_guarantee`

A dual without known terms, or oracles without proved errors, promise nothing, and the solution says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saddleback.features import OneHot
from saddleback.method.framework import Outcome
from saddleback.method.oracles import ColumnTerms, DescentTerms, Dual, DualContext, DualSummary, OracleErrors
from saddleback.method.slater import Slater
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.remarks import Remark
from saddleback.problem.spaces import Array
from saddleback.runs.settings import Settings
from saddleback.solving.a_priori import oracle_errors
from saddleback.solving.prepared import Prepared
from saddleback.theory.meta_theorem import column_guarantee, guarantee_of


class Promise(NamedTuple):
    """The reward lost at most, and by how much each constraint is missed at most ``(m,)``, in the paper's units."""

    reward_loss: float
    violations: Array


def context_for(parts: Prepared, slater: Slater, settings: Settings, target: Array | None = None) -> DualContext:
    """What the dual may know; ``target`` overrides b' (strict mode raises it by what was missing)."""
    given = settings.method.target
    chosen = np.array(given) if given is not None else target

    def errors(policies: Sequence[Policy]) -> OracleErrors:
        if settings.method.error is not None:
            return OracleErrors(settings.method.error, settings.method.error)
        return oracle_errors(parts, settings.delta, [slater.policy, *policies])

    return DualContext(
        parts.problem.horizon,
        parts.problem.thresholds,
        settings.feasibility == "strict",
        slater.estimate,
        slater.low,
        errors,
        lambda: _half_widths(parts, settings.confidence),
        settings.method.error is not None,
        chosen,
    )


def _half_widths(parts: Prepared, confidence: float) -> Array:
    """Half the measured interval of each constraint at the policy that is safest for it, ``(m,)``."""
    m = parts.problem.num_constraints
    widths = np.zeros(m)
    for i in range(m):
        low, high = parts.interval(parts.oracle(np.eye(1 + m)[1 + i])[0], confidence)
        widths[i] = (high[1 + i] - low[1 + i]) / 2
    return widths


def promise_of(context: DualContext, dual: Dual, summary: DualSummary, outcome: Outcome) -> Promise | None:
    """What is promised once the run is known; None: nothing a priori."""
    terms, H, b, target = summary.terms, context.horizon, context.thresholds, dual.target
    if isinstance(terms, DescentTerms):
        errors = OracleErrors(dual.error, dual.error)
        bound = guarantee_of(terms, errors, target=float(target[0]), horizon=H, threshold=float(b[0]))
        return Promise(bound.reward_loss, np.array([bound.violation]))
    if not isinstance(terms, ColumnTerms) or not terms.closed:
        return None
    seen = {id(s.policy): s.policy for s in outcome.steps}  # the proof needs f_e at the last answer too
    final = context.errors(list(seen.values()))
    shifted = int(np.argmax(target - b))  # the proof is the same for m constraints, with the largest shift
    b_shifted, zeta = float(b[shifted]), context.room - final.evaluation
    bound = column_guarantee(
        final, terms.tolerance, target=float(target[shifted]), horizon=H, zeta=zeta, threshold=b_shifted
    )
    return Promise(bound.reward_loss, np.maximum(0.0, b - (target - final.evaluation)))


def guarantee_remark(problem: CMDP, promise: Promise | None, f: float, settings: Settings) -> Remark:
    """What was promised before the run, or that nothing was."""
    if promise is None:
        size = f"f = {f:.3g} in utilities" if math.isfinite(f) else "no bound on the oracles' error"
        return Remark("no-guarantee", f"no a-priori guarantee ({size}): the limits shown are measured, not proved")
    assumed = (
        "" if problem.features is None or isinstance(problem.features, OneHot) else " if P is linear in the features"
    )
    given = f"with probability {settings.confidence:g}{assumed}"
    source = given if settings.method.error is None else "if the oracles err by at most the f given by hand"
    missed = " and ".join(
        f"'{c.name}' is missed by at most {v * abs(scale):.4g}"
        for c, v, scale in zip(problem.constraints, promise.violations, problem.scale[1:], strict=True)
    )
    loss = promise.reward_loss * problem.reward_span
    return Remark(
        "guarantee",
        f"a-priori guarantee, {source}: the reward is within {loss:.4g} of the optimum and {missed} "
        f"(f = {f:.3g} in utilities)",
    )
