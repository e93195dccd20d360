"""Multilinear interpolation as a feature map: a product of tents for each knot of a grid, one copy for each action.

    t_i(x) = the piecewise linear function with t_i(x_j) = 1{i = j},     φ_{a,i,j,…}(s,b) = 1{a = b} t_i(x₁(s)) t_j(x₂(s)) …

The features of a pair are non-negative and sum to one, so 1 ∈ span φ and ‖φ‖₂ ≤ 1. Take the knots with all their actions
as the coreset: Φ is the identity, W interpolates (it averages, so regression never expands and γP̂ stays a contraction),
and with equal weights 1/d the leverage d‖φ‖² ≤ d of *every* pair, seen or not, is at most the least possible bound. Twice
differentiable value functions are met to O(h²) with knots h apart.

``values``, ``maximum`` and ``argmax`` touch 2^k knots a state, never d, and are the direct way through the actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product as choices

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.problem.policies import maximum_over_actions
from saddleback.problem.rounding import first_largest
from saddleback.problem.spaces import Actions, Array, States

_PIECE = 1 << 16


@dataclass(frozen=True, eq=False)
class Tents:
    """``knots`` ascend along each of the k axes; ``coordinates`` maps states to points ``(n, k)`` within them."""

    knots: tuple[Array, ...]
    num_actions: int
    coordinates: Callable[[States], Array]
    direct: bool = field(default=True, init=False)

    @property
    def num_nodes(self) -> int:
        """Points of the grid."""
        return int(np.prod([len(x) for x in self.knots]))

    @property
    def dim(self) -> int:
        """d = A · points of the grid."""
        return self.num_actions * self.num_nodes

    def corners(self, states: States) -> tuple[NDArray[np.int64], Array]:
        """The 2^k nodes around each state and their weights, both ``(n, 2^k)``."""
        points = self.coordinates(states)
        below, share = [], []
        for x, knots in zip(points.T, self.knots, strict=True):
            i = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
            below.append(i)
            share.append((x - knots[i]) / (knots[i + 1] - knots[i]))
        nodes, weights = [], []
        for above in choices((0, 1), repeat=len(self.knots)):
            node, weight = np.zeros(len(states), dtype=np.int64), np.ones(len(states))
            for i, t, up, knots in zip(below, share, above, self.knots, strict=True):
                node = node * len(knots) + i + up
                weight = weight * (t if up else 1 - t)
            nodes.append(node)
            weights.append(weight)
        return np.stack(nodes, axis=1), np.stack(weights, axis=1)

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, d)`` with 2^k entries each."""
        nodes, weights = self.corners(states)
        phi = np.zeros((len(states), self.dim))
        phi[np.arange(len(states))[:, None], np.asarray(actions)[:, None] * self.num_nodes + nodes] = weights
        return phi

    def all(self, states: States) -> Array:
        """Rows ``(n, A, d)``."""
        n, A = len(states), self.num_actions
        return self.at(np.repeat(states, A, axis=0), np.tile(np.arange(A), n)).reshape(n, A, self.dim)

    def weights(self, states: States) -> scipy.sparse.csr_array:
        """The interpolation as a sparse matrix ``(n, points)``, 2^k entries a row."""
        nodes, weights = self.corners(states)
        starts = np.arange(0, nodes.size + 1, nodes.shape[1])
        return scipy.sparse.csr_array((weights.ravel(), nodes.ravel(), starts), shape=(len(states), self.num_nodes))

    def values(self, states: States, theta: Array) -> Array:
        """⟨φ(s, ·), θ⟩ from the 2^k nodes around each state."""
        return _values(self.weights(states), theta, self.num_actions)

    def held(self, states: States) -> HeldTents:
        """φ over the positions 0 … n−1 of these states, with the nodes around each found once and kept."""
        return HeldTents(self.weights(states), self.num_actions)

    def maximum(self, states: States, theta: Array) -> Array:
        """max_a ⟨φ(s, a), θ⟩."""
        return np.concatenate([maximum_over_actions(self.values(part, theta)) for part in _pieces(states)])

    def argmax(self, states: States, theta: Array) -> Actions:
        """The first maximising action."""
        return np.concatenate([first_largest(self.values(part, theta), axis=1) for part in _pieces(states)])


