"""Rollouts as samples: what the simulator answered, chunk by chunk, from which everything else can be computed again.

A chunk is up to 1,024 rollouts that advance together. Two random streams belong to it: one for the choices (member, start,
action, the coin that stops a rollout), one for the simulator. So the simulator's answers, put end to end, are a *tape*: with
the choices drawn again from their stream, a tape can be played as often as one likes, and no simulator is needed. A tape is
what is paid for, sent between processes and kept on disk; values, baselines and other sums are computed when it is played.

*A number of steps is a limit.* n rollouts take n/(1−κ) steps on average and any number by chance. Many of them are planned with
room for four standard errors; a few are cut at so many steps each that they cannot take more, and what lies beyond the cut is accounted
for. Should a chunk run out of steps even so, what is left is for the first of those that still run: which rollouts are whole, from the
first on, is then as many as can be.

*Ends.* A rollout that comes to a terminal state is over. How long rollouts then are is known from earlier samples at best, so all
chunks get their share of the steps and no more, and those that are cut are named. A known signal whose total has grown far beyond
what it was declared to add up to stops its rollout too (:mod:`saddleback.problem.endings`), and an observed one that leaves its
declared total stops the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from saddleback.errors import SimulatorError, StorageError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import SLACK, beyond, declared_totals, zero
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Actions, Array, States
from saddleback.sampling.blocks import Block, Key, Source, joined, part_of
from saddleback.simulators.generative_model import Draw, GenerativeModel, generator

ALPHA = 0.5  # the coin's chance of going on is γ^α
CAP = 1e-6  # γ^L: what is left of the value where a rollout is stopped in any case
CHUNK = 1024
"""Rollouts of one tape."""
_RARELY = 0.05  # a plan that runs out of steps more often than that cuts its rollouts beforehand

Answer = Callable[[States, Actions], Draw]


class Transition(NamedTuple):
    """One step of the rollouts of a chunk that still run: which they are, their pairs, what came of it, and γ^t/p_t."""

    running: NDArray[np.int64]
    states: States
    actions: Actions
    drawn: Draw
    weight: float
    stopped: NDArray[np.bool_]
    """Which of them have grown too large and go no further, though they are not at an end."""
    cut: NDArray[np.bool_]
    """Which of them would go on, but for want of steps."""


class Cast(NamedTuple):
    """Member and start of every rollout of a chunk, as positions among the mixture's members and the start states."""

    members: NDArray[np.int64]
    starts: NDArray[np.int64]


