"""Ending problems: limits and bounds that hold, ends that nobody is asked about, and declarations that are held against every sample."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from helpers import ending_table
from saddleback import CMDP, Constraint, solve
from saddleback.certificates import Guide, Request, certify_guided
from saddleback.certificates.values.baseline import expected_length, fit_baseline, plan_for
from saddleback.certificates.values.rollouts import roll_out
from saddleback.errors import SimulatorError
from saddleback.exact.values import best_policy, mixture_values
from saddleback.problem import endings
from saddleback.problem.policies import MixturePolicy
from saddleback.runs.settings import Method
from saddleback.sampling import trajectories
from saddleback.sampling.trajectories import RolloutPlan
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.table import Table
from saddleback.solving.prepare import prepare

SIGMA = np.array([0.5, 0.5])


@cache
def frozen(successors: bool, gamma: float = 0.95) -> tuple[Table, Guide]:
    """What earlier samples suggest for the rungs: the best policies for two prices, mixed."""
    table = ending_table(1, gamma, declares_successors=successors)
    parts = prepare(table.problem(), table.simulator(), 8_000, 7, Method())
    members = [best_policy(table, sigma)[0] for sigma in ([1.0, 0.0], [0.1, 0.9])]
    mixture = MixturePolicy.of(members, np.array([0.6, 0.4]))
    assert parts.solver_buffer is not None
    return table, Guide(parts.problem, parts.design, [parts.solver_buffer, parts.evaluation_buffer], mixture, SIGMA)


def misses(delta: float, runs: int, successors: bool, gamma: float, narrowed: float = 1.0) -> np.ndarray:
    """How often value, constraint and bound miss the truth in so many runs, the widths of the intervals ``narrowed``."""
    table, guide = frozen(successors, gamma)
    assert guide.mixture is not None
    true, best, found = mixture_values(table, guide.mixture), best_policy(table, SIGMA)[1], np.zeros(3)
    for seed in range(runs):
        proof = certify_guided(guide, table.simulator(), Request(2_500, 1000 + seed, delta, any_bound=True))
        assert proof.value is not None and proof.evidence.bound is not None
        for j, ends in enumerate((proof.value, *proof.constraints)):
            middle, half = sum(ends) / 2, narrowed * (ends[1] - ends[0]) / 2
            found[j] += abs(true[j] - middle) > half
        found[2] += proof.evidence.bound.value < float(SIGMA @ best) - 1e-9
    return found


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.5, 0.05])
@pytest.mark.parametrize(("successors", "gamma"), [(False, 0.95), (True, 0.99)])
def test_limits_and_bounds_of_an_ending_problem_hold(delta: float, successors: bool, gamma: float) -> None:
    """150 runs, seeds 1000 to 1149: no statement, each at δ/3, misses more often than chance would in one of 3·10⁶ such tests.

    The control, intervals of .2 of their width, does at δ = .5.
    """
    most = binom.ppf(1 - 1e-6 / 3, 150, delta / 3)
    found = misses(delta, 150, successors, gamma)
    print(f"δ = {delta}, γ = {gamma}: {found} misses of 150 (at most {most:.0f})")
    assert np.all(found <= most)
    if delta == 0.5:
        narrow = misses(delta, 150, successors, gamma, narrowed=0.2)
        print(f"at .2 of the width: {narrow}")
        assert narrow[:2].max() > most


def test_nobody_is_asked_what_comes_after_an_end() -> None:
    """Neither by solvers nor by rollouts; a simulator that fails there is as good as any."""
    table = ending_table(2)
    asked, inner = list[int](), table.simulator()

    def sample(states: Any, actions: Any, rng: Any) -> Any:
        if np.any(states >= 5):
            raise RuntimeError("it is over")
        asked.extend(states.tolist())
        return inner.sample(states, actions, rng).next_states

    found = solve(
        table.problem(), GenerativeModel(sample, table.problem().states), samples=12_000, feasibility="relaxed"
    )
    assert found.certificate is not None and found.certificate.value is not None
    low, high = found.certificate.value
    assert 0 < low < high <= 1 and high - low < 0.5
    assert max(asked) == 4 and found.samples <= 12_000


def test_at_a_high_discount_an_ending_problem_has_narrow_limits() -> None:
    """Without its ends the same problem has next to none: H is 1,000 and an episode is worth 1 at the most."""
    table = ending_table(2, 0.999)
    ends = {"terminal": None, "reward_total": None, "totals": None}
    widths = []
    for known in (table, dataclasses.replace(table, **ends)):
        found = solve(known.problem(), known.simulator(), samples=20_000, feasibility="relaxed")
        assert found.certificate is not None and found.certificate.value is not None
        widths.append(found.certificate.value[1] - found.certificate.value[0])
    print(f"{widths[0]:.3f} with its ends, {widths[1]:.3f} without")
    assert widths[0] < 0.6 and widths[1] > 10


@pytest.mark.parametrize("successors", [False, True])
def test_a_rollout_that_is_stopped_counts_for_the_least_and_the_most(
    successors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped at a third of their totals, 20,000 rollouts have the truth between both means, five standard errors aside."""
    for module in (endings, trajectories):
        monkeypatch.setattr(module, "SLACK", 0.3)
    table, guide = frozen(successors)
    assert guide.mixture is not None
    baseline = fit_baseline(guide.problem, guide.earlier[-1], guide.mixture)
    plan = plan_for(guide.problem, guide.earlier[-1], guide.mixture, 400_000)._replace(number=20_000)
    found = roll_out(guide.problem, table.simulator(), guide.mixture, baseline, plan, seed=5)
    assert found.more is not None
    true = guide.problem.unit_values_of(mixture_values(table, guide.mixture))
    error = 5 * found.highest.std(axis=0) / np.sqrt(20_000)
    assert (found.more > 0).any(axis=1).mean() > 0.05, "some were stopped"
    assert np.all(found.values.mean(axis=0) - error <= true) and np.all(true <= found.highest.mean(axis=0) + error)
    assert np.all(found.values >= found.low - 1e-9) and np.all(found.highest <= found.high + 1e-9)