@dataclass(frozen=True, eq=False)
class HeldTents:
    """The same over positions in a list of states; ``interpolation`` is ``(n, points)``, 12·2^k bytes a state."""

    interpolation: scipy.sparse.csr_array
    num_actions: int
    direct: bool = field(default=True, init=False)

    @property
    def dim(self) -> int:
        """d."""
        return int(self.num_actions * self.interpolation.shape[1])

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, d)``."""
        n, num = len(states), self.interpolation.shape[1]
        phi = np.zeros((n, self.num_actions, num))
        phi[np.arange(n), actions] = self.interpolation[states].toarray()
        return phi.reshape(n, -1)

    def all(self, states: States) -> Array:
        """Rows ``(n, A, d)``."""
        n, A = len(states), self.num_actions
        return self.at(np.repeat(states, A), np.tile(np.arange(A), n)).reshape(n, A, self.dim)

    def values(self, states: States, theta: Array) -> Array:
        """⟨φ(s, ·), θ⟩."""
        whole = len(states) == self.interpolation.shape[0] and bool(np.all(np.diff(states) == 1))
        return _values(self.interpolation if whole else self.interpolation[states], theta, self.num_actions)

    def maximum(self, states: States, theta: Array) -> Array:
        """max_a ⟨φ(s, a), θ⟩."""
        return maximum_over_actions(self.values(states, theta))

    def argmax(self, states: States, theta: Array) -> Actions:
        """The first maximising action."""
        return first_largest(self.values(states, theta), axis=1)

    def held(self, states: States) -> HeldTents:
        """Some of the positions."""
        return HeldTents(self.interpolation[states], self.num_actions)


def _values(interpolation: scipy.sparse.csr_array, theta: Array, num_actions: int) -> Array:
    """One sparse product for all actions and all θ, ``(n, A)`` or ``(n, A, k)``."""
    num = interpolation.shape[1]
    table = np.moveaxis(theta.reshape(num_actions, num, -1), 0, 1).reshape(num, -1)
    return np.asarray(interpolation @ table).reshape(-1, num_actions, *theta.shape[1:])


def _pieces(states: States) -> list[States]:
    """At most 65,536 states at a time: what is worked out on the way stays small."""
    return [states[i : i + _PIECE] for i in range(0, max(1, len(states)), _PIECE)]


@dataclass(frozen=True)
class Grid:
    """The states (x₁, …, x_k) ∈ {0..top}^k, numbered row by row."""

    top: int
    axes: int

    @property
    def num_states(self) -> int:
        """(top + 1)^k."""
        return int((self.top + 1) ** self.axes)

    def split(self, states: States) -> NDArray[np.int64]:
        """Coordinates ``(n, k)``."""
        return np.stack(np.unravel_index(states, (self.top + 1,) * self.axes), axis=1)

    def join(self, *coordinates: NDArray[np.int64]) -> NDArray[np.int64]:
        """States of coordinates ``(n,)`` each."""
        state = coordinates[0]
        for x in coordinates[1:]:
            state = state * (self.top + 1) + x
        return state

    def tents(self, num_knots: int, num_actions: int, bend: float = 1.0) -> Tents:
        """Features with knots that are states: at (i/(num_knots−1))^bend of each axis; a bend above 1 crowds zero."""
        share = np.linspace(0.0, 1.0, num_knots) ** bend
        knots = np.unique(np.round(share * self.top))
        return Tents((knots,) * self.axes, num_actions, self.points)

    def points(self, states: States) -> Array:
        """Coordinates as numbers, ``(n, k)``."""
        return self.split(states).astype(np.float64)

    def nodes(self, tents: Tents) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The knots as states, each with all actions: the candidates of a design."""
        mesh = np.meshgrid(*(x.astype(np.int64) for x in tents.knots), indexing="ij")
        states, A = self.join(*(x.ravel() for x in mesh)), tents.num_actions
        return np.tile(states, A), np.repeat(np.arange(A), len(states))
