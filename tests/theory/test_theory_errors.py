"""f_mdp and f_eva: the derivation's steps, checked on a computer, and the figures that follow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError
from saddleback.method.oracles import round_to_grid, simplex_point
from saddleback.theory.coefficients import (
    Coefficients,
    bernstein_evaluation,
    bernstein_solver,
    hoeffding_evaluation,
    hoeffding_solver,
    linear_evaluation,
    linear_solver,
)
from saddleback.theory.errors import (
    best_split,
    linear_evaluation_error,
    linear_solver_error,
    num_grid_points,
    tabular_evaluation_error,
    tabular_solver_error,
    with_rounding,
)

LINEAR = {"gamma": 0.8, "lebesgue": math.sqrt(10), "coreset_size": 10, "num_problems": 350, "delta": 0.1}
TABULAR = {"gamma": 0.8, "num_pairs": 60, "num_problems": 350, "delta": 0.1}
ALL = [
    pytest.param(partial(linear_solver_error, **LINEAR), id="linear solver"),
    pytest.param(partial(linear_evaluation_error, **LINEAR), id="linear evaluator"),
    pytest.param(partial(tabular_solver_error, **TABULAR), id="tabular solver"),
    pytest.param(partial(tabular_evaluation_error, **TABULAR), id="tabular evaluator"),
]


def test_the_planning_example() -> None:
    """d = 5, H = 5, ε = ½, relaxed: T = 690 and M = 42,000 give f = ε/3.5 (g = |C| = 2d, δ = .1, n = 10H/f)."""
    f = linear_solver_error(690, 42_000, **LINEAR)
    assert f == pytest.approx(0.5 / 3.5, rel=0.1)
    split = best_split(690 * 42_000, partial(linear_solver_error, **LINEAR), partial(linear_evaluation_error, **LINEAR))
    assert split.error == pytest.approx(f, rel=0.01)
    assert split.num_iterations == pytest.approx(690, rel=0.25)  # flat near its minimum
    # the grid n = 10H/f costs another ωH = f/10, which that example leaves out
    assert with_rounding(f, horizon=5.0, resolution=350) - f == pytest.approx(0.5 / 3.5 / 10, rel=1e-9)


def test_hand_computed_values() -> None:
    """Chosen so that the logarithm is a round number: δ = 8|C|n e^{−4} and so on."""
    delta = 4 * 2 * 3 * math.exp(-8)
    # γ = ½, H = 2, γH² = 2; T = 4, M = 64: √(2·8/256) = ¼, √(8/512) = ⅛
    assert tabular_solver_error(4, 64, gamma=0.5, num_pairs=2, num_problems=3, delta=delta) == pytest.approx(1.0)
    assert tabular_evaluation_error(4, 64, gamma=0.5, num_pairs=2, num_problems=3, delta=delta) == pytest.approx(0.75)
    # T = 1 makes L₁ = L₂ = 8; M = 400: κ = ½·2·2·√(8/800) = .2, so 2/(1−2κ) = 10/3
    delta = 8 * 2 * 3 * math.exp(-8)
    common = {"gamma": 0.5, "lebesgue": 2.0, "coreset_size": 2, "num_problems": 3, "delta": delta}
    assert linear_solver_error(1, 400, **common) == pytest.approx(10 / 3 * (1 + 2 * 0.2))
    assert linear_evaluation_error(1, 400, **common) == pytest.approx(10 / 3 * (0.8 + 2 * 0.1))


@pytest.mark.parametrize("error", ALL)
def test_more_samples_a_batch_never_hurt(error: partial[float]) -> None:
    values = [error(500, M) for M in np.unique(np.geomspace(1, 10**9, 200).astype(int)).tolist()]
    assert all(a >= b for a, b in itertools.pairwise(values))
    assert values[-1] < values[-2] < math.inf


def test_more_batches_may_hurt_a_linear_bound() -> None:
    """L₁ holds log T: near κ = ½ the range widens faster than 1/T shrinks."""
    f = partial(linear_solver_error, **LINEAR)
    M = next(M for M in range(1_000, 10**5, 10) if f(10**4, M) < math.inf)
    assert f(10**5, M) == math.inf


@pytest.mark.parametrize("linear", [linear_solver_error, linear_evaluation_error])
def test_too_few_samples_a_batch_have_no_bound(linear: partial[float]) -> None:
    assert linear(100, 1, **LINEAR) == math.inf
    kappa_half = 2 * (0.8 * 5) ** 2 * 10 * math.log(8 * 10 * 100 * 350 / 0.1)  # M where κ = ½
    assert linear(100, math.floor(kappa_half), **LINEAR) == math.inf
    assert linear(100, math.ceil(kappa_half) + 1, **LINEAR) < math.inf


@pytest.mark.parametrize("tabular", [tabular_solver_error, tabular_evaluation_error])
def test_the_tabular_bound_scales_as_the_square_of_the_horizon(tabular: partial[float]) -> None:
    """Hoeffding's f/(γH²) does not depend on γ; ten times T and M each divide the bias by ten, the noise by ten."""
    rest = {"num_pairs": 60, "num_problems": 350, "delta": 0.1, "method": "hoeffding"}
    ratios = [tabular(50, 100, gamma=1 - 1 / H, **rest) / ((1 - 1 / H) * H * H) for H in (2, 10, 100)]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)
    assert tabular(50, 100, gamma=0.9, **rest) / tabular(500, 1000, gamma=0.9, **rest) == pytest.approx(10)


