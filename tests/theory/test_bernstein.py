"""The Bernstein bounds for tables: each step of their derivation, on a computer, and the figures that follow."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError
from saddleback.theory.coefficients import bernstein_evaluation, bernstein_solver, rms_drift, total_deviation
from saddleback.theory.errors import tabular_evaluation_error, tabular_solver_error

TABULAR = {"gamma": 0.9, "num_pairs": 60, "num_problems": 350, "delta": 0.1}
BOUNDS = pytest.mark.parametrize("bound", [tabular_solver_error, tabular_evaluation_error])


def random_mdp(rng: np.random.Generator, S: int, A: int) -> tuple[np.ndarray, np.ndarray]:
    """P ``(S, A, S)``, from nearly deterministic to nearly uniform, and rewards, from 0 or 1 to anything between."""
    P = rng.dirichlet(np.full(S, 10.0 ** rng.uniform(-2, 1)), size=(S, A))
    r = rng.random((S, A)) if rng.random() < 0.5 else rng.integers(0, 2, (S, A)).astype(float)
    return P, r


def chain(P: np.ndarray, r: np.ndarray, pi: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """P_π and V^π."""
    P_pi = np.einsum("sa,sat->st", pi, P)
    return P_pi, np.linalg.solve(np.eye(len(P)) - gamma * P_pi, (pi * r).sum(axis=1))


def best(P: np.ndarray, r: np.ndarray, gamma: float) -> np.ndarray:
    """V* by policy iteration."""
    S, A = r.shape
    actions = np.zeros(S, dtype=int)
    for _ in range(100):
        V = chain(P, r, np.eye(A)[actions], gamma)[1]
        Q = r + gamma * P @ V
        better = np.where(Q.max(axis=1) > Q[np.arange(S), actions] + 1e-12, Q.argmax(axis=1), actions)
        if np.array_equal(better, actions):
            break
        actions = better
    return V


def deviation(P: np.ndarray, V: np.ndarray) -> np.ndarray:
    """σ(V)(s, a)."""
    return np.sqrt(np.maximum(P @ V**2 - (P @ V) ** 2, 0.0))


# ---- step 1: total variance ------------------------------------------------------------------------------------------


def variance_ratio(seed: int, gamma: float, deterministic: bool) -> float:
    """‖(I − γP_π)⁻¹πσ(V^π)‖ over √((1+γ)H³/4)."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    P, r = random_mdp(rng, S, A)
    pi = np.eye(A)[rng.integers(0, A, S)] if deterministic else rng.dirichlet(np.full(A, 0.5), S)
    P_pi, V = chain(P, r, pi, gamma)
    left = np.linalg.solve(np.eye(S) - gamma * P_pi, (pi * deviation(P, V)).sum(axis=1))
    return float(left.max()) / math.sqrt((1 + gamma) / (4 * (1 - gamma) ** 3))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.999), st.booleans())
def test_the_total_variance_bound(seed: int, gamma: float, deterministic: bool) -> None:
    assert variance_ratio(seed, gamma, deterministic) <= 1 + 1e-9


def test_the_total_variance_bound_on_many_tables() -> None:
    """600 random tables, seeds 0..599: never broken, and not idle either: half of it is broken (the negative control)."""
    ratios = [variance_ratio(seed, gamma, True) for seed in range(200) for gamma in (0.5, 0.9, 0.99)]
    print(f"largest ratio {max(ratios):.3f}")
    assert 0.5 < max(ratios) <= 1


def test_the_total_variance_bound_is_within_a_constant() -> None:
    """A fair coin each step pays 1 or 0: γ(I − γP)⁻¹σ = γH/2 alone; a coin that is kept for H steps comes near √(H³/8)."""
    gamma = 0.99
    H = 1 / (1 - gamma)
    stay = 1 - 1 / H  # keep the reward of this state for about H steps, then toss again
    P = np.full((2, 1, 2), (1 - stay) / 2) + stay * np.eye(2)[:, None, :]
    P_pi, V = chain(P, np.array([[1.0], [0.0]]), np.ones((2, 1)), gamma)
    left = gamma * np.linalg.solve(np.eye(2) - gamma * P_pi, deviation(P, V)[:, 0]).max()
    assert 0.3 * total_deviation(gamma) < left <= total_deviation(gamma)


