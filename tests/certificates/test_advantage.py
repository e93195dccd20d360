"""The gap by pairing: its identities, its single events, and what it says against the truth of small tables."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from helpers import random_table
from saddleback import zoo
from saddleback.certificates.bounds import BY_NAME, Advantages
from saddleback.certificates.bounds.advantage import Shares, functions_of, gain_limits
from saddleback.certificates.bounds.advantages import AdvantageBound
from saddleback.certificates.bounds.noise_forms import SLOPES, Boxes, Chain, Form, Frozen, Sampled, Space, find
from saddleback.certificates.guide import Guide, Request
from saddleback.certificates.prove import draw_fresh
from saddleback.exact import mixture_values
from saddleback.exact.values import best_policy
from saddleback.simulators.table import Table
from saddleback.solving.strict import guide_of
from spelled_out import solve


def space_of(table: Table, features: bool) -> tuple[Space, np.ndarray]:
    """The space of a table with all pairs sampled, or a coreset of as many pairs as features; and the rows of P there."""
    S, A = table.num_states, table.num_actions
    P, rho = table.P.toarray(), np.zeros(S)
    rho[: len(table.rho)] = table.rho
    if not features:
        return Space(np.eye(S * A), np.eye(S * A), table.gamma, rho, table=True), P
    assert table.phi is not None
    phi = table.phi.reshape(S * A, -1)
    chosen = np.linalg.qr(phi.T, mode="r").shape[0]
    picked = np.argsort(-phi.max(axis=1), kind="stable")[: 2 * chosen]
    B = np.linalg.pinv(phi[picked])
    return Space(phi, B, table.gamma, rho), P[picked]


def samples_of(P: np.ndarray, n: int, seed: int) -> Sampled:
    drawn = np.random.default_rng(seed).multinomial(n, P / P.sum(axis=1, keepdims=True))
    return Sampled(drawn / n, np.full(len(P), float(n)))


@pytest.mark.parametrize("features", [False, True])
def test_errors_are_exactly_forms_of_the_noise(features: bool) -> None:
    """V = V̂ + γφ_πNξ and A = Â + γ(φ − φ_π)Nξ, at every state and pair, however few the samples."""
    table = random_table(3, S=7, A=3, d=3 if features else None)
    space, P = space_of(table, features)
    exact, S, A = Sampled(P, np.full(len(P), 1.0)), table.num_states, table.num_actions
    policy = np.eye(A)[np.random.default_rng(0).integers(A, size=S)]
    signal = table.reward.ravel()
    true, chain = Chain(space, exact, policy), Chain(space, samples_of(P, 40, 1), policy)
    (V, Q), (V_hat, Q_hat) = true.values(signal), chain.values(signal)
    xi = (P - chain.samples.P) @ V
    np.testing.assert_allclose(V - V_hat - (V - V_hat).mean(), chain.state_rows @ xi, atol=1e-12)
    assert space.start @ (V - V_hat) == pytest.approx(chain.start_row @ xi, abs=1e-12)
    shift = (Q - np.repeat(V, A)) - (Q_hat - np.repeat(V_hat, A))
    np.testing.assert_allclose(shift, chain.advantage_rows @ xi, atol=1e-12)
    assert np.abs(xi).max() > 1e-3  # there is noise to speak of


def test_the_matrix_is_the_same_by_way_of_the_states() -> None:
    """Tables go through S × S, features through d × d."""
    space, P = space_of(random_table(5), False)
    samples, policy = samples_of(P, 30, 0), np.eye(3)[np.array([0, 1, 2, 0, 1, 2])]
    chain = Chain(space, samples, policy)
    direct = np.linalg.inv(np.eye(len(P)) - space.gamma * (samples.P @ chain.phi))
    np.testing.assert_allclose(chain.N, direct, atol=1e-12)


def test_a_box_is_a_form_with_one_coefficient() -> None:
    n, reach, expected = np.array([50.0, 700.0, 9.0]), np.array([2.0, 0.5, 0.0]), np.array([0.3, 0.01, 0.0])
    squares = np.array([0.4, 0.02, 0.0])
    many, single = Form(np.eye(3), n, reach, expected, 9.0, SLOPES), Boxes(n, reach, expected, 9.0, SLOPES)
    np.testing.assert_allclose(single.width(squares), many.width(squares), rtol=1e-12)
    assert single.width(squares)[2] == 0  # what cannot vary has no width


def misses_of_a_form(scale: float, runs: int = 5_000, level: float = math.log(10)) -> int:
    """How often Σ c_yξ_y exceeds ``scale`` times its limit, for skew functions and coefficients of both signs."""
    rng = np.random.default_rng(7)
    V = np.array([0.0, 1.0, 3.0]) - 4 / 3
    P, n = np.array([[0.9, 0.05, 0.05], [0.2, 0.7, 0.1]]), np.array([40.0, 90.0])
    rows, means = np.array([[1.0, -0.7]]), np.array([-1.0, -0.3])
    reach = np.maximum(V.max() - means, means - V.min())
    form = Form(rows, n, reach, P @ V**2 - (P @ V) ** 2, level)
    missed = 0
    for _ in range(runs):
        shown = Sampled(np.array([rng.multinomial(int(k), p) / k for k, p in zip(n, P, strict=True)]), n)
        xi = (P - shown.P) @ V
        missed += float((rows @ xi)[0]) > scale * float(form.width(shown.squares(V, means))[0])
    return missed


def test_a_form_keeps_its_level() -> None:
    """P(miss) ≤ .1: more than 604 of 5,000 has probability 1e-6 at that rate; at 40 % of the width there are more (seed 7)."""
    assert misses_of_a_form(1.0) <= 604
    assert misses_of_a_form(0.4) > 604


@pytest.mark.parametrize("features", [False, True])
def test_what_is_of_second_order_covers_the_truth(features: bool) -> None:
    """β, r and the limits of P̂(V − m)² over 40 draws (seeds 0 to 39) at a level of 1e-8 for all of them together."""
    table = random_table(4, S=6, A=2, d=3 if features else None)
    space, P = space_of(table, features)
    policy, signal = np.eye(2)[np.array([0, 1, 0, 1, 1, 0])], table.reward.ravel()
    V = Chain(space, Sampled(P, np.ones(len(P))), policy).values(signal)[0]
    V -= V.mean()
    before = Chain(space, samples_of(P, 300, 10_000), policy)
    H = 1 / (1 - table.gamma)
    wide = Frozen.of(before, signal, H, np.array([-np.inf, np.inf]))
    level = Shares.of(1e-8 / 40, 6, len(P), 1, 1).second
    for seed in range(40):
        chain = Chain(space, samples_of(P, 4_000, seed), policy)
        found = find(wide, chain, level)
        xi = (P - chain.samples.P) @ V
        assert found.confirmed and np.all(np.abs(xi) <= found.box)
        assert np.abs(found.value - V).max() <= found.off < 0.5 * wide.certain  # it has settled below what is certain
        assert np.all(chain.samples.squares(V, wide.means) <= found.squares(wide.means) + 1e-12)


def test_a_guess_that_is_not_confirmed_proves_nothing() -> None:
    space, P = space_of(random_table(4), False)
    policy, signal = np.eye(3)[np.zeros(6, dtype=int)], random_table(4).reward.ravel()
    before, chain = (Chain(space, samples_of(P, n, n), policy) for n in (300, 4_000))
    level = Shares.of(0.05, 6, len(P), 1, 1).second
    assert not find(Frozen.of(before, signal, 5.0, np.array([-1e-3, 1e-3])), chain, level).confirmed
    assert find(Frozen.of(before, signal, 5.0, np.array([-4.0, 4.0])), chain, level).confirmed


def test_the_levels_add_up_to_delta() -> None:
    S, c, functions, gains = 33, 132, 4, 3
    s = Shares.of(0.02, S, c, functions, gains)
    many = 2 * 2 * SLOPES * functions
    spent = many * c * math.exp(-s.second.box) + many * S * math.exp(-s.second.state) + S * math.exp(-s.advantage)
    spent += S * gains * math.exp(-s.gain) + math.exp(-s.value) + math.exp(-s.paired)
    assert spent == pytest.approx(0.02)


def test_what_is_paired_adds_up_to_the_lagrangian_less_the_reward() -> None:
    """Σ_p V_p = V_□ − σ_0V_r(mix), by the signals alone: with one policy for all its sum is □ − σ_0r."""
    box, reward, weights = np.array([0.4, 0.9]), np.array([0.2, 0.5]), np.array([0.25, 0.75])
    wanted = functions_of(weights, box, reward)
    assert [p for p, _ in wanted] == [0, 0, 1]
    np.testing.assert_allclose(np.sum([u for _, u in wanted[1:]], axis=0), box - reward)
    np.testing.assert_array_equal(wanted[0][1], box)


def test_limits_of_a_known_function_hold_at_every_pair() -> None:
    """Over 100 draws (seeds 0 to 99) at 1e-8 for all of them together; at a twentieth of the width they fail."""
    space, P = space_of(random_table(2), False)
    G, earlier = np.linspace(0, 0.3, 6), samples_of(P, 200, 77)
    level, failed = math.log(100 * len(P) / 1e-8), 0
    for seed in range(100):
        fresh = samples_of(P, 500, seed)
        U = gain_limits(space, earlier, fresh, G, level)
        assert np.all(U >= P @ G)
        failed += bool(np.any(fresh.P @ G + 0.05 * (U - fresh.P @ G) < P @ G))
    assert failed > 30


def planned(instance: Any, samples: int, seed: int = 0) -> tuple[Any, Guide]:
    solution = solve(instance.problem, instance.simulator, samples=samples, seed=seed)
    return solution, guide_of(solution)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings", "samples"),
    [("garnet", {"states": 10, "actions": 3}, 200_000), ("random-linear", {"states": 30, "dim": 4}, 20_000)],
)
def test_the_gap_is_above_the_truth_and_far_below_the_old_one(
    name: str, settings: dict[str, Any], samples: int
) -> None:
    instance = zoo.make(name, **settings)
    solution, guide = planned(instance, samples)
    assert guide.sigma is not None
    plan = Advantages().plan(guide, guide.sigma, samples, 0.02)
    assert plan is not None and plan.counts.sum() <= samples
    fresh = draw_fresh(guide, instance.simulator.metered(), [plan], Request(samples, 9))
    bound = plan.prove(guide.problem, fresh, 0.02)
    assert isinstance(bound, AdvantageBound)
    _, optimum = best_policy(instance.table, guide.sigma)
    reward = float(guide.problem.unit_values_of(mixture_values(instance.table, solution.mixture))[0])
    paired = float(guide.sigma @ optimum) - float(guide.sigma[0]) * reward
    assert paired <= bound.paired <= paired + 0.02 * guide.problem.horizon
    assert float(guide.sigma @ optimum) <= bound.value <= float(guide.sigma @ optimum) + 0.02 * guide.problem.horizon
    other = BY_NAME["all-pairs" if name == "garnet" else "coreset"].plan(guide, guide.sigma, samples, 0.02)
    assert other is not None
    half = 0.05  # of the limits of the value, which pairing does not need
    assert plan.expected_gap(guide.problem, half) < other.expected_gap(guide.problem, half) / 2
    raised = bound.raised(0.1)
    assert isinstance(raised, AdvantageBound)
    assert raised.paired == pytest.approx(bound.paired + 0.1 * (1 + float(guide.sigma[0])))


def test_it_does_not_apply_without_what_it_compares() -> None:
    """No mixture, no weight of the reward, a priced signal that is only observed, or pairs that share their samples."""
    instance = zoo.make("queue", capacity=3)
    _, guide = planned(instance, 4_000)
    assert guide.sigma is not None

    def applies(guide: Guide, sigma: np.ndarray) -> bool:
        return Advantages().plan(guide, sigma, 20_000, 0.02, draft=True) is not None

    assert applies(guide, guide.sigma)
    assert not applies(dataclasses.replace(guide, mixture=None), guide.sigma)
    assert not applies(guide, np.array([0.0, 1.0]))
    A = guide.problem.num_actions
    shared = np.tile(np.arange(A), (guide.problem.num_states or 0, 1))
    same = dataclasses.replace(guide.problem)
    object.__setattr__(same, "stand_ins", shared)
    assert not applies(dataclasses.replace(guide, problem=same), guide.sigma)
