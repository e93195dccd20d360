"""§2, policies π: S → Δ(A), and the mixture π̄ that Alg. 1 returns.

A *mixture* is drawn once per episode: its value is Σ_k w_k V^{π_k}. Averaging the action probabilities state by state is
a different policy (on a four-state chain 6.81 instead of 8.10). On a finite space with a known table one stationary
policy has the same values as the mixture: see :func:`saddleback.exact.to_stationary`.

A mixture at work is an episode (:mod:`saddleback.problem.episodes`), whose member is drawn once and plays to its end.

Every policy is frozen data (arrays, never a closure), so that it can be stored and compared. Ties go to the lowest
action index.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError, gone, require
from saddleback.problem.spaces import Actions, Array, Features, States

_SURE = 1e-9  # of a probability, as for the rows of a policy


@runtime_checkable
class Policy(Protocol):
    """A stationary policy."""

    @property
    def num_actions(self) -> int:
        """A."""
        ...

    def probabilities(self, states: States) -> Array:
        """π(·|s), ``(n, A)``."""
        ...

    def act(self, states: States, rng: np.random.Generator) -> Actions:
        """One action per state, ``(n,)``."""
        ...

    def mean_features(self, features: Features, states: States) -> Array:
        """Σ_a π(a|s) φ(s, a), ``(n, d)``: π as an operator on ⟨φ, ω⟩."""
        ...

    def key(self) -> bytes:
        """Equal keys mean equal policies."""
        ...


class _Stationary:
    """What policies share that have ``probabilities``, and Stable-Baselines3's calling convention."""

    def probabilities(self, states: States) -> Array:
        """π(·|s), ``(n, A)``."""
        raise NotImplementedError  # pragma: no cover - every policy defines it

    def act(self, states: States, rng: np.random.Generator) -> Actions:
        """A random action per state, by inverse cumulative sums."""
        cumulative = self.probabilities(states).cumsum(axis=1)
        u = rng.random((len(cumulative), 1)) * cumulative[:, -1:]
        return np.asarray((u >= cumulative).sum(axis=1), dtype=np.int64)

    def mean_features(self, features: Features, states: States) -> Array:
        """Σ_a π(a|s) φ(s, a)."""
        return np.einsum("na,nad->nd", self.probabilities(states), features.all(states))

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        rng: np.random.Generator | None = None,
    ) -> tuple[Any, Any]:
        """The action for an observation, or the actions ``(n,)`` for a batch, and ``state`` as it is: Stable-Baselines3's call.

        ``deterministic`` takes the likeliest action. In a state where the policy draws its action that is another policy,
        for which no constraint was proved or even estimated, so it warns. With ``deterministic=False`` actions are drawn,
        from ``rng`` or fresh entropy.
        """
        states, single = _as_states(observation)
        actions = _likeliest(self, states) if deterministic else self.act(states, rng or np.random.default_rng())
        return (actions[0] if single else actions), state


@dataclass(frozen=True, eq=False)
class _Linear(_Stationary):
    """A policy that looks at ⟨φ(s, a), θ⟩."""

    features: Features
    theta: Array

    def __post_init__(self) -> None:
        kind = np.asarray(self.theta).dtype
        require(kind == np.float64, "theta", "must be float64", str(kind), "convert it where it is made")
        object.__setattr__(self, "theta", np.array(self.theta))

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        return self.features.num_actions


class GreedyPolicy(_Linear):
    """π(s) = argmax_a ⟨φ(s, a), θ⟩, lowest index first."""

    def actions(self, states: States) -> Actions:
        """The chosen action per state."""
        return self.features.argmax(states, self.theta)

    def act(self, states: States, rng: np.random.Generator) -> Actions:
        """The chosen action; ``rng`` is not used."""
        return self.actions(states)

    def probabilities(self, states: States) -> Array:
        """One-hot rows."""
        return _one_hot_rows(self.actions(states), self.num_actions)

    def mean_features(self, features: Features, states: States) -> Array:
        """φ(s, π(s))."""
        return features.at(states, self.actions(states))

    def key(self) -> bytes:
        """The bytes of θ."""
        return b"greedy" + self.theta.tobytes()