# ---- step 2: the iterates stay near V* -------------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(0.3, 0.97), st.floats(0.0, 1.0))
def test_iterates_stay_near_the_optimum_whatever_the_samples(seed: int, gamma: float, noise: float) -> None:
    """For *any* P̂_t, with the actual |ε_t| and |e_i| in place of their limits: both inequalities of step 2."""
    rng = np.random.default_rng(seed)
    S, A, T, H = 5, 3, 60, 1 / (1 - gamma)
    P, r = random_mdp(rng, S, A)
    V_star = best(P, r, gamma)
    V, Q_sum, eps_sum = np.zeros(S), np.zeros((S, A)), np.zeros((S, A))
    drift, below, above = 0.0, 0.0, 0.0  # S_t, Σγ^{t−i}(2|e_i| + |ε_i|), Σγ^{t−i}|ε_i|
    for t in range(T):
        sampled = (1 - noise) * P + noise * rng.dirichlet(np.full(S, 0.3), size=(S, A))
        eps = gamma * (sampled - P) @ V
        if t >= 1:
            drift = gamma * drift + 1 / t
            below = gamma * below + 2 * float(np.abs(eps_sum).max()) / t + float(np.abs(eps).max())
        above = gamma * above + float(np.abs(eps).max())
        eps_sum += eps
        before = Q_sum.max(axis=1)
        Q_sum = Q_sum + r + gamma * sampled @ V
        V = Q_sum.max(axis=1) - before  # V̂^{t+1}
        assert (V - V_star).max() <= above + 1e-9 * H
        limit = gamma * H * drift + below if t >= 1 else gamma * H
        assert (V_star - V).max() <= limit + 1e-9 * H


def exact_drift(gamma: float, T: int) -> np.ndarray:
    """D_0..D_{T−1}."""
    H, S, D = 1 / (1 - gamma), 0.0, [1 / (1 - gamma), gamma / (1 - gamma)]
    for t in range(1, T):
        S = gamma * S + 1 / t
        D.append(min(H, gamma * H * S))
    return np.array(D[:T])


def noise_part(gamma: float, T: int) -> np.ndarray:
    """½γH(2H + 2Z_{t−1}): the half span of the noise over h, t = 0..T−1."""
    H, Z, out = 1 / (1 - gamma), 0.0, []
    for t in range(T):
        out.append(gamma * H * (H + Z))
        Z = gamma * Z + 1 / math.sqrt(t + 1)
    return np.array(out)


@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.5, 0.8, 0.9, 0.98, 0.995])
def test_the_root_mean_square_of_the_drift(gamma: float) -> None:
    """Never below the exact one, at most 15 % above (at T = 3, γ = .8), and falling."""
    T = np.arange(1, 20_001, dtype=np.float64)
    exact = np.sqrt(np.cumsum(exact_drift(gamma, 20_000) ** 2) / T)
    limit = rms_drift(gamma, T)
    assert np.all(limit >= exact * (1 - 1e-12))
    assert np.all(limit <= 1.15 * exact)
    assert np.all(np.diff(limit) <= 1e-12 * limit[1:])
    assert np.all(limit[1_000:] <= 1.03 * exact[1_000:])


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_the_drift_far_out_falls_as_one_over_the_root(gamma: float) -> None:
    """Σ D_t² converges, so that the root mean square of 10¹² of them is a thousandth of that of 10⁶."""
    near, far = rms_drift(gamma, np.array([1e8, 1e14]))
    assert far == pytest.approx(near / 1000, rel=1e-3)


@pytest.mark.parametrize(("gamma", "T"), [(0.5, 1), (0.5, 50), (0.9, 10), (0.9, 3_000), (0.98, 3_000)])
def test_the_coefficients_hold_the_exact_tube(gamma: float, T: int) -> None:
    """a₁ and a₂ by hand from D_t and Z_t are never above the code's, and not far below."""
    H, SA, n, delta, M = 1 / (1 - gamma), 12, 5, 0.01, 10_000
    L, L_tube = math.log(8 * SA * n / delta), math.log(16 * SA * T * n / delta)
    x, h = math.sqrt(2 * L / (T * M)), math.sqrt(L_tube / (2 * M))
    d = exact_drift(gamma, T) / 2 + h * noise_part(gamma, T)
    D = math.sqrt(float(np.mean(d**2)))
    B = gamma * math.sqrt((1 + gamma) * H**3 / 4)
    top = gamma * H * H / T + 2 * x * (B + gamma * H * D) + 2 * gamma * H * H * L / (3 * T * M)
    exact = top / (1 - gamma * H * x / 2)
    stated = tabular_solver_error(T, M, gamma=gamma, num_pairs=SA, num_problems=n, delta=delta, method="bernstein")
    assert exact * (1 - 1e-12) <= stated <= 1.15 * exact


