"""Rollouts in waves, until the steps that they may take are spent: which of them count, and why their limits hold.

The first wave was planned beforehand. What it leaves is planned for again, with lengths as they were seen where rollouts may end
early, and so on until a hundredth is left. Within a wave the rollouts of a chunk advance together, and each chunk has a number of
steps that no chunk beside it changes. A chunk that runs out of steps cuts some of its rollouts, from the last on.

*Which count.* Z_1, Z_2, … are the values that the rollouts would have had if none were cut, in the order of waves, chunks and rollouts.
They are independent and have one distribution: a chunk's size, and the steps it has, are fixed by chunks before it, a step of one rollout has
random numbers that no other has, and a rollout that was cut can be thought of as going on with new ones. Only

    Z_1, …, Z_K,        K + 1 the first rollout that was cut (or K all of them)

are used; those behind it are dropped, whole or not, and no wave follows. K depends on the rollouts in a way that is anything but
innocent: long rollouts are cut, and may be the valuable ones; and whether j was cut may depend on an i > j of its chunk. It does not
matter. A bet λ_i is a function of Z_1..Z_{i−1} and of n_i, the number of rollouts that was expected when the wave of i was planned, from
waves before. So with the true mean μ the capital M_t = Π_{i≤t}(1 + λ_i(Z_i − μ)), t = 1, 2, …, over the endless sequence is a
non-negative martingale, and by Ville's inequality

    P(M_t ≥ 1/δ for a t ≤ K) ≤ P(M_t ≥ 1/δ for any t) ≤ δ            for every random K, a stopping time or not.

To count a cut rollout as the least that it could be and to go on behind it would not do: Z_j⁻ would then depend on the lengths of
later rollouts, the bets with it, and M would be no martingale. Nor would it do to leave out the cut ones alone, which chooses by
length. The rollouts from one start state are the same with bets on these alone, for which n_i ρ(s) were expected.

*Where the number must be fixed* (Maurer and Pontil's interval) there is one wave. If none of it was cut, its values are Z_1..Z_n, and to miss
*and* not to be cut is no more likely than to miss; if one was, nothing is concluded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.values.baseline import Baseline, ValueFunction
from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import declares, value_limits
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Actions, Array, States
from saddleback.sampling.blocks import Block, Executor, in_key_order
from saddleback.sampling.drawn_rows import MOST_ROLLED
from saddleback.sampling.trajectories import (
    CHUNK,
    Cast,
    RolloutPlan,
    RolloutSource,
    Transition,
    chunks_for,
    steps_per_rollout,
    utilities_seen,
    waves_of,
)
from saddleback.simulators.generative_model import Draw, GenerativeModel, Stream

_LEFT = 0.01  # of the steps: what is not worth another wave
_ERRORS, _ERRORS_OF_A_CHUNK = (
    2.0,
    4.0,
)  # standard errors of its length that a wave, and each chunk of a larger one, has room for


class Step(NamedTuple):
    """One step of the rollouts that still run: their numbers, members, pairs and utilities, and their weight γ^t/p_t."""

    rollouts: NDArray[np.int64]
    members: NDArray[np.int64]
    states: States
    actions: Actions
    utilities: Array
    weight: float


Observer = Callable[[Step], None]
"""Sees every step, so that other sums over the same rollouts can be kept; it must not change what it sees."""

Row = tuple[States, Actions, Draw]


class Sums(NamedTuple):
    """Of rollouts: Z's sums ``(n, 1+m)`` at the least, by how much they may be larger, steps, which were cut, members and starts."""

    gains: Array
    more: Array
    lengths: NDArray[np.int64]
    cut: NDArray[np.bool_]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]


class Played(NamedTuple):
    """Every rollout that was begun, what they took, and of each wave its number of rollouts and how many were expected in all ``(w, 2)``.

    ``rows`` are the first steps, for those who look at what the simulator answers.
    """

    sums: Sums
    steps: int
    waves: NDArray[np.int64]
    rows: list[Row]


class Stage(NamedTuple):
    """What rollouts are made with."""

    problem: CMDP
    model: GenerativeModel
    mixture: MixturePolicy
    baseline: Baseline
    plan: RolloutPlan
    seed: int
    group: int
    observers: Sequence[Observer]
    executor: Executor


