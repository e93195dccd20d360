"""Actions that a state does not allow: nobody is asked for them, nobody takes them, and no bound counts them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import saddleback
from helpers import needs_by_name, random_table
from saddleback.designs.exchange import Exchange
from saddleback.errors import InputError
from saddleback.exact import best_policy, mixture_values, solve_by_columns, solve_exactly
from saddleback.features import FeatureMatrix, OneHot
from saddleback.instances.table_file import load_table, save_table
from saddleback.method.solvers import BY_NAME
from saddleback.problem.actions import RestrictedFeatures, permitted_policy, read_allowed, serving_pairs, stand_ins_of
from saddleback.problem.cmdp import CMDP, Constraint
from saddleback.problem.names import ListedStates
from saddleback.problem.policies import GreedyPolicy, SoftmaxPolicy, TabularPolicy
from saddleback.problem.spaces import BoxStates, FiniteStates
from saddleback.runs.run_folder import Origin
from saddleback.runs.settings import Method
from saddleback.runs.work_folder import owned
from saddleback.sampling.blocks import InOrder
from saddleback.simulators.checks import run_checks
from saddleback.simulators.function import as_simulator
from saddleback.simulators.generative_model import GenerativeModel, Stream
from saddleback.simulators.table import Table
from saddleback.solving.kept_run import Drawing
from saddleback.solving.prepare import prepare_from
from saddleback.solving.stored_samples import draw_rounds, open_samples
from saddleback.testing import check_features
from spelled_out import solve

S, A = 6, 3
MASK = np.array([[0, 1, 1], [1, 1, 1], [0, 0, 1], [1, 0, 1], [0, 1, 0], [1, 1, 0]], dtype=bool)


def tempting(seed: int = 1, linear: bool = False) -> tuple[Table, Table]:
    """A table whose actions that are not allowed are worth far more than the others, and the same with the mask."""
    plain = random_table(seed, S=S, A=A)
    reward, cost = plain.reward.copy(), plain.constraints.copy()
    reward[~MASK], cost[:, ~MASK] = 3.0, 3.0
    P = plain.P.toarray().reshape(S, A, S)
    phi = np.eye(S * A).reshape(S, A, S * A)[:, :, : S * A - 1] if linear else None
    parts = {"gamma": plain.gamma, "rho": plain.rho, "phi": phi}
    free = Table.of(P, reward, cost, plain.thresholds, **parts)
    broken = P.copy()
    broken[~MASK] = 0.0  # rows that would be refused: they are not looked at
    hole = np.where(MASK, reward, np.nan)
    return free, Table.of(broken, hole, cost, plain.thresholds, actions_allowed=MASK, **parts)


def by_linear_program(table: Table) -> float:
    """max Σ μr subject to flow and constraints, over the occupancies μ of allowed pairs only."""
    P, H = table.P.toarray(), 1 / (1 - table.gamma)
    flow = np.repeat(np.eye(S), A, axis=0) - table.gamma * P
    keep = MASK.ravel()
    answer = scipy.optimize.linprog(
        -table.reward.ravel()[keep],
        A_ub=-table.constraints.reshape(-1, S * A)[:, keep],
        b_ub=-table.thresholds,
        A_eq=flow.T[:, keep],
        b_eq=table.rho,
        bounds=(0, H),
    )
    assert answer.status == 0, answer.message
    return -float(answer.fun)


# ---- the words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        MASK,
        MASK.tolist(),
        [np.flatnonzero(row).tolist() for row in MASK],
        {i: np.flatnonzero(row).tolist() for i, row in enumerate(MASK) if not row.all()},
        lambda s: [a for a in range(A) if MASK[s, a]],
        [[name for name, yes in zip(("wait", "go", "stop"), row, strict=True) if yes] for row in MASK],
    ],
)
def test_masks_lists_mappings_and_functions_say_the_same(given: Any) -> None:
    found = read_allowed(given, FiniteStates(S), A, ("wait", "go", "stop"))
    assert found is not None and found.tolist() == MASK.tolist()


def test_a_function_is_asked_about_the_users_own_states() -> None:
    found = read_allowed(lambda s: ["go"] if s == "far" else [0, 1], ListedStates(["near", "far"]), 2, ("wait", "go"))
    assert found is not None and found.tolist() == [[True, True], [False, True]]
    assert read_allowed(lambda s: [0, 1], FiniteStates(3), 2, None) is None, "everything is allowed"


def test_a_box_has_no_list_of_allowed_actions() -> None:
    with pytest.raises(InputError, match="must be left out where states form a box"):
        read_allowed(lambda s: [0], BoxStates([0.0], [1.0]), 2, None)


# ---- the parts ---------------------------------------------------------------------------------------------------------


def test_features_of_a_stand_in_keep_the_contract() -> None:
    meant = stand_ins_of(MASK)
    assert meant[0].tolist() == [1, 1, 2] and meant[4].tolist() == [1, 1, 1]
    rng = np.random.default_rng(0)
    for features in (RestrictedFeatures(FeatureMatrix(rng.random((S, A, 4))), meant), OneHot(S, A).restricted(meant)):
        states, theta = np.arange(S), rng.normal(size=features.dim)
        Q = np.einsum("nad,d->na", features.all(states), theta)
        np.testing.assert_allclose(features.values(states, theta), Q)
        np.testing.assert_allclose(features.maximum(states, theta), np.where(MASK, Q, -np.inf).max(axis=1))
        assert np.all(MASK[states, features.argmax(states, theta)])
        assert np.all(features.argmax(states, np.zeros(features.dim)) == MASK.argmax(axis=1)), (
            "ties: the lowest allowed"
        )
        np.testing.assert_allclose(features.at(states, np.zeros(S, int)), features.all(states)[:, 0])


def test_contracts_of_features_hold_where_everything_is_allowed() -> None:
    check_features(RestrictedFeatures(OneHot(S, A), stand_ins_of(np.ones((S, A), bool))), np.arange(S))


def test_policies_take_allowed_actions_only() -> None:
    meant, rng, every = stand_ins_of(MASK), np.random.default_rng(0), np.arange(S)
    fixed = permitted_policy(TabularPolicy.deterministic(np.zeros(S), A), meant)
    assert fixed.act(every, rng).tolist() == [1, 0, 2, 0, 1, 0]
    p = permitted_policy(TabularPolicy.stochastic(np.tile([0.5, 0.3, 0.2], (S, 1))), meant).probabilities(every)
    assert not p[~MASK].any() and np.allclose(p.sum(axis=1), 1) and np.allclose(p[0], [0, 0.8, 0.2])
    soft = permitted_policy(SoftmaxPolicy(OneHot(S, A), rng.random(S * A), 2.0), meant).probabilities(every)
    assert not soft[~MASK].any()
    greedy = GreedyPolicy(OneHot(S, A).restricted(meant), rng.random(S * A))
    assert permitted_policy(greedy, meant) is greedy and np.all(MASK[every, greedy.actions(every)])


# ---- the whole -----------------------------------------------------------------------------------------------------------


def test_the_exact_optimum_is_over_allowed_actions() -> None:
    free, table = tempting()
    wanted = by_linear_program(free)
    for answer in (solve_exactly(table), solve_by_columns(table)):
        assert answer.value == pytest.approx(wanted, rel=1e-6) and answer.policy is not None
        assert not answer.policy.probabilities(np.arange(S))[~MASK].any()
        if answer.mixture is not None:
            assert not any(m.probabilities(np.arange(S))[~MASK].any() for m in answer.mixture.members)
    assert solve_exactly(free).value > wanted + 1, "the others would be worth more"
    assert np.all(MASK[np.arange(S), best_policy(table, np.array([1.0, 0.0]))[0].table])


def forbidding(table: Table) -> GenerativeModel:
    """The table's simulator, which fails when it is asked for an action that is not allowed."""
    inner = table.simulator()

    def sample(states: Any, actions: Any, rng: Any) -> Any:
        assert np.all(MASK[states, actions]), "asked for an action that is not allowed"
        return inner._sample(states, actions, rng)

    return GenerativeModel(sample, table.num_states)


