"""§2, the problem eq:true-CMDP solved exactly on a known table, as a linear program over occupancy measures.

    max_μ  Σ_{s,a} μ(s, a) r(s, a)
    s.t.   Σ_a μ(s, a) − γ Σ_{s',a'} P(s|s', a') μ(s', a') = ρ(s)     for every s        (dual: V(s))
           Σ_{s,a} μ(s, a) c_i(s, a) ≥ b_i                            i = 1..m           (dual: λ_i ≥ 0)
           μ ≥ 0

and the Slater constant ζ = max_π min_i (V_{c_i}^π(ρ) − b_i), by policy iteration for one constraint and for several by the
same program with "max z" and "V_{c_i} − w_i z ≥ b_i".

No solver is taken at its word: the policy is read off μ, evaluated again on the table itself, and held against the dual
bound max_π V_{r+λc}^π(ρ) − λᵀb, which policy iteration computes without any linear program. The two must agree.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.errors import NumericalError
from saddleback.exact.linear_program import LinearProgram, vertices
from saddleback.exact.values import best_policy, policy_of, start_distribution, unit_policy_values
from saddleback.problem.numerics import first_largest
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.spaces import Array
from saddleback.simulators.table import Table

TOLERANCE = 1e-9  # of H: what a value may be wrong by


@dataclass(frozen=True)
class ExactAnswer:
    """The exact answer on a table, in the user's units unless it says "unit".

    ``slater`` is the largest smallest slack over all policies (for one constraint max V_c − b, or b − min V_c), negative
    when infeasible; ``unit_slater`` is ζ in the paper's units. ``reachable`` ``(m,)`` holds, for each constraint alone, the
    best total any policy reaches. ``residual`` is the worst of flow imbalance, constraint shortfall and duality gap (per
    1 + Σλ), recomputed on the table in the paper's units. ``gap`` is the distance between the value and a proved upper
    limit of it; when infeasible, that of ``slater``. ``mixture`` is what column generation found, drawn once an episode.
    When infeasible, ``value``, ``constraint_values`` and ``multipliers`` are NaN and there is no policy.
    """

    status: Literal["optimal", "infeasible"]
    value: float
    constraint_values: Array
    multipliers: Array
    slater: float
    unit_slater: float
    reachable: Array
    policy: TabularPolicy | None
    residual: float
    seconds: float
    gap: float
    method: Literal["lp", "columns"]
    mixture: MixturePolicy | None = None

    @property
    def max_slack(self) -> float:
        """The largest smallest slack any policy reaches: ``slater``, under the name that infeasible problems use."""
        return self.slater


def solve_exactly(table: Table) -> ExactAnswer:
    """V*, λ*, ζ and an optimal policy that is defined on every state; or the verdict "infeasible"."""
    began = time.perf_counter()
    problem = table.problem()
    m, H = problem.num_constraints, problem.horizon
    best = [best_policy(table, row) for row in np.eye(1 + m)[1:]]  # each constraint alone
    reachable = np.array([values[1 + i] for i, (_, values) in enumerate(best)])
    widths = np.abs(problem.scale[1:])
    if m == 1:
        zeta = float(reachable[0] - problem.thresholds[0])
        slater, inexact = zeta * float(widths[0]), 0.0
    else:
        zeta, inexact = _largest_smallest_slack(table, problem.thresholds, np.ones(m), best[0][0])
        slater, also = _largest_smallest_slack(table, problem.thresholds, widths, best[0][0])
        inexact = max(inexact, also)
    feasible, gap = zeta >= -TOLERANCE * H, inexact * float(widths.max())
    values, multipliers, policy = np.full(1 + m, np.nan), np.full(m, np.nan), None
    if feasible:
        optimum = _optimum(table, problem.thresholds + min(zeta, 0.0))  # at most rounding below them
        values, multipliers = problem.values_of(optimum.values), problem.multipliers_of(optimum.multipliers)
        policy, inexact = optimum.policy, max(inexact, optimum.residual)
        gap = optimum.gap * problem.reward_span
    return ExactAnswer(
        status="optimal" if feasible else "infeasible",
        value=float(values[0]),
        constraint_values=values[1:],
        multipliers=multipliers,
        slater=slater,
        unit_slater=zeta,
        reachable=reachable * problem.scale[1:] + problem.base[1:] * H,
        policy=None if policy is None else table.permitted(policy),
        residual=inexact,
        seconds=time.perf_counter() - began,
        gap=gap,
        method="lp",
    )


class _Optimum(NamedTuple):
    """A solution in the paper's units, checked on the table."""

    policy: TabularPolicy
    values: Array
    multipliers: Array
    residual: float
    gap: float


