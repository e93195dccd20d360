"""Alg. 1 as a loop (caches, mixture, dual arithmetic) and its meta-theorem against oracles that do their worst."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import descent_guarantee
from saddleback.errors import InputError
from saddleback.method.duals import ProjectedDescent
from saddleback.method.framework import Oracle, Outcome, run
from saddleback.method.oracles import Proposal, Step, round_to_grid, simplex_point
from saddleback.problem.policies import TabularPolicy
from saddleback.theory.meta_theorem import Guarantee, dual_settings
from theory.adversarial_oracles import (
    Adversary,
    BoundBroken,
    Frontier,
    Margins,
    adversaries,
    check,
    dual_of,
    play,
    random_frontier,
    sweep,
)

# ---- the meta-theorem ------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_the_meta_theorem_holds_whatever_the_oracles_do() -> None:
    """200 frontiers, each with the three modes and the six adversaries, against the corrected constants."""
    sweep(20240, num_frontiers=200, num_iterations=(300, 1_200), num_runs_each=6)


@pytest.mark.check
def test_the_meta_theorem_holds_in_long_runs() -> None:
    """Smaller errors, so more rounds: each mode with each adversary once."""
    sweep(20241, num_frontiers=18, num_iterations=(5_000, 20_000), num_runs_each=1)


@pytest.mark.study
def test_the_meta_theorem_in_its_full_form() -> None:
    """1,000 frontiers, and a few with K up to 10⁶."""
    sweep(20242, num_frontiers=1_000, num_iterations=(100, 10_000), num_runs_each=6)
    sweep(20243, num_frontiers=9, num_iterations=(200_000, 1_000_000), num_runs_each=1)


@pytest.mark.slow
def test_the_bounds_for_any_K_hold_whatever_the_oracles_do() -> None:
    """U, η, K, b', f_mdp and f_eva at random: the unsimplified bounds, which must also say something."""
    rng = np.random.default_rng(20244)
    informative, closest = 0, -math.inf
    for _ in range(100):
        frontier = random_frontier(rng)
        H, most = frontier.horizon, frontier.most
        zeta = most * float(rng.uniform(0.2, 1))
        b = max(most - zeta, 0.0)
        U = float(np.exp(rng.uniform(math.log(0.5), math.log(8)))) * H / zeta
        K = int(np.exp(rng.uniform(0, math.log(3_000))))
        eta = U / (H * math.sqrt(K)) * float(np.exp(rng.uniform(-1, 1)))
        f_m, f_e = zeta * rng.uniform(0, 0.15, size=2)
        target = min(b + float(rng.uniform(-0.3, 0.3)) * zeta, H)
        promise = descent_guarantee(
            upper=U,
            step_size=eta,
            num_iterations=K,
            target=target,
            solver_error=float(f_m),
            evaluation_error=float(f_e),
            horizon=H,
            zeta=zeta,
            threshold=b,
        )
        informative += promise.reward_loss < H and promise.violation < b
        for choose, sign in adversaries(rng, float(rng.random()) * U).values():
            adversary = Adversary(frontier, float(f_m), float(f_e), choose, sign)
            values = play(adversary, ProjectedDescent(np.array([target]), U, eta, K))
            margins = check(frontier, b, values, promise)
            if 0 < promise.violation < b:
                closest = max(closest, margins.shortfall / promise.violation)
    print(f"\n{informative} of 100 bounds say something; the closest shortfall was {closest:.3f} of its bound")
    assert informative >= 25


CLIFF = Frontier(10.0, ((0.0, 0.0), (10.0, 0.0), (10.0, 2.0), (0.0, 9.0)))
"""F = 10 up to V_c = 2, then falls with slope 10/7 to 0 at V_c = 9."""