def test_rollouts_that_run_out_of_steps_may_be_anything() -> None:
    """Three steps a rollout are too few: most are cut, and the limits are wide, and right."""
    table, guide = frozen(False)
    assert guide.mixture is not None
    baseline = fit_baseline(guide.problem, guide.earlier[-1], guide.mixture)
    found = roll_out(guide.problem, table.simulator(), guide.mixture, baseline, RolloutPlan(1_000, 270, 3_000), seed=5)
    assert found.more is not None and found.steps <= 3_000
    cut = (found.values == found.low).all(axis=1)
    assert cut.sum() > 100 and np.array_equal(found.highest[cut], np.broadcast_to(found.high, (cut.sum(), 2)))
    low, high = found.limits(0.05, "betting")
    true = guide.problem.unit_values_of(mixture_values(table, guide.mixture))
    assert np.all(low <= true) and np.all(true <= high)


# ---- held against every sample -----------------------------------------------------------------------------------------


def season(total: tuple[float, float] | None = (0, 3), **more: Any) -> CMDP:
    """Three units to sell, one a step at the most; both signals are observed."""
    constraint = Constraint("waits", None, "<=", 5.0, (0, 1))
    known: dict[str, Any] = {
        "states": 4,
        "actions": 2,
        "reward": None,
        "reward_range": (0, 1),
        "gamma": 0.9,
        "start": 3,
    }
    return CMDP(**{**known, "constraints": [constraint], "terminal": [0], "reward_total": total, **more})


def seller(step: int = 1, pays: float = 1.0, resting: int = 0) -> GenerativeModel:
    """Sells with chance .6 and .3; a simulator at fault goes down by two, pays twice, or leaves state 0."""

    def sample(states: Any, actions: Any, rng: Any) -> Any:
        sold = (rng.random(len(states)) < np.array([0.6, 0.3])[actions]) & (states > 0)
        going = np.where(states > 0, 1.0, 0.0)
        after = np.where(states > 0, np.maximum(states - step * sold, 0), resting)
        return after, np.column_stack([pays * sold, (1 - sold) * going])

    return GenerativeModel(sample, season().states, 2)


def followers(s: int, a: int) -> list[int]:
    return [s, max(s - 1, 0)] if s else [0]


def test_a_sound_season_is_solved() -> None:
    found = solve(season(successors=followers), seller(), samples=8_000, feasibility="relaxed")
    assert found.certificate is not None and found.certificate.value is not None
    assert found.certificate.value[1] <= 3 and "terminal" in found.certificate.assumes["value"]


@pytest.mark.parametrize(
    ("problem", "model", "words"),
    [
        ({"successors": followers}, seller(step=2), "none of the declared successors"),
        ({"total": (0, 2)}, seller(), "a total of"),
        ({}, seller(resting=3), "declared terminal"),
        ({"reward_range": (0, 2)}, seller(pays=2.0), "a total of"),
    ],
)
def test_what_was_declared_is_held_against_every_sample(problem: dict[str, Any], model: Any, words: str) -> None:
    with pytest.raises(SimulatorError) as error:
        solve(season(**problem), model, samples=8_000, feasibility="relaxed")
    said = str(error.value)
    assert words in said and "state" in said and "action" in said and "key" in said and "declare" in said


def test_limits_are_those_of_the_range_where_nothing_is_declared() -> None:
    """Not a bit of a plain problem's rollouts has changed by what others may declare."""
    table = dataclasses.replace(ending_table(1), terminal=None, reward_total=None, totals=None)
    parts = prepare(table.problem(), table.simulator(), 4_000, 7, Method())
    mixture = MixturePolicy.of([best_policy(table, SIGMA)[0]], np.ones(1))
    baseline = fit_baseline(parts.problem, parts.evaluation_buffer, mixture)
    found = roll_out(parts.problem, table.simulator(), mixture, baseline, RolloutPlan.unlimited(0.95, 50), seed=5)
    assert (
        found.more is None
        and found.totals is None
        and expected_length(parts.problem, parts.evaluation_buffer, mixture) is None
    )
