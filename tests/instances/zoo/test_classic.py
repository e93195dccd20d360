from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import saddleback.sampling.value_functions
from saddleback.designs.design import weighted_design
from saddleback.features import PerAction
from saddleback.instances.zoo import Instance, make
from saddleback.instances.zoo.classic_control import TORQUES
from saddleback.problem.policies import GreedyPolicy
from saddleback.sampling.batches import ConsecutiveBatches, Parts, repeated_points
from saddleback.sampling.buffer import MaxDifference, PolicyValue
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import CountedBuffer as Buffer
from saddleback.sampling.counted_buffer import cut
from spelled_out import solve


def ride(
    instance: Instance, choose: object, decisions: int, starts: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Discounted reward and cost of a deterministic ride, and where it ends; of several starts the mean, and the first's end."""
    problem = instance.problem
    x, total, rng = problem.start.states[:1] if starts is None else starts, np.zeros(2), np.random.default_rng(0)
    for t in range(decisions):
        a = choose(x)  # type: ignore[operator]
        total += problem.gamma**t * np.array([signal.at(x, a).mean() for signal in problem.signals])
        x = instance.simulator.sample(x, a, rng).next_states
    return total, x[0]


@pytest.mark.parametrize(("name", "id"), [("mountain-car", "MountainCar-v0"), ("pendulum", "Pendulum-v1")])
def test_decisions_are_held(name: str, id: str) -> None:
    """The simulator's next state against the environment's own, stepped by hand; an angle counts modulo a turn."""
    instance = make(name, hold=4)
    rng = np.random.default_rng(np.random.SeedSequence(5))
    box = instance.simulator.states
    low, high = 0.8 * box.low, np.array([0.2, 0.06]) if name == "mountain-car" else 0.8 * box.high  # type: ignore[union-attr]
    states, actions = rng.uniform(low, high, (20, 2)), rng.integers(0, 3, 20)
    following = instance.simulator.sample(states, actions, rng).next_states
    env = gymnasium.make(id).unwrapped
    env.reset(seed=0)
    for s, a, found in zip(states, actions, following, strict=True):
        env.state = s.copy()  # type: ignore[attr-defined]
        for _ in range(4):
            env.step(int(a) if name == "mountain-car" else np.array([TORQUES[a]], dtype=np.float32))
        expected = np.array(env.state, dtype=float)  # type: ignore[attr-defined]
        if name == "pendulum":
            expected[0] = (expected[0] + np.pi) % (2 * np.pi) - np.pi
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_the_flag_is_the_end() -> None:
    instance = make("mountain-car")
    states, actions = np.array([[0.49, 0.05], [0.55, 0.01]]), np.array([2, 0])
    following = instance.simulator.sample(states, actions, np.random.default_rng(0)).next_states
    assert following[0, 0] >= 0.5 and following[0, 0] < 0.6  # stopped on the way, not after ten steps
    np.testing.assert_array_equal(following[1], states[1])
    u = [signal.at(following, actions) for signal in instance.problem.signals]
    np.testing.assert_array_equal(u, 0.0)  # no reward and no fuel from then on


def test_coasting_needs_no_fuel_and_gets_nowhere() -> None:
    instance = make("mountain-car")
    total, end = ride(instance, lambda x: np.array([1]), 60)
    assert total[1] == 0.0 and total[0] == pytest.approx(-(1 - 0.9**60) * 10) and end[0] < 0.0


def test_the_car_starts_as_in_gymnasium() -> None:
    start = make("mountain-car").problem.start
    assert start.sampler is not None
    drawn = start.sampler(10_000, np.random.default_rng(0))
    assert np.all(drawn[:, 1] == 0.0) and -0.6 <= drawn[:, 0].min() < -0.599 and -0.401 < drawn[:, 0].max() <= -0.4
    env = gymnasium.make("MountainCar-v0")
    own = [env.reset(seed=seed)[0] for seed in range(200)]
    assert all(-0.6 <= x <= -0.4 and v == 0.0 for x, v in own)
    assert make("mountain-car", spread=0.0).problem.start.states.tolist() == [[-0.5, 0.0]]


def promise_and_truth(knots: int, speeds: int, hold: int, gamma: float) -> tuple[float, float]:
    """Value iteration on the interpolated model of the car without a budget, and what its policy gets, over 21 starts."""
    instance = make("mountain-car", knots=knots, speeds=speeds, hold=hold, gamma=gamma)
    problem = instance.problem
    features = problem.features
    assert isinstance(features, PerAction)
    states, actions = problem.pairs()
    following = instance.simulator.sample(states, actions, np.random.default_rng(0)).next_states
    reward = problem.signals[0].at(states, actions)
    theta = reward * problem.horizon
    while True:
        new = reward + problem.gamma * features.maximum(following, theta)
        if np.abs(new - theta).max() < 1e-7:
            break
        theta = new
    starts = np.column_stack([np.linspace(-0.6, -0.4, 21), np.zeros(21)])
    total, _ = ride(instance, lambda x: features.argmax(x, theta), 60, starts)
    return float(features.maximum(starts, theta).mean()), float(total[0])


@pytest.mark.slow
def test_longer_decisions_or_more_knots_mend_the_promise() -> None:
    """Without a budget: with 10 steps a decision 9 x 9 knots promise too much; 20 steps, or 25 knots, mend it."""
    short, long = promise_and_truth(9, 9, 10, 0.95), promise_and_truth(9, 7, 20, 0.9)
    fine = promise_and_truth(25, 25, 10, 0.95)
    print(f"promise and truth: 10 steps {short}, 20 steps {long}, 25 knots {fine}")
    assert short[0] > short[1] + 0.1 * abs(short[1])
    for promise, truth in (long, fine):
        assert promise == pytest.approx(truth, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mountain-car", "pendulum"])
def test_solved_from_the_simulator(name: str) -> None:
    """The car gets to the flag and the pendulum earns more than one that hangs; both spend less than without a budget."""
    budgeted, free = make(name), make(name, budget=100.0)
    values = []
    for instance in (budgeted, free):
        solution = solve(instance.problem, instance.simulator, samples=2_000, seed=0)
        assert solution.mixture is not None
        rides = [
            ride(instance, lambda x, m=member: m.probabilities(x).argmax(axis=1), 150)
            for member in solution.mixture.members
        ]
        values.append(solution.mixture.weights @ np.array([total for total, _ in rides]))
        if name == "mountain-car":
            assert all(end[0] >= 0.5 for _, end in rides)
    idle = ride(budgeted, lambda x: np.array([1]), 150)[0][0]
    assert values[0][0] > idle + 0.2 * abs(idle)
    assert values[0][1] < 0.95 * values[1][1]


def two_buffers() -> tuple[Instance, Buffer, Buffer]:
    """The car's samples held as the few points they are, and point by point."""
    instance = make("mountain-car")
    problem = instance.problem
    design = weighted_design(*problem.pairs(), problem.required_features().at(*problem.pairs()), np.ones(189))
    drawn = collect(instance.simulator, problem, design, 8, seed=0, stream=0)
    counted = cut(drawn, problem, design, 2)
    sizes = np.full(189, 4)
    support = np.concatenate([s.reshape(2, 4, 2) for s in drawn.next_states], axis=1).reshape(-1, 2)
    return (
        instance,
        counted,
        Buffer(design, problem.features, ConsecutiveBatches(2, Parts(sizes)), sizes, support, None, 0),
    )


@pytest.mark.slow
def test_points_that_repeat_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world without noise: one point a pair is held, and every mean is the one over all samples, in pieces or at once."""
    instance, counted, listed = two_buffers()
    features = instance.problem.required_features()
    assert len(counted.support) <= 189 and len(listed.support) == 189 * 8
    assert sum(len(s) for s in counted.samples().next_states) == 189 * 8
    rng = np.random.default_rng(3)
    theta, policy = rng.normal(size=(189, 2)), GreedyPolicy(features, rng.normal(size=189))
    values = MaxDifference(theta, 0 * theta), PolicyValue(policy, theta), PolicyValue(policy, np.eye(189))
    at_once = [b.average(v) for b in (counted, listed) for v in values]
    for found, expected in zip(at_once[:3], at_once[3:], strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        listed.average(values[0]), (listed.expect(0, values[0]) + listed.expect(1, values[0])) / 2
    )
    monkeypatch.setattr(saddleback.sampling.value_functions, "_PIECE", 189 * 50)
    _, counted, listed = two_buffers()
    in_pieces = [b.average(v) for b in (counted, listed) for v in values]
    for found, expected in zip(in_pieces, at_once, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_points_that_do_not_repeat_are_listed() -> None:
    rng = np.random.default_rng(4)
    assert repeated_points([rng.random((100, 2)) for _ in range(3)]) is None
    mixed = [np.repeat(rng.random((1, 2)), 100, axis=0) for _ in range(70)] + [rng.random((9000, 2))]
    assert repeated_points(mixed) is None  # the first pairs are no promise
    found = repeated_points(mixed[:70])
    assert found is not None
    support, position = found
    np.testing.assert_array_equal(support[position(mixed[5])], mixed[5])


def test_features_that_are_held_are_the_same() -> None:
    features = make("mountain-car").problem.features
    assert isinstance(features, PerAction)
    rng = np.random.default_rng(5)
    states, theta = rng.uniform([-1.2, -0.07], [0.6, 0.07], (50, 2)), rng.normal(size=(189, 3))
    held, some = features.held(states), np.array([3, 1, 49])
    np.testing.assert_allclose(held.values(np.arange(50), theta), features.values(states, theta), atol=1e-14)
    np.testing.assert_allclose(held.values(some, theta), features.all(states[some]) @ theta, atol=1e-14)
    np.testing.assert_array_equal(held.all(some), features.all(states[some]))
    np.testing.assert_array_equal(
        held.held(some).argmax(np.arange(3), theta[:, 0]), features.argmax(states[some], theta[:, 0])
    )
