"""Plans: the published examples, how near they are to the cheapest, and the way back from a budget to an accuracy."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError
from saddleback.theory import guaranteed_epsilon, plan
from saddleback.theory.errors import (
    linear_evaluation_error,
    linear_solver_error,
    num_grid_points,
    tabular_evaluation_error,
    tabular_solver_error,
    with_rounding,
)

LINEAR = {"kind": "linear", "gamma": 0.8, "dimension": 5}
TABULAR = {"kind": "tabular", "gamma": 0.8, "num_pairs": 60}
KINDS = pytest.mark.parametrize("problem", [LINEAR, TABULAR], ids=["linear", "tabular"])
DUALS = pytest.mark.parametrize("dual", ["column-generation", "projected-descent"])
FEASIBILITY = pytest.mark.parametrize("feasibility", ["relaxed", "strict"])

EXAMPLES = [  # d, H, ε, ζ, mode: T, M, samples, bytes, K, for g = |C| = 2d, δ = .1 and n = 10H/f
    ((5, 5, 0.5, 1, "relaxed"), (690, 4.2e4, 5.7e8, 2.3e9, 1.2e5)),
    ((5, 5, 0.5, 1, "strict"), (7.5e3, 1.1e5, 1.6e10, 64e9, 6.3e6)),
    ((10, 10, 0.1, 1, "relaxed"), (2.1e4, 9.6e5, 8.0e11, 3.2e12, 4.9e7)),
    ((10, 10, 0.1, 1, "strict"), (5.6e5, 4.4e6, 1.0e14, 399e12, 1.0e10)),
    ((20, 20, 1, 2, "relaxed"), (5.7e3, 3.4e6, 1.6e12, 6.3e12, 2.0e6)),
    ((50, 100, 1, 10, "relaxed"), (1.5e5, 2.8e8, 8.3e15, 33e15, 4.9e7)),
]


@pytest.mark.parametrize(("asked", "expected"), EXAMPLES)
def test_the_examples(asked, expected) -> None:
    """Six plans for the paper's dual, both buffers alike, the grid not paid for: everything to 5 %."""
    d, H, epsilon, zeta, feasibility = asked
    p = plan(epsilon, 0.1, kind="linear", gamma=1 - 1 / H, dimension=d, zeta=zeta, feasibility=feasibility,
             dual="projected-descent", buffers="alike", rounding=False)  # fmt: skip
    assert p.solver == p.evaluation
    found = (*p.solver, p.samples, p.bytes, p.dual_iterations)
    assert found == pytest.approx(expected, rel=0.05)
    assert p.label == "heuristic"


# ---- what a plan promises --------------------------------------------------------------------------------------------


def errors_of(p, problem, num_constraints: int = 1) -> tuple[float, float]:
    """f_mdp with rounding and f_eva of a plan, by the bounds themselves."""
    n = num_grid_points(p.resolution, num_constraints)
    given = {"gamma": problem["gamma"], "delta": p.delta}
    if problem["kind"] == "linear":
        given |= {"lebesgue": math.sqrt(2 * problem["dimension"]), "coreset_size": 2 * problem["dimension"]}
        bounds = linear_solver_error, linear_evaluation_error
    else:
        given |= {"num_pairs": problem["num_pairs"]}
        bounds = tabular_solver_error, tabular_evaluation_error
    f_m = bounds[0](*p.solver, num_problems=n, **given)
    f_e = bounds[1](*p.evaluation, num_problems=n * (1 + num_constraints), **given)
    H = 1 / (1 - problem["gamma"])
    rounded = with_rounding(f_m, horizon=H, resolution=p.resolution, num_constraints=num_constraints)
    return (rounded if p.label == "rigorous" else f_m), f_e