def _on_the_cliff(feasibility: str, f: float, evaluation_error: float, solver_error: float, U_factor: float) -> Margins:
    """b = 4, ζ = 5, λ* = 10/7, U = 4, against the adversary that does the constraint most harm."""
    b, zeta, H = 4.0, 5.0, CLIFF.horizon
    chosen = dual_settings(f, horizon=H, zeta=zeta, threshold=b, feasibility=feasibility)  # type: ignore[arg-type]
    dual = ProjectedDescent(
        np.array([chosen.target]), chosen.upper * U_factor, chosen.step_size * U_factor, chosen.num_iterations
    )
    choose, sign = adversaries(np.random.default_rng(0), 0.0)["constraint low, estimates high"]
    values = play(Adversary(CLIFF, solver_error, evaluation_error, choose, sign), dual)
    return check(CLIFF, b, values, chosen.guarantee)


@pytest.mark.parametrize("feasibility", ["relaxed", "strict"])
def test_an_oracle_that_breaks_an_assumption_breaks_the_bound(feasibility: str) -> None:
    """The negative control: the same check sees an evaluator three times worse than it says, and a U below λ*."""
    f = 0.8
    _on_the_cliff(feasibility, f, evaluation_error=f, solver_error=f, U_factor=1.0)
    with pytest.raises(BoundBroken, match="shortfall"):
        _on_the_cliff(feasibility, f, evaluation_error=3 * f, solver_error=f, U_factor=1.0)
    with pytest.raises(BoundBroken, match="shortfall"):
        _on_the_cliff(feasibility, f, evaluation_error=f, solver_error=f, U_factor=0.2)  # U = 0.8


def test_the_bounds_for_any_K_are_broken_by_an_evaluator_worse_than_it_says() -> None:
    b, zeta, H, U, K = 4.0, 5.0, CLIFF.horizon, 4.0, 10_000
    dual = ProjectedDescent(np.array([b]), U, U / (H * math.sqrt(K)), K)
    choose, sign = adversaries(np.random.default_rng(0), 0.0)["constraint low, estimates high"]
    values = play(Adversary(CLIFF, 0.1, 0.4, choose, sign), dual)

    def promise(f_e: float) -> Guarantee:
        return descent_guarantee(
            upper=U,
            step_size=dual.step_size,
            num_iterations=K,
            target=b,
            solver_error=0.1,
            evaluation_error=f_e,
            horizon=H,
            zeta=zeta,
            threshold=b,
        )

    check(CLIFF, b, values, promise(0.4))
    with pytest.raises(BoundBroken, match="shortfall"):
        check(CLIFF, b, values, promise(0.1))


def test_a_solver_worse_than_it_says_breaks_the_bound() -> None:
    """On the reward's side: slack constraint, so nothing but the solver's own error can cost reward."""
    chosen = dual_settings(0.4, horizon=10.0, zeta=8.9, threshold=0.1, feasibility="relaxed")
    choose, sign = adversaries(np.random.default_rng(0), 0.0)["reward low, estimates low"]
    check(CLIFF, 0.1, play(Adversary(CLIFF, 0.4, 0.4, choose, sign), dual_of(chosen)), chosen.guarantee)
    with pytest.raises(BoundBroken, match="loss"):
        check(CLIFF, 0.1, play(Adversary(CLIFF, 1.2, 0.4, choose, sign), dual_of(chosen)), chosen.guarantee)


# ---- the oracle ------------------------------------------------------------------------------------------------------


@dataclass
class Counting:
    """A solver of two policies (which one depends on whether σ_0 > ½) and its evaluator, counting calls."""

    solved: list[bytes] = field(default_factory=list)
    evaluated: int = 0

    def solve(self, sigmas: np.ndarray) -> list[TabularPolicy]:
        self.solved += [sigma.tobytes() for sigma in sigmas]
        return [TabularPolicy.deterministic(np.array([int(sigma[0] > 0.5)]), 2) for sigma in sigmas]

    def evaluate(self, policy: TabularPolicy) -> np.ndarray:
        self.evaluated += 1
        return np.array([1.0, 0.0]) if policy.table[0] else np.array([0.0, 1.0])


def test_the_oracle_solves_each_reward_and_evaluates_each_policy_once() -> None:
    counting = Counting()
    oracle = Oracle(counting.solve, counting.evaluate)  # type: ignore[arg-type]
    for first in (0.9, 0.7, 0.9, 0.1, 0.2, 0.1):
        oracle(np.array([first, 1 - first]))
    assert len(counting.solved) == oracle.num_solver_calls == 4
    assert counting.evaluated == 2
    assert oracle(np.array([0.9, 0.1]))[0] is oracle(np.array([0.7, 0.3]))[0]  # equal policies are one object