@pytest.mark.parametrize("linear", [linear_solver_error, linear_evaluation_error])
def test_the_linear_bound_scales_as_the_square_of_the_horizon_once_kappa_is_small(linear: partial[float]) -> None:
    rest = {"lebesgue": 2.0, "coreset_size": 10, "num_problems": 350, "delta": 0.1}
    ratios = [linear(500, 10**12, gamma=1 - 1 / H, **rest) / ((1 - 1 / H) * H * H) for H in (2, 10, 50)]
    np.testing.assert_allclose(ratios, ratios[0], rtol=2e-3)  # 1/(1−2κ) − 1 ≤ 2κ/(1−2κ) < 2e-3 at H = 50


def test_no_discounting_no_error() -> None:
    """γ = 0: nothing is learnt from the transitions, every bound is 0."""
    assert linear_solver_error(1, 1, **{**LINEAR, "gamma": 0.0}) == 0.0
    assert tabular_evaluation_error(1, 1, **{**TABULAR, "gamma": 0.0}) == 0.0


def test_tabular_is_the_linear_bound_without_the_widening() -> None:
    """Γ = 1, M → ∞ and δ halved (two events instead of four): the same numbers up to 1/(1−2κ)."""
    T, M = 100, 10**12
    for linear, tabular in [
        (linear_solver_error, tabular_solver_error),
        (linear_evaluation_error, tabular_evaluation_error),
    ]:
        a = linear(T, M, gamma=0.8, lebesgue=1.0, coreset_size=60, num_problems=7, delta=0.1)
        b = tabular(T, M, gamma=0.8, num_pairs=60, num_problems=7, delta=0.05)
        assert a == pytest.approx(b, rel=1e-4)  # κ = 4·√(13/2e12) ≈ 1e-5


# ---- the derivation --------------------------------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.floats(0.3, 0.95), st.floats(0.01, 0.45))
def test_the_range_of_noisy_iteration(seed: int, gamma: float, kappa: float) -> None:
    """Whatever noise of size γh·span(V̂) hits each target, V̂^t stays in [−a, H + a], a = κH/(1−2κ), κ = γHh.

    The policy gap obeys H[γ·span(V̂^T)/T + span(e)], and the evaluation error its identity.
    """
    rng = np.random.default_rng(seed)
    S, A, T, H = 5, 3, 40, 1 / (1 - gamma)
    P = rng.dirichlet(np.full(S, 0.3), size=(S, A))
    r = rng.random((S, A))
    h = kappa / (gamma * H)
    a = kappa * H / (1 - 2 * kappa)
    V, Q_sum, e = np.zeros(S), np.zeros((S, A)), np.zeros((S, A))
    for _ in range(T):
        noise = gamma * h * np.ptp(V) * rng.choice([-1.0, 1.0], size=(S, A))
        e += noise / T
        before = Q_sum.max(axis=1)
        Q_sum = Q_sum + r + gamma * P @ V + noise
        V = Q_sum.max(axis=1) - before
        assert V.min() >= -a - 1e-9 * H
        assert V.max() <= H + a + 1e-9 * H
    policy = Q_sum.argmax(axis=1)
    gap = _value(P, r, gamma, _best(P, r, gamma)) - _value(P, r, gamma, policy)
    assert gap.max() <= H * (gamma * np.ptp(V) / T + np.ptp(e)) + 1e-9 * H
    P_pi, e_pi = P[np.arange(S), policy], e[np.arange(S), policy]
    identity = np.linalg.solve(np.eye(S) - gamma * P_pi, e_pi - gamma * P_pi @ V / T)
    np.testing.assert_allclose(Q_sum.max(axis=1) / T - _value(P, r, gamma, policy), identity, atol=1e-9 * H)


