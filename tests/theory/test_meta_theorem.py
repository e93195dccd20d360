"""U, η, K, b' and the promises of Theorem thm_main2, as written and corrected; the errata of its proof."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import descent_guarantee
from saddleback.errors import InputError
from saddleback.theory.meta_theorem import dual_settings
from saddleback.theory.plan import Question

PROBLEM = {"horizon": 10.0, "zeta": 2.0, "threshold": 5.0}


def test_the_papers_settings_by_hand() -> None:
    """H = 10, ζ = 2, f = .25: U = 10, K = (10·10/.25)² = 160,000, η = 10/(10·400) = .0025."""
    relaxed = dual_settings(0.25, **PROBLEM, feasibility="relaxed", version="paper")
    assert (relaxed.upper, relaxed.num_iterations, relaxed.step_size) == (10.0, 160_000, 0.0025)
    assert relaxed.target == 4.5  # b − 2f
    assert (relaxed.guarantee.reward_loss, relaxed.guarantee.violation) == (1.0, 1.5)  # 4f, 6f
    strict = dual_settings(0.25, **PROBLEM, feasibility="strict", version="paper")
    assert strict.target == 6.0  # b + 4f
    assert (strict.guarantee.reward_loss, strict.guarantee.violation) == (20.0, 0.0)  # 16fH/ζ
    assert relaxed.guarantee.label == strict.guarantee.label == "paper"


@pytest.mark.parametrize(
    ("feasibility", "version", "target", "loss", "violation"),
    [
        ("relaxed", "corrected", 4.5, 0.375, 0.875),  # 1.5f, 3.5f
        ("strict", "corrected", 5.375, 6.25, 0.0),  # b + 1.5f, 5fH/ζ
        ("strict", "corrected, paper's target", 6.0, 9.375, 0.0),  # b + 4f, 7.5fH/ζ
    ],
)
def test_the_corrected_settings_by_hand(
    feasibility: str, version: str, target: float, loss: float, violation: float
) -> None:
    chosen = dual_settings(0.25, **PROBLEM, feasibility=feasibility, version=version)  # type: ignore[arg-type]
    assert (chosen.target, chosen.guarantee.reward_loss, chosen.guarantee.violation) == (target, loss, violation)


problems = st.tuples(
    st.floats(1, 1000),  # H
    st.floats(0, 0.9),  # b/H
    st.floats(0.05, 1),  # ζ/(H − b)
    st.floats(0.01, 1),  # f over its largest value
)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=300)
@given(problems)
def test_the_simplified_constants_follow_from_the_bounds_for_any_K(draw: tuple[float, float, float, float]) -> None:
    """1.5f/3.5f, 5fH/ζ and 7.5fH/ζ are never better than what the proof gives for the K they come with."""
    H, b = draw[0], draw[1] * draw[0]
    zeta = draw[2] * (H - b)
    for feasibility, version in [
        ("relaxed", "corrected"),
        ("strict", "corrected"),
        ("strict", "corrected, paper's target"),
    ]:
        f = draw[3] * (zeta / 6 if feasibility == "strict" else H * H / (5 * zeta) * (1 - 1e-12))
        chosen = dual_settings(
            f,
            horizon=H,
            zeta=zeta,
            threshold=b,
            feasibility=feasibility,  # type: ignore[arg-type]
            version=version,  # type: ignore[arg-type]
        )
        proved = descent_guarantee(
            upper=chosen.upper,
            step_size=chosen.step_size,
            num_iterations=chosen.num_iterations,
            target=chosen.target,
            solver_error=f,
            evaluation_error=f,
            horizon=H,
            zeta=zeta,
            threshold=b,
        )
        rounding = 1e-9 * H  # a handful of float64 operations on numbers of size H, with H/ζ ≤ 200
        assert proved.reward_loss <= chosen.guarantee.reward_loss + rounding
        assert proved.violation <= chosen.guarantee.violation + rounding


def test_exact_oracles_and_many_rounds_lose_nothing() -> None:
    """f = 0: loss UH/(2√K), violation H/√K, so a hundredfold K divides both by ten."""
    losses = []
    for K in (10**4, 10**6):
        U = 10.0
        promise = descent_guarantee(
            **PROBLEM,
            upper=U,
            step_size=U / (10 * math.sqrt(K)),
            num_iterations=K,
            target=5.0,
            solver_error=0.0,
            evaluation_error=0.0,
        )
        assert promise.reward_loss == pytest.approx(U * 10 / (2 * math.sqrt(K)))
        assert promise.violation == pytest.approx(10 / math.sqrt(K))
        losses.append(promise.reward_loss)
    assert losses[0] / losses[1] == pytest.approx(10)


def test_vacuous_bounds_are_the_trivial_ones() -> None:
    """Infinite errors, one round, or U below λ*: the loss is at most H and the violation at most b, and nothing more."""
    common = {**PROBLEM, "target": 5.0, "step_size": 0.01}
    for change in (
        {"solver_error": math.inf, "evaluation_error": math.inf, "upper": 10.0, "num_iterations": 10**6},
        {"solver_error": 2.0, "evaluation_error": 5.0, "upper": 0.01, "num_iterations": 1},
    ):
        promise = descent_guarantee(**common, **change)  # type: ignore[arg-type]
        assert (promise.reward_loss, promise.violation) == (10.0, 5.0)


def test_the_guarantee_shrinks_with_the_errors() -> None:
    def promise(f_m: float, f_e: float) -> tuple[float, float]:
        g = descent_guarantee(
            **PROBLEM,
            upper=10.0,
            step_size=1e-3,
            num_iterations=10**6,
            target=5.2,
            solver_error=f_m,
            evaluation_error=f_e,
        )
        return g.reward_loss, g.violation

    base = promise(0.2, 0.3)
    assert promise(0.1, 0.3)[0] < base[0]
    assert promise(0.2, 0.1)[0] < base[0]
    assert promise(0.2, 0.1)[1] < base[1]


def error_for(epsilon: float, feasibility: str) -> float:
    """The f that a plan asks of the oracles."""
    asked = {"feasibility": feasibility, "zeta": 2.0, "dual": "projected-descent"}
    return Question(delta=0.1, kind="tabular", num_pairs=60, gamma=0.9, **asked).error_for(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("feasibility", ["relaxed", "strict"])
def test_the_error_for_an_accuracy_gives_that_accuracy(feasibility: str) -> None:
    for epsilon in (0.01, 0.5, 3.0, 10.0):
        f = error_for(epsilon, feasibility)
        chosen = dual_settings(f, **PROBLEM, feasibility=feasibility)  # type: ignore[arg-type]
        assert max(chosen.guarantee.reward_loss, chosen.guarantee.violation) <= epsilon * (1 + 1e-12)
    assert error_for(0.5, "relaxed") == pytest.approx(0.5 / 3.5)
    assert error_for(0.5, "strict") == pytest.approx(0.02)
    assert error_for(100.0, "strict") == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": 0.34, "feasibility": "strict"}, r"`error` must lie in \(0, ζ/6\] = \(0, 0.333333\].*got 0.34"),
        ({"error": 10.5}, r"`error` must lie in \[1e-07, 10\]"),
        ({"error": 0.0}, r"`error` must lie in"),
        ({"error": 1e-12}, r"`error` must lie in"),
        ({"error": math.nan}, r"`error` must lie in"),
        ({"threshold": -0.1}, r"`threshold` must lie in \[0, H\) = \[0, 10\).*got -0.1"),
        ({"threshold": 10.0}, r"`threshold` must lie in \[0, H\)"),
        ({"zeta": 0.0}, r"`zeta` must lie in \(0, H − b\] = \(0, 5\], got 0.0"),
        ({"zeta": 5.1}, r"`zeta` must lie in \(0, H − b\] = \(0, 5\], got 5.1"),
        ({"horizon": 0.5}, r"`horizon` must lie in \[1, ∞\), got 0.5"),
        ({"version": "mine"}, r"`feasibility, version` must be one of"),
        ({"version": "corrected, paper's target"}, r"`feasibility, version` must be one of"),
    ],
)
def test_parameters_out_of_range_are_named(change: dict[str, object], message: str) -> None:
    asked = {"error": 0.25, **PROBLEM, "feasibility": "relaxed", **change}
    error = asked.pop("error")
    with pytest.raises(InputError, match=message):
        dual_settings(error, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"target": 10.1}, "target"),
        ({"upper": 0.0}, "upper"),
        ({"step_size": math.inf}, "step_size"),
        ({"num_iterations": 0}, "iterations"),
        ({"solver_error": -0.1}, "solver_error"),
        ({"evaluation_error": math.nan}, "evaluation_error"),
        ({"zeta": -1.0}, "zeta"),
    ],
)
def test_the_bounds_for_any_K_name_what_is_out_of_range(change: dict[str, float], name: str) -> None:
    asked = {
        **PROBLEM,
        "upper": 10.0,
        "step_size": 0.01,
        "num_iterations": 1000,
        "target": 5.0,
        "solver_error": 0.1,
        "evaluation_error": 0.1,
    }
    with pytest.raises(InputError, match=f"`{name}`"):
        descent_guarantee(**{**asked, **change})  # type: ignore[arg-type]


# ---- errata of the paper's proof -------------------------------------------------------------------------------------


def _frontier(x: float) -> float:
    """F = 10 up to V_c = 5, then 10 − 10(x − 5): concave and non-increasing on [0, 6], H = 10."""
    return 10 - 10 * max(0.0, x - 5)


def test_the_sensitivity_lemma_is_false_and_its_replacement_true() -> None:
    """Lemma lem_boundsense says F(b−Δ) − F(b+Δ) ≤ 2Δλ*(b). Where F is flat at b, λ*(b) = 0 and F may still fall.

    Concavity gives F(b) − F(b+Δ) ≤ ΔH/ζ for 0 ≤ Δ ≤ ζ, half of the 2Δ/(ζ(1−γ)) the paper arrives at.
    """
    b, delta, H = 4.9, 0.6, 10.0
    zeta = 6.0 - b
    # λ*(b) minimises the dual function max_x F(x) + λ(x − b): by strong duality its value there is F(b)
    x = np.linspace(0, 6, 6001)
    values = np.array([_frontier(v) for v in x])
    dual = {lam: float(np.max(values + lam * (x - b))) for lam in np.arange(0, 12, 0.01)}
    lambda_star = min(dual, key=lambda lam: dual[lam])
    assert lambda_star == 0.0
    assert dual[lambda_star] == pytest.approx(_frontier(b))
    assert _frontier(b) - _frontier(b + delta) == pytest.approx(5.0)
    assert _frontier(b - delta) - _frontier(b + delta) > 2 * delta * lambda_star  # the lemma's claim fails
    for shift in np.linspace(0, zeta, 50):
        assert _frontier(b) - _frontier(b + shift) <= shift * H / zeta + 1e-12  # one subtraction of numbers near 10


def test_strict_feasibility_has_no_room_left_at_the_end_of_the_papers_range() -> None:
    """At f = ζ/6 the comparison problem V_c ≥ b + 6f has Slater constant 0, so that no U exceeds its multipliers."""
    chosen = dual_settings(2 / 6, **PROBLEM, feasibility="strict", version="corrected, paper's target")
    comparison = chosen.target + 2 * (2 / 6)  # b̃ = b' + f_mdp + f_eva
    assert comparison == pytest.approx(PROBLEM["threshold"] + PROBLEM["zeta"])
