"""The paper's parameters and rates as written, with their ranges."""

from __future__ import annotations

import math

import pytest

from saddleback.errors import InputError
from saddleback.theory.paper_rates import COMPARATORS, linear_parameters, lower_bound, tabular_parameters

LINEAR = {"epsilon": 0.5, "delta": 0.1, "dimension": 5, "horizon": 10.0, "zeta": 2.0, "threshold": 4.0}
TABULAR = {"epsilon": 0.005, "delta": 0.1, "num_pairs": 60, "horizon": 10.0, "zeta": 2.0, "threshold": 4.0}
HARD = {"epsilon": 0.001, "delta": 0.05, "dimension": 6, "horizon": 10.0, "zeta": 0.01, "threshold": 5.0}


def test_linear_as_written() -> None:
    log = math.log(2 * 5 / 0.1)
    relaxed = linear_parameters(**LINEAR, feasibility="relaxed")  # type: ignore[arg-type]
    assert relaxed.label == "paper, constants one"
    assert relaxed.inner_iterations == pytest.approx(100 / 0.5)  # H²/ε
    assert relaxed.samples_per_iteration == pytest.approx(5 * 100 / 0.5 * log)  # dH²/ε
    assert relaxed.samples == pytest.approx(25 * 10**4 / 0.25 * log)  # d²H⁴/ε²
    assert relaxed.log_factor == pytest.approx(log)
    assert relaxed.upper == 5.0
    assert relaxed.dual_iterations == 400.0  # H²/ε²
    assert relaxed.step_size == pytest.approx(5 / (10 * 20))
    assert relaxed.target == 3.5
    strict = linear_parameters(**LINEAR, feasibility="strict")  # type: ignore[arg-type]
    assert strict.samples == pytest.approx(25 * 10**6 / (0.25 * 4) * log)  # d²H⁶/(ε²ζ²)
    assert strict.target == 4.5


def test_tabular_as_written() -> None:
    log = math.log(2 * 60 / 0.1) ** 2
    relaxed = tabular_parameters(**TABULAR, feasibility="relaxed")  # type: ignore[arg-type]
    assert relaxed.inner_iterations == pytest.approx(100 / 0.005)
    assert relaxed.samples_per_iteration == pytest.approx(10 / 0.005 * log)  # H/ε
    assert relaxed.samples == pytest.approx(60 * 10**3 / 0.005**2 * log)  # SA·H³/ε²
    strict = tabular_parameters(**TABULAR, feasibility="strict")  # type: ignore[arg-type]
    assert strict.samples == pytest.approx(60 * 10**5 / (0.005**2 * 4) * log)  # SA·H⁵/(ε²ζ²)


def test_the_lower_bound_is_a_horizon_below_the_upper_one() -> None:
    bound = lower_bound(**HARD)  # type: ignore[arg-type]
    assert bound == pytest.approx(36 * 10**5 / (1e-6 * 1e-4))
    upper = linear_parameters(**HARD, feasibility="strict")  # type: ignore[arg-type]
    assert upper.samples / upper.log_factor / bound == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 1.1}, r"`epsilon` must lie in \(0, 1\], got 1.1"),
        ({"epsilon": 0.0}, r"`epsilon` must lie in \(0, 1\]"),
        ({"delta": 1.0}, r"`delta` must lie in \(0, 1\), got 1.0"),
        ({"dimension": 0}, r"`dimension` must lie in \[1, ∞\)"),
        ({"horizon": 0.9}, r"`horizon` must lie in \[1, ∞\)"),
        ({"zeta": 10.5}, r"`zeta` must lie in \(0, H\] = \(0, 10\]"),
        ({"threshold": 10.0}, r"`threshold` must lie in \[0, H\) = \[0, 10\)"),
        ({"feasibility": "loose"}, r"`feasibility` must be 'relaxed' or 'strict', got 'loose'"),
    ],
)
def test_linear_ranges(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        linear_parameters(**{**LINEAR, "feasibility": "relaxed", **change})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.011}, r"`epsilon` must lie in \(0, 1/H²\] = \(0, 0.01\], got 0.011"),
        ({"num_pairs": 0}, r"`num_pairs` must lie in \[1, ∞\)"),
        # γ = 1/6: T = H²/ε = 2.07, and 2 log(2.07)/γ = 8.7
        ({"horizon": 1.2, "epsilon": 0.694, "zeta": 1.0, "threshold": 0.1}, r"T ≥ 2 log\(T\)/γ, got 0.694"),
    ],
)
def test_tabular_ranges(change: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        tabular_parameters(**{**TABULAR, "feasibility": "relaxed", **change})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.09}, r"`delta` must lie in \(0, 0.08\], got 0.09"),
        ({"horizon": 2.3, "threshold": 2.0}, r"`horizon` must lie in \[12/5, ∞\)"),
        ({"epsilon": 0.002}, r"`epsilon` must lie in \(0, 0.002\)"),
        ({"zeta": 0.0215}, r"`zeta` must lie in \(0, 49/2280\), got 0.0215"),
        ({"threshold": 4.9}, r"`threshold` must lie in \[H/2, H\] = \[5, 10\], got 4.9"),
        ({"dimension": 5}, r"`dimension` must lie in \[6, ∞\), got 5"),
    ],
)
def test_lower_bound_ranges(change: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lower_bound(**{**HARD, **change})  # type: ignore[arg-type]


def test_the_end_points_of_closed_ranges_are_in() -> None:
    lower_bound(**{**HARD, "horizon": 1 / (1 - 7 / 12), "threshold": 2.0, "delta": 0.08})  # type: ignore[arg-type]
    linear_parameters(**{**LINEAR, "epsilon": 1.0}, feasibility="strict")  # type: ignore[arg-type]
    tabular_parameters(**{**TABULAR, "epsilon": 0.01}, feasibility="relaxed")  # type: ignore[arg-type]


def test_comparators() -> None:
    at = {"size": 5.0, "horizon": 10.0, "epsilon": 0.1, "zeta": 0.5}
    value = {(r.method.split()[0], r.setting): r.samples(**at) for r in COMPARATORS if r.horizon_power is not None}
    assert value["Vaswani", "relaxed"] == pytest.approx(5 * 10**3 / 0.01)
    assert value["Vaswani", "strict"] == pytest.approx(5 * 10**5 / (0.01 * 0.25))
    assert value["Ghosh", "relaxed"] == pytest.approx(125 * 10**4 / 0.01)
    assert value["Ghosh", "strict"] == pytest.approx(125 * 10**6 / (0.01 * 0.25))
    assert value["Weisz", "unconstrained"] == pytest.approx(25 * 10**3 / 0.01)
    (offline,) = [r for r in COMPARATORS if r.horizon_power is None]
    with pytest.raises(InputError, match="`rate` must state its power of H, got Hong"):
        offline.samples(**at)