def test_the_range_is_attained() -> None:
    """Two absorbing states worth 1 and 0 with the noise against each other: span → H/(1−2κ), no smaller range would do."""
    gamma, kappa = 0.8, 0.3
    H = 1 / (1 - gamma)
    h = kappa / (gamma * H)
    V, r = np.zeros(2), np.array([1.0, 0.0])
    for _ in range(2_000):
        V = r + gamma * V + gamma * h * np.ptp(V) * np.array([1.0, -1.0])
    assert np.ptp(V) == pytest.approx(H / (1 - 2 * kappa), rel=1e-12)
    assert V.max() == pytest.approx(H + kappa * H / (1 - 2 * kappa), rel=1e-12)


def test_tabular_iteration_on_samples_keeps_its_bounds() -> None:
    """20 seeds at δ = 10⁻⁸, so a false alarm has probability at most 2·10⁻⁷; evaluation on a fresh buffer.

    The negative control leaves out the averaging bias γH²/T: every run breaks that bound.
    """
    rng = np.random.default_rng(5)
    gamma, S, A, T, M = 0.8, 6, 3, 60, 100_000
    H = 1 / (1 - gamma)
    P, r = rng.dirichlet(np.full(S, 0.3), size=(S, A)), rng.random((S, A))
    f_mdp = tabular_solver_error(T, M, gamma=gamma, num_pairs=S * A, num_problems=1, delta=1e-8)
    f_eva = tabular_evaluation_error(T, M, gamma=gamma, num_pairs=S * A, num_problems=1, delta=1e-8)
    best = _value(P, r, gamma, _best(P, r, gamma))
    for _ in range(20):
        V, Q_sum = np.zeros(S), np.zeros((S, A))
        for _ in range(T):
            before = Q_sum.max(axis=1)
            Q_sum += r + gamma * (rng.multinomial(M, P) / M) @ V
            V = Q_sum.max(axis=1) - before
        policy = Q_sum.argmax(axis=1)
        value = _value(P, r, gamma, policy)
        assert (best - value).max() <= f_mdp
        P_pi, r_pi = P[np.arange(S), policy], r[np.arange(S), policy]
        V, mean = np.zeros(S), np.zeros(S)
        for _ in range(T):
            V = r_pi + gamma * (rng.multinomial(M, P_pi) / M) @ V
            mean += V / T
        error = float(np.abs(mean - value).max())
        assert f_eva - gamma * H * H / T < error <= f_eva


def _value(P: np.ndarray, r: np.ndarray, gamma: float, policy: np.ndarray) -> np.ndarray:
    s = np.arange(len(policy))
    return np.linalg.solve(np.eye(len(s)) - gamma * P[s, policy], r[s, policy])


def _best(P: np.ndarray, r: np.ndarray, gamma: float) -> np.ndarray:
    """Policy iteration."""
    policy = np.zeros(len(P), dtype=int)
    for _ in range(100):
        better = (r + gamma * P @ _value(P, r, gamma, policy)).argmax(axis=1)
        if np.array_equal(better, policy):
            break
        policy = better
    return policy


# ---- grid and split --------------------------------------------------------------------------------------------------


def test_rounding_costs_one_step_of_the_grid() -> None:
    assert with_rounding(0.1, horizon=5.0, resolution=100) == pytest.approx(0.1 + 5 / 100)
    assert with_rounding(0.1, horizon=5.0, resolution=100, num_constraints=3) == pytest.approx(0.1 + 4 * 5 / 200)
    assert num_grid_points(100) == 101
    assert num_grid_points(4, num_constraints=2) == 15


