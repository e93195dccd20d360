"""Ending problems: limits and bounds that hold, ends that nobody is asked about, and declarations that are held against every sample."""

from __future__ import annotations

import dataclasses
import io
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console
from scipy.stats import binom

from helpers import ending_table
from saddleback import CMDP, Constraint, solve
from saddleback.certificates import Guide, Request, certify_guided
from saddleback.certificates.bounds import Bound
from saddleback.certificates.values.baseline import Baseline, expected_length, fit_baseline
from saddleback.certificates.values.intervals import betting
from saddleback.certificates.values.rollouts import roll_out
from saddleback.certificates.values.waves import Stage, play_waves
from saddleback.errors import SimulatorError
from saddleback.exact.values import best_policy, mixture_values
from saddleback.problem import endings
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.runs.recheck import recheck
from saddleback.runs.recheck.check import Request as Checked
from saddleback.runs.run_folder import load_run
from saddleback.runs.settings import Method
from saddleback.runs.text import print_certificate
from saddleback.sampling import trajectories
from saddleback.sampling.blocks import InOrder
from saddleback.sampling.trajectories import RolloutPlan, plan_rollouts
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
    plan = RolloutPlan.unlimited(0.95, 20_000)
    found = roll_out(guide.problem, table.simulator(), guide.mixture, baseline, plan, seed=5)
    assert found.more is not None
    true = guide.problem.unit_values_of(mixture_values(table, guide.mixture))
    error = 5 * found.highest.std(axis=0) / np.sqrt(20_000)
    assert (found.more > 0).any(axis=1).mean() > 0.05, "some were stopped"
    assert np.all(found.values.mean(axis=0) - error <= true) and np.all(true <= found.highest.mean(axis=0) + error)
    assert np.all(found.values >= found.low - 1e-9) and np.all(found.highest <= found.high + 1e-9)


def test_rollouts_that_run_out_of_steps_do_not_count() -> None:
    """Three steps a rollout are too few: those before the first that was cut count, and nothing is shown where all had to."""
    table, guide = frozen(False)
    assert guide.mixture is not None
    baseline, plan = (
        fit_baseline(guide.problem, guide.earlier[-1], guide.mixture),
        RolloutPlan(1_000, 270, 3_000, 1_000),
    )
    true = guide.problem.unit_values_of(mixture_values(table, guide.mixture))
    found, fixed = (
        roll_out(guide.problem, table.simulator(), guide.mixture, baseline, each, seed=5)
        for each in (plan, plan._replace(total=None))
    )
    assert 1 < len(found.values) < 200 and found.steps <= 3_000 and found.waves.tolist() == [[1_000, 1_000]]
    low, high = found.limits(0.05, "betting")
    assert np.all(low <= true) and np.all(true <= high)
    assert fixed.cut and not found.cut
    for method in ("betting", "empirical-bernstein"):
        np.testing.assert_array_equal(fixed.limits(0.05, method), found.known)


def test_without_a_single_whole_rollout_nothing_is_shown() -> None:
    table, guide = frozen(False)
    assert guide.mixture is not None
    baseline = fit_baseline(guide.problem, guide.earlier[-1], guide.mixture)
    found = roll_out(guide.problem, table.simulator(), guide.mixture, baseline, RolloutPlan(10, 270, 10, 10), seed=5)
    assert found.cut and len(found.values) == 1 and found.steps == 10
    np.testing.assert_array_equal(found.limits(0.05, "betting"), found.known)


# ---- the long ones are the valuable ones -------------------------------------------------------------------------------