SOLVERS = sorted(name for name in BY_NAME if needs_by_name(name).package is None)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_keeps_to_allowed_actions(solver: str, linear: bool) -> None:
    table = tempting(linear=linear)[1]
    problem = table.problem()
    found = solve(problem, as_simulator(problem, forbidding(table)), samples=200_000, seed=0, solver=solver)
    assert found.mixture is not None and found.value is not None
    for member in found.mixture.members:
        assert not member.probabilities(np.arange(S))[~MASK].any()
    exact = solve_exactly(table)
    assert mixture_values(table, found.mixture)[0] == pytest.approx(exact.value, abs=0.25)
    if found.stationary is not None:
        assert not found.stationary.policy.probabilities(np.arange(S))[~MASK].any()


@pytest.mark.parametrize("linear", [False, True])
def test_certificates_bound_the_best_allowed_policy(linear: bool) -> None:
    free, table = tempting(linear=linear)
    problem = table.problem()
    model = as_simulator(problem, forbidding(table))
    found = solve(problem, model, samples=60_000, certificate=200_000, seed=0)
    proof: Any = found.certificate
    best = solve_exactly(table).value
    assert proof.value[0] <= mixture_values(table, found.mixture)[0] <= proof.value[1]
    assert best <= proof.upper_bound < solve_exactly(free).value, "tighter than any bound over all actions"


