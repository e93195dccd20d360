"""Gen: metering, checks, and streams that do not depend on who draws."""

import numpy as np
import pytest

from saddleback.errors import SimulatorError
from saddleback.problem.spaces import BoxStates, FiniteStates
from saddleback.simulators.generative_model import GenerativeModel, Sampler, Stream, generator

STATES = np.array([0, 1, 2])
ACTIONS = np.array([1, 0, 1])
RNG = np.random.default_rng(0)


def model(function, num_signals=0):
    return GenerativeModel(function, FiniteStates(3), num_signals)


def test_counts_queries():
    gen = model(lambda s, a, rng: s)
    gen.sample(STATES, ACTIONS, RNG)
    gen.sample(STATES[:1], ACTIONS[:1], RNG)
    assert gen.num_queries == 4


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (np.array([0, 1, 3]), "outside the state space"),
        (np.array([0, -1, 2]), "outside the state space"),
        (np.array([0.0, 1.0, 2.0]), "integer array"),
        (np.array([0, 1]), "2 next states for 3"),
        (np.array([[0], [1], [2]]), "integer array"),
    ],
)
def test_refuses_bad_next_states(returned, says):
    with pytest.raises(SimulatorError, match=says) as caught:
        model(lambda s, a, rng: returned).sample(STATES, ACTIONS, RNG, (7, 0, 2, 1))
    assert caught.value.key == (7, 0, 2, 1)


def test_names_the_pair_that_went_wrong():
    with pytest.raises(SimulatorError, match="state 2, action 1, sample 2") as caught:
        model(lambda s, a, rng: np.array([0, 1, 9])).sample(STATES, ACTIONS, RNG, (0, 0, 0, 0))
    assert caught.value.exit_code == 5


def test_wraps_what_the_simulator_raises():
    def broken(states, actions, rng):
        raise ZeroDivisionError("no fuel")

    with pytest.raises(SimulatorError, match="ZeroDivisionError: no fuel"):
        model(broken).sample(STATES, ACTIONS, RNG)


def test_refuses_nan_and_copies_reused_arrays():
    box = GenerativeModel(lambda s, a, rng: s * np.nan, BoxStates([-1.0], [1.0]))
    with pytest.raises(SimulatorError, match="nan"):
        box.sample(np.zeros((2, 1)), np.zeros(2, int), RNG)
    kept = np.zeros(3, dtype=int)

    def reuses(states, actions, rng):
        kept[:] += 1
        return kept

    gen = model(reuses)
    first = gen.sample(STATES, ACTIONS, RNG).next_states
    gen.sample(STATES, ACTIONS, RNG)
    assert first.tolist() == [1, 1, 1]


def test_observed_signals():
    good = model(lambda s, a, rng: (s, np.ones((3, 2))), 2).sample(STATES, ACTIONS, RNG)
    assert good.signals.shape == (3, 2)
    with pytest.raises(SimulatorError, match="no signals"):
        model(lambda s, a, rng: s, 2).sample(STATES, ACTIONS, RNG)
    with pytest.raises(SimulatorError, match="shape"):
        model(lambda s, a, rng: (s, np.ones((3, 1))), 2).sample(STATES, ACTIONS, RNG)
    with pytest.raises(SimulatorError, match="column 1"):
        model(lambda s, a, rng: (s, np.array([[0, np.inf]] * 3)), 2).sample(STATES, ACTIONS, RNG)


def test_streams_differ_and_repeat():
    draws = {k: generator(3, *k).random(4).tobytes() for k in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]}
    assert len(set(draws.values())) == 4
    assert generator(3, 0, 0, 0).random(4).tobytes() == draws[0, 0, 0]
    assert len(set(Stream)) == len({int(s) for s in Stream})


def test_sampler_meters_its_own_stream():
    gen = model(lambda s, a, rng: rng.integers(0, 3, len(s)))
    one, two = Sampler(gen, 0), Sampler(gen, 0)
    first = [one.draw(STATES, ACTIONS).next_states.tolist() for _ in range(3)]
    second = [two.draw(STATES, ACTIONS).next_states.tolist() for _ in range(3)]
    assert first == second
    assert one.num_queries == 9
    assert gen.num_queries == 18