def _optimum(table: Table, thresholds: Array) -> _Optimum:
    """max V_r subject to V_c ≥ ``thresholds`` (paper's units), which must be feasible."""
    S, A, u = table.num_states, table.num_actions, table.utilities()
    H, rho, flow = 1.0 / (1.0 - table.gamma), start_distribution(table), _flow(table)
    m = len(thresholds)
    matrix = scipy.sparse.vstack([flow, scipy.sparse.csc_array(u[:, 1:].T)], format="csc")
    program = LinearProgram(-u[:, 0], matrix, np.concatenate([rho, thresholds]), num_equal=S, size=H)

    def dual_bound(lam: Array, start: TabularPolicy | None = None) -> tuple[TabularPolicy, float]:
        policy, values = best_policy(table, np.concatenate([[1.0], lam]), start)  # max_π V_{r+λc}^π(ρ) − λᵀb
        return policy, float(values[0] + lam @ (values[1:] - thresholds))

    # The unconstrained optimum is a basis that is optimal but for the constraints it breaks: a few pivots from the end.
    free, unconstrained = dual_bound(np.zeros(m))
    worst = np.inf
    for vertex in vertices(program, _columns_of(free), S + np.arange(m)):
        mu, lam = np.maximum(vertex.columns, 0.0).reshape(S, A), vertex.multipliers
        rest, bound = dual_bound(lam, _mostly(mu))  # states that μ does not visit act as the Lagrangian's optimum does
        policy = policy_of(mu, rest.probabilities(np.arange(S)))
        values = unit_policy_values(table, policy)
        if unconstrained - values[0] <= TOLERANCE * H:  # the constraints cost nothing: λ = 0 is a dual optimum too
            lam, bound = np.zeros(m), unconstrained
        shortfall, gap = (thresholds - values[1:]).max(), abs(float(bound - values[0]))
        residual = float(max(np.abs(flow @ mu.ravel() - rho).max(), shortfall, gap / (1.0 + lam.sum())))
        if residual <= TOLERANCE * H:
            return _Optimum(policy, values, lam, residual, gap)
        worst = min(worst, residual)
    raise _untrusted("the occupancy linear program", worst, TOLERANCE * H)


def _largest_smallest_slack(
    table: Table, thresholds: Array, widths: Array, first: TabularPolicy
) -> tuple[float, float]:
    """max_π min_i widths_i·(V_{c_i}^π − b_i) and the residual, from max z with V_{c_i} − w_i z ≥ b_i.

    ``first`` is the best policy for the first constraint alone: the optimum if that one had the smallest slack.
    """
    S, A, u = table.num_states, table.num_actions, table.utilities()
    H, rho, flow = 1.0 / (1.0 - table.gamma), start_distribution(table), _flow(table)
    w = widths.min() / widths  # z counts in the smallest width, which keeps every coefficient at most 1
    z_column = scipy.sparse.csc_array(np.concatenate([np.zeros(S), -w])[:, None])
    mu_columns = scipy.sparse.vstack([flow, scipy.sparse.csc_array(u[:, 1:].T)])
    program = LinearProgram(
        cost=np.append(np.zeros(S * A), -1.0),
        matrix=scipy.sparse.hstack([mu_columns, z_column], format="csc"),
        right=np.concatenate([rho, thresholds]),
        num_equal=S,
        size=H,
        num_free=1,
    )
    basic = np.append(_columns_of(first), S * A)
    worst = np.inf
    for vertex in vertices(program, basic, S + np.arange(1, len(w))):
        mu, q = np.maximum(vertex.columns[:-1], 0.0).reshape(S, A), vertex.multipliers
        dual, bound = best_policy(table, np.concatenate([[0.0], q]), _mostly(mu))  # Σ w_i q_i = 1: z ≤ qᵀ(V_c − b)
        values = unit_policy_values(table, policy_of(mu, dual.probabilities(np.arange(S))))
        z = float(vertex.columns[-1])
        shortfall = (w * z - (values[1:] - thresholds)).max()
        gap = (q @ (bound[1:] - thresholds) - z) / max(1.0, q.sum())
        residual = float(max(np.abs(flow @ mu.ravel() - rho).max(), shortfall, abs(gap), abs(w @ q - 1.0)))
        if residual <= TOLERANCE * H:
            return z * float(widths.min()), residual
        worst = min(worst, residual)
    raise _untrusted("the linear program for the Slater constant", worst, TOLERANCE * H)


def _flow(table: Table) -> scipy.sparse.csc_array:
    """The left-hand side of the flow equations, ``(S, S·A)``."""
    states = scipy.sparse.kron(scipy.sparse.eye_array(table.num_states), np.ones((table.num_actions, 1)), format="csr")
    return scipy.sparse.csc_array((states - table.gamma * table.P).T)


def _columns_of(policy: TabularPolicy) -> NDArray[np.int64]:
    """The columns μ(s, π(s)) of a deterministic policy, ``(S,)``."""
    return np.asarray(np.arange(len(policy.table)) * policy.num_actions + policy.table)


def _mostly(mu: Array) -> TabularPolicy:
    """The action μ takes most often in each state: where policy iteration should start."""
    return TabularPolicy.deterministic(first_largest(mu, axis=1), mu.shape[1])


def _untrusted(what: str, residual: float, limit: float) -> NumericalError:
    return NumericalError(
        f"{what} was solved with a residual of {residual:.3g}, more than {limit:.3g}, at every tolerance tried; "
        "probabilities below 1e-12 and a gamma very close to 1 are the usual causes."
    )
