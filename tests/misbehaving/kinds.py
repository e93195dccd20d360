"""Users' code that is legal Python and does what it must not: each kind is to be refused, or the certificate is to be true.

All kinds are of one small problem whose table is known, so that the truth can be computed. A kind changes one piece of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saddleback import CMDP, Constraint, FeatureFunction, GenerativeModel, Start, Table

S, A, GAMMA, LIMIT = 5, 2, 0.8, 2.0
_RNG = np.random.default_rng(14)
P = _RNG.dirichlet(np.full(S, 0.4), (S, A))
REWARD, COST = _RNG.random((S, A)), np.column_stack([np.zeros(S), np.linspace(0.4, 1.0, S)])
RHO = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
CUMULATIVE = P.cumsum(axis=2)

Piece = Callable[..., Any]


def table() -> Table:
    """The truth."""
    return Table.of(P, REWARD, COST[None], [LIMIT], gamma=GAMMA, rho=RHO, senses=["<="], reward_range=(0, 1))


def lead(u: Any, states: Any, actions: Any) -> Any:
    """The next states that numbers u ∈ [0, 1) lead to."""
    return np.minimum((u[:, None] >= CUMULATIVE[states, actions]).sum(axis=1), S - 1)


def phi(states: Any, actions: Any) -> Any:
    return np.eye(S * A)[states * A + actions]


def reward(states: Any, actions: Any) -> Any:
    return REWARD[states, actions]


def cost(states: Any, actions: Any) -> Any:
    return COST[states, actions]


def starts(number: int, rng: np.random.Generator) -> Any:
    return rng.choice(S, number, p=RHO)


def step(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    return lead(rng.random(len(states)), states, actions)


def problem_of(pieces: dict[str, Piece]) -> CMDP:
    """The problem with these pieces in the place of the honest ones."""
    return CMDP(
        gamma=GAMMA,
        start=Start.sampled(pieces["start"], 64) if "start" in pieces else RHO.copy(),
        num_actions=A,
        states=S,
        reward=pieces.get("reward", reward),
        reward_range=(0, 1),
        constraints=[Constraint("cost", pieces.get("cost", cost), "<=", LIMIT, range=(0, 1))],
        features=FeatureFunction(pieces["features"], S * A, A) if "features" in pieces else None,
    )


def model_of(pieces: dict[str, Piece]) -> GenerativeModel:
    return GenerativeModel(pieces.get("simulator", step), S)


# ---- simulators --------------------------------------------------------------------------------------------------------


def by_numbers(draw: Callable[[np.random.Generator, int], Any]) -> Piece:
    """A simulator with the right law for each number, and wrong numbers."""
    return lambda states, actions, rng: lead(draw(rng, len(states)), states, actions)


def sticky(rng: np.random.Generator, n: int) -> Any:
    u = rng.random(n)
    keep = np.maximum.accumulate(np.where(rng.random(n) < 0.5, np.arange(n), 0))
    return u[keep]


def paired(rng: np.random.Generator, n: int) -> Any:
    u = np.repeat(rng.random((n + 1) // 2), 2)[:n]
    return np.where(np.arange(n) % 2, 1 - u, u) % 1


def mirrored(rng: np.random.Generator, n: int) -> Any:
    u = rng.random((n + 1) // 2)
    return np.concatenate([u, 1 - u])[:n] % 1


def in_chunks(size: int) -> Callable[[np.random.Generator, int], Any]:
    return lambda rng, n: np.repeat(rng.random(-(-n // size)), size)[:n]


def tiled(rng: np.random.Generator, n: int) -> Any:
    return np.resize(rng.random(max(1, n // 8)), n)


def large_calls_share(rng: np.random.Generator, n: int) -> Any:
    return np.full(n, rng.random()) if n > 256 else rng.random(n)


def first_thousand(rng: np.random.Generator, n: int) -> Any:
    return np.resize(rng.random(min(n, 100)), n)


def large_calls_are_biased(rng: np.random.Generator, n: int) -> Any:
    return rng.random(n) ** (2 if n > 256 else 1)


def last_row_is_nothing(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    found = step(states, actions, rng)
    found[-1] = 0
    return found


def mixed_and_large(draw: Callable[[np.random.Generator, int], Any]) -> Piece:
    """Wrong numbers in large calls for several pairs, as rollouts make them and nothing else does."""

    def sample(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        n = len(states)
        wrong = n > 64 and len(np.unique(states * A + actions)) > 1
        return lead(draw(rng, n) if wrong else rng.random(n), states, actions)

    return sample


def seeds_what_it_gets(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    rng.bit_generator.state = np.random.Philox(5).state
    return step(states, actions, rng)


def masked(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    found = step(states, actions, rng)
    return np.ma.array(np.where(found == S - 1, 0, found), mask=found == S - 1)


def first_row(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    return lead(rng.random(len(states)), np.full_like(states, states[0]), np.full_like(actions, actions[0]))


def first_action(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    return lead(rng.random(len(states)), states, np.full_like(actions, actions[0]))


def row_before(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    return lead(rng.random(len(states)), np.roll(states, 1), actions)


def sorted_rows(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    return np.sort(step(states, actions, rng))


def one_a_pair(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    """One number for all rows of a pair in a call."""
    _, which = np.unique(states * A + actions, return_inverse=True)
    return lead(rng.random(which.max() + 1)[which], states, actions)


def writes(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    found = step(states, actions, rng)
    states[:], actions[:] = 0, 0
    return found


def returned_as(dtype: Any) -> Piece:
    """Rows of a longer table, found by a product that overflows in a small type."""

    def small(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        row = (states * np.asarray(40, dtype=states.dtype)) // 40
        return lead(rng.random(len(states)), row % S, actions).astype(dtype)

    return small


class Reusing:
    """The same array again and again."""

    def __init__(self) -> None:
        self.kept = np.empty(10_000, dtype=np.int64)

    def __call__(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        out = self.kept[: len(states)]
        out[:] = step(states, actions, rng)
        return out


class OwnGenerator:
    """Random numbers of its own, made once: no run can be repeated, but its samples are as good as any."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(5)

    def __call__(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        return step(states, actions, self.rng)


class GoesOn:
    """It goes on from where the last call ended, every other row."""

    def __init__(self) -> None:
        self.last = 0

    def __call__(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        found = step(np.where(np.arange(len(states)) % 2, states, self.last), actions, rng)
        self.last = int(found[-1])
        return found


class EveryOtherCall:
    """Another law in every other call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        self.calls += 1
        return lead(rng.random(len(states)) ** (1 + 2 * (self.calls % 2)), states, actions)


class Tires:
    """Another law after so many rows."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        self.rows += len(states)
        return lead(rng.random(len(states)) ** (1 if self.rows < 6000 else 3), states, actions)


class Cached:
    """The first answer to a pair is its answer for ever."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], int] = {}

    def __call__(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        out = []
        for s, a in zip(states.tolist(), actions.tolist(), strict=True):
            if (s, a) not in self.known:
                self.known[s, a] = int(step(np.array([s]), np.array([a]), rng)[0])
            out.append(self.known[s, a])
        return np.array(out)


def seeded_anew(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    return step(states, actions, np.random.default_rng(0))


def few_seeds(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    return step(states, actions, np.random.default_rng(int(rng.integers(3))))


def global_generator(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    return lead(np.random.random(len(states)), states, actions)  # noqa: NPY002


# ---- functions of pairs ------------------------------------------------------------------------------------------------


def spoiled(function: Piece) -> Piece:
    """Writes into what it gets."""

    def spoiling(states: Any, actions: Any) -> Any:
        found = function(states, actions)
        states[...] = 0
        actions[...] = 0
        return found

    return spoiling


def reused(function: Piece) -> Piece:
    """Returns the same memory again and again."""
    kept: dict[Any, Any] = {}

    def reusing(states: Any, actions: Any) -> Any:
        found = function(states, actions)
        out = kept.setdefault(found.shape, np.empty_like(found))
        out[...] = found
        return out

    return reusing


def normalised(function: Piece) -> Piece:
    return lambda s, a: function(s, a) * (1.0 if len(s) == 1 else 0.5 + s.max() / (2 * S))


def by_place(function: Piece) -> Piece:
    return lambda s, a: function(s, a) * (np.arange(len(s)) % 2 if np.ndim(function(s, a)) == 1 else 1.0)


def by_call(function: Piece) -> Piece:
    calls = [0]

    def drifting(states: Any, actions: Any) -> Any:
        calls[0] += 1
        return function(states, actions) * 0.98 ** min(calls[0], 50)

    return drifting


def after_twenty_calls(function: Piece) -> Piece:
    calls = [0]

    def tiring(states: Any, actions: Any) -> Any:
        calls[0] += 1
        return function(states, actions) * (1.0 if calls[0] <= 20 else 0.5)

    return tiring


def very_large_batches_are_other(function: Piece) -> Piece:
    return lambda s, a: function(s, a) if len(s) < 700 else 0.5 * function(s, a)


def large_batches_are_other(function: Piece) -> Piece:
    return lambda s, a: function(s, a) if len(s) < 100 else 0.5 * function(s, a)


# ---- start samplers ----------------------------------------------------------------------------------------------------


class Consecutive:
    """The next ones of a list."""

    def __init__(self) -> None:
        self.at, self.listed = 0, np.repeat(np.arange(S), 20_000)

    def __call__(self, number: int, rng: np.random.Generator) -> Any:
        self.at += number
        return np.take(self.listed, np.arange(self.at - number, self.at), mode="wrap")


class SameStarts:
    """The same array, written anew."""

    def __init__(self) -> None:
        self.kept = np.empty(1 << 17, dtype=np.int64)

    def __call__(self, number: int, rng: np.random.Generator) -> Any:
        self.kept[:number] = starts(number, rng)
        return self.kept[:number]


Pieces = Callable[[], dict[str, Piece]]

KINDS: dict[str, Pieces] = {
    # arrays that are ours or theirs
    "features write into states": lambda: {"features": spoiled(phi)},
    "reward writes into states": lambda: {"reward": spoiled(reward), "features": phi},
    "cost writes into states": lambda: {"cost": spoiled(cost), "start": starts},
    "features reuse their array": lambda: {"features": reused(phi)},
    "reward reuses its array": lambda: {"reward": reused(reward), "cost": reused(cost)},
    "simulator writes into states": lambda: {"simulator": writes},
    "simulator reuses its array": lambda: {"simulator": Reusing()},
    "starts reuse their array": lambda: {"start": SameStarts()},
    # types
    "int8 states": lambda: {"simulator": returned_as(np.int8)},
    "uint8 states": lambda: {"simulator": returned_as(np.uint8)},
    "float states": lambda: {"simulator": returned_as(np.float64)},
    "object states": lambda: {"simulator": returned_as(object)},
    "int8 starts": lambda: {"start": lambda n, rng: starts(n, rng).astype(np.int8)},
    "masked states": lambda: {"simulator": masked},
    "masked starts": lambda: {"start": lambda n, rng: np.ma.masked_equal(starts(n, rng), 2)},
    "masked rewards": lambda: {"reward": lambda s, a: np.ma.masked_greater(reward(s, a), 0.5)},
    # rows of a simulator
    "one number for all rows": lambda: {"simulator": by_numbers(lambda rng, n: np.full(n, rng.random()))},
    "one number for a pair": lambda: {"simulator": one_a_pair},
    "antithetic neighbours": lambda: {"simulator": by_numbers(paired)},
    "antithetic halves": lambda: {"simulator": by_numbers(mirrored)},
    "sticky rows": lambda: {"simulator": by_numbers(sticky)},
    "chunks of eight": lambda: {"simulator": by_numbers(in_chunks(8))},
    "numbers tiled": lambda: {"simulator": by_numbers(tiled)},
    "first row only": lambda: {"simulator": first_row},
    "action of the first row": lambda: {"simulator": first_action},
    "state of the row before": lambda: {"simulator": row_before},
    "sorted rows": lambda: {"simulator": sorted_rows},
    "large calls share a number": lambda: {"simulator": by_numbers(large_calls_share)},
    "a hundred numbers a call": lambda: {"simulator": by_numbers(first_thousand)},
    "the last row is nothing": lambda: {"simulator": last_row_is_nothing},
    "large mixed calls share a number": lambda: {"simulator": mixed_and_large(lambda rng, n: np.full(n, rng.random()))},
    "large mixed calls are biased": lambda: {"simulator": mixed_and_large(lambda rng, n: rng.random(n) ** 3)},
    "large calls are biased": lambda: {"simulator": by_numbers(large_calls_are_biased)},
    # randomness and memory
    "seeded anew in every call": lambda: {"simulator": seeded_anew},
    "seeds the generator it is given": lambda: {"simulator": seeds_what_it_gets},
    "three seeds": lambda: {"simulator": few_seeds},
    "the global generator": lambda: {"simulator": global_generator},
    "a generator of its own": lambda: {"simulator": OwnGenerator()},
    "goes on from the last call": lambda: {"simulator": GoesOn()},
    "another law in every other call": lambda: {"simulator": EveryOtherCall()},
    "another law after 6,000 rows": lambda: {"simulator": Tires()},
    "the first answer for ever": lambda: {"simulator": Cached()},
    # functions of pairs
    "features normalised by the batch": lambda: {"features": normalised(phi)},
    "reward normalised by the batch": lambda: {"reward": normalised(reward), "features": phi},
    "reward by the place in the batch": lambda: {"reward": by_place(reward)},
    "cost that drifts": lambda: {"cost": by_call(cost)},
    "features that drift": lambda: {"features": by_call(phi)},
    "large batches of costs are halved": lambda: {"cost": large_batches_are_other(cost), "features": phi},
    "reward that changes after twenty calls": lambda: {"reward": after_twenty_calls(reward)},
    "very large batches of costs are halved": lambda: {"cost": very_large_batches_are_other(cost)},
    # start samplers
    "starts of its own seed": lambda: {"start": lambda n, rng: starts(n, np.random.default_rng(3))},
    "starts sorted": lambda: {"start": lambda n, rng: np.sort(starts(n, rng))},
    "the first starts of a sorted list": lambda: {"start": lambda n, rng: np.repeat(np.arange(S), 20_000)[:n]},
    "one start for all": lambda: {"start": lambda n, rng: np.full(n, starts(1, rng)[0])},
    "the next starts of a list": lambda: {"start": Consecutive()},
    "many starts from elsewhere": lambda: {"start": lambda n, rng: starts(n, rng) if n < 5000 else rng.choice(S, n)},
}