@cache
def jackpot() -> tuple[Table, Stage]:
    """Half of the rollouts end at once, with nothing; the others take six steps to be worth 1. There are steps for three in four of all."""
    S = 7
    P, reward, cost = np.zeros((S, 1, S)), np.zeros((S, 1)), np.zeros((S, 1))
    P[0, 0, [1, 6]], P[6, 0, 6] = 0.5, 1.0
    P[np.arange(1, 6), 0, np.arange(2, 7)] = 1.0
    reward[5], cost[5] = 1.0, 1.0
    ends = {"terminal": np.arange(S) == 6, "reward_total": (0.0, 1.0), "totals": ((0.0, 1.0),)}
    spans = {"reward_range": (0.0, 1.0), "ranges": ((0.0, 1.0),), "senses": ["<="], "names": ["cost"]}
    table = Table.of(P, reward, cost[None], [0.5], gamma=0.99, rho=np.eye(1, S)[0], **spans, **ends)
    problem, policy = (
        table.problem(),
        MixturePolicy.of([TabularPolicy.deterministic(np.zeros(S, dtype=np.int64), 1)], np.ones(1)),
    )
    nothing = endings.zero(problem) * problem.horizon
    baseline = Baseline([lambda states: np.broadcast_to(nothing, (len(states), 2))], nothing, nothing)
    plan = RolloutPlan(200, trajectories.longest(0.99), 500, 60)
    return table, Stage(problem, table.simulator(), policy, baseline, plan, 0, 0, (), InOrder())


@pytest.mark.slow
def test_limits_hold_where_the_valuable_rollouts_are_cut() -> None:
    """400 runs at δ = .5, seeds 0 to 399: misses within what chance allows in one of 2·10⁶ such tests, for reward and cost each.

    The control leaves out the rollouts that were cut, and no others.
    """
    table, stage = jackpot()
    true, runs = stage.problem.unit_values_of(mixture_values(table, stage.mixture)), 400
    most, missed, control, dropped = binom.ppf(1 - 1e-6 / 2, runs, 0.5), np.zeros(2), np.zeros(2), 0
    for seed in range(runs):
        found = roll_out(stage.problem, stage.model, stage.mixture, stage.baseline, stage.plan, seed=seed)
        low, high = found.limits(0.5, "betting")
        missed += (true < low) | (high < true)
        whole = play_waves(stage._replace(seed=seed)).sums
        dropped += int(whole.cut.sum())
        for j in range(2):
            z = found.baseline[j] + whole.gains[~whole.cut, j]
            ends = betting(z, float(found.low[j]), float(found.high[j]), 0.5)
            control[j] += not ends.low + found.tail_low[j] <= true[j] <= ends.high + found.tail_high[j]
    print(f"{missed} misses of {runs} (at most {most:.0f}), {control} without those cut, {dropped / runs:.1f} a run")
    assert np.all(missed <= most) and dropped > 20 * runs
    assert np.all(control > most)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [20_000, 200_000])
def test_an_ending_problem_spends_its_steps(steps: int) -> None:
    """Though how long its rollouts are is learnt from the first of them; expectations are wrong by a factor of two either way."""
    table, guide = frozen(True, 0.99)
    assert guide.mixture is not None
    baseline = fit_baseline(guide.problem, guide.earlier[-1], guide.mixture)
    right = expected_length(guide.problem, guide.earlier[-1], guide.mixture)
    assert right is not None
    for seed, factor in enumerate((0.5, 1.0, 2.0)):
        plan = plan_rollouts(0.99, steps, factor * right)
        found = roll_out(guide.problem, table.simulator(), guide.mixture, baseline, plan, seed=seed)
        begun = int(found.waves[:, 0].sum())
        print(
            f"{factor} × {right:.1f}: {1 - found.steps / steps:.4f} unspent, {len(found.gains)} of {begun}, {found.waves.tolist()}"
        )
        assert 0.98 * steps <= found.steps <= steps and len(found.gains) >= 0.98 * begun and len(found.waves) <= 8


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


# ---- what was declared bounds the best policy ---------------------------------------------------------------------------


