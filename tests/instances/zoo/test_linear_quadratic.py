from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from saddleback.instances.zoo import make
from spelled_out import solve

PARAMETERS = {"actions": 5, "drift": 0.8, "gain": 0.6, "noise": 0.2, "start": 1.0, "limit": 0.08, "gamma": 0.95}


def fine_grid_optimum(points: int) -> tuple[float, float]:
    """The constrained optimum of a discretised problem, by an LP that knows nothing of quadratics.

    State and noise are cut into cells of one width, the noise's mass within a cell put at its middle, and next states between
    two grid points shared out between them, which keeps means exactly and adds at most width²/4 to second moments.
    """
    p = PARAMETERS
    gains = np.linspace(0, p["gain"], p["actions"])
    L = p["noise"] / (1 - p["drift"])
    grid = np.linspace(-L, L, points)
    width = grid[1] - grid[0]
    noise = (np.arange(40) + 0.5) / 40 * 2 * p["noise"] - p["noise"]
    P = np.zeros((points, len(gains), points))
    for a, k in enumerate(gains):
        following = (p["drift"] - k) * grid[:, None] + noise
        low = np.clip(np.floor((following + L) / width).astype(int), 0, points - 2)
        share = (following + L) / width - low
        for j in range(len(noise)):
            np.add.at(P, (np.arange(points), a, low[:, j]), (1 - share[:, j]) / 40)
            np.add.at(P, (np.arange(points), a, low[:, j] + 1), share[:, j] / 40)
    A, H = len(gains), 1 / (1 - p["gamma"])
    reward = -((gains * grid[:, None]) ** 2)
    cost = np.repeat(grid[:, None] ** 2, A, axis=1)
    flow = np.kron(np.eye(points), np.ones((1, A))) - p["gamma"] * P.reshape(points * A, points).T
    rho = (np.arange(points) == points - 1).astype(float)  # start = L
    found = linprog(
        -reward.ravel(), A_ub=cost.reshape(1, -1), b_ub=[p["limit"] * H], A_eq=flow, b_eq=rho, method="highs"
    )
    return -found.fun, -found.ineqlin.marginals[0]


def test_closed_form_against_a_fine_grid() -> None:
    """Two grids; the error falls with the square of their width, and Richardson's limit is the closed form to 0.3 %."""
    known = make("linear-quadratic", **PARAMETERS).known
    coarse, fine = (fine_grid_optimum(n)[0] for n in (51, 101))
    assert abs(fine - known["value"]) < abs(coarse - known["value"])
    assert (4 * fine - coarse) / 3 == pytest.approx(known["value"], rel=3e-3)
    assert fine_grid_optimum(101)[1] == pytest.approx(known["multiplier"], rel=0.03)


@pytest.mark.parametrize("action", [0, 2, 4])
def test_second_moments_of_constant_gains(action: int) -> None:
    """M = Σ γᵗ E[x_t²] in 40,000 episodes from the simulator, within five standard errors (5.7e-7 a side)."""
    instance = make("linear-quadratic", **PARAMETERS)
    gamma, n = 0.95, 40_000
    rng = np.random.default_rng(np.random.SeedSequence([7, action]))
    x, total = np.ones((n, 1)), np.zeros(n)
    for t in range(400):  # 0.95⁴⁰⁰ = 1e-9
        total += gamma**t * x[:, 0] ** 2
        x = instance.simulator.sample(x, np.full(n, action), rng).next_states
    f = 0.8 - 0.15 * action
    M = (1 + gamma * 20 * 0.04 / 3) / (1 - gamma * f**2)
    error = total.std() / np.sqrt(n)
    assert abs(total.mean() - M) < 5 * error
    wrong = (1 + gamma * 20 * 0.04 / 3) / (1 - gamma * (f + 0.02) ** 2)
    if action < 4:  # the control: a gain off by 0.02 is told apart (at f = 0.2 its effect is too small to be seen)
        assert abs(total.mean() - wrong) > 5 * error


def test_edges() -> None:
    """A generous limit costs nothing; one below what the largest gain reaches cannot be met."""
    assert make("linear-quadratic", limit=0.2).known["value"] == 0.0
    tight = make("linear-quadratic", limit=0.01).known
    assert np.isnan(tight["value"]) and tight["zeta"] < 0


def test_solved_from_samples() -> None:
    """The optimal policies are constant gains, so the members' true values are known: 5 % of the optimum, 3 % of the limit."""
    instance = make("linear-quadratic", **PARAMETERS)
    solution = solve(instance.problem, instance.simulator, samples=3_000, seed=1)
    assert solution.mixture is not None
    gains, f = np.linspace(0, 0.6, 5), 0.8 - np.linspace(0, 0.6, 5)
    M = (1 + 0.95 * 20 * 0.04 / 3) / (1 - 0.95 * f**2)
    x = np.linspace(-1, 1, 41)[:, None]
    values = []
    for member in solution.mixture.members:
        actions = {int(a) for a in member.probabilities(x[x[:, 0] != 0]).argmax(axis=1)}
        assert len(actions) == 1
        a = actions.pop()
        values.append([-(gains[a] ** 2) * M[a], M[a]])
    value, moment = solution.mixture.weights @ np.array(values)
    assert value == pytest.approx(instance.known["value"], rel=0.05)
    assert moment <= 0.08 * 20 * 1.03