@KINDS
@DUALS
@FEASIBILITY
@pytest.mark.parametrize("buffers", ["own", "alike"])
@pytest.mark.parametrize("epsilon", [0.003, 0.5, 4.9])
def test_the_errors_add_up(problem, dual, feasibility, buffers, epsilon: float) -> None:
    """The bounds at the planned T and M are within what the dual's guarantee needs for ε, and use nearly all of it."""
    zeta, H = 1.3, 1 / (1 - problem["gamma"])
    p = plan(epsilon, 0.05, **problem, zeta=zeta, feasibility=feasibility, dual=dual, buffers=buffers)
    f_m, f_e = errors_of(p, problem)
    assert p.samples == p.num_pairs * (math.prod(p.solver) + math.prod(p.evaluation))
    assert p.label == "rigorous"
    if dual == "projected-descent":
        relaxed = feasibility == "relaxed"
        f = min(epsilon / 3.5, H * H / (5 * zeta)) if relaxed else min(epsilon * zeta / (5 * H), zeta / 6)
        assert p.error == pytest.approx(f, rel=1e-9)
        assert 0.8 * f < f_m <= f
        assert f_e <= f
        assert p.dual_iterations == pytest.approx((2 * H / zeta * H / f) ** 2, rel=1e-6, abs=1)  # rounded up
        assert p.target_shift == pytest.approx(-2 * f if feasibility == "relaxed" else 1.5 * f)
        return
    q = f_m + 2 * f_e + p.tolerance
    limit = epsilon if feasibility == "relaxed" else min(epsilon / (1 + H / zeta), zeta)
    assert 0.8 * limit < q <= limit
    assert p.dual_iterations is None
    assert p.target_shift == pytest.approx(f_e if feasibility == "strict" else -(f_m + f_e + p.tolerance))
    assert p.guarantee.reward_loss <= epsilon * (1 + 1e-12)
    assert p.guarantee.violation == (0.0 if feasibility == "strict" else epsilon)


def test_several_constraints_cost_a_finer_grid() -> None:
    p = plan(0.5, 0.1, **LINEAR, feasibility="relaxed", num_constraints=3)
    f_m, f_e = errors_of(p, LINEAR, 3)
    assert f_m + 2 * f_e + p.tolerance <= 0.5
    single = plan(0.5, 0.1, **LINEAR, feasibility="relaxed")
    assert p.samples > 1.2 * single.samples
    assert p.resolution > single.resolution
    assert plan(0.5, 0.1, **LINEAR, feasibility="relaxed", num_constraints=200).samples > p.samples  # n beyond 10³⁰⁸


def test_bytes_and_seconds() -> None:
    rest = {"feasibility": "relaxed", "zeta": 1.0}
    p = plan(0.5, 0.1, **LINEAR, **rest)
    assert p.bytes == p.bytes_as_samples == 4 * p.samples
    assert p.bytes_as_counts is p.seconds is None
    small = plan(0.5, 0.1, **LINEAR, **rest, num_states=100, simulator_seconds_per_call=1e-6, bytes_per_sample=8)
    T = p.solver.num_iterations + p.evaluation.num_iterations
    assert small.bytes_as_samples == 8 * p.samples
    assert small.bytes == small.bytes_as_counts == T * 10 * 100 * 8  # T × |C| × |S| frequencies: M does not matter
    assert small.seconds == pytest.approx(p.samples * 1e-6)
    big = plan(0.5, 0.1, **LINEAR, **rest, num_states=10**9)
    assert big.bytes == big.bytes_as_samples < big.bytes_as_counts


def test_a_known_design_replaces_the_assumed_one() -> None:
    assumed = plan(0.5, 0.1, **LINEAR, feasibility="relaxed")
    assert "|C| = 2d = 10" in assumed.remarks[0]
    known = plan(0.5, 0.1, kind="linear", gamma=0.8, coreset_size=6, leverage_bound=5.5, feasibility="relaxed")
    assert known.remarks == ()
    assert known.num_pairs == 6
    # the samples go with |C|·g
    assert known.samples / assumed.samples == pytest.approx(6 * 5.5 / 100, rel=0.05)


def test_tables_with_a_small_error_are_planned_by_bernstein() -> None:
    """H = 50 and ε = .001: Hoeffding alone would need more than four times as many, whatever T."""
    p = plan(0.001, 0.1, kind="tabular", gamma=0.98, num_pairs=100, feasibility="relaxed")
    n = num_grid_points(p.resolution)
    T, M = p.solver
    given = {"gamma": 0.98, "num_pairs": 100, "num_problems": n, "delta": 0.1}
    f = tabular_solver_error(T, M, **given)
    assert f == tabular_solver_error(T, M, **given, method="bernstein")
    by_hoeffding = 2 * math.log(4 * 100 * n / 0.1) * (0.98 * 50**2 / f) ** 2  # the noise alone
    assert by_hoeffding > 4 * T * M