def tube_runs(seeds: range, shrink: float = 1.0) -> int:
    """How many of the runs leave the tube of step 2 (its limits divided by ``shrink``), δ = 10⁻⁸ each."""
    gamma, S, A, T, M = 0.9, 11, 2, 150, 3_000
    H = 1 / (1 - gamma)
    P, r = delayed_chain(S)
    V_star = best(P, r, gamma)
    h = math.sqrt(math.log(4 * S * A * T / 1e-8) / (2 * M))
    low, Z = exact_drift(gamma, T + 1), 0.0
    for t in range(2, T + 1):
        Z = gamma * Z + 1 / math.sqrt(t - 1)
        low[t] = low[t] + gamma * H * h * (H + 2 * Z)
    left = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        V, Q_sum, outside = np.zeros(S), np.zeros((S, A)), False
        for t in range(T):
            before = Q_sum.max(axis=1)
            Q_sum += r + gamma * (rng.multinomial(M, P) / M) @ V
            V = Q_sum.max(axis=1) - before
            gap = V_star - V
            outside |= bool(gap.max() > low[t + 1] / shrink or -gap.min() > gamma * H * H * h / shrink)
        left += outside
    return left


def delayed_chain(S: int) -> tuple[np.ndarray, np.ndarray]:
    """Action 0 pays a little for ever; action 1 walks, slipping now and then, to a last state that pays 1."""
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2))
    for s in range(S):
        P[s, 0, 0], r[s, 0] = 1.0, 0.12
        P[s, 1, min(s + 1, S - 1)], P[s, 1, s] = 0.9, 0.1
        P[s, 1] /= P[s, 1].sum()
    r[S - 1] = 1.0
    P[S - 1, 0] = P[S - 1, 1]
    return P, r


def test_simulated_iterates_stay_in_the_tube() -> None:
    """20 runs, seeds 0..19, so a false alarm has probability 2·10⁻⁷; the tube shrunk to a sixth is left by every run."""
    assert tube_runs(range(20)) == 0
    assert tube_runs(range(3), shrink=6.0) == 3


# ---- step 3: Bernstein's inequality with the constant 1/3 ------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99))
def test_the_exponential_moment_behind_the_sum(seed: int, share: float) -> None:
    """E e^{λX} ≤ exp(λ²σ²/(2(1 − bλ/3))) for centred X ≤ b and λ < 3/b, whence √(2vL) + bL/3."""
    rng = np.random.default_rng(seed)
    values = rng.random(int(rng.integers(2, 6)))
    p = rng.dirichlet(np.full(len(values), 0.3))
    X = values - p @ values
    b = max(float(X.max()), 1e-9)
    lam = 3 * share / b
    assert math.log(p @ np.exp(lam * X)) <= lam**2 * (p @ X**2) / (2 * (1 - share)) * (1 + 1e-9) + 1e-12


def test_the_sub_gamma_deviation_inverts_the_moment() -> None:
    """inf_λ (vλ²/(2(1−cλ)) − λu) = −L at u = √(2vL) + cL."""
    for v, c, L in itertools.product((0.1, 1.0, 30.0), (0.01, 1.0), (1.0, 20.0)):
        u = math.sqrt(2 * v * L) + c * L
        lam = np.linspace(0, 1 / c, 400_001)[1:-1]
        assert float(np.min(v * lam**2 / (2 * (1 - c * lam)) - lam * u)) == pytest.approx(-L, rel=1e-4)


# ---- step 4: the evaluator -------------------------------------------------------------------------------------------


def test_the_evaluators_noise_has_fixed_weights() -> None:
    """Σ_{i<t} γ^{2(t−i)} ≤ γ²/(1−γ²) = γ²H/(1+γ), and the drift is Σ γ^{2t} in closed form."""
    for gamma in (0.3, 0.9, 0.99):
        H = 1 / (1 - gamma)
        assert sum(gamma ** (2 * i) for i in range(1, 5_000)) == pytest.approx(gamma**2 * H / (1 + gamma), rel=1e-9)
        T, M, SA, n, delta = 300, 10**5, 12, 4, 0.01
        L, L_tube = math.log(8 * SA * n / delta), math.log(8 * SA * T * n / delta)
        x, h = math.sqrt(2 * L / (T * M)), math.sqrt(L_tube / (2 * M))
        D = math.sqrt(np.mean([gamma ** (2 * t) for t in range(T)])) * H / 2 + gamma * H * h * math.sqrt(
            H / (1 + gamma)
        )
        by_hand = gamma * H**2 / T + x * (total_deviation(gamma) + gamma * H * D) + gamma * H**2 * L / (3 * T * M)
        stated = tabular_evaluation_error(
            T, M, gamma=gamma, num_pairs=SA, num_problems=n, delta=delta, method="bernstein"
        )
        assert stated == pytest.approx(by_hand, rel=1e-12)