def prize(**more: Any) -> CMDP:
    """A prize of 1 now, for certain, or a walk to it that may fail: the best that there is is what was declared."""
    reward, walks = np.array([[1.0, 0.0], [1.0, 0.5], [0.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    known: dict[str, Any] = {
        "states": 3,
        "actions": 2,
        "gamma": 0.9,
        "start": 0,
        "terminal": [2],
        "reward_total": (0, 1),
    }
    known |= {"reward": reward, "reward_range": (0, 1)}
    return CMDP(**{**known, "constraints": [Constraint("walks", walks, "<=", 4.0, (0, 1))], **more})


def prize_model() -> GenerativeModel:
    def sample(states: Any, actions: Any, rng: Any) -> Any:
        walked = np.where(states == 0, 1, np.where(rng.random(len(states)) < 0.5, 2, 0))
        return np.where((actions == 0) | (states == 2), 2, walked)

    return GenerativeModel(sample, prize().states)


def test_where_nothing_narrower_is_proved_the_bound_is_what_was_declared(tmp_path: Path) -> None:
    """It needs no sample, costs no δ, is stated with its gap, and is checked against the problem."""
    found = solve(prize(), prize_model(), samples=6_000, feasibility="relaxed", out=tmp_path / "run")
    proof = found.certificate
    assert proof is not None and proof.value is not None and proof.evidence.bound is None
    assert proof.upper_bound == pytest.approx(1.0) and proof.gap == pytest.approx(1.0 - proof.value[0])
    assert "add up to no more" in proof.assumes["upper_bound"] and proof.assumes["gap"] == proof.assumes["value"]
    text = words_of(prize(), proof)
    assert "at most 1 by what was declared" in text and "no bound over all policies but by what was declared" in text
    run = load_run(tmp_path / "run")
    record = run.certificate
    assert record is not None
    for problem, outcome in ((prize(), "agrees"), (None, "agrees")):
        checks = recheck(record, run.rollouts, problem=problem, policy=run.mixture, request=Checked.of(run))
        assert [c.name for c in checks if not c.passed] == []
        assert [c.word for c in checks if c.name == "upper bound"] == [outcome]
    assert proof.value is not None
    for moved, problem, outcome in (
        (1.2, prize(), "DISAGREES"),
        (0.99, prize(), "DISAGREES"),
        (1.2, None, "DISAGREES"),
        (0.99, None, "not checked"),
        (None, prize(), "DISAGREES"),
        (None, None, "agrees"),
    ):
        gap = None if moved is None else moved - record.value[0] if record.value else None
        forged = msgspec.structs.replace(record, upper_bound=moved, gap=gap)
        checks = recheck(forged, run.rollouts, problem=problem, policy=run.mixture, request=Checked.of(run))
        assert [c.word for c in checks if c.name == "upper bound"] == [outcome], (moved, problem)


def test_nothing_declared_is_no_bound() -> None:
    """The control: a range of steps is no statement, and H is not printed as one."""
    few = Method(certificate=20)
    found = solve(
        prize(terminal=None, reward_total=None), prize_model(), samples=200, feasibility="relaxed", method=few
    )
    assert found.certificate is not None and found.certificate.evidence.bound is None
    assert found.certificate.upper_bound is None and found.certificate.gap is None


def test_a_declared_bound_is_no_higher_than_the_longest_path() -> None:
    """From the start no path pays more than .8, though the total is declared to be 1 at the most."""
    reward = np.array([[0.3, 0.2], [0.5, 0.1], [0.0, 0.0]])
    ahead = [[[1], [1]], [[2], [2]], [[2], [2]]]
    problem = prize(reward=reward, successors=ahead)
    assert endings.declared_ceiling(problem) == pytest.approx(0.8)
    assert endings.declared_ceiling(prize(terminal=None, reward_total=None)) is None
    bound = Bound(np.array([1.0, 0.0]), 5.0, 0.8, "all pairs", 0.05, 10)
    assert bound.on_optimum(problem) == pytest.approx(0.8)


def words_of(problem: CMDP, proof: Any) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    print_certificate(console, problem, proof)
    return " ".join(console.export_text().replace("│", " ").split())


def test_the_fine_print_says_an_assumption_once() -> None:
    found = solve(prize(), prize_model(), samples=6_000, feasibility="relaxed").certificate
    assert found is not None
    text = words_of(prize(), found)
    assert "terminal states as declared" in text and "also needs" not in text
    assert found.by_start == () and "by start" not in text.lower()
