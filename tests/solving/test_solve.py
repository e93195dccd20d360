"""The one call in literal mode, and what both modes share; tests/solving/test_default.py has the default mode."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleback
from helpers import random_table
from saddleback import InputError, Status, Table, zoo
from saddleback.exact import mixture_values, policy_values, solve_exactly
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import FiniteStates
from saddleback.runs.settings import Method
from saddleback.runs.verdict import Reason
from saddleback.sampling.collect import collect
from saddleback.simulators.generative_model import GenerativeModel, Stream
from saddleback.solving.prepare import prepare
from spelled_out import solve


def with_threshold(table, b):
    return Table.of(
        table.P, table.reward, table.constraints, [b], gamma=table.gamma, rho=table.rho, phi=table.phi,
        reward_range=table.reward_range, ranges=table.ranges, senses=table.senses, names=table.names,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wireless", "gridworld", "garnet", "random-linear"])
def test_zoo_problems_are_solved_nearly(name):
    """Literal relaxed solves: within 10 % of H of the optimum, and the constraint within 5 % of H."""
    instance = zoo.make(name)
    solution = solve(
        instance.problem,
        instance.simulator,
        mode="literal",
        samples=600_000,
        iterations=400,
        seed=1,
        batch_size=1 if instance.table.phi is None else 16,
    )
    assert solution.status is Status.SOLVED
    problem = instance.problem
    truth = problem.unit_values_of(mixture_values(instance.table, solution.mixture))
    exact = solve_exactly(instance.table)
    best = problem.unit_values_of(np.array([exact.value, *exact.constraint_values]))
    assert best[0] - truth[0] <= 0.1 * problem.horizon
    assert np.all(problem.thresholds - truth[1:] <= 0.05 * problem.horizon)
    assert solution.samples <= 600_000
    assert solution.samples == instance.simulator.num_queries


def test_likely_ranges_hold_the_truth():
    instance = zoo.make("garnet")
    solution = solve(instance.problem, instance.simulator, mode="literal", samples=400_000, iterations=200, delta=1e-4)
    truth = mixture_values(instance.table, solution.mixture)
    assert solution.constraints[0].low <= truth[1] <= solution.constraints[0].high


@pytest.mark.slow
def test_same_seed_same_answer_and_another_seed_another():
    instance = zoo.make("garnet")
    answers = [
        solve(instance.problem, instance.simulator, mode="literal", samples=50_000, iterations=50, seed=s)
        for s in (3, 3, 4)
    ]
    assert answers[0].value == answers[1].value
    np.testing.assert_array_equal(answers[0].trace.multipliers, answers[1].trace.multipliers)
    assert answers[0].value != answers[2].value


def test_buffers_have_streams_of_their_own():
    """Solver and evaluation samples are what DataCollection draws from their two streams (property 32)."""
    instance = zoo.make("garnet", states=6)
    parts = prepare(instance.problem, instance.simulator, 2 * 24 * 40, 5, Method(mode="literal", resolution=0))
    for buffer, stream in ((parts.solver_buffer, Stream.SOLVER), (parts.evaluation_buffer, Stream.EVALUATION)):
        drawn = collect(instance.simulator, parts.problem, parts.design, 40, seed=5, stream=stream)
        again = buffer.support[buffer.batches.index]
        expected = np.concatenate([s.reshape(10, 4) for s in drawn.next_states], axis=1)
        np.testing.assert_array_equal(again, expected)


def test_infeasible_threshold_is_a_verdict_not_a_policy():
    """Property 28, from samples: V_c can reach b + ζ at most."""
    table = random_table(3)
    zeta = solve_exactly(table).unit_slater
    beyond = with_threshold(table, table.thresholds[0] + zeta + 0.6)
    solution = solve(beyond.problem(), beyond.simulator(), samples=400_000)
    assert solution.verdict.reason is Reason.PROBABLY_NO_POLICY and "not proved" in solution.message
    assert solution.status is Status.UNDECIDED, "measured limits prove nothing"
    assert solution.mixture is None
    assert solution.value is None
    assert solution.max_slack == pytest.approx(-0.6, abs=0.1)


def test_infeasible_is_said_where_it_is_proved() -> None:
    table = random_table(3)
    beyond = with_threshold(table, table.thresholds[0] + solve_exactly(table).unit_slater + 0.6)
    proved = saddleback.solve(beyond.problem(), beyond.simulator(), samples=200_000)
    assert proved.status is Status.INFEASIBLE and proved.verdict.reason is Reason.NO_POLICY
    assert proved.certificate is not None and proved.certificate.infeasible and "which is proved" in proved.message


def test_threshold_beyond_the_range_needs_no_sample():
    table = with_threshold(random_table(3), 5.5)
    simulator = table.simulator()
    solution = solve(table.problem(), simulator)
    assert solution.status is Status.INFEASIBLE
    assert simulator.num_queries == 0
    assert "at most 5" in solution.message


def test_zero_threshold_has_multiplier_zero():
    """Property 28: b = 0 always holds, so λ stays at zero and one policy is enough."""
    table = with_threshold(random_table(3), 0.0)
    solution = solve(table.problem(), table.simulator(), mode="literal", samples=100_000, iterations=20)
    assert solution.multipliers == (0.0,)
    assert len(solution.members) == 1


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.booleans())
def test_zero_threshold_is_the_unconstrained_problem(seed, linear):
    """Property 28: at b = 0 every λ_k is zero, so the same samples give the same one policy whatever the constraint is."""
    table = with_threshold(random_table(seed, d=3 if linear else None), 0.0)
    other = dataclasses.replace(table, constraints=1 - table.constraints)
    parts = {"evaluator": "ls-pe", "design": "frank-wolfe"} if linear else {"evaluator": "tabular-pe", "design": "full"}
    answers = [
        solve(t.problem(), t.simulator(), samples=3000, iterations=5, seed=seed, dual="projected-descent", **parts)
        for t in (table, other)
    ]
    assert all(np.all(s.trace.multipliers == 0) and len(s.members) == 1 for s in answers)
    np.testing.assert_array_equal(*(s.mixture.members[0].table for s in answers))


def test_too_close_to_call_is_undecided():
    table = random_table(3)
    zeta = solve_exactly(table).unit_slater
    close = with_threshold(table, table.thresholds[0] + zeta)
    solution = solve(close.problem(), close.simulator(), mode="literal", samples=20_000, iterations=30)
    assert solution.status is Status.UNDECIDED
    assert solution.mixture is not None


@pytest.mark.slow
def test_strict_is_safer_than_relaxed():
    """Strict raises the target by the measured half-width; where it says solved, the measured limit clears the threshold."""
    instance = zoo.make("garnet")
    values = {}
    for mode in ("relaxed", "strict"):
        s = solve(
            instance.problem,
            instance.simulator,
            mode="literal",
            samples=600_000,
            feasibility=mode,
            iterations=2000,
            seed=2,
            resolution=200,
        )
        values[mode] = mixture_values(instance.table, s.mixture)
        assert s.status is Status.SOLVED
    assert values["strict"][1] >= instance.problem.user_thresholds()[0]
    assert values["strict"][1] > values["relaxed"][1]


def test_affordable_budgets_keep_the_constraint():
    """The worst-case f exceeds H here; b' = b − 2f would drop the constraint, so the target stays b."""
    instance = zoo.make("garnet")
    solution = solve(instance.problem, instance.simulator, mode="literal", samples=100_000, iterations=50)
    assert solution.settings["error"] > instance.problem.horizon
    assert solution.settings["target"] == pytest.approx(instance.problem.thresholds.tolist())
    assert any("no a-priori guarantee" in r.text for r in solution.remarks)