@dataclass(frozen=True, eq=False)
class SoftmaxPolicy(_Linear):
    """π(a|s) ∝ exp(β ⟨φ(s, a), θ⟩): what entropic mirror descent ends with."""

    beta: float

    def probabilities(self, states: States) -> Array:
        """Softmax rows."""
        logits = self.beta * self.features.values(states, self.theta)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def key(self) -> bytes:
        """The bytes of θ and β."""
        return b"softmax" + self.theta.tobytes() + np.float64(self.beta).tobytes()


@dataclass(frozen=True, eq=False)
class TabularPolicy(_Stationary):
    """π(a|s) as a table ``(S, A)`` of probabilities, or deterministic as an action table ``(S,)``."""

    table: NDArray[Any]
    num_actions: int

    @classmethod
    def deterministic(cls, actions: NDArray[Any], num_actions: int) -> TabularPolicy:
        """One action per state."""
        return cls(np.array(actions, dtype=np.int64), num_actions)

    @classmethod
    def stochastic(cls, probabilities: Array) -> TabularPolicy:
        """Action probabilities ``(S, A)``, each row summing to one."""
        p = np.array(probabilities, dtype=np.float64)
        sums = p.sum(axis=1)
        bad = np.flatnonzero(~(np.abs(sums - 1) <= 1e-9) | ~np.all(p >= 0, axis=1))
        if bad.size:
            s = bad[0]
            raise InputError(f"probabilities[{s}]", "must be a probability vector", p[s], "normalise the row")
        return cls(p, p.shape[1])

    @property
    def is_deterministic(self) -> bool:
        """Whether each state has one action."""
        return self.table.ndim == 1

    def probabilities(self, states: States) -> Array:
        """Rows of the table."""
        if self.is_deterministic:
            return _one_hot_rows(self.table[states], self.num_actions)
        return np.asarray(self.table[states], dtype=np.float64)

    def act(self, states: States, rng: np.random.Generator) -> Actions:
        """The action of each state, drawn where the table is stochastic."""
        if self.is_deterministic:
            return np.asarray(self.table[states], dtype=np.int64)
        return super().act(states, rng)

    def mean_features(self, features: Features, states: States) -> Array:
        """Σ_a π(a|s) φ(s, a)."""
        if self.is_deterministic:
            return features.at(states, np.asarray(self.table[states], dtype=np.int64))
        return super().mean_features(features, states)

    def key(self) -> bytes:
        """The bytes of the table."""
        return b"table" + self.table.tobytes()


