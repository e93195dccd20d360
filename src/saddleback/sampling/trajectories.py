"""Rollouts as samples: what the simulator answered, chunk by chunk, from which everything else can be computed again.

A chunk is up to 1,024 rollouts that advance together. Two random streams belong to it: one for the choices (member, start,
action, the coin that stops a rollout), one for the simulator. So the simulator's answers, put end to end, are a *tape*: with
the choices drawn again from their stream, a tape can be played as often as one likes, and no simulator is needed. A tape is
what is paid for, sent between processes and kept on disk; values, baselines and other sums are computed when it is played.

*A number of steps is a limit.* n rollouts take n/(1−κ) steps on average and any number by chance. Many of them are planned with
room for four standard errors, and should they run out of steps even so, the last chunks are stopped there, which shows; a few
are cut at so many steps each that they cannot, and what lies beyond the cut is accounted for.
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
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Actions, States
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
        return joined([step.drawn for step in steps])

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
        running, weight, left = np.arange(len(members)), 1.0, self.room * len(members)
        for _ in range(self.cap or longest(gamma)):
            left -= len(running)
            if left < 0:
                break
            actions = act(self.mixture, members[running], states, rng)
            drawn = answer(states, actions)
            self.check_signals(drawn, states, actions, key)
            yield Transition(running, states, actions, drawn, weight)
            if self.cast is not None:
                states = drawn.next_states
                continue
            go_on = rng.random(len(running)) < kappa
            if not np.any(go_on):
                break
            running, states = running[go_on], drawn.next_states[go_on]
            weight *= gamma / kappa


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


def steps_per_rollout(gamma: float) -> float:
    """The expected number of simulator calls of one rollout."""
    kappa, L = gamma**ALPHA, longest(gamma)
    return float((1 - kappa**L) / (1 - kappa)) if gamma > 0 else 1.0


class RolloutPlan(NamedTuple):
    """So many rollouts of at most ``cap`` steps each, and of ``steps`` together."""

    number: int
    cap: int
    steps: int

    @classmethod
    def unlimited(cls, gamma: float, number: int) -> RolloutPlan:
        """That many, whatever they take."""
        return cls(number, longest(gamma), number * longest(gamma))


def plan_rollouts(gamma: float, steps: int) -> RolloutPlan:
    """As many as cost no more than ``steps``, but for a deviation of four standard errors; a few are cut to fit."""
    n = steps / steps_per_rollout(gamma)
    number, cap = max(1, int(n - 4 * math.sqrt(n)) if n > 64 else int(n / 2)), longest(gamma)
    if float(gammaincc(number, n)) > _RARELY:
        cap = min(cap, max(1, steps // number))
    return RolloutPlan(number, cap, steps)


def tape_bytes(num_rollouts: float, gamma: float, width: int) -> float:
    """The tape of a chunk while it is drawn and played, with ``width`` numbers a step."""
    return 8.0 * 6 * width * min(num_rollouts, CHUNK) * steps_per_rollout(gamma)


def chunks_for(stream: int, group: int, num_rollouts: int) -> list[Block]:
    """The tasks that make up so many rollouts."""
    firsts = range(0, num_rollouts, CHUNK)
    return [Block(int(stream), group, i, min(CHUNK, num_rollouts - first)) for i, first in enumerate(firsts)]


def waves_of(chunks: Sequence[Block]) -> tuple[Sequence[Block], Sequence[Block]]:
    """Those that are drawn freely, and the last, which get what these have left: enough for eight standard errors."""
    number = sum(chunk.size for chunk in chunks)
    last = max(1, math.ceil(4 * math.sqrt(number) / CHUNK))
    return chunks[:-last], chunks[-last:]