# ---- the smaller of the two ------------------------------------------------------------------------------------------


@BOUNDS
def test_the_smaller_one_is_returned(bound) -> None:
    for T, M in itertools.product((1, 30, 10**4), (1, 10**3, 10**5, 10**7)):
        alone = [bound(T, M, **TABULAR, method=method) for method in ("hoeffding", "bernstein")]
        assert bound(T, M, **TABULAR) == min(alone)


@BOUNDS
def test_more_samples_a_batch_never_hurt(bound) -> None:
    for T in (1, 100, 10**5):
        values = [bound(T, M, **TABULAR, method="bernstein") for M in np.geomspace(1, 10**9, 60).astype(int).tolist()]
        assert all(a >= b for a, b in itertools.pairwise(values))
        assert values[-1] < math.inf


def cross_over(bound, H: int, T: int) -> float:
    """The M from which Bernstein is smaller, by bisection."""
    given = {**TABULAR, "gamma": 1 - 1 / H}
    low, high = 1.0, 1e9
    while high > 1.01 * low:
        M = math.sqrt(low * high)
        wins = bound(T, int(M), **given, method="bernstein") < bound(T, int(M), **given, method="hoeffding")
        low, high = (low, M) if wins else (M, high)
    return high


@pytest.mark.parametrize("T", [10**5, 10**6])
def test_bernstein_wins_only_for_large_batches(T: int) -> None:
    """The solver's bound crosses between 10⁴ and 10⁵ at H = 10, between 10⁵ and 10⁶ at H = 50; the evaluator's earlier."""
    assert 1e4 < cross_over(tabular_solver_error, 10, T) < 1e5
    assert 1e5 < cross_over(tabular_solver_error, 50, T) < 1e6
    for H in (10, 50):
        assert 500 < cross_over(tabular_evaluation_error, H, T) < 1e4


@BOUNDS
def test_the_cube_of_the_horizon(bound) -> None:
    """With T and M beyond all lower terms, ten times H multiplies Bernstein by 10^1.5 and Hoeffding by 10²."""
    rest = {"num_pairs": 60, "num_problems": 350, "delta": 0.1}

    def value(H: int, method: str) -> float:
        return bound(10**17, 10**15, gamma=1 - 1 / H, **rest, method=method) - (1 - 1 / H) * H * H / 1e17

    assert value(1000, "bernstein") / value(100, "bernstein") == pytest.approx(10**1.5, rel=0.02)
    assert value(1000, "hoeffding") / value(100, "hoeffding") == pytest.approx(10**2, rel=0.02)


def test_few_samples_have_no_bernstein_bound() -> None:
    """γHx ≥ 2: the quadratic inequality for Δ has no limit; Hoeffding's bound is there all the same."""
    assert tabular_solver_error(1, 1, **TABULAR, method="bernstein") == math.inf
    assert tabular_solver_error(1, 1, **TABULAR) < math.inf


@BOUNDS
def test_no_discounting_no_error(bound) -> None:
    assert bound(1, 1, **{**TABULAR, "gamma": 0.0}, method="bernstein") == 0.0


@BOUNDS
def test_an_unknown_method_is_named(bound) -> None:
    with pytest.raises(InputError, match="`method` must be 'smaller', 'hoeffding' or 'bernstein', got 'best'"):
        bound(10, 10, **TABULAR, method="best")


@pytest.mark.parametrize("bound", [bernstein_solver, bernstein_evaluation])
def test_coefficients_fall_with_T_while_the_logarithm_stands_still(bound) -> None:
    """What lets ⌈T⌉ take the place of T in a plan."""
    T = np.unique(np.geomspace(1, 1e9, 400).round())
    for gamma in (0.5, 0.8, 0.95):
        parts = bound(T, np.array(20.0), np.array(5.0), gamma=gamma, num_pairs=30, delta=0.1)
        for values in parts:
            assert np.all(np.diff(values) <= 1e-12 * values[:-1])