def test_rounding_loses_no_more_than_stated() -> None:
    """Two policies with opposite values and a tie at the grid's middle: judged at σ, chosen at the rounded σ."""
    H, n, worst = 10.0, 8, 0.0
    values = np.array([[H, 0.0], [0.0, H]])
    for lam in np.geomspace(1e-2, 1e2, 2_001):
        sigma = simplex_point([float(lam)])
        chosen = values[int(np.argmax(values @ round_to_grid(sigma, n)))]
        worst = max(worst, float((values @ sigma).max() - chosen @ sigma))
    assert 0.95 * H / n < worst <= with_rounding(0.0, horizon=H, resolution=n)


@pytest.mark.parametrize(
    ("error", "forms"),
    [
        (ALL[0].values[0], (linear_solver,)),
        (ALL[1].values[0], (linear_evaluation,)),
        (ALL[2].values[0], (hoeffding_solver, bernstein_solver)),
        (ALL[3].values[0], (hoeffding_evaluation, bernstein_evaluation)),
    ],
)
def test_the_split_is_close_to_the_best_of_all(
    error: partial[float], forms: tuple[Callable[..., Coefficients]]
) -> None:
    """All T at once, through the coefficients; the two ways to a bound agree."""
    N = 300_000
    split = best_split(N, error)
    assert split.num_iterations * split.samples_per_iteration <= N
    assert split.error == error(split.num_iterations, split.samples_per_iteration)
    T = np.arange(1, N + 1, dtype=np.float64)
    given = {k: v for k, v in error.keywords.items() if k != "num_problems"}
    log_n = np.array(math.log(error.keywords["num_problems"]))
    values = np.min([form(T, np.log(T), log_n, **given).error(N // T) for form in forms], axis=0)
    for t in (1, 7, 300, 40_000, N):
        assert values[t - 1] == pytest.approx(error(t, N // t), rel=1e-12)
    assert values.min() <= split.error * (1 + 1e-12)
    assert split.error <= 1.01 * values.min()


def test_a_limit_on_the_iterations_is_kept() -> None:
    """Without a condition on M the tabular bound always prefers M = 1; T costs time, so it can be limited."""
    error = partial(tabular_solver_error, **TABULAR)
    assert best_split(300_000, error)[:2] == (300_000, 1)
    limited = best_split(300_000, error, most_iterations=2_000)
    assert limited[:2] == (2_000, 150)
    assert limited.error <= 1.06 * best_split(300_000, error).error


def test_the_split_for_one_buffer_weighs_both_errors() -> None:
    errors = partial(linear_solver_error, **LINEAR), partial(linear_evaluation_error, **LINEAR)
    N = 10**6
    both = best_split(N, *errors)
    assert both.error >= max(best_split(N, errors[0]).error, best_split(N, errors[1]).error)
    assert both.error == max(f(both.num_iterations, both.samples_per_iteration) for f in errors)


def test_where_no_split_has_a_bound_the_error_is_infinite() -> None:
    assert best_split(10, partial(linear_solver_error, **LINEAR)).error == math.inf


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"gamma": 1.0}, "gamma"),
        ({"lebesgue": 0.0}, "lebesgue"),
        ({"coreset_size": 0}, "coreset_size"),
        ({"num_problems": 0}, "num_problems"),
        ({"delta": 0.0}, "delta"),
        ({"delta": math.nan}, "delta"),
    ],
)
@pytest.mark.parametrize("linear", [linear_solver_error, linear_evaluation_error])
def test_arguments_out_of_range_are_named(linear: partial[float], change: dict[str, float], name: str) -> None:
    with pytest.raises(InputError, match=f"`{name}` must"):
        linear(10, 10, **{**LINEAR, **change})


def test_counts_out_of_range_are_named() -> None:
    with pytest.raises(InputError, match="`num_iterations` must be at least 1, got 0"):
        tabular_solver_error(0, 5, **TABULAR)
    with pytest.raises(InputError, match="`samples_per_iteration` must be at least 1, got 0"):
        tabular_evaluation_error(5, 0, **TABULAR)
    with pytest.raises(InputError, match="`samples` must be at least 1"):
        best_split(0, partial(tabular_solver_error, **TABULAR))
    with pytest.raises(InputError, match="`errors` must hold"):
        best_split(10)
    with pytest.raises(InputError, match="`most_iterations` must be at least 1"):
        best_split(10, partial(tabular_solver_error, **TABULAR), most_iterations=0)
    with pytest.raises(InputError, match="`resolution` must be at least 1"):
        with_rounding(0.1, horizon=5.0, resolution=0)
    with pytest.raises(InputError, match="`resolution` must be at least 1"):
        num_grid_points(0)
