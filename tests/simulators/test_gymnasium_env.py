"""Gymnasium environments as simulators: recipes, endings, signals, randomness, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest

from saddleback.errors import InputError, SimulatorError
from saddleback.problem.spaces import BoxStates, FiniteStates
from saddleback.sampling.executors.shipping import pack, unpack
from saddleback.simulators import from_function, from_gymnasium
from saddleback.simulators.gymnasium_recipes import recipe_for
from simulators.one_problem import QueueEnv, WithEffort, set_length

NOTHING: dict[str, Any] = {"signals": ()}
CLASSIC: dict[str, dict[str, Any]] = {
    "CartPole-v1": {},
    "MountainCar-v0": {},
    "MountainCarContinuous-v0": {"actions": 5},
    "Pendulum-v1": {"actions": [[-2.0], [0.0], [2.0]]},
    "Acrobot-v1": {},
}


def trajectory(name: str, options: dict[str, Any], steps: int, seed: int) -> Any:
    """States, actions and what came of them in the environment itself, run as an agent would; endings begin anew."""
    env = gymnasium.make(name, max_episode_steps=10**6)
    recipe = recipe_for(env)
    assert recipe is not None
    model = from_gymnasium(name, signals=("reward", None), **options)
    choices = model._sample.actions  # type: ignore[attr-defined]
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    rows = []
    for _ in range(steps):
        before = np.array(recipe.get_state(env), dtype=np.float64)
        action = int(rng.integers(len(choices)))
        _, reward, terminated, _, _ = env.step(choices[action])
        rows.append((before, action, np.array(recipe.get_state(env), dtype=np.float64), float(reward), terminated))
        if terminated or rng.random() < 0.05:
            env.reset()
    before, actions, after, rewards, ended = (np.array(column) for column in zip(*rows, strict=True))
    if recipe.terminates:
        before, after = np.column_stack([before, np.zeros(steps)]), np.column_stack([after, ended])
    return model, before, actions, after, rewards


@pytest.mark.parametrize("name", CLASSIC)
def test_a_recipe_repeats_an_agent_s_run_to_the_last_bit(name: str) -> None:
    """Each step, set up from the state alone and in any order, gives what it gave within the run."""
    model, before, actions, after, rewards = trajectory(name, CLASSIC[name], 400, seed=1)
    order = np.random.default_rng(2).permutation(len(actions))
    if name == "MountainCarContinuous-v0":  # the first step of an episode is reckoned in float64, all others in float32
        order = order[np.all(before[order] == before[order].astype(np.float32), axis=1)]
        assert len(order) > 300
    drawn = model.sample(before[order], actions[order], np.random.default_rng(0))
    if name == "Pendulum-v1":  # the run's angle is not wrapped
        np.testing.assert_allclose(drawn.next_states, after[order], rtol=0, atol=1e-12)
        np.testing.assert_allclose(drawn.signals[:, 0], rewards[order], rtol=0, atol=1e-12)
    else:
        np.testing.assert_array_equal(drawn.next_states, after[order])
        np.testing.assert_array_equal(drawn.signals[:, 0], rewards[order])


def mountain_car(x: np.ndarray, action: int, rng: Any) -> tuple[float, float, float]:
    position, velocity, done = x.tolist()
    if done:
        return position, velocity, 1.0
    velocity = min(max(velocity + ((action - 1) * 0.001 + math.cos(3 * position) * -0.0025), -0.07), 0.07)
    position = min(max(position + velocity, -1.2), 0.6)
    velocity = 0.0 if position == -1.2 and velocity < 0 else velocity
    return position, velocity, float(position >= 0.5 and velocity >= 0)


def test_mountain_car_is_the_car_of_the_book() -> None:
    """The same car written down as a function: the same next states, endings included, to the last bit."""
    model = from_gymnasium("MountainCar-v0", **NOTHING)
    rng = np.random.default_rng(4)
    states = np.column_stack([rng.uniform(-1.2, 0.6, 2000), rng.uniform(-0.07, 0.07, 2000), rng.random(2000) < 0.1])
    actions = rng.integers(0, 3, 2000)
    drawn = model.sample(states, actions, rng).next_states
    other = from_function(mountain_car, model.states).sample(states, actions, rng).next_states
    np.testing.assert_array_equal(drawn, other)
    assert 50 < drawn[:, 2].sum() - states[:, 2].sum() < 500  # some end in this step


def test_what_is_over_stays_over_and_costs_nothing() -> None:
    model = from_gymnasium("MountainCar-v0", signals=("reward", None))
    states = np.array([[0.55, 0.01, 1.0], [0.49, 0.05, 0.0], [-0.5, 0.0, 0.0]])
    drawn = model.sample(states, np.array([2, 2, 2]), np.random.default_rng(0))
    assert drawn.next_states[0].tolist() == [0.55, 0.01, 1.0]
    assert drawn.next_states[:, 2].tolist() == [1, 1, 0]
    assert drawn.signals is not None and drawn.signals.tolist() == [[0, 0], [-1, 0], [-1, 0]]
    finite = from_gymnasium("FrozenLake-v1", signals=("reward", None), is_slippery=False)
    assert finite.states == FiniteStates(17)
    drawn = finite.sample(np.array([14, 16, 4]), np.array([2, 2, 2]), np.random.default_rng(0))
    assert drawn.next_states.tolist() == [16, 16, 16]
    assert drawn.signals is not None and drawn.signals[:, 0].tolist() == [1, 0, 0]


def test_cart_pole_forgets_that_it_fell() -> None:
    """Steps after an ending pay nothing in the environment; put into a standing state, the next one pays again."""
    model = from_gymnasium("CartPole-v1", signals=("reward", None))
    falls, stands = [0.0, 0.0, 0.3, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]
    drawn = model.sample(np.array([falls, falls, stands]), np.zeros(3, int), np.random.default_rng(0))
    assert drawn.signals is not None and drawn.signals[:, 0].tolist() == [1, 1, 1]
    assert drawn.next_states[:, -1].tolist() == [1, 1, 0]


def test_float32_bounds_are_taken_as_float32() -> None:
    """At full speed MountainCarContinuous stores 0.07 as float32, which is more than 0.07."""
    model = from_gymnasium("MountainCarContinuous-v0", actions=3, **NOTHING)
    state = np.array([[0.59, 0.07, 0.0]])
    drawn = model.sample(state, np.array([2]), np.random.default_rng(0)).next_states
    assert drawn[0, :2].tolist() == [float(np.float32(0.6)), float(np.float32(0.07))]
    assert drawn[0, 1] > 0.07


def test_full_precision_is_kept() -> None:
    """The state that an observation would round to float32."""
    model = from_gymnasium("MountainCar-v0", **NOTHING)
    state = np.array([[-0.5, 0.001, 0.0]])
    x = model.sample(state, np.array([0]), np.random.default_rng(0)).next_states
    assert x[0, 0] != np.float32(x[0, 0])
    rounded = from_gymnasium(
        "MountainCar-v0",
        set_state=lambda env, s: setattr(env.unwrapped, "state", s),
        states=BoxStates([-2, -1], [1, 1]),
        **NOTHING,
    )
    y = rounded.sample(state, np.array([0]), np.random.default_rng(0)).next_states
    assert y[0, 0] == np.float32(x[0, 0])


class Noisy(gymnasium.Env[np.ndarray, int]):
    """A walk with noise, from its own generator or from one that nobody knows of; it counts its steps."""

    action_space = gymnasium.spaces.Discrete(2, start=5)
    observation_space = gymnasium.spaces.Box(-100, 100, (1,), np.float64)

    def __init__(self, secret: bool = False, memory: bool = False):
        self.secret, self.memory, self.steps = secret, memory, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.own = np.random.default_rng(seed)
        self.x = 0.0
        return np.array([0.0]), {}

    def step(self, action: int) -> Any:
        assert action in (5, 6)
        self.steps += 1
        self.x += (self.own if self.secret else self.np_random).normal() + action + self.memory * self.steps
        return np.array([self.x]), self.x, False, True, {"cost": abs(self.x), "price": 2.0}


def set_x(env: Any, state: Any) -> None:
    env.unwrapped.x = float(state[0])


WALK: dict[str, Any] = {"set_state": set_x, "states": BoxStates([-1e3], [1e3]), "terminates": False}


@pytest.mark.parametrize("secret", [False, True])
def test_the_same_seed_gives_the_same_samples(secret: bool) -> None:
    model = from_gymnasium(Noisy(secret), reseed=secret, **WALK)
    pairs = np.zeros((40, 1)), np.arange(40) % 2
    one, again, other = (model.sample(*pairs, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.next_states, again.next_states)
    np.testing.assert_array_equal(one.signals, again.signals)
    assert not np.any(one.next_states == other.next_states)
    assert len(np.unique(one.next_states)) == 40


def test_a_secret_generator_is_only_reached_by_reseeding() -> None:
    """The negative control of the test above."""
    model = from_gymnasium(Noisy(secret=True), **WALK)
    pairs = np.zeros((40, 1)), np.zeros(40, int)
    one, again = (model.sample(*pairs, np.random.default_rng(1)).next_states for _ in range(2))
    assert not np.any(one == again)


def test_signals_come_from_info_by_name() -> None:
    model = from_gymnasium(Noisy, signals=("reward", "price", None, "cost"), **WALK)
    drawn = model.sample(np.zeros((3, 1)), np.zeros(3, int), np.random.default_rng(0))
    x = drawn.next_states[:, 0]
    np.testing.assert_array_equal(drawn.signals, np.column_stack([x, np.full(3, 2.0), np.zeros(3), np.abs(x)]))


def test_time_limits_and_other_truncations_are_ignored() -> None:
    short = WithEffort(gymnasium.make("FrozenLake-v1", max_episode_steps=2))
    model = from_gymnasium(short)
    drawn = model.sample(np.zeros(20, int), np.ones(20, int), np.random.default_rng(0))
    assert set(drawn.next_states.tolist()) == {0, 1, 4}
    assert drawn.signals is not None and np.all(drawn.signals[:, 1] == 0.25)


def test_actions_of_a_range() -> None:
    model = from_gymnasium("Pendulum-v1", actions=5, **NOTHING)
    chosen = model._sample.actions  # type: ignore[attr-defined]
    assert [a.tolist() for a in chosen] == [[-2], [-1], [0], [1], [2]]
    assert all(a.dtype == np.float32 for a in chosen)


def test_pendulum_angles_are_wrapped() -> None:
    model = from_gymnasium("Pendulum-v1", actions=3, **NOTHING)
    drawn = model.sample(np.array([[math.pi, 8.0], [-math.pi, -8.0]]), np.array([2, 0]), np.random.default_rng(0))
    assert drawn.next_states[:, 0] == pytest.approx([-math.pi + 0.4, math.pi - 0.4])


@pytest.mark.parametrize("name", [*CLASSIC, "FrozenLake-v1"])
def test_an_environment_by_name_is_made_anew_elsewhere(name: str) -> None:
    model = from_gymnasium(name, **NOTHING, **CLASSIC.get(name, {}))
    packed = pack(model.sample)
    assert b"EnvSampler" in packed and len(packed) < 5000  # no environment inside
    box = model.states
    states = np.arange(16) if isinstance(box, FiniteStates) else np.zeros((16, box.dim))
    one, other = (f(states, np.arange(16) % 2, np.random.default_rng(3)) for f in (model.sample, unpack(packed)))
    np.testing.assert_array_equal(one.next_states, other.next_states)


REFUSED: dict[str, tuple[Any, list[str]]] = {
    "no recipe": (lambda: from_gymnasium(QueueEnv), ["set_state", "QueueEnv", "CartPole"]),
    "no states": (lambda: from_gymnasium(QueueEnv, set_state=set_length), ["states", "BoxStates"]),
    "actions": (lambda: from_gymnasium("Pendulum-v1"), ["actions", "Discrete", "Box"]),
    "too strong": (lambda: from_gymnasium("Pendulum-v1", actions=[[0.0], [3.0]]), ["actions[1]", "[3.]"]),
    "one action": (lambda: from_gymnasium("Pendulum-v1", actions=1), ["actions", "at least 2"]),
    "counted": (lambda: from_gymnasium("CartPole-v1", actions=2), ["actions", "one dimension"]),
    "no actions": (lambda: from_gymnasium("CartPole-v1", actions=[]), ["actions", "empty"]),
    "fickle": (lambda: from_gymnasium("Taxi-v4", fickle_passenger=True), ["fickle_passenger", "memory"]),
    "autoreset": (
        lambda: from_gymnasium(gymnasium.wrappers.Autoreset(gymnasium.make("CartPole-v1"))),
        ["reset itself", "Autoreset"],
    ),
    "options": (lambda: from_gymnasium(Noisy(), secret=True, **WALK), ["options", "secret"]),
    "no env": (lambda: from_gymnasium(3), ["gymnasium.Env", "int"]),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_cannot_be_is_refused(fault: str) -> None:
    make, words = REFUSED[fault]
    with pytest.raises(InputError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gymnasium", None)
    with pytest.raises(InputError, match=r'pip install "saddleback\[gymnasium\]"'):
        from_gymnasium("CartPole-v1")


def test_a_missing_cost_is_named_with_its_pair() -> None:
    model = from_gymnasium("FrozenLake-v1")
    with pytest.raises(SimulatorError, match=r"no 'cost' in info \(it has 'prob'\).*state 2, action 1, sample 1"):
        model.sample(np.array([16, 2]), np.array([0, 1]), np.random.default_rng(0))


def test_an_ending_that_was_ruled_out_is_an_error() -> None:
    model = from_gymnasium("FrozenLake-v1", terminates=False, is_slippery=False, **NOTHING)
    with pytest.raises(SimulatorError, match=r"terminates=False.*state 14, action 2, sample 1"):
        model.sample(np.array([0, 14]), np.array([2, 2]), np.random.default_rng(0))


def test_actions_that_do_not_exist_are_refused() -> None:
    model = from_gymnasium("MountainCar-v0", **NOTHING)
    for action in (3, -1):
        with pytest.raises(InputError, match=r"actions\[1\].*0 to 2.*num_actions=3"):
            model.sample(np.zeros((2, 3)), np.array([0, action]), np.random.default_rng(0))


def test_half_done_is_refused() -> None:
    model = from_gymnasium("MountainCar-v0", **NOTHING)
    with pytest.raises(InputError, match=r"states\[1\].*running.*0\.5"):
        model.sample(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.5]]), np.zeros(2, int), np.random.default_rng(0))


@pytest.mark.parametrize("name", ["InvertedPendulum-v5", "HalfCheetah-v5"])
def test_mujoco_is_put_into_its_state_whole(name: str) -> None:
    """In any order, and whatever came before: the solver's warm start must not tell."""
    pytest.importorskip("mujoco")
    corners = np.array([[1.0], [-1.0]]) * np.ones(gymnasium.make(name).action_space.shape)  # type: ignore[arg-type]
    model = from_gymnasium(name, signals=("reward", None), actions=corners)
    assert isinstance(model.states, BoxStates)
    rng = np.random.default_rng(0)
    states = np.column_stack([rng.normal(size=(60, model.states.dim - 1)) * 0.1, np.zeros(60)])
    actions, order = np.arange(60) % 2, rng.permutation(60)
    one = model.sample(states, actions, np.random.default_rng(1))
    other = model.sample(states[order], actions[order], np.random.default_rng(1))
    np.testing.assert_array_equal(one.next_states[order], other.next_states)
    assert one.signals is not None and other.signals is not None
    np.testing.assert_array_equal(one.signals[order], other.signals)
    assert not np.array_equal(one.next_states, states)