@dataclass(frozen=True)
class RolloutSource(Source):
    """All that is needed to draw a tape. Tasks are blocks: stream, group (in the place of the pair), chunk, rollouts.

    ``cap`` is the most steps of a rollout (None: where next to nothing is left of the value), ``room`` those that the
    rollouts of a chunk may take on average. A ``cast`` fixes the members of each chunk's rollouts, which then all run to the
    cap: no coin is tossed.
    """

    model: GenerativeModel
    problem: CMDP
    mixture: MixturePolicy
    seed: int
    cap: int | None = None
    room: float = math.inf
    cast: tuple[NDArray[np.int64], ...] | None = None

    def draw(self, chunk: Block) -> Draw:
        """The tape of one chunk, drawn from the simulator."""
        key = self.key(chunk)
        rng = generator(*key[:3], 2 * chunk.block + 1)
        _, steps = self._play(chunk, lambda states, actions: self.model.sample(states, actions, rng, key))
        drawn = [step.drawn for step in steps]
        m = self.model.num_signals
        return joined(drawn) if drawn else Draw(self.problem.start.states[:0], np.zeros((0, m)) if m else None)

    def play(self, chunk: Block, tape: Draw) -> tuple[Cast, Iterator[Transition]]:
        """The chunk's rollouts as they were drawn, step by step."""
        position = 0

        def answer(states: States, actions: Actions) -> Draw:
            nonlocal position
            part = slice(position, position + len(states))
            position = part.stop
            if position > len(tape.next_states):
                remedy = f"remove the folder tapes-{self.seed}-... of the run and resume: all other samples are kept"
                raise StorageError(f"the stored rollouts {self.key(chunk)} were drawn for another plan; {remedy}.")
            return part_of(tape, part)

        return self._play(chunk, answer)

    def fault(self, chunk: Block, problem: str, index: int = 0) -> SimulatorError:
        """The error, with the first start state."""
        first = self.problem.start.states[0]
        return SimulatorError(f"{problem}, in a rollout", state=first, action="-", key=self.key(chunk), index=index)

    def _play(self, chunk: Block, answer: Answer) -> tuple[Cast, Iterator[Transition]]:
        start, weights, n = self.problem.start, self.mixture.weights, chunk.size
        rng = generator(*self.key(chunk)[:3], 2 * chunk.block)
        members = rng.choice(len(weights), size=n, p=weights) if self.cast is None else self.cast[chunk.block]
        starts = rng.choice(len(start.weights), size=n, p=start.weights)
        return Cast(members, starts), self._steps(self.key(chunk), members, start.states[starts], answer, rng)

    def _steps(
        self, key: Key, members: NDArray[np.int64], states: States, answer: Answer, rng: np.random.Generator
    ) -> Iterator[Transition]:
        gamma, kappa = self.problem.gamma, self.problem.gamma**ALPHA
        running, weight, room = np.arange(len(members)), 1.0, self.room * len(members)
        totals, last = _Totals(self.problem, len(members)), self.cap or longest(gamma)
        going = ~self.problem.ended(states)
        running, states = running[going], states[going]
        begun, taken = len(running), 0
        if room < begun:
            return
        for step in range(last if begun else 0):
            taken += len(running)
            actions = act(self.mixture, members[running], states, rng)
            drawn = answer(states, actions)
            self.check_drawn(drawn, states, actions, key)
            stopped = totals.add(running, states, actions, drawn, key)
            going = ~self.problem.ended(drawn.next_states)
            stopped &= going & (self.cast is None)
            go_on = going & ~stopped if self.cast is not None else (rng.random(len(running)) < kappa) & going & ~stopped
            wanting = int(np.count_nonzero(go_on))
            kept = go_on
            if step + 1 < last and room - taken < wanting:
                kept = go_on & (np.cumsum(go_on) <= _first_few(room - taken, taken / max(1, begun - wanting)))
            yield Transition(running, states, actions, drawn, weight, stopped, go_on & ~kept)
            go_on = kept
            if not go_on.any():
                return
            running, states = running[go_on], drawn.next_states[go_on]
            weight *= 1.0 if self.cast is not None else gamma / kappa


def _first_few(left: float, length: float) -> int:
    """How many rollouts are to go on with what is left: those that it is likely to suffice for, and one if it can make a step."""
    return max(int(left / length), int(left >= 1))


class _Totals:
    """Running totals of the rollouts of a chunk in x/scale, where some are declared."""

    def __init__(self, problem: CMDP, number: int):
        limits, seen = declared_totals(problem), problem.observed
        self._problem, self._zero = problem, zero(problem)
        self._window = np.where(seen, np.array([[-np.inf], [np.inf]]), SLACK * limits)
        self._held = bool(np.isfinite(limits[:, seen]).any())
        self._sums = np.zeros((3, number, 1 + problem.num_constraints)) if np.isfinite(limits).any() else None

    def add(
        self, running: NDArray[np.int64], states: States, actions: Actions, drawn: Draw, key: Key
    ) -> NDArray[np.bool_]:
        """Which of them are to be stopped, ``(n,)``; an observed signal whose total leaves its range is refused.

        The total of any part of an episode counts: the largest, and the least, that ends at this step.
        """
        problem = self._problem
        if self._sums is None:
            return np.zeros(len(running), dtype=bool)
        v = utilities_seen(problem, states, actions, drawn) - self._zero
        whole = self._sums[0, running] + v
        self._sums[0, running] = whole
        far = ((whole < self._window[0]) | (whole > self._window[1])).any(axis=1)
        if not self._held:
            return np.asarray(far)
        least, most = np.minimum(self._sums[1, running], 0.0) + v, np.maximum(self._sums[2, running], 0.0) + v
        self._sums[1:, running] = least, most
        if (found := beyond(problem, least, most)) is not None:
            i, j = found
            signal, total = problem.signals[j], (problem.reward_total, *(c.total for c in problem.constraints))[j]
            ends = sorted(float(x[i, j] * problem.scale[j]) for x in (least, most))
            told = f"gave '{signal.name}' a total of {ends[0]:g} to {ends[1]:g} within one episode, declared {total}"
            remedy = "declare a total that holds it, or none"
            raise SimulatorError(
                f"{told}: {remedy}", state=states[i], action=actions[i], key=key, index=i, remedy=remedy
            )
        return np.asarray(far)