def test_no_discounting_needs_one_sample() -> None:
    p = plan(0.5, 0.1, kind="linear", gamma=0.0, dimension=5, feasibility="relaxed")
    assert p.solver.samples_per_iteration == p.evaluation.samples_per_iteration == 1


# ---- how good they are -----------------------------------------------------------------------------------------------


def brute_force(problem, q: float) -> float:
    """The fewest samples a pair for column generation over fine grids of rounding, shares, T and all M that matter."""
    H, best = 1 / (1 - problem["gamma"]), math.inf
    Ts = np.unique(np.geomspace(1, 4e6, 500).round()).astype(int).tolist()
    given = {"gamma": problem["gamma"], "delta": 0.1}
    if problem["kind"] == "linear":
        given |= {"lebesgue": math.sqrt(10), "coreset_size": 10}
        bounds = linear_solver_error, linear_evaluation_error
    else:
        given |= {"num_pairs": 60}
        bounds = tabular_solver_error, tabular_evaluation_error
    for w in (0.02, 0.03, 0.04):
        n = num_grid_points(math.ceil(H / (w * q)))
        rest = q * (1 - w - 0.01)
        for s in (0.4, 0.45, 0.5, 0.55):
            total = 0
            for bound, f, k in ((bounds[0], s * rest, n), (bounds[1], (1 - s) / 2 * rest, 2 * n)):
                total += min(T * fewest(bound, T, f, num_problems=k, **given) for T in Ts if T * f > H * H / 2)
            best = min(best, total)
    return best


def fewest(bound, T: int, f: float, **given) -> float:
    """The least M with error f, by bisection on the bound itself."""
    if bound(T, 10**12, **given) > f:
        return math.inf
    low, high = 0, 1
    while bound(T, high, **given) > f:
        low, high = high, 2 * high
    while high - low > max(1, low // 10**4):
        M = (low + high) // 2
        low, high = (low, M) if bound(T, M, **given) <= f else (M, high)
    return high


@pytest.mark.study
@KINDS
@pytest.mark.parametrize("q", [0.05, 0.5, 3.0])
def test_plans_are_within_2_percent_of_brute_force(problem, q: float) -> None:
    p = plan(q, 0.1, **problem, feasibility="relaxed")
    best = p.num_pairs * brute_force(problem, q)
    print(f"{problem['kind']}, q = {q}: {p.samples:.4g} against {best:.4g}")
    assert p.samples <= 1.02 * best


@pytest.mark.parametrize(("bound", "problem"), [(linear_solver_error, LINEAR), (tabular_solver_error, TABULAR)])
@pytest.mark.parametrize("epsilon", [0.35, 3.5])
def test_the_solvers_stage_is_within_2_percent_of_brute_force(bound, problem, epsilon: float) -> None:
    """The paper's dual with the grid for granted: f = ε/3.5, every T on a fine grid with the least M that will do."""
    rest = {"zeta": 1.0, "feasibility": "relaxed", "dual": "projected-descent", "rounding": False}
    p = plan(epsilon, 0.1, **problem, **rest)
    given = {"gamma": 0.8, "num_problems": num_grid_points(p.resolution), "delta": 0.1}
    given |= {"lebesgue": math.sqrt(10), "coreset_size": 10} if problem is LINEAR else {"num_pairs": 60}
    f, H = epsilon / 3.5, 5.0
    Ts = np.unique(np.geomspace(0.8 * H * H / f, 10**4 * H * H / f, 150).round()).astype(int).tolist()
    best = min(T * fewest(bound, T, f, **given) for T in Ts)
    assert math.prod(p.solver) <= 1.02 * best


def test_plans_are_fast() -> None:
    for problem in (LINEAR, TABULAR):
        plan(0.4, 0.1, **problem, feasibility="relaxed")  # what is kept for a γ is made once
        start = time.process_time()
        for epsilon in (0.01, 0.1, 1.0):
            plan(epsilon, 0.1, **problem, feasibility="relaxed")
        assert (time.process_time() - start) / 3 < 0.1


# ---- from a budget to an accuracy ------------------------------------------------------------------------------------


problems = st.fixed_dictionaries(
    {
        "gamma": st.floats(0.0, 0.99),
        "feasibility": st.sampled_from(["relaxed", "strict"]),
        "dual": st.sampled_from(["column-generation", "projected-descent"]),
        "buffers": st.sampled_from(["own", "alike"]),
        "rounding": st.booleans(),
    }
)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=40)
@given(problems, st.booleans(), st.floats(0.01, 1.0), st.floats(0.002, 1.0), st.integers(1, 200), st.floats(1e-6, 0.5))
def test_the_way_back(problem, linear: bool, slack: float, accuracy: float, size: int, delta: float) -> None:
    """A plan's samples buy its ε: guaranteed_epsilon(plan(ε).samples) ≤ ε, and not far below it."""
    H = 1 / (1 - problem["gamma"])
    problem = {**problem, "zeta": slack * H, "kind": "linear" if linear else "tabular"}
    problem["dimension" if linear else "num_pairs"] = size
    p = plan(accuracy * H, delta, **problem)
    back = guaranteed_epsilon(p.samples, delta, **problem)
    assert back.epsilon <= accuracy * H
    assert back.plan is not None and back.plan.samples <= p.samples
    assert back.label == p.label
    if p.solver.samples_per_iteration > 100 and p.guarantee.reward_loss + p.guarantee.violation >= accuracy * H:
        assert back.epsilon >= 0.9 * accuracy * H


