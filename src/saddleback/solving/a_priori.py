"""What is proved about a run's oracles before they are used: f_m and f_e of Assumptions asmp_b1 and asmp_b2.

Proved are MDVI solvers (literal or with burn-in) on known rewards, with a buffer of their own, rewards on a grid fixed
beforehand, and a design whose leverages were checked on every pair; evaluated by the paper's own evaluators or by LSTD.
Everything else is infinite: nothing is promised.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from saddleback.method.evaluators import LSPE, LSTD, TabularPE
from saddleback.method.oracles import OracleErrors
from saddleback.method.solvers import LSMDVI, TabularMDVI
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Actions, Array, States
from saddleback.solving.prepared import Prepared
from saddleback.theory.errors import (
    linear_evaluation_error,
    linear_solver_error,
    num_grid_points,
    tabular_evaluation_error,
    tabular_solver_error,
    with_rounding,
)

_MOST_ENTRIES = 50_000_000  # of the feature matrix that the check of linearity looks at


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
