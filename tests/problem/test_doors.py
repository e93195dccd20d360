"""Users' code never holds our arrays, and we never keep theirs: a test a door, with code that writes into all it gets.

Vandals compute the right answer first, then write into every array in sight. An answer that differs from the honest one's means
that an array of ours was in sight.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from saddleback import CMDP, BoxStates, Constraint, FeatureFunction, FeatureMatrix, GenerativeModel, Start, Table, solve
from saddleback.errors import InputError, SaddlebackError, SimulatorError
from saddleback.features import Frame, Joined, PerAction, Stacked, StateFunction, StateMap, Tiles, WithConstant
from saddleback.features.base import FeatureMap, StateMatrix
from saddleback.problem.policies import GreedyPolicy, MixturePolicy, TabularPolicy
from saddleback.problem.signals import LoopedMap
from saddleback.problem.user_code import frozen
from saddleback.runs.events import tell
from saddleback.sampling.trajectories import act
from saddleback.simulators.function import as_simulator
from saddleback.solving.prepared import GuardedPolicy, canonical

BOX = BoxStates([0.0], [1.0])


def vandal(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which then spoils every array it was given, and whatever it returned before."""
    returned: list[Any] = []

    def spoil(x: Any) -> None:
        if isinstance(x, np.ndarray):
            x[...] = 0.123 if x.dtype.kind == "f" else 0

    def spoiling(*given: Any) -> Any:
        found = function(*given)
        for x in (*given, *returned):
            spoil(x)
        returned[:] = [found]
        return found

    return spoiling