class CountsPairs(InOrder):
    """Draws here, and counts the samples of every (stream, pair) that it is asked for."""

    def __init__(self) -> None:
        self.drawn: dict[tuple[int, int], int] = {}

    def run(self, function: Any, tasks: Any) -> Any:
        for task in tasks:
            key = (task.stream, task.pair)
            self.drawn[key] = self.drawn.get(key, 0) + task.size
        return super().run(function, tasks)

    def of_pairs(self, streams: Iterable[int]) -> np.ndarray[Any, Any]:
        """Samples of each pair (S, A), over some streams."""
        return np.array([sum(self.drawn.get((int(t), x), 0) for t in streams) for x in range(S * A)]).reshape(S, A)


DRAWN = (Stream.SOLVER, Stream.EVALUATION, Stream.CERTIFICATE)


@pytest.mark.parametrize("words", [{}, {"feasibility": "strict"}, {"method": Method.paper(iterations=20)}])
def test_no_sample_is_drawn_of_a_pair_that_is_not_allowed(words: dict[str, Any]) -> None:
    table = tempting()[1]
    problem, model, counting = table.problem(), table.simulator(), CountsPairs()
    found = saddleback.solve(problem, model, samples=60_000, seed=3, executor=counting, **words)
    n = counting.of_pairs(DRAWN)
    assert not n[~MASK].any() and n[MASK].all()
    parts: Any = found.prepared
    buffers = [parts.solver_buffer, parts.evaluation_buffer]
    assert [b.num_samples for b in buffers] == [int(counting.of_pairs([t]).sum()) for t in DRAWN[:2]]
    assert parts.samples == sum(b.num_samples for b in buffers) and found.samples <= 60_000
    for buffer in buffers:  # the others have the samples of the action that they stand for, to the last one
        P = buffer.empirical_model().toarray().reshape(S, A, -1)
        np.testing.assert_array_equal(P, np.take_along_axis(P, stand_ins_of(MASK)[:, :, None], axis=1))
    proof: Any = found.certificate
    assert proof.value[0] <= mixture_values(table, found.mixture)[0] <= proof.value[1]
    assert solve_exactly(table).value <= proof.upper_bound


def test_observed_signals_of_a_pair_that_is_not_allowed_are_those_of_its_stand_in() -> None:
    def step(state: int, action: int, rng: np.random.Generator) -> tuple[int, float]:
        assert MASK[state, action]
        return int(rng.integers(S)), float(rng.random() + state + 10 * action)

    fields: dict[str, Any] = {"reward_range": (0, 26), "constraints": [Constraint("c", np.ones((S, A)), "<=", 20.0)]}
    problem = CMDP(gamma=0.9, states=S, actions=A, start=0, reward=None, actions_allowed=MASK, **fields)
    found = saddleback.solve(problem, step, samples=20_000)
    u = found.prepared.evaluation_buffer.utilities(found.prepared.problem)[:, 0].reshape(S, A)
    np.testing.assert_array_equal(u, np.take_along_axis(u, stand_ins_of(MASK), axis=1))
    np.testing.assert_allclose(26 * u[MASK], (np.arange(S)[:, None] + 10 * np.arange(A) + 0.5)[MASK], atol=0.1)


@pytest.mark.parametrize("buffer", ["memory", "streamed"])
def test_a_store_need_not_hold_pairs_that_are_not_allowed(tmp_path: Path, buffer: Any) -> None:
    table = tempting()[1]
    problem, model = table.problem(), table.simulator()
    options = {"rounds": 1, "seed": 0}
    with owned(tmp_path / "s") as work:
        found, _ = draw_rounds(problem, model, work, "t", Origin("t", ()), options, Drawing(), lambda *_: None)
    assert (found["pairs"], found["samples"]) == (MASK.sum(), 4 * 4096 * MASK.sum())
    with open_samples(tmp_path / "s") as store:
        held = np.array([store.held(t, S * A) for t in DRAWN[:2]]).reshape(2, S, A)
        assert not held[:, ~MASK].any() and held[:, MASK].all()
        parts = prepare_from(problem, store, buffer=buffer)
        assert parts.samples == found["samples"]
        P = parts.evaluation_buffer.empirical_model().toarray().reshape(S, A, -1)
        np.testing.assert_array_equal(P, np.take_along_axis(P, stand_ins_of(MASK)[:, :, None], axis=1))
        solution = saddleback.solve(problem, model, samples=60_000, reuse=store)
    assert solution.value == pytest.approx(solve_exactly(table).value, abs=0.1)


