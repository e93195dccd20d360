"""An independent occupancy LP and a goodness-of-fit test, for the tests of the zoo."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize import linprog
from scipy.stats import chi2

from saddleback.problem.finite_model import policy_iteration
from saddleback.simulators.table import Table

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class Optimum(NamedTuple):
    value: float
    multipliers: np.ndarray
    occupancy: np.ndarray


def optimum(table: Table, objective: np.ndarray | None = None, constrained: bool = True) -> Optimum:
    """max objective·μ over occupancies μ ≥ 0 with Σ_a μ(s,a) − γ Σ P(s|x,b) μ(x,b) = ρ(s)."""
    S, A = table.num_states, table.num_actions
    flow = scipy.sparse.kron(scipy.sparse.eye_array(S), np.ones((1, A))) - table.gamma * table.P.T
    sign = np.array([1.0 if s == "<=" else -1.0 for s in table.senses])
    aim = table.reward if objective is None else objective
    found = linprog(
        -np.asarray(aim).ravel(),
        A_ub=sign[:, None] * table.constraints.reshape(len(sign), -1) if constrained else None,
        b_ub=sign * table.thresholds if constrained else None,
        A_eq=flow,
        b_eq=table.rho,
        method="highs",
        options=TIGHT,
    )
    assert found.status == 0, found.message
    multipliers = -found.ineqlin.marginals if constrained else np.zeros(0)
    return Optimum(-found.fun, multipliers, found.x.reshape(S, A))


def evaluate(table: Table, signals: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """V of each column of ``signals`` ``(S·A, k)`` in every state under a deterministic policy, by a dense solve."""
    S = table.num_states
    rows = np.arange(S) * table.num_actions + actions
    return np.linalg.solve(np.eye(S) - table.gamma * table.P[rows].toarray(), signals[rows])


def best_actions(table: Table, signal: np.ndarray) -> np.ndarray:
    """The policy that is best for one ``signal`` ``(S, A)``; ties go to the lowest action."""
    tie, start = 1e-11 * float(np.abs(signal).max()) / (1 - table.gamma), np.zeros(table.num_states, dtype=np.int64)
    return policy_iteration(table.P, signal.reshape(-1, 1), np.ones(1), table.gamma, start, tie)[0]


def most_slack(table: Table) -> float:
    """The largest smallest slack over policies: the Slater constant in the user's units."""
    S, A = table.num_states, table.num_actions
    n, m = S * A, len(table.thresholds)
    flow = scipy.sparse.kron(scipy.sparse.eye_array(S), np.ones((1, A))) - table.gamma * table.P.T
    sign = np.array([1.0 if s == "<=" else -1.0 for s in table.senses])
    found = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.column_stack([sign[:, None] * table.constraints.reshape(m, -1), np.ones(m)]),
        b_ub=sign * table.thresholds,
        A_eq=scipy.sparse.hstack([flow, scipy.sparse.csr_array((S, 1))]),
        b_eq=table.rho,
        bounds=[(0, None)] * n + [(None, None)],
        method="highs",
        options=TIGHT,
    )
    assert found.status == 0, found.message
    return -float(found.fun)


def fit(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """p-value of Pearson's test; cells that expect fewer than 20 are thrown together, impossible ones give 0."""
    n = counts.sum()
    if np.any(counts[probabilities == 0]):
        return 0.0
    large = n * probabilities >= 20
    observed = np.append(counts[large], counts[~large].sum())
    expected = np.append(n * probabilities[large], n * probabilities[~large].sum())
    if expected[-1] < 20:  # what is left over joins the largest cell
        top = int(expected[:-1].argmax())
        observed[top] += observed[-1]
        expected[top] += expected[-1]
        observed, expected = observed[:-1], expected[:-1]
    if len(expected) == 1:
        return 1.0
    return float(chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1))