@pytest.mark.slow
def test_error_by_hand_sets_the_theorems_target():
    instance = zoo.make("garnet")
    b = instance.problem.thresholds[0]
    for mode, target in (("relaxed", b - 0.2), ("strict", b + 0.4)):
        s = solve(
            instance.problem,
            instance.simulator,
            mode="literal",
            samples=200_000,
            error=0.1,
            iterations=50,
            feasibility=mode,
        )
        assert s.settings["target"] == pytest.approx([target])
        assert any("given by hand" in r.text for r in s.remarks)


def test_overrides():
    instance = zoo.make("garnet")
    s = solve(
        instance.problem,
        instance.simulator,
        mode="literal",
        samples=50_000,
        iterations=10,
        upper=7.0,
        step_size=0.5,
        target=[3.0],
    )
    assert s.settings["upper"] == 7.0
    assert s.settings["target"] == [3.0]
    assert s.trace.multipliers.shape == (10, 1)


def test_one_buffer_is_labelled():
    instance = zoo.make("garnet")
    s = solve(instance.problem, instance.simulator, mode="literal", samples=50_000, iterations=5, buffers=1)
    assert any("one buffer" in r.text for r in s.remarks)
    assert s.samples > 45_000


@pytest.mark.slow
def test_user_units():
    """Costs with '<=' in odd units: the same problem in utilities and in the user's units has the same answer."""
    instance = zoo.make("wireless")
    s = solve(instance.problem, instance.simulator, mode="literal", samples=300_000, iterations=100)
    row = s.constraints[0]
    assert row.sense == "<="
    assert row.slack == pytest.approx(row.threshold - row.value)
    unit = instance.table.utilities()
    plain = Table.of(
        instance.table.P,
        unit[:, 0].reshape(instance.table.reward.shape),
        unit[:, 1].reshape((1, *instance.table.reward.shape)),
        instance.problem.thresholds,
        gamma=instance.table.gamma,
        rho=instance.table.rho,
        reward_range=(0, 1),
        ranges=((0, 1),),
    )
    t = solve(plain.problem(), plain.simulator(), mode="literal", samples=300_000, iterations=100)
    np.testing.assert_allclose(
        instance.problem.values_of(np.array([t.value, t.constraints[0].value])), [s.value, row.value], rtol=1e-9
    )
    np.testing.assert_allclose(instance.problem.multipliers_of(np.array(t.multipliers)), s.multipliers, rtol=1e-9)


