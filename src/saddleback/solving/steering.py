"""What the dual is told: the target b', and for the paper's descent U and η; and what that promises.

    literal (Theorem thm_main2):      U = 2H/ζ,  η = U/(H√K),  b' = b − 2f (relaxed)  or  b + 4f (strict, f ≤ ζ/6)
    column generation:                b' = b − (f_m + f_e + τ) (relaxed)  or  b + f_e (strict)

ζ is replaced by a lower limit, which is all the proofs need. With affordable budgets the worst-case f exceeds ζ/6 (often H
itself) and would silently drop the constraint. Then relaxed uses b' = b, strict uses b' = b plus the measured evaluation
half-width, and the solution says "no a-priori guarantee".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from saddleback.method.duals import ColumnGeneration, ProjectedDescent
from saddleback.method.framework import Outcome
from saddleback.method.oracles import Dual
from saddleback.method.slater import Slater
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.solving.a_priori import OracleErrors, oracle_errors
from saddleback.solving.prepare import Prepared
from saddleback.theory import column_guarantee, column_target, guarantee_of

Feasibility = Literal["relaxed", "strict"]


@dataclass(frozen=True)
class Orders:
    """The caller's wishes; ``error``, ``upper``, ``step_size``, ``target`` and ``tolerance`` are in the paper's units."""

    dual: str
    feasibility: Feasibility
    iterations: int
    confidence: float
    error: float | None = None
    upper: float | None = None
    step_size: float | None = None
    target: Array | None = None
    tolerance: float | None = None


class Promise(NamedTuple):
    """The reward lost at most, and by how much each constraint is missed at most ``(m,)``, in the paper's units."""

    reward_loss: float
    violations: Array


@dataclass(frozen=True)
class Steering:
    """A dual, the f it was set by, and what is promised once the run is known (None: nothing a priori)."""

    dual: Dual
    target: Array
    error: float
    promise: Callable[[Outcome], Promise | None]


def steer(parts: Prepared, slater: Slater, orders: Orders, target: Array | None = None) -> Steering:
    """The dual for these orders; ``target`` overrides b' (strict mode raises it by what was missing)."""
    chosen = orders.target if orders.target is not None else target
    if orders.dual == "projected-descent":
        return _descent(parts, slater, orders, chosen)
    return _columns(parts, slater, orders, chosen)


def half_width(parts: Prepared, confidence: float) -> Array:
    """Half the measured interval of each constraint at the policy that is safest for it, ``(m,)``."""
    m = parts.problem.num_constraints
    widths = np.zeros(m)
    for i in range(m):
        low, high = parts.interval(parts.oracle(np.eye(1 + m)[1 + i])[0], confidence)
        widths[i] = (high[1 + i] - low[1 + i]) / 2
    return widths


def _errors(parts: Prepared, orders: Orders, policies: list[Policy]) -> OracleErrors:
    if orders.error is not None:
        return OracleErrors(orders.error, orders.error)
    return oracle_errors(parts, 1.0 - orders.confidence, policies)


def _measured_target(parts: Prepared, orders: Orders) -> Array:
    b = parts.problem.thresholds
    return b if orders.feasibility == "relaxed" else b + half_width(parts, orders.confidence)


def _descent(parts: Prepared, slater: Slater, orders: Orders, target: Array | None) -> Steering:
    H, b, K = parts.problem.horizon, parts.problem.thresholds, orders.iterations
    f = _errors(parts, orders, [slater.policy]).both
    proved = slater.estimate - f  # a lower bound on ζ whenever f is one on the evaluation error
    guaranteed = len(b) == 1 and b[0] >= 0 and proved > 0 and f <= proved / 6
    # Without that, the measured limit; an undecided problem may have no room at all, and a hundredth of H keeps U finite.
    zeta = proved if guaranteed else slater.low if slater.low > 0 else 0.01 * H
    if target is None:
        if guaranteed or orders.error is not None:
            target = b - 2 * f if orders.feasibility == "relaxed" else b + 4 * f
        else:
            target = _measured_target(parts, orders)
    target = np.broadcast_to(target, b.shape)
    U = 2 * H / zeta if orders.upper is None else orders.upper
    eta = U / (H * math.sqrt(K)) if orders.step_size is None else orders.step_size

    def promise(outcome: Outcome) -> Promise | None:
        if not guaranteed:
            return None
        bound = guarantee_of(
            upper=U,
            step_size=eta,
            num_iterations=K,
            target=float(target[0]),
            solver_error=f,
            evaluation_error=f,
            horizon=H,
            zeta=proved,
            threshold=float(b[0]),
        )
        return Promise(bound.reward_loss, np.array([bound.violation]))

    return Steering(ProjectedDescent(target, U, eta, K), target, f, promise)


def _columns(parts: Prepared, slater: Slater, orders: Orders, target: Array | None) -> Steering:
    H, b = parts.problem.horizon, parts.problem.thresholds
    tau = 1e-4 * H if orders.tolerance is None else orders.tolerance
    errors = _errors(parts, orders, [slater.policy])
    useful = errors.solver + 2 * errors.evaluation + tau <= max(slater.estimate, 0.0)
    if target is None:
        if useful:
            terms = {"solver_error": errors.solver, "evaluation_error": errors.evaluation, "tolerance": tau}
            target = np.array([column_target(float(x), feasibility=orders.feasibility, **terms) for x in b])
        else:
            target = _measured_target(parts, orders)
    target = np.broadcast_to(target, b.shape)

    # A threshold at the very edge of what is reachable must not fail by a rounding error.
    dual = ColumnGeneration(target - 1e-9 * H, tau)

    def promise(outcome: Outcome) -> Promise | None:
        prices = dual.propose(outcome.steps).multipliers
        closed = dual.feasible(outcome.steps) and dual.gap(outcome.steps) <= tau * (1 + 2 * sum(prices))
        if not useful or not closed:
            return None
        seen = {id(s.policy): s.policy for s in outcome.steps}  # the proof needs f_e at the last answer too
        final = _errors(parts, orders, [slater.policy, *seen.values()])
        shifted = int(np.argmax(target - b))  # the proof is the same for m constraints, with the largest shift
        bound = column_guarantee(
            target=float(target[shifted]),
            solver_error=final.solver,
            evaluation_error=final.evaluation,
            tolerance=tau,
            horizon=H,
            zeta=slater.estimate - final.evaluation,
            threshold=float(b[shifted]),
        )
        return Promise(bound.reward_loss, np.maximum(0.0, b - (target - final.evaluation)))

    return Steering(dual, target, errors.both, promise)
