"""Gymnasium's functional environments (``gymnasium.experimental.functional.FuncEnv``) as simulators.

A FuncEnv carries its state from outside, which is what a generative model needs: for every pair

    s' = transition(s, a, rng),   reward(s, a, s', rng),   costs from transition_info(s, a, s')

A state with ``terminal(s)`` is absorbing: it stays as it is, with all signals zero. The random argument is numpy's
generator itself, or what ``key`` makes of it, called anew for every use:

    key = lambda rng: jax.random.key(int(rng.integers(2**32)))      # for environments written in JAX

``pack`` and ``unpack`` translate states that are neither whole numbers nor vectors (a named tuple, say) to and from one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saddleback.errors import require
from saddleback.problem.spaces import Actions, FiniteStates, States, StateSpace
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.step_collector import Signals, Tray, check_actions, signal_names

_CALLS = ("transition", "reward", "terminal", "transition_info")


def from_functional(
    env: Any,
    states: StateSpace | int,
    *,
    signals: Signals = ("reward", "cost"),
    actions: Any = None,
    key: Callable[[np.random.Generator], Any] | None = None,
    pack: Callable[[Any], Any] | None = None,
    unpack: Callable[[Any], Any] | None = None,
) -> GenerativeModel:
    """A simulator from a functional environment.

    ``states`` is the space (an int n: the states 0 … n − 1). ``signals`` are the observed ones in the problem's order:
    "reward" is the environment's, any other name is looked up in ``transition_info``, None is for what the problem knows,
    and ``()`` observes nothing. ``actions`` lists what the environment is handed for action 0, 1, …; left out, that is
    the number itself.
    """
    for name in _CALLS:
        rule, remedy = f"must be a FuncEnv with `{name}`", "use from_gymnasium for an ordinary Env"
        require(callable(getattr(env, name, None)), "env", rule, type(env).__name__, remedy)
    space = FiniteStates(states) if isinstance(states, int) else states
    names = signal_names(signals)
    sampler = FunctionalSampler(env, space, names, None if actions is None else list(actions), key, pack, unpack)
    return GenerativeModel(sampler, space, len(names))


class FunctionalSampler:
    """One transition a pair."""

    def __init__(
        self,
        env: Any,
        space: StateSpace,
        signals: tuple[str | None, ...],
        actions: list[Any] | None,
        key: Callable[[np.random.Generator], Any] | None,
        pack: Callable[[Any], Any] | None,
        unpack: Callable[[Any], Any] | None,
    ):
        self.env, self.space, self.signals, self.actions = env, space, signals, actions
        self.key, self.pack, self.unpack = key, pack, unpack

    def __call__(self, states: States, actions: Actions, rng: np.random.Generator) -> Any:
        """One next state per pair, and the signals if there are any."""
        if self.actions is not None:
            check_actions(actions, self.actions)
        tray = Tray(self.space, states, actions, len(self.signals))
        return tray.fill(lambda i, x, action: self._step(tray, i, x, action, rng))

    def _step(self, tray: Tray, i: int, x: Any, action: int, rng: np.random.Generator) -> None:
        env, key = self.env, self.key
        state = x if self.unpack is None else self.unpack(x)
        if env.terminal(state, key(rng) if key else rng):
            tray.put(i, tray.states[i])  # the signals are zero already
            return
        given = action if self.actions is None else self.actions[action]
        following = env.transition(state, given, key(rng) if key else rng)
        tray.put(i, following if self.pack is None else self.pack(following))
        if not self.signals:
            return
        reward = env.reward(state, given, following, key(rng) if key else rng)
        looked_up = any(name not in (None, "reward") for name in self.signals)
        info = env.transition_info(state, given, following) if looked_up else {}
        tray.put_observed(i, self.signals, reward, info, "transition_info")