@pytest.mark.slow
def test_several_constraints():
    instance = zoo.make("garnet", constraints=3)
    s = solve(instance.problem, instance.simulator, mode="literal", samples=600_000, iterations=300, resolution=40)
    assert s.status is Status.SOLVED
    truth = instance.problem.unit_values_of(mixture_values(instance.table, s.mixture))
    assert np.all(instance.problem.thresholds - truth[1:] <= 0.05 * instance.problem.horizon)
    assert len(s.multipliers) == 3
    assert min(s.multipliers) >= 0


@pytest.mark.slow
def test_stationary_copy_is_labelled_and_close():
    instance = zoo.make("garnet")
    s = solve(instance.problem, instance.simulator, mode="literal", samples=1_000_000, iterations=100)
    assert "approximate" in s.stationary.label
    true_mixture = mixture_values(instance.table, s.mixture)
    true_stationary = policy_values(instance.table, s.stationary.policy)
    np.testing.assert_allclose(true_stationary, true_mixture, atol=0.02 * instance.problem.horizon)


@pytest.mark.slow
def test_observed_rewards_end_to_end():
    """A reward that depends on the next state: only the simulator can tell it, and the answer is near the table's."""
    instance = zoo.make("garnet", states=10, actions=3)
    table = instance.table
    S, A = table.num_states, table.num_actions
    bonus = np.linspace(0, 1, S)
    expected = (table.P @ bonus).reshape(S, A)
    known = Table.of(table.P, expected, table.constraints, table.thresholds, gamma=table.gamma, rho=table.rho)
    inner = table.simulator()

    def sample(states, actions, rng):
        after = inner.sample(states, actions, rng).next_states
        return after, np.column_stack([bonus[after], table.constraints[0][states, actions]])

    problem = CMDP(
        gamma=table.gamma,
        start=Start.over_all(table.rho),
        num_actions=A,
        states=FiniteStates(S),
        reward=None,
        reward_range=(0.0, 1.0),
        constraints=[Constraint("c", None, ">=", float(table.thresholds[0]), range=(0.0, 1.0))],
    )
    s = solve(problem, GenerativeModel(sample, FiniteStates(S), 2), mode="literal", samples=400_000, iterations=300)
    truth = mixture_values(known, s.mixture)
    assert solve_exactly(known).value - truth[0] <= 0.05 * problem.horizon
    assert truth[1] >= table.thresholds[0] - 0.05 * problem.horizon


@pytest.mark.slow
def test_hard_instance_from_samples():
    """d = 12 through its argmax oracle: the constraint nearly holds and the reward is near V*."""
    instance = zoo.make("hard-instance", dim=12)
    s = solve(
        instance.problem,
        instance.simulator,
        mode="literal",
        samples=2_000_000,
        iterations=1000,
        batch_size=100,
        resolution=50,
    )
    truth = s.mixture.weights @ np.array([instance.true_values(p) for p in s.mixture.members])
    H = instance.problem.horizon
    assert truth[0] >= instance.known["value"] - 0.05 * H
    assert truth[1] >= instance.problem.thresholds[0] - 0.05 * H


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"samples": 10}, "samples"),
        ({"samples": 0}, "samples"),
        ({"iterations": 0, "dual": "projected-descent"}, "iterations"),
        ({"delta": 0.0}, "delta"),
        ({"error": -1.0}, "error"),
        ({"feasibility": "loose"}, "feasibility"),
        ({"solver": "magic"}, "solver"),
        ({"dual": "magic"}, "dual"),
        ({"buffers": 3}, "buffers"),
        ({"design": "frank-wolfe", "solver": "tabular-mdvi"}, "design|features|frank-wolfe"),
    ],
)
def test_bad_arguments(arguments, name):
    instance = zoo.make("garnet", states=6)
    with pytest.raises(InputError, match=name):
        solve(instance.problem, instance.simulator, **{"samples": 10_000, "iterations": 5, **arguments})


def test_solver_objects_are_accepted():
    from saddleback.method.solvers import TabularMDVI

    instance = zoo.make("garnet", states=6)
    s = solve(instance.problem, instance.simulator, samples=20_000, iterations=5, solver=TabularMDVI())
    assert s.settings["solver"] == "TabularMDVI"
    assert dataclasses.is_dataclass(s)
