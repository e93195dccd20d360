"""Gymnasium's toy-text environments, which carry their table as ``env.unwrapped.P``, as a :class:`Table`.

    P[s][a] = [(probability, next state, reward, terminated), …]

The reward of a pair is the mean over its outcomes. An episode that ends goes on for ever where it ended, with reward and
costs zero: a state that is only ever entered by ending is made absorbing itself. Where the same state can also be entered,
or started in, without ending, *all* endings lead to one more state, number S, called "done".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import InputError, optional_package, require
from saddleback.problem.cmdp import Constraint
from saddleback.problem.spaces import Array
from saddleback.simulators.arrays import signal_array, table_of
from saddleback.simulators.table import Table, as_numbers


class Outcomes(NamedTuple):
    """All entries of P as columns."""

    state: NDArray[np.int64]
    action: NDArray[np.int64]
    probability: Array
    next_state: NDArray[np.int64]
    arrived: NDArray[np.int64]  # the environment's own next state, where endings are led elsewhere
    reward: Array
    terminated: NDArray[np.bool_]


def from_gymnasium_table(
    env: Any,
    constraints: Sequence[Constraint],
    *,
    gamma: float,
    rho: ArrayLike | None = None,
    name: str | None = None,
    reward_range: tuple[float, float] | None = None,
    **options: Any,
) -> Table:
    """A table from an environment with ``P``, or from its id (then ``options`` go to ``gymnasium.make``).

    A constraint's signal is an array ``(S, A)``, a function ``(states, actions) -> (n,)``, or an array ``(S, A, S)`` of
    what each transition costs, such as one for every step into a hole. ``rho`` is the environment's start if left out.
    """
    if isinstance(env, str):
        name, env = name or env, optional_package("gymnasium", "gymnasium", "this adapter").make(env, **options)
    bare = getattr(env, "unwrapped", env)
    found, S, A = _outcomes(bare)
    start = as_numbers("rho", getattr(bare, "initial_state_distrib", None) if rho is None else rho)
    require(start.shape == (S,), "rho", f"must have shape ({S},)", start.shape, "one probability a state")
    absorbing, found, start = _made_absorbing(found, start, S, A)
    n = len(start)
    P = scipy.sparse.coo_array((found.probability, (found.state * A + found.action, found.next_state)), (n * A, n))
    costs = [_cost(c, found, absorbing, S, A) for c in constraints]
    reward = _mean(found, found.reward, n, A)
    more: dict[str, Any] = {"name": name or type(bare).__name__, "reward_range": reward_range}
    if n > S:
        more["state_names"] = [*map(str, range(S)), "done"]
    return table_of(P.tocsr(), reward, costs, constraints, gamma=gamma, rho=start, **more)


def _outcomes(bare: Any) -> tuple[Outcomes, int, int]:
    """P read and checked."""
    P: Any = getattr(bare, "P", None)
    remedy = "use from_gymnasium with a set_state instead"
    require(P is not None, "env", "must have a table `P`", type(bare).__name__, remedy)
    hidden = bool(getattr(bare, "fickle_passenger", False))
    require(not hidden, "fickle_passenger", "must be off: P does not hold it", True, "make the environment without it")
    sizes = [getattr(getattr(bare, space, None), "n", None) for space in ("observation_space", "action_space")]
    require(None not in sizes, "env", "must have discrete observations and actions", bare, remedy)
    S, A = (int(n) for n in sizes if n is not None)
    entries = []
    for s in range(S):
        for a in range(A):
            try:
                rows = [(s, a, float(p), int(t), int(t), float(r), bool(done)) for p, t, r, done in P[s][a]]
            except (KeyError, IndexError, TypeError, ValueError) as error:
                rule = "must list (probability, next state, reward, terminated)"
                raise InputError(f"P[{s}][{a}]", rule, f"{type(error).__name__}: {error}", "mend P") from None
            for row in rows:
                require(0 <= row[3] < S, f"P[{s}][{a}]", f"must lead to states 0 to {S - 1}", row[3], "mend P")
            entries += [row for row in rows if row[2] != 0.0]
    columns = zip(*entries, strict=True)
    return Outcomes(*(np.array(column) for column in columns)), S, A


def _made_absorbing(found: Outcomes, start: Array, S: int, A: int) -> tuple[NDArray[np.int64], Outcomes, Array]:
    """The absorbing states, the outcomes with them made so, and the start; see the module's first lines."""
    ends = np.unique(found.next_state[found.terminated])
    ending = np.isin(np.arange(S), ends)
    alive = ~ending[found.state]
    both = np.any(alive & ~found.terminated & ending[found.next_state]) or np.any(start[ends] > 0)
    if ends.size == 0:
        return ends, found, start
    if both:
        ends, alive = np.array([S]), np.ones(len(found.state), dtype=bool)
        found = found._replace(next_state=np.where(found.terminated, S, found.next_state))
        start = np.append(start, 0.0)
    kept: list[Any] = [column[alive] for column in found]
    s, a = np.repeat(ends, A), np.tile(np.arange(A), len(ends))
    still = Outcomes(s, a, np.ones(len(s)), s, s, np.zeros(len(s)), np.ones(len(s), dtype=bool))
    return ends, Outcomes(*(np.concatenate(pair) for pair in zip(kept, still, strict=True))), start


def _mean(found: Outcomes, values: Array, n: int, A: int) -> Array:
    """Σ p·value over the outcomes of each pair, ``(n, A)``."""
    pair = found.state * A + found.action
    totals: Any = np.bincount(pair, weights=found.probability * values, minlength=n * A)
    return np.asarray(totals.reshape(n, A), dtype=np.float64)


def _cost(c: Constraint, found: Outcomes, absorbing: NDArray[np.int64], S: int, A: int) -> Array:
    n = int(found.state.max()) + 1
    signal: Any = c.signal
    if not callable(signal) and np.shape(signal) == (S, A, S):
        values = as_numbers(c.name, signal)
        live = ~np.isin(found.state, absorbing)
        x = np.zeros(len(live))
        x[live] = values[found.state[live], found.action[live], found.arrived[live]]
        return _mean(found, x, n, A)
    costs = np.zeros((n, A))
    costs[:S] = signal_array(c.name, signal, S, A)
    costs[absorbing] = 0.0
    return costs
