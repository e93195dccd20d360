"""`saddleback exact` against an independent dense linear program on every zoo problem that has a table."""

import numpy as np
import pytest
from scipy.optimize import linprog

from saddleback import zoo
from saddleback.exact import policy_values, solve_exactly

CASES = {name: {} for name in zoo.BY_NAME if name not in zoo.CONTINUOUS} | {
    "random-linear": {"states": 60},
    "ward": {"beds": 3, "waiting": 4, "limit": 0.4},
}


def independent(table):
    """max reward over occupancies, in the user's units, written without anything of ours but the arrays."""
    S, A = table.reward.shape
    P = table.P.toarray()
    flow = np.kron(np.eye(S), np.ones((1, A))) - table.gamma * P.T
    signs = np.array([1.0 if s == ">=" else -1.0 for s in table.senses])
    answer = linprog(
        -table.reward.ravel(),
        A_ub=-signs[:, None] * table.constraints.reshape(len(signs), -1),
        b_ub=-signs * table.thresholds,
        A_eq=flow,
        b_eq=table.rho,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return -answer.fun, -answer.ineqlin.marginals


@pytest.mark.parametrize("name", CASES)
def test_agrees_to_1e_7(name):
    table = zoo.make(name, **CASES[name]).table
    answer = solve_exactly(table)
    value, multipliers = independent(table)
    assert answer.value == pytest.approx(value, abs=1e-7)
    np.testing.assert_allclose(answer.multipliers, np.abs(multipliers), atol=1e-5, rtol=1e-5)
    own = policy_values(table, answer.policy)
    assert own[0] == pytest.approx(answer.value, abs=1e-8)
    for value, threshold, sense in zip(own[1:], table.thresholds, table.senses, strict=True):
        assert (value - threshold) * (1 if sense == ">=" else -1) >= -1e-8


@pytest.mark.parametrize("gamma", [0.8, 0.9, 0.99])
@pytest.mark.parametrize("dim", [6, 8])
def test_hard_instance_closed_forms(gamma, dim):
    """V* = γ/(2(1−γ²−γΔ)) and ζ, to 1e-9 of their size."""
    instance = zoo.make("hard-instance", gamma=gamma, dim=dim, zeta=0.02)
    answer = solve_exactly(instance.table)
    delta = 0.2 * (1 - gamma)
    assert answer.value == pytest.approx(gamma / (2 * (1 - gamma**2 - gamma * delta)), rel=1e-9)
    assert answer.slater == pytest.approx(0.02, abs=1e-9 / (1 - gamma))
    assert answer.multipliers[0] <= instance.problem.horizon / 0.02