def test_the_oracle_solves_grid_points_only() -> None:
    counting = Counting()
    oracle = Oracle(counting.solve, counting.evaluate, resolution=4)  # type: ignore[arg-type]
    for first in np.linspace(0, 1, 41):
        oracle(np.array([first, 1 - first]))
    assert counting.solved == [np.array([i / 4, 1 - i / 4]).tobytes() for i in range(5)]


# ---- the loop --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recited:
    """A dual that recites multipliers and then final weights."""

    multipliers: Sequence[tuple[float, ...]]
    weights: Sequence[float]

    def propose(self, steps: Sequence[Step]) -> Proposal:
        if len(steps) < len(self.multipliers):
            return Proposal(self.multipliers[len(steps)], None, False)
        return Proposal(self.multipliers[-1], np.array(self.weights), True)


def _run_recited(multipliers: Sequence[float], weights: Sequence[float]) -> Outcome:
    counting = Counting()
    oracle = Oracle(counting.solve, counting.evaluate)  # type: ignore[arg-type]
    return run(oracle, Recited([(m,) for m in multipliers], weights))


def test_the_mixture_has_the_duals_weights_with_equal_policies_merged() -> None:
    outcome = _run_recited([0.0, 3.0, 0.5, 4.0], [0.1, 0.2, 0.3, 0.4])  # σ_0 = 1, ¼, ⅔, ⅕
    assert [int(m.table[0]) for m in outcome.mixture.members] == [1, 0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(outcome.mixture.weights, [0.4, 0.6], atol=1e-15)
    np.testing.assert_array_equal(outcome.member_values, [[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(outcome.values, [0.4, 0.6], atol=1e-15)
    assert outcome.num_solver_calls == 4
    assert [s.multipliers for s in outcome.steps] == [(0.0,), (3.0,), (0.5,), (4.0,)]


def test_members_of_weight_zero_are_dropped() -> None:
    outcome = _run_recited([0.0, 3.0], [0.0, 1.0])
    assert len(outcome.mixture.members) == 1
    np.testing.assert_array_equal(outcome.values, [0.0, 1.0])


def test_the_watcher_sees_every_step() -> None:
    counting, seen = Counting(), []
    oracle = Oracle(counting.solve, counting.evaluate)  # type: ignore[arg-type]
    outcome = run(oracle, Recited([(0.0,), (1.0,)], [0.5, 0.5]), watch=lambda k, step: seen.append((k, step)))
    assert seen == [(1, outcome.steps[0]), (2, outcome.steps[1])]


# ---- the paper's dual ------------------------------------------------------------------------------------------------


def _step(multipliers: tuple[float, ...], values: Sequence[float]) -> Step:
    return Step(multipliers, TabularPolicy.deterministic(np.array([0]), 1), np.array(values))


def test_projected_descent_by_hand() -> None:
    """λ ← Proj_[0,2][λ − ¼(V̂_c − 3)]: up, cut at U, down, cut at 0."""
    dual = ProjectedDescent(np.array([3.0]), upper=2.0, step_size=0.25, num_iterations=5)
    assert dual.propose([])[:3] == ((0.0,), None, False)
    for lam, estimate, following in [(0.0, 1.0, 0.5), (1.75, 1.0, 2.0), (2.0, 5.0, 1.5), (0.5, 9.0, 0.0)]:
        assert dual.propose([_step((lam,), [7.0, estimate])]).multipliers == (following,)
    final = dual.propose([_step((0.0,), [0.0, 0.0])] * 5)
    assert final.done
    np.testing.assert_array_equal(final.weights, np.full(5, 0.2))


def test_projected_descent_moves_two_multipliers_apart() -> None:
    dual = ProjectedDescent(np.array([3.0, 1.0]), upper=2.0, step_size=0.5, num_iterations=9)
    assert dual.propose([]).multipliers == (0.0, 0.0)
    assert dual.propose([_step((1.0, 1.0), [0.0, 2.0, 2.0])]).multipliers == (1.5, 0.5)


def test_two_constraints_through_the_loop() -> None:
    """Three policies worth (1,0,0), (0,1,0), (0,0,1): asking ¼ of both constraints must give about (½, ¼, ¼)."""
    values = np.eye(3)
    oracle = Oracle(
        lambda sigmas: [TabularPolicy.deterministic(np.array([int(np.argmax(s))]), 3) for s in sigmas],
        lambda policy: values[policy.table[0]],  # type: ignore[attr-defined]
    )
    U, K = 4.0, 40_000
    outcome = run(oracle, ProjectedDescent(np.array([0.25, 0.25]), U, U / math.sqrt(K), K))
    # from step 3 of the proof in theory.meta_theorem, coordinate by coordinate: nothing is cut at U, as λ stays near 1
    assert max(max(s.multipliers) for s in outcome.steps) < 2
    assert np.all(outcome.values[1:] >= 0.25 - 1 / math.sqrt(K))
    # step 2 with m = 2: F = ½ at the target, and the regret costs at most 2·ηH²/2
    assert outcome.values[0] >= 0.5 - U / math.sqrt(K)
    assert outcome.values.sum() == pytest.approx(1.0, abs=1e-9)


def test_saturation_is_seen_and_only_then() -> None:
    dual = ProjectedDescent(np.array([1.0]), upper=2.0, step_size=0.5, num_iterations=4)
    low, top = _step((1.9,), [0.0, 1.0]), _step((2.0,), [0.0, 0.0])
    assert dual.saturated([low, low, top, top])
    assert not dual.saturated([top, top, low, low])  # left the cap in time
    assert not dual.saturated([low, low, top, low])  # half of the second half is not most of it


def test_a_run_that_cannot_reach_its_target_saturates() -> None:
    counting = Counting()
    oracle = Oracle(counting.solve, counting.evaluate)  # type: ignore[arg-type]
    hopeless = ProjectedDescent(np.array([1.5]), upper=2.0, step_size=0.1, num_iterations=200)
    assert hopeless.saturated(run(oracle, hopeless).steps)
    reachable = ProjectedDescent(np.array([0.5]), upper=2.0, step_size=0.1, num_iterations=200)
    assert not reachable.saturated(run(oracle, reachable).steps)


@pytest.mark.parametrize(
    ("upper", "step_size", "num_iterations", "name"),
    [(0.0, 1.0, 1, "upper"), (1.0, -1.0, 1, "step_size"), (1.0, 1.0, 0, "iterations")],
)
def test_projected_descent_refuses_nonsense(upper: float, step_size: float, num_iterations: int, name: str) -> None:
    with pytest.raises(InputError, match=f"`{name}`"):
        ProjectedDescent(np.array([0.0]), upper, step_size, num_iterations)


# ---- the grid --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=1, max_size=5),
    st.integers(1, 5_000),
)
def test_rounding_to_the_grid(multipliers: list[float], n: int) -> None:
    """Sums to one, multiples of 1/n, within 1/n per coordinate and (m+1)/(2n) in the 1-norm, identity on the grid."""
    sigma = simplex_point(multipliers)
    assert sigma.sum() == pytest.approx(1.0, abs=1e-14)
    rounded = round_to_grid(sigma, n)
    counts = rounded * n
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    assert np.all(rounded >= 0)
    assert rounded.sum() == pytest.approx(1.0, abs=1e-14)
    # the rounding treats what is within 1e-9 of a whole number as whole, hence the small change
    assert np.max(np.abs(rounded - sigma)) <= (1 + 1e-8) / n
    assert np.abs(rounded - sigma).sum() <= (len(sigma) / 2 + 1e-7) / n
    np.testing.assert_array_equal(round_to_grid(rounded, n), rounded)


def test_no_grid_leaves_the_point_alone() -> None:
    sigma = simplex_point([0.3, 0.0])
    assert round_to_grid(sigma, None) is sigma
    np.testing.assert_allclose(sigma, np.array([1, 0.3, 0]) / 1.3, atol=1e-16)
