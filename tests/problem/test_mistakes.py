"""Plausible mistakes, each of which ends in a message with a name, a rule, what was found and what to do.

The first list is about problems and simulators, the second about the keywords of ``solve``. None may end in a raw
AttributeError, TypeError or ValueError, whose words are about our code and not about the user's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from saddleback import CMDP, Constraint, FiniteStates, GenerativeModel, Start, Table, solve
from saddleback.errors import InputError, SimulatorError
from saddleback.features import FeatureMatrix
from saddleback.problem.names import ProductStates
from saddleback.problem.spaces import BoxStates
from saddleback.simulators.function import as_simulator, from_function

COST = np.ones((3, 2)) * 0.5
RNG = np.random.default_rng(0)


def problem(**changes: Any) -> CMDP:
    fields: dict[str, Any] = {
        "gamma": 0.9,
        "states": 3,
        "actions": 2,
        "start": 0,
        "reward": np.arange(6.0).reshape(3, 2),
        "constraints": [Constraint("energy", COST, "<=", 5.0)],
    }
    return CMDP(**{**fields, **changes})


def limited(*given: Any, **named: Any) -> CMDP:
    """A problem with one constraint that is wrong."""
    return problem(constraints=[Constraint(*given, **named)])


def answered(returned: Any, **changes: Any) -> Any:
    """A simulator that returns this, asked through the front door and then for three pairs."""
    model = as_simulator(problem(**changes), lambda s, a, rng: returned)
    return model.sample(np.arange(3), np.zeros(3, int), RNG)


def batch(returned: Any, num_signals: int = 0) -> Any:
    """The same of a simulator of arrays."""
    return GenerativeModel(lambda s, a, rng: returned, 3, num_signals).sample(np.arange(3), np.zeros(3, int), RNG)


def used(**changes: Any) -> Any:
    made = problem(**changes)
    return made.utilities(*made.pairs())


OF_PROBLEMS: dict[str, tuple[Callable[[], Any], str]] = {
    # arguments
    "a misspelt keyword": (lambda: problem(gama=0.9), "`gama` .*did you mean gamma"),
    "an unknown keyword": (lambda: problem(colour="red"), "`colour` must be an argument of CMDP"),
    "nothing at all": (CMDP, "`gamma` must be given"),
    "no states": (lambda: CMDP(0.9, 0, 2, reward=COST, constraints=[]), "`states` must be given"),
    "no actions": (lambda: problem(actions=None), "`actions` must be given"),
    "too many arguments": (lambda: CMDP(*range(20)), "`CMDP` must be given at most"),  # type: ignore[arg-type, misc]
    "an argument twice": (lambda: CMDP(0.9, gamma=0.9), "`gamma` must be given once"),  # type: ignore[misc]
    # gamma
    "gamma as text": (lambda: problem(gamma="0.9"), "`gamma` must lie"),
    "gamma of one": (lambda: problem(gamma=1), "`gamma` must lie.*horizon"),
    "gamma in per cent": (lambda: problem(gamma=90), "`gamma` must lie"),
    "gamma as a list": (lambda: problem(gamma=[0.9]), "`gamma` must lie"),
    "no gamma": (lambda: problem(gamma=None), "`gamma` must lie"),
    # states
    "states as text": (lambda: problem(states="3"), "`states` must be a state space"),
    "half a state": (lambda: problem(states=2.5), "`states` must be a whole number"),
    "no state": (lambda: problem(states=0), "`states` must be a whole number of at least 1"),
    "an empty list of states": (lambda: problem(states=[]), "`states` must hold at least one"),
    "a set of states": (lambda: problem(states={"a", "b", "c"}), "`states` must be a state space"),
    "a state twice": (lambda: problem(states=["a", "b", "a"], start="a"), r"`states\[2\]` must differ"),
    "states that cannot be looked up": (
        lambda: problem(states=[{}, {1: 2}, {2: 3}]),
        r"`states\[0\]` must be hashable",
    ),
    "a range that is empty": (lambda: problem(states=range(3, 0)), "`states` must hold at least one"),
    "a factor that is empty": (lambda: problem(states=(range(3), range(0))), r"`states\[1\]` must hold"),
    "a factor as text": (lambda: problem(states=ProductStates(("ab", 3))), r"`states\[0\]` must be a whole number"),
    "a box upside down": (lambda: BoxStates([1.0], [0.0]), "`states` must have low < high"),
    "a box of text": (lambda: BoxStates(["a"], ["b"]), "`states.low` must be numbers"),
    "a number of states as text": (lambda: FiniteStates("3"), "`states` must be a whole number"),  # type: ignore[arg-type]
    "too few names of states": (lambda: problem(state_names=["a", "b"]), "`state_names` must be a list with one name"),
    # actions
    "no action": (lambda: problem(actions=0), "`actions` must be a whole number of at least 1"),
    "an action as text": (lambda: problem(actions="run"), "`actions` must be how many"),
    "an action twice": (lambda: problem(actions=["run", "run"]), r"`actions\[1\]` must differ"),
    "actions that are no names": (lambda: problem(actions=[1, 2]), r"`actions\[0\]` must be text"),
    "two numbers of actions": (lambda: problem(num_actions=3), "`num_actions` must be the number of actions, 2"),
    "one action and a half": (lambda: problem(actions=1.5), "`actions` must be a whole number"),
    "a mask of another shape": (
        lambda: problem(actions_allowed=np.ones((2, 3), bool)),
        "`actions_allowed` must have sh",
    ),
    "a state without an action": (lambda: problem(actions_allowed=[[0], [], [1]]), "state 1` must allow an action"),
    "an allowed action that is unknown": (lambda: problem(actions_allowed=[[0], [2], [1]]), "must be a known action"),
    "a mask of 0 and 1": (lambda: problem(actions_allowed=[[1, 1], [0, 1], [1, 0]]), "at most once.*True and False"),
    "allowed actions of too few states": (
        lambda: problem(actions_allowed=[[0], [1]]),
        "a row for each of the 3 states",
    ),
    "allowed by a function that fails": (lambda: problem(actions_allowed=lambda s: s["x"]), "TypeError.*at state 0"),
    "allowed as a number": (lambda: problem(actions_allowed=1), "`actions_allowed` must say which"),
    # start
    "a start outside": (lambda: problem(start=3), "`start` must lie in the state space"),
    "a start before the first": (lambda: problem(start=-1), "`start` must be a whole number of at least 0"),
    "a start as text": (lambda: problem(start="first"), "`start` must be where"),
    "no start": (lambda: problem(start=None), "`start` must be a whole number"),
    "too few weights": (lambda: problem(start=[0.5, 0.5]), "`start` must have one weight for each of the 3"),
    "weights that do not sum to one": (lambda: problem(start=[0.5, 0.5, 0.5]), "`rho` must sum to 1"),
    "weights of a dict": (lambda: problem(start={0: 0.5, 1: 0.6}), "`start.weights` must be non-negative"),
    "a weight as text": (lambda: problem(start={0: "all"}), r"`start\[0\]` must be a weight"),
    "a start that is a function": (lambda: problem(start=lambda n, rng: np.zeros(n)), "`start`.*Start.sampled"),
    "states of a Start as text": (lambda: problem(start=Start(["a"], [1.0])), "`start.states` must be"),  # type: ignore[arg-type]
    "negative weights": (lambda: Start.over_all([1.5, -0.5]), r"`rho\[1\]`"),
    # reward
    "a reward of another shape": (lambda: problem(reward=np.zeros((2, 3))), r"`reward` must have shape \(3, 2\)"),
    "a ragged reward": (lambda: problem(reward=[[1, 2], [3], [4, 5]]), "`reward` must have rows of one length"),
    "a reward as text": (lambda: problem(reward="high"), "`reward` must be an array of numbers"),
    "a reward with a hole": (lambda: problem(reward=[[1, None]] * 3), "`reward` must be an array of numbers"),
    "a reward that is not finite": (lambda: problem(reward=[[1, np.nan]] * 3), r"`reward\[0, 1\]` must be finite"),
    "a function without a range": (lambda: problem(reward=lambda s, a: s), "`reward` must declare its range"),
    "a function of one argument": (lambda: used(reward=lambda s: s, reward_range=(0, 1)), "function of a state and an"),
    "a function that fails": (
        lambda: used(reward=lambda s, a: 1 / 0, reward_range=(0, 1)),
        "`reward`.*ZeroDivisionErr",
    ),
    "a function that returns nothing": (
        lambda: used(reward=lambda s, a: None, reward_range=(0, 1)),
        "`reward` must ret",
    ),
    "a range upside down": (lambda: problem(reward_range=(9, 0)), "`reward` must have a finite range"),
    "a range of one number": (lambda: problem(reward_range=9), "`reward` must have a finite range"),
    "a range without an end": (lambda: problem(reward_range=(0, np.inf)), "`reward` must have a finite range"),
    "a range that is too small": (lambda: problem(reward_range=(0, 3)), "declared range.*state 2, action 0"),
    "minimise as text": (lambda: problem(minimise="yes"), "`minimise` must be True or False"),
    # constraints
    "one constraint, no list": (lambda: problem(constraints=Constraint("c", COST, "<=", 1)), "`constraints` must be a"),
    "constraints as a dict": (lambda: problem(constraints={"c": COST}), "`constraints` must be a list"),
    "constraints as text": (lambda: problem(constraints="c <= 1"), "`constraints` must be a list"),
    "a constraint as a tuple": (
        lambda: problem(constraints=[("c", COST, "<=", 1)]),
        r"`constraints\[0\]` must be a Con",
    ),
    "no constraint": (lambda: problem(constraints=[]), "`constraints` must hold at least one"),
    "two of one name": (
        lambda: problem(constraints=[Constraint("c", COST, "<=", 1)] * 2),
        "`constraints` must have dis",
    ),
    "a sense of <": (lambda: limited("c", COST, "<", 1), "`c` must have sense"),
    "no sense": (lambda: Constraint("c", COST, 1.0), "`threshold` must be given to Constraint"),  # type: ignore[call-arg, arg-type]
    "sense and threshold swapped": (lambda: limited("c", COST, 1.0, "<="), "`c` must have sense"),
    "no threshold": (lambda: limited("c", COST, "<=", None), "`c` must have a finite threshold"),
    "a threshold that is not a number": (lambda: limited("c", COST, "<=", np.nan), "`c` must have a finite threshold"),
    "a threshold as text": (lambda: limited("c", COST, "<=", "5"), "`c` must have a finite threshold"),
    "unknown units": (lambda: limited("c", COST, "<=", 5, units="per step"), "`c` must have units"),
    "a name that is a number": (lambda: limited(1, COST, "<=", 5), r"`constraints\[0\].name` must be text"),
    "a misspelt keyword of a constraint": (lambda: limited("c", COST, "<=", 5, unit="per-step"), "did you mean units"),
    # features
    "features as an array": (lambda: problem(features=np.ones((3, 2, 4))), "`features` must be a feature map"),
    "features of other actions": (
        lambda: problem(features=FeatureMatrix(np.ones((3, 4, 2)))),
        "the problem's 2 actions",
    ),
    # simulators
    "a simulator that is none": (lambda: as_simulator(problem(), 5), "`simulator` must be a function"),  # type: ignore[arg-type]
    "a table as the simulator": (lambda: as_simulator(problem(), Table), "`simulator` must be a function"),
    "a simulator without rng": (
        lambda: as_simulator(problem(), lambda s, a: s),
        "a state, an action and a random gene",
    ),
    "a simulator with arguments of its own": (
        lambda: as_simulator(problem(), lambda s, a, r, x: s),
        "a state, an action",
    ),
    "a simulator that returns None": (lambda: answered(None), "next state None"),
    "a simulator that returns text": (lambda: answered("1"), "next state '1'"),
    "a simulator that returns a float": (lambda: answered(1.0), "next state 1.0, a float where an integer is wanted"),
    "a simulator that leaves the space": (lambda: answered(7), "next state 7, which is outside"),
    "a simulator of unknown names": (lambda: answered("z", states=list("abc"), start="a"), "declared states.*'a', 'b'"),
    "a reward nobody asked for": (lambda: answered((1, 2.0)), "2 things where no signal is named"),
    "a reward that is missing": (
        lambda: answered(1, reward=None, reward_range=(0, 1)),
        "next state, reward are expected",
    ),
    "signals as text": (lambda: answered((1, "high"), reward=None, reward_range=(0, 1)), "not 2 numbers"),
    "a simulator that fails": (
        lambda: as_simulator(problem(), lambda s, a, rng: s.x),
        "AttributeError.*state 0, action 0",
    ),
    "arrays: a tuple of three": (lambda: batch((np.zeros(3, int), 1, 2)), "a tuple of 3"),
    "arrays: ragged": (lambda: batch([[0], [1, 2], 3]), "they must be alike"),
    "arrays: None": (lambda: batch(None), "must be an integer array"),
    "arrays: floats": (lambda: batch(np.zeros(3)), "must be an integer array"),
    "arrays: too few": (lambda: batch(np.zeros(2, int)), "2 next states for 3 pairs"),
    "arrays: signals as text": (lambda: batch((np.zeros(3, int), "high"), 2), "signals that are not numbers"),
    "arrays: no signals": (lambda: batch(np.zeros(3, int), 2), "no signals although 2 are observed"),
    "a model of nothing": (lambda: GenerativeModel(3, 3), "`sample` must be a function"),  # type: ignore[arg-type]
    "a function of no states": (lambda: from_function(lambda s, a, rng: s, "3"), "`states` must be a state space"),  # type: ignore[arg-type]
}

MODEL = GenerativeModel(lambda s, a, rng: rng.integers(0, 3, len(s)), 3)


def ask(**keywords: Any) -> Any:
    return solve(problem(), MODEL, **{"samples": 3000, **keywords})


OF_SOLVE: dict[str, tuple[Callable[[], Any], str]] = {
    "samples as text": (lambda: ask(samples="many"), "`samples` must be"),
    "half a sample": (lambda: ask(samples=1000.5), "`samples` must be"),
    "no samples": (lambda: ask(samples=0), "`samples` must be"),
    "negative samples": (lambda: ask(samples=-5), "`samples` must be"),
    "samples and epsilon": (lambda: ask(epsilon=0.1), "`samples` must not be given with epsilon"),
    "epsilon of zero": (lambda: ask(samples=None, epsilon=0.0), "`epsilon` must be"),
    "epsilon as text": (lambda: ask(samples=None, epsilon="small"), "`epsilon` must be"),
    "another feasibility": (lambda: ask(feasibility="strictly"), "`feasibility` must be .*strict"),
    "delta of one": (lambda: ask(delta=1.0), "`delta` must"),
    "delta in per cent": (lambda: ask(delta=5), "`delta` must"),
    "a negative seed": (lambda: ask(seed=-1), "`seed` must"),
    "half a seed": (lambda: ask(seed=1.5), "`seed` must"),
    "a seed as text": (lambda: ask(seed="7"), "`seed` must"),
    "a misspelt keyword": (lambda: ask(sample=1000), "`sample` must be an argument.*did you mean samples"),
    "no simulator": (lambda: solve(problem(), samples=3000), "`simulator` must be given"),
    "a simulator that is none": (lambda: solve(problem(), 5, samples=3000), "`simulator` must be"),  # type: ignore[arg-type]
    "a problem that is none": (lambda: solve({"gamma": 0.9}, MODEL, samples=3000), "`problem` must be"),  # type: ignore[arg-type]
    "another problem's simulator": (
        lambda: solve(problem(), GenerativeModel(lambda s, a, rng: s, 4), samples=3000),
        "`simulator` must have the problem's states",
    ),
    "callbacks that are none": (lambda: ask(callbacks=3), "`callbacks` must be"),
    "an executor that is none": (lambda: ask(executor="two"), "`executor` must be"),
}


def expect_four_parts(mistake: Callable[[], Any], says: str) -> None:
    with pytest.raises((InputError, SimulatorError)) as caught:
        mistake()
    error, text = caught.value, str(caught.value)
    if isinstance(error, InputError):
        assert all((error.name, error.rule, error.remedy)), "name, rule and remedy"
        assert re.fullmatch(r"`.+` must .+, got .*; .+[.?…]", text, re.DOTALL), text
    else:
        assert re.fullmatch(r"the simulator .+ \(at state .+, action .+\); .+\.", text, re.DOTALL), text
    assert re.search(says, text, re.DOTALL), text
    assert "object at 0x" not in text, "an address is no explanation"


@pytest.mark.parametrize("name", OF_PROBLEMS)
def test_mistakes_in_problems_and_simulators(name: str) -> None:
    expect_four_parts(*OF_PROBLEMS[name])


@pytest.mark.parametrize("name", OF_SOLVE)
def test_mistakes_in_what_is_asked_of_solve(name: str) -> None:
    expect_four_parts(*OF_SOLVE[name])


def test_the_lists_are_long_enough_and_the_right_way_is_no_mistake() -> None:
    assert len(OF_PROBLEMS) >= 40 and len(OF_SOLVE) >= 15
    assert used().shape == (6, 2)
    assert answered(1).next_states.tolist() == [1, 1, 1]
    assert ask().samples > 0