@pytest.mark.slow
@KINDS
def test_more_samples_never_buy_less(problem) -> None:
    budgets = np.unique(np.geomspace(10, 10**12, 9).astype(int)).tolist()
    values = [guaranteed_epsilon(N, 0.1, **problem, feasibility="relaxed").epsilon for N in budgets]
    assert all(a >= b for a, b in itertools.pairwise(values))
    assert values[-1] < 0.2


@KINDS
@DUALS
def test_more_accuracy_never_costs_less(problem, dual) -> None:
    costs = [
        plan(e, 0.1, **problem, zeta=1.0, feasibility="relaxed", dual=dual).samples for e in np.geomspace(0.01, 5, 100)
    ]
    assert all(a >= b for a, b in itertools.pairwise(costs))


def test_vacuous_guarantees_say_so() -> None:
    some = guaranteed_epsilon(10**6, 0.1, **LINEAR, feasibility="relaxed")
    assert some.vacuous and some.epsilon > 5
    assert some.remark.startswith("vacuous: any policy is within H = 5")
    none = guaranteed_epsilon(100, 0.1, **LINEAR, feasibility="relaxed")
    assert none.vacuous and none.epsilon == math.inf and none.plan is None
    assert none.remark.startswith("nothing is proved for 100 samples")
    strict = guaranteed_epsilon(10**7, 0.1, **LINEAR, zeta=0.5, feasibility="strict")
    assert strict.epsilon == math.inf  # q > ζ: no promise at all, however loose
    good = guaranteed_epsilon(10**10, 0.1, **LINEAR, feasibility="relaxed")
    assert not good.vacuous and good.epsilon < 1 and good.remark == ""
    assert good.label == "rigorous"
    assert guaranteed_epsilon(10**10, 0.1, **LINEAR, feasibility="relaxed", rounding=False).label == "heuristic"