def play_waves(stage: Stage) -> Played:
    """The rollouts of the plan, and those that follow where it says so."""
    problem, plan, ends = stage.problem, stage.plan, declares(stage.problem)
    found, rows, waves = list[Sums](), list[Row](), [(plan.number, plan.in_all)]
    steps, chunk, done = 0, 0, 0
    while True:
        chunks = chunks_for(Stream.ROLLOUT, stage.group, waves[-1][0], chunk)
        # How long they are is known beforehand where nothing ends: chunks but the last are then drawn freely.
        free, last = waves_of(chunks) if len(waves) == 1 and not ends else ((), chunks)
        for part in (free, last):
            held = sum(each.size for each in part)
            room = math.inf if part is free else max(0, plan.steps - steps) / held
            for sums in _play(stage, part, room, done, rows, steps):
                found.append(sums)
                steps, done = steps + int(sums.lengths.sum()), done + len(sums.cut)
        chunk += len(chunks)
        if plan.total is None or any(sums.cut.any() for sums in found):
            break
        number, length = next_wave(problem.gamma, plan, steps, [sums.lengths for sums in found] if ends else None)
        if not number:
            break
        waves.append((number, done + max(number, int((plan.steps - steps) / length))))
    joined = Sums(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    return Played(joined, steps, np.array(waves), rows)


def next_wave(
    gamma: float, plan: RolloutPlan, steps: int, seen: Sequence[NDArray[np.int64]] | None
) -> tuple[int, float]:
    """How many rollouts come next after so many ``steps``, 0 where it is not worth it, and how long they are expected to be.

    ``seen`` are lengths of earlier ones, where the coin is not all that decides.
    """
    left = plan.steps - steps
    length = deviation = steps_per_rollout(gamma, plan.cap)
    if seen is not None:
        n, total, squares = (
            sum(int((x**k).sum()) for x in seen) for k in (0, 1, 2)
        )  # whole numbers: no rounding error
        mean = total / n
        deviation = max(math.sqrt(max(0.0, squares / n - mean**2)), mean / math.sqrt(n))
        length = max(1.0, mean + _ERRORS * deviation / math.sqrt(n))
    if steps == 0 or left < max(length, _LEFT * plan.steps):
        return 0, length
    m, spread = left / length, deviation / length
    if m > CHUNK:
        return int(m / (1 + _ERRORS_OF_A_CHUNK * spread / math.sqrt(CHUNK))), length
    return max(1, int(max(m / 2, m - _ERRORS * spread * math.sqrt(m)))), length


def _play(
    stage: Stage, chunks: Sequence[Block], room: float, first: int, rows: list[Row], steps: int
) -> Iterator[Sums]:
    """Chunk by chunk; the first of the rollouts has the number ``first``, and others took so many ``steps``."""
    if not chunks:
        return
    source = RolloutSource(stage.model, stage.problem, stage.mixture, stage.seed, stage.plan.cap, room)
    for chunk, tape in in_key_order(stage.executor.run(source.draw, chunks), chunks[0].block):
        cast, transitions = source.play(chunk, tape)
        if steps < MOST_ROLLED:
            transitions = _noted(transitions, rows)
        yield _sums(stage.problem, stage.baseline, cast, transitions, stage.observers, first)
        first, steps = first + chunk.size, steps + len(tape.next_states)


def _noted(transitions: Iterator[Transition], rows: list[Row]) -> Iterator[Transition]:
    for step in transitions:
        rows.append((step.states, step.actions, step.drawn))
        yield step


def _sums(
    problem: CMDP,
    baseline: Baseline,
    cast: Cast,
    transitions: Iterator[Transition],
    observers: Sequence[Observer],
    first: int,
) -> Sums:
    """Of one chunk of rollouts, the first of which has the number ``first``."""
    gamma, total = problem.gamma, np.zeros((len(cast.members), 1 + problem.num_constraints))
    more, cut = np.zeros_like(total), ~problem.ended(problem.start.states[cast.starts])
    lengths = np.zeros(len(cut), dtype=np.int64)
    V = _by_member(baseline.functions, cast.members, problem.start.states[cast.starts], total.shape[1])
    at = np.arange(len(cast.members))
    for step in transitions:
        member = cast.members[step.running]
        V = V[np.searchsorted(at, step.running)]  # those of ``at`` that still run
        u = utilities_seen(problem, step.states, step.actions, step.drawn)
        for observe in observers:
            observe(Step(first + step.running, member, step.states, step.actions, u, step.weight))
        following = _by_member(baseline.functions, member, step.drawn.next_states, total.shape[1])
        total[step.running] += step.weight * (u + gamma * following - V)
        if step.stopped.any():
            rows, s = step.running[step.stopped], step.drawn.next_states[step.stopped]
            low, high = step.weight * gamma * (value_limits(problem, s) - following[step.stopped])
            total[rows] += low
            more[rows] = high - low
        cut[step.running] = step.cut
        lengths[step.running] += 1
        V, at = following, step.running
    return Sums(total, more, lengths, cut, *cast)


def _by_member(functions: Sequence[ValueFunction], member: NDArray[np.int64], states: States, columns: int) -> Array:
    if len(functions) == 1:
        return functions[0](states)
    out = np.empty((len(states), columns))
    for k, function in enumerate(functions):
        mine = member == k
        if np.any(mine):
            out[mine] = function(states[mine])
    return out
