"""Stable-Baselines3 in the solver's seat: a deep Q-network per reward □_σ, trained on the simulator itself.

    episodes    s_0 ~ ρ,  s_{t+1} ~ Gen(s_t, a_t),  reward □_σ(s_t, a_t);  after every step they end with probability 1 − γ
    DQN         minimise  (□ + γ max_a' Q⁻(s', a') − Q(s, a))²  over a replay memory,  a_t = argmax Q or, at times, any
    return      π_σ(s) = argmax_a Q(s, a)

An interactive oracle: it asks for what it wants to see, and every step of every episode is a call of the metered sampler.
The end of an episode is a cut, not a goal (its last state keeps its value), so the states it learns from are distributed
as the discounted visits of the policy that plays. Nothing is proved of a network: whether Assumption asmp_b1 holds for it,
and with what f_mdp, is for the evaluator and the certificate to say.

PyTorch and Stable-Baselines3 draw from global generators. They are seeded from the sampler's stream, on one thread, and put
back as they were.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import BudgetError, optional_package, require
from saddleback.method.oracles import Needs
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy, TabularPolicy
from saddleback.problem.spaces import Actions, Array, BoxStates, Features, States, StateSpace
from saddleback.sampling.buffer import Tap

_SIDE_BY_SIDE = 16  # episodes that advance together: one call of the simulator serves them all
_LEAST = 50 * _SIDE_BY_SIDE  # steps below which nothing is learned


@dataclass(frozen=True)
class StableBaselines:
    """At most ``steps`` simulator calls a reward; ``hidden`` are the layers; ``options`` go to ``DQN`` as they are."""

    steps: int = 20_000
    hidden: tuple[int, ...] = (64, 64)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(self.steps >= _LEAST, "steps", f"must be at least {_LEAST}", self.steps, "use 20000 or more")

    def needs(self, problem: CMDP) -> Needs:
        """The package."""
        return Needs(package=("stable_baselines3", "neural"))

    def solve_interactively(self, problem: CMDP, design: Design, sampler: Tap, mixing: Array) -> list[Policy]:
        """One trained policy per row σ of ``mixing``, ``(k, 1+m)``, from an equal share of the sampler's budget each."""
        package = optional_package("stable_baselines3", "neural", "this solver")
        share = min(self.steps, sampler.remaining // len(mixing)) // _SIDE_BY_SIDE * _SIDE_BY_SIDE
        if share < _LEAST:
            raise BudgetError(
                f"{len(mixing)} networks need {_LEAST * len(mixing)} simulator calls at the least, and {sampler.remaining} "
                "are left; draw more samples, or use a coarser grid of rewards."
            )
        return [self._train(package, problem, sampler, np.asarray(sigma), share) for sigma in mixing]

    def _train(self, package: Any, problem: CMDP, sampler: Tap, sigma: Array, steps: int) -> Policy:
        rng = sampler.generator()
        seed = int(rng.integers(1 << 31))
        environment = environment_of(Episodes(problem, sampler, sigma, rng))
        usual: dict[str, Any] = {
            "learning_rate": 1e-3,
            "buffer_size": steps,
            "learning_starts": steps // 10,
            "batch_size": 128,
            "gradient_steps": _SIDE_BY_SIDE // 4,
            "target_update_interval": 20 * _SIDE_BY_SIDE,
            "exploration_fraction": 0.5,
            "exploration_final_eps": 0.1,
            "policy_kwargs": {"net_arch": list(self.hidden)},
        }
        fixed: dict[str, Any] = {"gamma": problem.gamma, "train_freq": 1, "seed": seed, "device": "cpu"}
        with own_randomness():
            learner = package.DQN("MlpPolicy", environment, **(usual | dict(self.options) | fixed))
            learner.learn(steps)
            weights = [p.detach().double().numpy().copy() for p in learner.q_net.q_net.parameters()]
        layers = tuple(zip(weights[::2], weights[1::2], strict=True))
        policy = NetworkPolicy(problem.states, layers)
        return policy if problem.num_states is None else policy.table(problem.num_states)


class Episodes:
    """Episodes that advance together, on the sampler's account."""

    def __init__(self, problem: CMDP, sampler: Tap, sigma: Array, rng: np.random.Generator):
        self.problem, self._sampler, self._sigma, self._rng = problem, sampler, sigma, rng
        self.states = self._starts(_SIDE_BY_SIDE)

    def begin(self) -> States:
        """All of them anew, from ρ."""
        self.states = self._starts(_SIDE_BY_SIDE)
        return self.states

    def step(self, actions: Actions) -> tuple[States, Array, NDArray[np.bool_]]:
        """The states reached, □_σ of the pairs, and which episodes ended there; ``states`` are those to go on from."""
        problem, states = self.problem, self.states
        next_states, signals = self._sampler.draw(states, actions)
        u = problem.utilities(states, actions)
        for column in np.flatnonzero(problem.observed):
            assert signals is not None
            problem.signals[column].check(signals[:, column], states, actions)
            u[:, column] = problem.utilities_of(signals)[:, column]
        ended = self._rng.random(len(states)) >= problem.gamma
        self.states = next_states.copy()
        self.states[ended] = self._starts(int(ended.sum()))
        return next_states, u @ self._sigma, ended

    def _starts(self, n: int) -> States:
        start = self.problem.start
        return start.states[self._rng.choice(len(start.weights), size=n, p=start.weights)]


def environment_of(episodes: Episodes) -> Any:
    """The episodes as Stable-Baselines3 wants them: a vectorised environment that starts ended ones anew by itself."""
    spaces = optional_package("gymnasium.spaces", "neural", "this solver")
    base: Any = optional_package("stable_baselines3.common.vec_env", "neural", "this solver").VecEnv
    space = episodes.problem.states

    def seen(states: States) -> NDArray[Any]:
        return scaled(space, states).astype(np.float32) if isinstance(space, BoxStates) else states

    class Environment(base):  # type: ignore[misc]  # an optional package has no types
        def __init__(self) -> None:
            sight = (
                spaces.Box(-np.inf, np.inf, (space.dim,))
                if isinstance(space, BoxStates)
                else spaces.Discrete(space.num)
            )
            super().__init__(_SIDE_BY_SIDE, sight, spaces.Discrete(episodes.problem.num_actions))

        def reset(self) -> Any:
            return seen(episodes.begin())

        def step_async(self, actions: Any) -> None:
            self._actions = np.asarray(actions, dtype=np.int64)

        def step_wait(self) -> Any:
            reached, reward, ended = episodes.step(self._actions)
            notes: list[dict[str, Any]] = [{} for _ in ended]
            last = seen(reached)
            for i in np.flatnonzero(ended):
                notes[i] = {"terminal_observation": last[i], "TimeLimit.truncated": True}
            return seen(episodes.states), reward.astype(np.float32), ended, notes

        def close(self) -> None:
            pass

        def has_attr(self, attr_name: str) -> bool:
            return False

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [None] * _SIDE_BY_SIDE  # asked for "render_mode": there is nothing to see

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            raise NotImplementedError(attr_name)

        def env_method(self, method_name: str, *args: Any, indices: Any = None, **named: Any) -> list[Any]:
            raise NotImplementedError(method_name)

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * _SIDE_BY_SIDE

    return Environment()


@dataclass(frozen=True, eq=False)
class NetworkPolicy:
    """A policy read off a trained network, as plain arrays: nothing else is needed to play or compare it.

    x_0 = the state,   x_{i+1} = max(W_i x_i + b_i, 0),   scores = W_n x_n + b_n  ∈ R^A,     π(s) = argmax_a scores(s)

    ``layers`` are the W_i ``(out, in)`` and b_i ``(out,)``. A state of a box is scaled to [−1, 1] in the coordinates that
    have finite bounds; one of a finite space is one-hot.
    """

    states: StateSpace
    layers: tuple[tuple[Array, Array], ...]

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        return len(self.layers[-1][1])

    def scores(self, states: States) -> Array:
        """The network's outputs, ``(n, A)``."""
        W, b = self.layers[0]
        x = (scaled(self.states, states) @ W.T if isinstance(self.states, BoxStates) else W.T[states]) + b
        for W, b in self.layers[1:]:
            x = np.maximum(x, 0.0) @ W.T + b
        return np.asarray(x)

    def actions(self, states: States) -> Actions:
        """The chosen action per state."""
        return np.asarray(self.scores(states).argmax(axis=1), dtype=np.int64)

    def act(self, states: States, rng: np.random.Generator) -> Actions:
        """The chosen action; ``rng`` is not used."""
        return self.actions(states)

    def probabilities(self, states: States) -> Array:
        """One-hot rows."""
        return np.eye(self.num_actions)[self.actions(states)]

    def mean_features(self, features: Features, states: States) -> Array:
        """φ(s, π(s))."""
        return features.at(states, self.actions(states))

    def key(self) -> bytes:
        """The bytes of the weights."""
        return b"network" + b"".join(part.tobytes() for layer in self.layers for part in layer)

    def table(self, num_states: int) -> TabularPolicy:
        """The same policy on a finite space, where it compares with others and can be stored."""
        return TabularPolicy.deterministic(self.actions(np.arange(num_states)), self.num_actions)


def scaled(space: BoxStates, states: States) -> Array:
    """Points of a box with every bounded coordinate in [−1, 1], ``(n, k)``."""
    bounded = np.isfinite(space.low) & np.isfinite(space.high)
    low, high = np.where(bounded, space.low, -1.0), np.where(bounded, space.high, 1.0)
    return np.asarray((2 * states - low - high) / (high - low))


@contextmanager
def own_randomness() -> Iterator[None]:
    """One thread, and the global generators of Python, NumPy and PyTorch as they were when it is over."""
    torch = optional_package("torch", "neural", "this solver")
    threads, plain, legacy = torch.get_num_threads(), random.getstate(), np.random.get_state()  # noqa: NPY002
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)
        random.setstate(plain)
        np.random.set_state(legacy)  # noqa: NPY002
