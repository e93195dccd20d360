"""Any Gymnasium ``Env`` that can be put into a state, as a simulator.

    for every pair (s, a):   set_state(env, s);   _, reward, terminated, _, info = env.step(a);   s' = get_state(env)

Built-in recipes (:mod:`saddleback.simulators.gymnasium_recipes`) know classic control, toy text and MuJoCo; for any other
environment give ``set_state``, ``get_state`` and ``states``. Without ``get_state`` the observation is the next state: only
right if it shows the whole state, with the digits of float32 if that is what the environment shows.

**Endings are absorbing.** A vector state gets one more, last coordinate *done* ∈ {0, 1}; s' of a step that ends is
(x', 1), and (x, 1) stays as it is for ever, with all signals zero and no call of the environment. Numbered states get one
more state, number n, with the same meaning. ``terminates=False`` leaves both out and makes an ending an error. Truncations
(time limits) are no part of the state and are ignored.

**Randomness.** The generator handed over takes the place of ``env.unwrapped.np_random`` for the call, so the same seed
gives the same samples. For environments that draw from other sources ``reseed=True`` calls ``reset(seed=…)`` instead, once
a call, with a seed drawn from the generator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saddleback.errors import InputError, optional_package, require
from saddleback.problem.spaces import Actions, Array, BoxStates, FiniteStates, States, StateSpace
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.gymnasium_recipes import GetState, SetState, recipe_for
from saddleback.simulators.step_collector import Signals, Tray, check_actions, signal_names

_SKIPPED = ("TimeLimit", "OrderEnforcing", "PassiveEnvChecker")  # wrappers that only cost time here


def from_gymnasium(
    env: Any,
    *,
    signals: Signals = ("reward", "cost"),
    actions: int | Sequence[Any] | Array | None = None,
    set_state: SetState | None = None,
    get_state: GetState | None = None,
    states: StateSpace | int | None = None,
    terminates: bool | None = None,
    reseed: bool = False,
    **options: Any,
) -> GenerativeModel:
    """A simulator from an id (``options`` go to ``gymnasium.make``), a function that makes the environment, or an ``Env``.

    An id or a function is called once in every process; an ``Env`` is used as it is, and must survive pickling to be sent
    to others. ``signals`` are the observed ones in the problem's order: "reward" is the step's, any other name is looked
    up in ``info``, None is for what the problem knows, and ``()`` observes nothing. ``actions`` lists what ``step`` gets
    for action 0, 1, …; a whole number cuts a one-dimensional range of actions into that many, ends included; left out, a
    ``Discrete`` space's own.
    """
    maker, made = _made(env, options)
    recipe = recipe_for(made) if set_state is None else None
    if recipe is not None:
        set_state, get_state = recipe.set_state, get_state or recipe.get_state
        states = recipe.states if states is None else states
        terminates = recipe.terminates if terminates is None else terminates
    if set_state is None:
        known = "CartPole, MountainCar, Pendulum, Acrobot, toy text and MuJoCo are known"
        remedy = f"give a function (env, state) that puts the environment into a state; {known}"
        raise InputError("set_state", "must be given for this environment", type(made.unwrapped).__name__, remedy)
    if states is None:
        remedy = "give BoxStates(low, high) or a number of states"
        raise InputError("states", "must be given with set_state", None, remedy)
    space = FiniteStates(states) if isinstance(states, int) else states
    names = signal_names(signals)
    terminates = True if terminates is None else terminates
    sampler = EnvSampler(
        made, maker, space, names, action_list(made.action_space, actions), set_state, get_state, terminates, reseed
    )
    return GenerativeModel(sampler, with_done(space) if terminates else space, len(names))


def with_done(space: StateSpace) -> StateSpace:
    """The space with one more state, or one more coordinate, for episodes that are over."""
    if isinstance(space, FiniteStates):
        return FiniteStates(space.num + 1)
    return BoxStates(np.append(space.low, 0.0), np.append(space.high, 1.0))


def action_list(space: Any, actions: Any) -> list[Any]:
    """What ``step`` is handed for action 0, 1, …"""
    kind = type(space).__name__
    if actions is None:
        remedy = "give a list of them, or for one dimension how many"
        require(kind == "Discrete", "actions", "must be given unless the action space is Discrete", space, remedy)
        return [int(space.start) + a for a in range(int(space.n))]
    if isinstance(actions, int):
        bounded = kind == "Box" and space.shape == (1,) and bool(np.all(np.isfinite([space.low, space.high])))
        rule = "may be a number, at least 2, for a bounded action space of one dimension only"
        require(bounded and actions > 1, "actions", rule, f"{actions} for {space}", "list the actions")
        actions = np.linspace(space.low, space.high, actions)
    chosen = [np.asarray(a, dtype=space.dtype) if kind == "Box" else a for a in actions]
    for i, a in enumerate(chosen):
        require(bool(space.contains(a)), f"actions[{i}]", f"must be one of {space}", a, "list possible actions only")
    require(len(chosen) > 0, "actions", "must not be empty", actions, "list at least one")
    return chosen


class EnvSampler:
    """One step a pair. Sent elsewhere without its environment where that can be made anew."""

    def __init__(
        self,
        env: Any,
        maker: Callable[[], Any] | None,
        space: StateSpace,
        signals: tuple[str | None, ...],
        actions: list[Any],
        set_state: SetState,
        get_state: GetState | None,
        terminates: bool,
        reseed: bool,
    ):
        self.maker, self.space, self.signals, self.actions = maker, space, signals, actions
        self.set_state, self.get_state, self.terminates, self.reseed = set_state, get_state, terminates, reseed
        self.outer = with_done(space) if terminates else space
        self.env = env
        self.env.reset(seed=0)  # some environments only take a state after a reset

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(self.__dict__)
        if self.maker is not None:
            kept["env"] = None
        return kept

    def __call__(self, states: States, actions: Actions, rng: np.random.Generator) -> Any:
        """One next state per pair, and the signals if there are any."""
        if self.env is None:
            assert self.maker is not None
            self.env = bare(self.maker())
            self.env.reset(seed=0)
        if self.reseed:
            self.env.reset(seed=int(rng.integers(2**31)))
        else:
            self.env.unwrapped.np_random = rng
        check_actions(actions, self.actions)
        tray = Tray(self.outer, states, actions, len(self.signals))
        over = self._over(states)
        return tray.fill(lambda i, state, action: self._step(tray, i, state, self.actions[action], over[i]))

    def _over(self, states: States) -> list[bool]:
        if not self.terminates:
            return [False] * len(states)
        if isinstance(self.space, FiniteStates):
            return (states == self.space.num).tolist()
        flag = states[:, -1]
        for i in np.flatnonzero((flag != 0) & (flag != 1))[:1]:
            rule = "must end in 0 (running) or 1 (done)"
            raise InputError(f"states[{i}]", rule, states[i], "set the last coordinate of candidates and starts to 0")
        return (flag == 1).tolist()

    def _step(self, tray: Tray, i: int, state: Any, action: Any, over: bool) -> None:
        if over:
            tray.put(i, tray.states[i])  # the signals are zero already
            return
        env, finite = self.env, tray.finite
        self.set_state(env, state if finite or not self.terminates else state[:-1])
        observation, reward, terminated, _, info = env.step(action)
        following = observation if self.get_state is None else self.get_state(env)
        if not self.terminates:
            if terminated:
                tray.refuse(i, "ended an episode although terminates=False was given")
            tray.put(i, following)
        elif isinstance(self.space, FiniteStates):
            tray.put(i, self.space.num if terminated else following)
        else:
            tray.put(i, (*following, float(terminated)))
        if self.signals:
            tray.put_observed(i, self.signals, reward, info, "info")


def bare(env: Any) -> Any:
    """The environment without the outermost wrappers that enforce rules of episodes."""
    while type(env).__name__ in _SKIPPED and type(env).__module__.startswith("gymnasium.wrappers"):
        env = env.env
    inner = env
    while inner is not inner.unwrapped:
        rule = "must not reset itself: a step after an ending would be lost"
        require(type(inner).__name__ != "Autoreset", "env", rule, "an Autoreset wrapper", "leave that wrapper out")
        inner = inner.env
    return env


class Maker:
    """``gymnasium.make`` with its arguments, to be carried out anywhere."""

    def __init__(self, name: str, options: dict[str, Any]):
        self.name, self.options = name, options

    def __call__(self) -> Any:
        """A new environment."""
        return optional_package("gymnasium", "gymnasium", "this adapter").make(
            self.name, disable_env_checker=True, **self.options
        )


def _made(env: Any, options: dict[str, Any]) -> tuple[Callable[[], Any] | None, Any]:
    """How to make the environment again (None: not at all), and the environment."""
    if isinstance(env, str):
        maker: Callable[[], Any] = Maker(env, options)
        return maker, bare(maker())
    require(not options, "options", "must only be given with an environment's id", sorted(options), "leave them out")
    if isinstance(env, type) or (callable(env) and not hasattr(env, "step")):
        return env, bare(env())
    good = all(hasattr(env, name) for name in ("step", "reset", "unwrapped", "action_space"))
    rule = "must be a gymnasium.Env, its id, or a function that makes one"
    require(good, "env", rule, type(env).__name__, "see from_function for other simulators")
    return None, bare(env)