@dataclass(frozen=True, eq=False)
class MixturePolicy:
    """π̄: one member is drawn with probability ``weights`` at the start of an episode and kept to its end."""

    members: tuple[Policy, ...]
    weights: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", np.array(self.weights))

    @classmethod
    def of(cls, members: Sequence[Policy], weights: Array) -> MixturePolicy:
        """Merge equal members, drop those of weight zero, renormalise."""
        total: dict[bytes, float] = {}
        first: dict[bytes, Policy] = {}
        keys: dict[int, bytes] = {}  # Alg. 1 repeats the same object thousands of times
        for member, weight in zip(members, weights, strict=True):
            key = keys.get(id(member))
            if key is None:
                key = keys[id(member)] = member.key()
            total[key] = total.get(key, 0.0) + float(weight)
            first.setdefault(key, member)
        kept = [k for k, w in total.items() if w > 0]
        require(bool(kept), "weights", "must have a positive entry", list(weights), "give probabilities")
        w = np.array([total[k] for k in kept])
        return cls(tuple(first[k] for k in kept), w / w.sum())

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        return self.members[0].num_actions

    def draw_member(self, rng: np.random.Generator) -> int:
        """The member that plays one whole episode."""
        return int(rng.choice(len(self.members), p=self.weights))

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        rng: np.random.Generator | None = None,
    ) -> tuple[Any, Any]:
        """The action for an observation, or the actions of a batch, and the state to hand over at the next step.

        As Stable-Baselines3 calls a recurrent policy: ``state`` carries the members drawn for the running episodes, so hand
        back what was returned, and None (or ``episode_start``) when an episode begins. The member is drawn whatever
        ``deterministic`` is: the constraints hold on average over the members, and one of them alone may break them.
        ``deterministic`` says whether a member takes its likeliest action or draws, as for a policy alone.
        """
        rng = rng or np.random.default_rng()
        observations, single = _as_states(observation)
        n = len(observations)
        member = np.full(n, -1) if state is None else np.array(state[0])
        fresh = member < 0
        if episode_start is not None:
            fresh |= np.broadcast_to(np.asarray(episode_start, dtype=bool), (n,))
        for i in np.flatnonzero(fresh):
            member[i] = self.draw_member(rng)
        actions = np.empty(n, dtype=np.int64)
        for k in np.unique(member):
            mine = member == k
            one = self.members[k]
            actions[mine] = _likeliest(one, observations[mine]) if deterministic else one.act(observations[mine], rng)
        return (actions[0] if single else actions), (member,)

    def save(self, *_: object, **__: object) -> NoReturn:
        """Gone: ``saddleback.save_policy(mixture, problem, path)``."""
        gone("MixturePolicy.save", "saddleback.save_policy(mixture, problem, path)")

    @classmethod
    def load(cls, *_: object, **__: object) -> NoReturn:
        """Gone: ``saddleback.load_policy(path)``."""
        gone("MixturePolicy.load", "saddleback.load_policy(path), which takes a file or a run folder")


def as_table(policy: Policy, num_states: int) -> TabularPolicy:
    """The same policy as a table over a finite space, so that equal policies compare equal."""
    if isinstance(policy, TabularPolicy):
        return policy
    states = np.arange(num_states)
    if isinstance(policy, GreedyPolicy):
        return TabularPolicy.deterministic(policy.actions(states), policy.num_actions)
    return TabularPolicy.stochastic(policy.probabilities(states))


def _as_states(observation: Any) -> tuple[States, bool]:
    """A batch of states, and whether it was one: a whole number is a finite state, a float vector a point of a box."""
    x = np.asarray(observation)
    if x.dtype.kind == "f":
        return np.atleast_2d(x).astype(np.float64, copy=False), x.ndim < 2
    return np.atleast_1d(x), x.ndim == 0


def _likeliest(policy: Any, states: States) -> Actions:
    """The likeliest action of each state, with a warning where the policy would draw."""
    if isinstance(policy, GreedyPolicy):
        return policy.actions(states)
    p = policy.probabilities(states)
    if np.any(p.max(axis=1) < 1 - _SURE):
        text = (
            "the policy draws its action in some of these states, and the likeliest one alone is another policy: nothing that "
            "was estimated or proved holds for it; predict(..., deterministic=False) plays the policy"
        )
        warnings.warn(text, UserWarning, stacklevel=3)
    return np.asarray(p.argmax(axis=1), dtype=np.int64)


def _one_hot_rows(actions: Actions, num_actions: int) -> Array:
    rows = np.zeros((len(actions), num_actions))
    rows[np.arange(len(actions)), actions] = 1.0
    return rows


def maximum_over_actions(Q: Array) -> Array:
    """max over axis 1 of ``(n, A)`` or ``(n, A, k)``; unrolled over few actions, where numpy's reduction is slow."""
    if Q.shape[1] > 16:
        return Q.max(axis=1)
    out = Q[:, 0].copy()
    for a in range(1, Q.shape[1]):
        np.maximum(out, Q[:, a], out=out)
    return out


def soft_maximum(Q: Array, beta: float) -> Array:
    """(1/β) log Σ_a exp(β Q_a) over axis 1, without overflow."""
    top = maximum_over_actions(Q)
    return np.asarray(top + np.log(np.exp(beta * (Q - np.expand_dims(top, 1))).sum(axis=1)) / beta)
