"""What a run promises before it is measured: the guarantee that follows from the dual's terms and the oracles' errors.

    projected descent    Theorem thm_main2 and its corrections (:func:`saddleback.theory.meta_theorem.guarantee_of`)
    column generation    :func:`saddleback.theory.meta_theorem.column_guarantee`

**The oracles' errors** f_m and f_e of Assumptions asmp_b1 and asmp_b2. Proved are MDVI solvers (literal or with burn-in) on
known rewards, with a buffer of their own, rewards on a grid fixed beforehand, and a design whose leverages were checked on
every pair; evaluated by the paper's own evaluators or by LSTD. Everything else is infinite. A dual without known terms, or
oracles without proved errors, promise nothing, and the solution says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from saddleback.errors import Remark
from saddleback.features import OneHot
from saddleback.method.evaluators import LSPE, LSTD, TabularPE
from saddleback.method.framework import Outcome
from saddleback.method.oracles import ColumnTerms, DescentTerms, Dual, DualContext, DualSummary, OracleErrors
from saddleback.method.slater import Slater
from saddleback.method.solvers import LSMDVI, TabularMDVI
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Actions, Array, States
from saddleback.runs.settings import Settings
from saddleback.solving.prepared import Prepared
from saddleback.theory.errors import (
    linear_evaluation_error,
    linear_solver_error,
    num_grid_points,
    tabular_evaluation_error,
    tabular_solver_error,
    with_rounding,
)
from saddleback.theory.meta_theorem import column_guarantee, guarantee_of

_MOST_ENTRIES = 50_000_000  # of the feature matrix that the check of linearity looks at


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
    limits = [parts.interval(parts.oracle(sigma)[0], confidence) for sigma in np.eye(1 + m)[1:]]
    return np.array([(x.high[1 + i] - x.low[1 + i]) / 2 for i, x in enumerate(limits)])


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
    tabular = problem.features is None or isinstance(problem.features, OneHot)
    given = f"with probability {settings.confidence:g}{'' if tabular else ' if P is linear in the features'}"
    source = given if settings.method.error is None else "if the oracles err by at most the f given by hand"
    missed = " and ".join(
        f"'{c.name}' is missed by at most {v * abs(scale):.4g}"
        for c, v, scale in zip(problem.constraints, promise.violations, problem.scale[1:], strict=True)
    )
    loss = promise.reward_loss * problem.reward_span
    text = f"a-priori guarantee, {source}: the reward is within {loss:.4g} of the optimum and {missed}"
    return Remark("guarantee", f"{text} (f = {f:.3g} in utilities)")


# ---- the oracles' errors -----------------------------------------------------------------------------------------------


def oracle_errors(parts: Prepared, delta: float, policies: Iterable[Policy] = ()) -> OracleErrors:
    """The proved errors; LSTD's width depends on the policy, and is the largest over ``policies``."""
    A, B, C = parts.solver_buffer, parts.evaluation_buffer, parts.design
    if A is None or A is B or parts.resolution is None or not C.complete or np.any(parts.problem.observed):
        return OracleErrors(math.inf, math.inf)
    if parts.problem.start.sampler is not None:
        return OracleErrors(math.inf, math.inf)  # the oracles see a sample of ρ, and say nothing of ρ itself
    if linearity_residual(parts) > 1e-8:
        return OracleErrors(math.inf, math.inf)  # the known signals alone refute linearity
    m, n = parts.problem.num_constraints, num_grid_points(parts.resolution, parts.problem.num_constraints)
    tabular = C.operator is None
    shared: dict[str, Any] = {"gamma": parts.problem.gamma, "delta": delta}
    if tabular:
        shared["num_pairs"] = C.size
    else:
        shared |= {"lebesgue": min(C.lebesgue, math.sqrt(C.leverage_bound)), "coreset_size": C.size}
    f_m = _solver_error(parts, tabular, n, shared)
    f_m = with_rounding(f_m, horizon=parts.problem.horizon, resolution=parts.resolution, num_constraints=m)
    batches, size = B.num_batches, int(B.batch_sizes.min())
    f_e = math.inf
    if isinstance(parts.evaluator, LSTD):
        # A quarter of δ is what the solver's own bound leaves to this event.
        widths = [parts.evaluator.width(parts.problem, B, p, delta / 4, n * (1 + m)) for p in policies]
        f_e = max(widths, default=math.inf)
    elif isinstance(parts.evaluator, LSPE) and not tabular and parts.evaluator.burn_in == 0:
        f_e = linear_evaluation_error(batches, size, num_problems=n * (1 + m), **shared)
    elif isinstance(parts.evaluator, TabularPE) and tabular:
        f_e = tabular_evaluation_error(batches, size, num_problems=n * (1 + m), **shared)
    return OracleErrors(f_m, f_e)


def linearity_residual(parts: Prepared) -> float:
    """How far the known r, c and the constant 1 are from linear in φ, at worst over the candidate pairs, in utilities.

    They must be linear if P, r and c are (rows of P sum to one), so this refutes linearity without a sample; it cannot
    prove that of P. Zero for tables. Pools too large to look through are judged on a part of them.
    """
    problem, design = parts.problem, parts.design
    if design.operator is None:
        return 0.0
    states, actions = problem.pairs()
    step = 1 + len(states) * problem.required_features().dim // _MOST_ENTRIES
    states, actions = states[::step], actions[::step]
    phi = problem.required_features().at(states, actions)
    known = ~problem.observed

    def signals(s: States, a: Actions) -> Array:
        return np.column_stack([problem.utilities(s, a)[:, known], np.ones(len(s))])

    fitted = phi @ design.fit(signals(design.states, design.actions))
    return float(np.abs(fitted - signals(states, actions)).max())


def _solver_error(parts: Prepared, tabular: bool, n: int, shared: dict[str, Any]) -> float:
    """f_mdp. A burn-in V⁰ doubles the span behind the 1/T term, which half the T that is left covers."""
    assert parts.solver_buffer is not None
    T, M = parts.solver_buffer.num_batches, int(parts.solver_buffer.batch_sizes.min())
    solver = parts.solver
    if not isinstance(solver, TabularMDVI if tabular else LSMDVI):
        return math.inf
    spent = parts.solver_buffer.burn_in(solver.burn_in * parts.problem.horizon)
    T = T if spent == 0 else max(1, (T - spent) // 2)
    bound = tabular_solver_error if tabular else linear_solver_error
    proved: dict[str, Any] = (
        {"method": "hoeffding"} if tabular and spent else {}
    )  # Bernstein's proof starts from V̂⁰ = 0
    return bound(T, M, num_problems=n, **shared, **proved)