# ---- ranges ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, r"`epsilon` must lie in \[5e-09, H\] = \[5e-09, 5\], got 0.0"),
        ({"epsilon": 5.1}, r"`epsilon` must lie in .*, 5\], got 5.1; values lie in \[0, H\]"),
        ({"epsilon": math.nan}, r"`epsilon` must lie in"),
        ({"epsilon": 1e-7, "dual": "projected-descent"}, r"`epsilon` must lie in \[1.75e-07, H\]"),
        ({"delta": 0.0}, r"`delta` must lie in \(0, 1\), got 0.0"),
        ({"delta": 1.0}, r"`delta` must lie in \(0, 1\), got 1.0"),
        ({"gamma": 1.0}, r"`gamma` must lie in \[0, 1\), got 1.0"),
        ({"gamma": -0.1}, r"`gamma` must lie in \[0, 1\)"),
        ({"zeta": 0.0, "feasibility": "strict"}, r"`zeta` must lie in \(0, H\] = \(0, 5\], got 0.0"),
        ({"zeta": 5.5}, r"`zeta` must lie in \(0, H\]"),
        ({"zeta": None, "feasibility": "strict"}, r"`zeta` must lie in \(0, H\] = \(0, 5\], got None"),
        ({"zeta": None, "dual": "projected-descent"}, r"`zeta` must lie in"),
        ({"kind": "quadratic"}, r"`kind` must be 'linear' or 'tabular', got 'quadratic'"),
        ({"feasibility": "loose"}, r"`feasibility` must be 'relaxed' or 'strict', got 'loose'"),
        ({"dual": "simplex"}, r"`dual` must be 'column-generation' or 'projected-descent', got 'simplex'"),
        ({"buffers": "one"}, r"`buffers` must be 'own' or 'alike', got 'one'"),
        ({"dimension": 0}, r"`dimension` must lie in \[1, ∞\), got 0"),
        ({"dimension": None}, r"`dimension` must lie in \[1, ∞\), got None; or give coreset_size and leverage_bound"),
        ({"coreset_size": 4}, r"`coreset_size` must lie in \[d, ∞\) = \[5, ∞\), got 4"),
        ({"leverage_bound": 4.9}, r"`leverage_bound` must lie in \[d, ∞\) = \[5, ∞\), got 4.9"),
        ({"leverage_bound": math.inf}, r"`leverage_bound` must lie in"),
        ({"num_pairs": 60}, r"`num_pairs` must be left out for a linear problem, got 60"),
        ({"num_constraints": 0}, r"`num_constraints` must be at least 1, got 0"),
        (
            {"num_constraints": 2, "dual": "projected-descent"},
            r"`num_constraints` must be 1 for projected-descent.*got 2; use column-generation",
        ),
        ({"bytes_per_sample": 0}, r"`bytes_per_sample` must be at least 1, got 0"),
        ({"num_states": 0}, r"`num_states` must be at least 1, got 0"),
        ({"simulator_seconds_per_call": -1.0}, r"`simulator_seconds_per_call` must lie in \[0, ∞\), got -1.0"),
    ],
)
def test_arguments_out_of_range_are_named(change, message: str) -> None:
    asked = {"epsilon": 0.5, "delta": 0.1, **LINEAR, "zeta": 1.0, "feasibility": "relaxed", **change}
    with pytest.raises(InputError, match=message):
        plan(**asked)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_pairs": None}, r"`num_pairs` must lie in \[1, ∞\), got None"),
        ({"num_pairs": 0}, r"`num_pairs` must lie in \[1, ∞\), got 0"),
        ({"dimension": 3}, r"`dimension` must be left out for a tabular problem, got 3"),
        ({"coreset_size": 3}, r"`coreset_size` must be left out for a tabular problem"),
        ({"samples": 0}, r"`samples` must be at least 1, got 0"),
        ({"delta": 2.0}, r"`delta` must lie in \(0, 1\)"),
    ],
)
def test_budgets_out_of_range_are_named(change, message: str) -> None:
    asked = {"samples": 1000, "delta": 0.1, **TABULAR, "feasibility": "relaxed", **change}
    with pytest.raises(InputError, match=message):
        guaranteed_epsilon(**asked)


@DUALS
@FEASIBILITY
def test_the_ends_of_the_ranges_are_in(dual, feasibility) -> None:
    """ε = H, and ζ = H; for the paper's dual f is then at the largest value its theorem allows."""
    for zeta, gamma in itertools.product((0.01, 1.0, 10.0), (0.9, 0.0)):
        H = 1 / (1 - gamma)
        p = plan(
            H, 0.1, kind="tabular", gamma=gamma, num_pairs=9, zeta=min(zeta, H), feasibility=feasibility, dual=dual
        )
        assert p.guarantee.reward_loss <= H * (1 + 1e-12)