def test_samples_go_to_the_pairs_that_are_allowed_and_to_all_of_them_where_all_are() -> None:
    states, actions = np.divmod(np.arange(S * A), A)
    assert serving_pairs(None, states, actions) is None
    serving = serving_pairs(stand_ins_of(MASK), states, actions)
    assert serving is not None and np.array_equal(serving == np.arange(S * A), MASK.ravel())
    some = serving_pairs(stand_ins_of(MASK), np.array([4, 0, 0]), np.array([0, 1, 0]))
    assert some is not None and some.tolist() == [0, 1, 1], "the stand-in of the first is not among them"
    problem = tempting(linear=True)[1].problem()
    design = Exchange().design(problem)
    assert np.all(MASK[design.states, design.actions])


def test_a_mask_is_kept_by_files_and_copies(tmp_path: Path) -> None:
    table = tempting()[1]
    save_table(table, tmp_path / "t.npz")
    again = load_table(tmp_path / "t.npz")
    assert again.actions_allowed is not None and again.actions_allowed.tolist() == MASK.tolist()
    problem = dataclasses.replace(again.problem(), gamma=0.5, features=OneHot(S, A))
    assert problem.allowed is not None and problem.allowed.tolist() == MASK.tolist()
    assert problem.features is not None and np.all(
        MASK[np.arange(S), problem.features.argmax(np.arange(S), np.ones(18))]
    )


def test_checks_do_not_ask_for_what_is_not_allowed() -> None:
    table = tempting()[1]
    assert not run_checks(table.problem(), forbidding(table), calls=4000).findings


def test_rewards_of_pairs_that_are_not_allowed_are_not_asked_for() -> None:
    def reward(state: int, action: int) -> float:
        assert MASK[state, action]
        return float(state)

    cost = Constraint("c", np.ones((S, A)), "<=", 20.0)
    fields: dict[str, Any] = {"reward_range": (0, 5), "constraints": [cost], "actions_allowed": MASK}
    problem = CMDP(gamma=0.9, states=S, actions=A, start=0, reward=reward, **fields)
    unit = problem.utilities(*problem.pairs())[:, 0].reshape(S, A)
    np.testing.assert_allclose(unit, np.repeat(np.arange(S)[:, None] / 5, A, axis=1))


def few_allowed(mask: Any) -> tuple[CMDP, Any]:
    """Ten states and actions; action 1 leads to the state that pays."""
    reward = np.zeros((10, 10))
    reward[9] = 1.0
    constraint = Constraint("any", np.zeros((10, 10)), "<=", 5.0, (0.0, 1.0))
    problem = CMDP(
        gamma=0.9, start=0, states=10, actions=10, reward=reward, constraints=[constraint], actions_allowed=mask
    )
    return problem, lambda states, actions, rng: np.where((actions == 1) | (states == 9), 9, 0)


def test_a_budget_for_the_few_pairs_that_are_allowed_is_enough() -> None:
    mask = np.zeros((10, 10), dtype=bool)
    mask[:, :2] = True
    found = saddleback.solve(*few_allowed(mask), samples=200, seed=0, method=Method(certificate=0))
    assert 100 < found.samples <= 200
    assert saddleback.solve(*few_allowed(mask), samples=100, seed=0, method=Method(certificate=0)).samples <= 100


def test_samples_of_a_masked_problem_do_not_answer_what_was_not_allowed() -> None:
    mask = np.ones((10, 10), dtype=bool)
    mask[:, 1] = False
    masked = saddleback.solve(*few_allowed(mask), samples=4_000, seed=0, method=Method(certificate=0))
    with pytest.raises(InputError, match="must allow no action that was not allowed"):
        saddleback.solve(few_allowed(None)[0], reuse=masked)
    free = saddleback.solve(*few_allowed(None), samples=4_000, seed=0, method=Method(certificate=0))
    assert saddleback.solve(few_allowed(mask)[0], reuse=free).value == pytest.approx(0.0, abs=1e-9)