def utilities_seen(problem: CMDP, states: States, actions: Actions, drawn: Draw) -> Array:
    """r, c_1..c_m of steps ``(n, 1+m)``, those that are observed as the simulator returned them."""
    u = problem.utilities(states, actions)
    if drawn.signals is not None:
        u[:, problem.observed] = problem.utilities_of(drawn.signals)[:, problem.observed]
    return u


def act(mixture: MixturePolicy, member: NDArray[np.int64], states: States, rng: np.random.Generator) -> Actions:
    """The actions of rollouts that follow different members."""
    actions = np.empty(len(states), dtype=np.int64)
    for k in np.unique(member):
        mine = member == k
        actions[mine] = mixture.members[k].act(states[mine], rng)
    return actions


def longest(gamma: float) -> int:
    """L, the number of steps after which every rollout is stopped."""
    return 1 if gamma <= CAP else math.ceil(math.log(CAP) / math.log(gamma))


def steps_per_rollout(gamma: float, cap: int | None = None) -> float:
    """The expected number of simulator calls of one rollout, which has at most ``cap`` steps."""
    kappa, L = gamma**ALPHA, cap or longest(gamma)
    return float((1 - kappa**L) / (1 - kappa)) if gamma > 0 else 1.0


class RolloutPlan(NamedTuple):
    """So many rollouts of at most ``cap`` steps each, and of ``steps`` together.

    Where ``total`` is given these are the first, and others follow until the steps are spent: about as many as that in all. Both are
    fixed before the first rollout.
    """

    number: int
    cap: int
    steps: int
    total: int | None = None

    @classmethod
    def unlimited(cls, gamma: float, number: int) -> RolloutPlan:
        """That many, whatever they take."""
        return cls(number, longest(gamma), number * longest(gamma))

    @property
    def in_all(self) -> int:
        """How many will be played, about."""
        return self.number if self.total is None else self.total


def plan_rollouts(gamma: float, steps: int, length: float | None = None, *, at_once: bool = False) -> RolloutPlan:
    """As many as cost no more than ``steps``, but for a deviation of four standard errors, and more with what these leave.

    A few are cut to fit. ``length`` is what a rollout is expected to take where it may end before its time. That is an estimate: the
    first rollouts, for which a quarter of the steps should do, show what is right. ``at_once`` plans all of them beforehand.
    """
    if length is not None:
        n = steps / max(1.0, length)
        if at_once:
            return RolloutPlan(_nearly(n / 1.1), longest(gamma), steps)  # a tenth is for the error of the estimate
        first = max(1, min(CHUNK, int(n / 4)))
        return RolloutPlan(first, longest(gamma), steps, max(first, int(n)))
    n = steps / steps_per_rollout(gamma)
    number, cap = _nearly(n), longest(gamma)
    if float(gammaincc(number, n)) > _RARELY:
        cap = min(cap, max(1, steps // number))
    return RolloutPlan(number, cap, steps, None if at_once else max(number, int(steps / steps_per_rollout(gamma, cap))))


def _nearly(n: float) -> int:
    """So few that they hardly take the steps of n."""
    return max(1, int(n - 4 * math.sqrt(n)) if n > 64 else int(n / 2))


def tape_bytes(num_rollouts: float, gamma: float, width: int) -> float:
    """The tape of a chunk while it is drawn and played, with ``width`` numbers a step."""
    return 8.0 * 6 * width * min(num_rollouts, CHUNK) * steps_per_rollout(gamma)


def chunks_for(stream: int, group: int, num_rollouts: int, first_chunk: int = 0) -> list[Block]:
    """The tasks that make up so many rollouts, numbered from ``first_chunk`` on."""
    sizes = (min(CHUNK, num_rollouts - first) for first in range(0, num_rollouts, CHUNK))
    return [Block(int(stream), group, i, size) for i, size in enumerate(sizes, first_chunk)]


def waves_of(chunks: Sequence[Block]) -> tuple[Sequence[Block], Sequence[Block]]:
    """Those that are drawn freely, and the last, which get what these have left: enough for eight standard errors."""
    number = sum(chunk.size for chunk in chunks)
    last = max(1, math.ceil(4 * math.sqrt(number) / CHUNK))
    return chunks[:-last], chunks[-last:]