def move(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    return np.clip(0.7 * states + 0.2 * actions[:, None] + 0.1 * rng.random(states.shape), 0, 1)


def phi(states: Any, actions: Any) -> Any:
    x = states[:, 0]
    return np.column_stack([np.ones(len(x)), x, actions * 1.0, x * actions])


def starts(number: int, rng: np.random.Generator) -> Any:
    return rng.random((number, 1))


HONEST: dict[str, Callable[..., Any]] = {
    "features": phi,
    "reward": lambda s, a: s[:, 0] + 0.0,
    "cost": lambda s, a: a * 1.0,
    "simulator": move,
    "start": starts,
    "callback": lambda event: None,
}


def answer(**changed: Any) -> Any:
    """A small solve with all kinds of users' code in it."""
    code = {**HONEST, **changed}
    problem = CMDP(
        gamma=0.8,
        start=Start.sampled(code["start"], 16),
        num_actions=2,
        states=BOX,
        reward=code["reward"],
        reward_range=(0, 1),
        constraints=[Constraint("cost", code["cost"], "<=", 2.0, range=(0, 1))],
        features=FeatureFunction(code["features"], 4, 2),
    )
    events: list[Any] = []
    model = GenerativeModel(code["simulator"], BOX)
    found = solve(problem, model, samples=4000, seed=3, callbacks=[code["callback"], events.append])
    assert found.certificate is not None
    return found.value, found.constraints, found.certificate.value, found.certificate.constraints, events[-1]


@pytest.fixture(scope="module")
def honest() -> Any:
    return answer()


@pytest.mark.slow
@pytest.mark.parametrize("door", sorted(HONEST))
def test_code_that_writes_into_what_it_gets_changes_nothing(door: str, honest: Any) -> None:
    spoil = HONEST[door]
    if door == "callback":

        def spoil(event: Any) -> None:  # type: ignore[misc]
            for value in event.values():
                value.clear() if isinstance(value, (list, dict)) else None
            event.clear()

        assert answer(callback=spoil) == honest
        return
    assert answer(**{door: vandal(spoil)}) == honest


def test_functions_of_one_pair_get_states_of_their_own() -> None:
    states, actions = np.linspace(0.1, 0.9, 4)[:, None], np.zeros(4, dtype=np.int64)
    before = states.copy()
    LoopedMap(vandal(lambda s, a: float(s[0])))(states, actions)
    np.testing.assert_array_equal(states, before)


def test_an_array_that_is_returned_again_and_again_is_copied() -> None:
    one = np.zeros((3, 4))

    def reusing(states: Any, actions: Any) -> Any:
        one[...] = phi(states, actions)
        return one

    features, a = FeatureFunction(reusing, 4, 2), np.zeros(3, dtype=np.int64)
    first = features.at(np.full((3, 1), 0.25), a)
    features.at(np.full((3, 1), 0.75), a)
    assert first[0, 1] == 0.25


# ---- objects of a user's ------------------------------------------------------------------------------------------------


class Vandals(FeatureMap):
    """A feature map of one's own that writes into everything."""

    dim, num_actions = 4, 2

    def at(self, states: Any, actions: Any) -> Any:
        return vandal(phi)(states, actions)

    def values(self, states: Any, theta: Any) -> Any:
        return vandal(lambda s, t: FeatureFunction(phi, 4, 2).values(s, t))(states, theta)


class VandalOfStates(StateMap):
    """The same, of states alone."""

    dim, constant = 1, False

    def at(self, states: Any) -> Any:
        return vandal(lambda s: s + 0.0)(states)


def problem_with(features: Any) -> CMDP:
    known: dict[str, Any] = {"reward": HONEST["reward"], "reward_range": (0, 1), "features": features}
    cost = Constraint("cost", HONEST["cost"], "<=", 2.0, range=(0, 1))
    return CMDP(0.8, [[0.3]], 2, BOX, constraints=[cost], **known)


@pytest.mark.parametrize(
    "features",
    [
        Vandals(),
        WithConstant(Vandals()),
        Stacked([Vandals(), FeatureFunction(phi, 4, 2)]),
        PerAction(VandalOfStates(), 2),
        PerAction(Joined([VandalOfStates(), Tiles(BOX, 2, 1)]), 2),
        PerAction(StateFunction(vandal(lambda s: s + 0.0), 1), 2),
        PerAction(Tiles(Frame([0.0], [1.0], vandal(lambda s: s + 0.0)), 2, 1), 2),
    ],
    ids=lambda f: type(f).__name__,
)
def test_feature_maps_of_ones_own_get_copies(features: Any) -> None:
    known = problem_with(features).required_features()
    states, actions, theta = np.linspace(0.1, 0.9, 5)[:, None], np.arange(5) % 2, np.ones(known.dim)
    before = [x.copy() for x in (states, actions, theta)]
    first = known.at(states, actions)
    kept = first.copy()
    known.values(states, theta), known.maximum(states, theta), known.argmax(states, theta), known.all(states)
    for x, y in zip((states, actions, theta), before, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(first, kept)


class VandalPolicy:
    """A policy of one's own; ``action`` is what it answers."""

    num_actions = 2

    def __init__(self, action: Any = 1):
        self.action = action

    def probabilities(self, states: Any) -> Any:
        return vandal(lambda s: np.tile([0.0, 1.0], (len(s), 1)))(states)

    def act(self, states: Any, rng: np.random.Generator) -> Any:
        return vandal(lambda s: np.full(len(s), self.action))(states)

    def mean_features(self, features: Any, states: Any) -> Any:
        return vandal(lambda s: features.at(s, np.ones(len(s), dtype=np.int64)))(states)

    def key(self) -> bytes:
        return b"vandal"


def test_policies_of_ones_own_get_copies() -> None:
    policy = canonical(
        problem_with(FeatureFunction(phi, 4, 2)), VandalPolicy()
    )  # every policy of a solver goes through it
    states = np.linspace(0.1, 0.9, 5)[:, None]
    before = states.copy()
    assert policy.act(states, np.random.default_rng(0)).tolist() == [1] * 5
    policy.probabilities(states)
    policy.mean_features(FeatureFunction(phi, 4, 2), states)
    act(MixturePolicy.of([policy], np.ones(1)), np.zeros(5, dtype=np.int64), states, np.random.default_rng(0))
    np.testing.assert_array_equal(states, before)


@pytest.mark.parametrize("action", [2, -1, 0.5, True])
def test_a_policy_that_answers_with_no_action_is_refused(action: Any) -> None:
    with pytest.raises(InputError, match="must give one of the actions 0 to 1"):
        GuardedPolicy(VandalPolicy(action)).act(np.zeros((3, 1)), np.random.default_rng(0))


# ---- arrays of a user's -------------------------------------------------------------------------------------------------


def test_arrays_that_are_changed_afterwards_change_nothing() -> None:
    """Even through ``dataclasses.replace``, which reads again what was given."""
    S, A = 3, 2
    rng = np.random.default_rng(0)
    P, reward, costs = rng.dirichlet(np.ones(S), (S, A)), rng.random((S, A)), rng.random((1, S, A))
    sparse, rho, features = scipy.sparse.csr_array(P.reshape(S * A, S)), np.full(S, 1 / 3), rng.random((S, A, 4))
    low, high, pool = np.zeros(1), np.ones(1), (rng.random((8, 1)), np.arange(8) % 2)
    at, weights, table, psi = np.array([0, 1]), np.array([0.5, 0.5]), np.array([0, 1, 0]), rng.random((S, 2))
    listed = [Constraint("c", costs[0], ">=", 0.1)]
    cmdp = CMDP(0.5, Start(at, weights), A, S, reward, listed, features=FeatureMatrix(features))
    kept = [Table.of(p, reward, costs, [0.1], gamma=0.5, rho=rho, phi=features) for p in (P, sparse)]
    box = BoxStates(low, high)
    known: dict[str, Any] = {"reward": HONEST["reward"], "reward_range": (0, 1), "candidates": pool}
    cost = Constraint("cost", HONEST["cost"], "<=", 2.0, range=(0, 1))
    points = CMDP(0.8, [[0.3]], 2, box, constraints=[cost], features=FeatureFunction(phi, 4, 2), **known)
    policy, greedy = TabularPolicy.deterministic(table, A), GreedyPolicy(FeatureMatrix(features), theta := np.ones(4))
    mixture, map_of_states = MixturePolicy((policy,), weight := np.ones(1)), StateMatrix(psi)

    def all_of_it() -> Any:
        again = dataclasses.replace(cmdp, name="again")
        pairs = cmdp.pairs()
        return [
            *(x.tolist() for p in (cmdp, again) for x in (p.utilities(*pairs), p.start.states, p.start.weights)),
            *(t.P.toarray().tolist() for t in kept),
            *(x.tolist() for t in kept for x in (t.reward, t.constraints, t.rho, t.problem().utilities(*pairs))),
            *(x.tolist() for x in (*points.pairs(), box.low, box.high, policy.table, mixture.weights, greedy.theta)),
            *(f.at(*pairs).tolist() for f in (cmdp.required_features(), kept[0].problem().required_features())),
            map_of_states.at(np.arange(S)).tolist(),
            len(cmdp.constraints),
        ]

    before = all_of_it()
    arrays = [P, reward, costs, sparse.data, rho, features, low, high, *pool, at, weights, table, psi, theta, weight]
    for x in (*arrays, sparse.indices):
        x[...] = 0
    listed.clear()
    assert all_of_it() == before


def test_what_is_kept_cannot_be_made_writeable() -> None:
    given = np.arange(6.0).reshape(2, 3).T
    kept = frozen(given)
    np.testing.assert_array_equal(kept, given)
    assert frozen(kept) is kept and frozen(kept[:2]) is not kept
    with pytest.raises(ValueError, match="WRITEABLE"):
        kept.flags.writeable = True


def test_every_listener_has_an_event_of_its_own() -> None:
    seen: list[Any] = []
    tell([lambda event: event["values"].clear(), seen.append], {"values": [1, 2]})
    assert seen == [{"values": [1, 2]}]


# ---- what is no array of numbers ----------------------------------------------------------------------------------------


def hidden(x: Any) -> Any:
    """The same with its first entry masked."""
    return np.ma.array(x, mask=np.arange(np.size(x)).reshape(np.shape(x)) == 0)


@pytest.mark.parametrize("door", ["features", "reward", "cost", "simulator", "start"])
def test_what_lies_under_a_mask_is_no_value(door: str) -> None:
    with pytest.raises(SaddlebackError, match="masked"):
        answer(**{door: lambda *given: hidden(HONEST[door](*given))})


def test_arrays_with_masked_entries_are_refused() -> None:
    P, reward, cost = np.full((3, 2, 3), 1 / 3), np.zeros((3, 2)), np.ones((1, 3, 2))
    limit = [Constraint("c", cost[0], ">=", 0.1)]
    refused: list[Callable[[], Any]] = [
        lambda: CMDP(0.5, 0, 2, 3, hidden(reward), limit),
        lambda: CMDP(0.5, 0, 2, 3, reward, [Constraint("c", hidden(cost[0]), ">=", 0.1)]),
        lambda: CMDP(0.5, hidden(np.full(3, 1 / 3)), 2, 3, reward, limit),
        lambda: CMDP(0.5, Start(hidden(np.array([0, 1])), np.array([0.5, 0.5])), 2, 3, reward, limit),
        lambda: CMDP(0.5, 0, 2, 3, reward, limit, candidates=(hidden(np.arange(3)), np.zeros(3, dtype=np.int64))),
        lambda: FeatureMatrix(hidden(np.ones((3, 2, 4)))),
        lambda: Table.of(hidden(P), reward, cost, [0.1], gamma=0.5, rho=np.full(3, 1 / 3)),
        lambda: Table.of(P, hidden(reward), cost, [0.1], gamma=0.5, rho=np.full(3, 1 / 3)),
    ]
    for make in refused:
        with pytest.raises(InputError, match="masked"):
            make()


@pytest.mark.parametrize("given", ["1.5", b"1", 1 + 2j, np.complex128(1), np.datetime64("2026-01-01"), np.ma.masked])
@pytest.mark.parametrize("batched", [False, True])
def test_signals_that_are_no_numbers_are_not_made_numbers(given: Any, batched: bool) -> None:
    """By NumPy, which reads text, drops imaginary parts and counts days."""
    limit = Constraint("c", None, ">=", 0.1, range=(0, 1e6))
    problem = CMDP(0.5, 0, 2, 3, None, [limit], reward_range=(0, 1e6))

    def step(s: Any, a: Any, rng: np.random.Generator) -> Any:
        return (s, [given] * len(s), [0.5] * len(s)) if batched else (s, given, 0.5)

    with pytest.raises(SimulatorError, match=r"signals|raised"):
        as_simulator(problem, step, batched=batched).sample(
            np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), np.random.default_rng(0)
        )


@pytest.mark.parametrize("raised", [SystemExit(0), GeneratorExit(), ZeroDivisionError()], ids=repr)
def test_objects_of_ones_own_that_fail_are_named(raised: BaseException) -> None:
    """They do not end the program, with or without a word."""

    class Failing(Vandals):
        def at(self, states: Any, actions: Any) -> Any:
            raise raised

    class FailingPolicy(VandalPolicy):
        def act(self, states: Any, rng: np.random.Generator) -> Any:
            raise raised

    states, name = np.zeros((2, 1)), type(raised).__name__
    with pytest.raises(InputError, match=f"`Failing` must not fail.*`at` that raised {name}"):
        problem_with(Failing()).required_features().at(states, np.zeros(2, dtype=np.int64))
    with pytest.raises(InputError, match=f"`FailingPolicy` must not fail.*`act` that raised {name}"):
        GuardedPolicy(FailingPolicy()).act(states, np.random.default_rng(0))
