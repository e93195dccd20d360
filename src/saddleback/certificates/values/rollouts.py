"""Values of the frozen mixture from fresh rollouts: unbiased, with no assumption but bounded rewards.

A rollout of the mixture draws its member k and its start s_0 ~ ρ, then follows π_k. With any functions V̂_k and the
probability p_t = κ^t of still running at step t (a coin is tossed after every step),

    Z = Σ_k w_k V̂_k(ρ) + Σ_{t < stop} (γ^t/p_t) [◇(s_t,a_t) + γ V̂_k(s_{t+1}) − V̂_k(s_t)],        E Z = Σ_k w_k V_k(ρ)

up to the cap L. The sum telescopes to the discounted total when nothing stops, so Z is unbiased whatever V̂_k is; ρ and w
are known, so the start and the member enter through their exact mean (the start-state baseline). When V̂_k is close to V_k
the terms are martingale differences of variance σ², and n rollouts cost n/(1−κ) simulator calls with the variance
(σ²/n)/(1 − γ²/κ). With κ = γ^α that is σ²H²/(α(2−α)) per call; plain rollouts, which pay for every step down to the
horizon H·log(H/τ), have σ²H²·log(H/τ)/2: three to five times as much. α = 1 would be best but leaves Z without a bound;
α = ½ keeps it within about 2H.

*Range.* With u ∈ [0, 1], V̂ ∈ [l, l+Δ] and w_t = γ^t/p_t, summation by parts gives, for a stop at any N ≤ L,

    −(1−γ)l·W_N − Δ(w_0 + Σ_{0<t<N}(w_t − γw_{t−1}))  ≤  Z − Σ w_k V̂_k(ρ)  ≤  (1 − (1−γ)l)·W_N + γw_{N−1}Δ,      W_N = Σ_{t<N} w_t.

W_N and w_N are linear in κ^N, so N = 1 and N = L are the ends.

*Cap.* What a run beyond L would have added has mean γ^L E[V − V̂], between −γ^L(l+Δ) and γ^L(H − l). Rollouts that ran out of
the steps that they may take together, which is rare and depends on the coins alone, show nothing.

*Baselines.* The V̂_k are fitted on buffers that were drawn before: coreset LSTD (on a table: the values of the estimated
model), cut to [0, H]. Nothing depends on their quality but the width of the intervals; where they cannot be had, a constant
serves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.values.intervals import BY_NAME as INTERVALS
from saddleback.certificates.values.known import known_limits
from saddleback.errors import NumericalError
from saddleback.method.evaluators.lstd import LSTD
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy, Policy
from saddleback.problem.spaces import Actions, Array, States
from saddleback.sampling.blocks import Executor, InOrder, in_key_order
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.drawn_rows import MOST_ROLLED, examine_policies, examine_rollouts
from saddleback.sampling.trajectories import (
    ALPHA,
    CHUNK,
    Cast,
    RolloutPlan,
    RolloutSource,
    Transition,
    chunks_for,
    waves_of,
)
from saddleback.sampling.trajectories import steps_per_rollout as steps_per_rollout
from saddleback.simulators.generative_model import Draw, GenerativeModel, Stream

ValueFunction = Callable[[States], Array]
"""V̂ of r, c_1..c_m at states, ``(n, 1+m)``, in utilities."""
_TABLE_STATES = 1_000_000  # finite problems up to this size keep V̂ as a table


@dataclass(frozen=True)
class Baseline:
    """V̂_k for every member, within [low, high] ``(1+m,)`` each; only the width of the intervals depends on them."""

    functions: Sequence[ValueFunction]
    low: Array
    high: Array


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


@dataclass(frozen=True)
class Rollouts:
    """n values of Z ``(n, 1+m)`` with the limits they cannot leave, in utilities; ``steps`` is what they cost.

    ``known`` ``(2, 1+m)`` is what the values cannot leave whatever the rollouts show (:mod:`.known`). ``cut`` says that they
    ran out of steps. ``gains`` is the sum of Z alone, to which the baseline of any start may be added;
    ``tail`` is what the cap may hide, and the limits, as the tail, follow from the limits of the ``baseline_range``
    ``(2, 1+m)`` and the ``cap``.
    """

    gains: Array
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    baseline_at_starts: Array
    baseline: Array
    baseline_range: Array
    low: Array
    high: Array
    tail_low: Array
    tail_high: Array
    horizon: float
    steps: int
    cap: int
    num_members: int
    known: Array
    cut: bool = False

    @property
    def values(self) -> Array:
        """Z, ``(n, 1+m)``."""
        return self.baseline + self.gains

    def arrays(self) -> dict[str, Array]:
        """What the limits can be computed again from, by name."""
        fixed = {"low": self.low, "high": self.high, "tail": np.array([self.tail_low, self.tail_high])}
        whole = {
            "cap": np.array(self.cap),
            "cut": np.array(int(self.cut)),
            "members": self.members,
            "starts": self.starts,
        }
        return {
            "values": self.values,
            **fixed,
            "baseline": np.array([*self.baseline_range, self.baseline]),
            "at_starts": self.baseline_at_starts,
            **whole,
        }

    def limits(self, delta: float, method: str) -> tuple[Array, Array]:
        """Lower and upper limits of the values ``(1+m,)``, with what the cap hides and what is known; each at 1 − δ."""
        z, low, high = self.values, self.low.tolist(), self.high.tolist()
        found = np.array([INTERVALS[method](z[:, j], low[j], high[j], delta) for j in range(z.shape[1])])
        tails = np.array([self.tail_low, self.tail_high])
        ends = np.clip(found.T + tails, *self.known)
        return ends[0], ends[1]

    def widened(self, by: float) -> Rollouts:
        """The rollouts with so much more hidden from them on either side."""
        return replace(self, tail_low=self.tail_low - by, tail_high=self.tail_high + by)

    def from_start(self, start: int) -> Rollouts:
        """The rollouts that began in one start state, as values from there."""
        mine = self.starts == start
        shift = self.baseline_at_starts[start] - self.baseline
        return replace(
            self,
            gains=self.gains[mine],
            members=self.members[mine],
            starts=self.starts[mine],
            baseline=self.baseline_at_starts[start],
            low=self.low + shift,
            high=self.high + shift,
        )


def roll_out(
    problem: CMDP,
    model: GenerativeModel,
    mixture: MixturePolicy,
    baseline: Baseline,
    plan: RolloutPlan,
    *,
    seed: int,
    group: int = 0,
    observers: Sequence[Observer] = (),
    executor: Executor | None = None,
) -> Rollouts:
    """The independent rollouts of ``plan``, in chunks of their own random streams; so has every ``group``.

    ``observers`` see every step of every chunk; they change nothing. ``executor`` draws the tapes (None: here).
    """
    m, gamma, H, num_rollouts = problem.num_constraints, problem.gamma, problem.horizon, plan.number
    examine_policies(model, mixture.members, problem.start.states, seed)
    gains = np.empty((num_rollouts, 1 + m))
    members, starts = np.empty((2, num_rollouts), dtype=np.int64)
    steps, cut, rows = 0, False, list[tuple[States, Actions, Draw]]()
    first, last = waves_of(chunks_for(Stream.ROLLOUT, group, num_rollouts))
    for chunks, held in ((first, math.inf), (last, sum(chunk.size for chunk in last))):
        room = math.inf if chunks is first else max(0, plan.steps - steps) / held
        source = RolloutSource(model, problem, mixture, seed, plan.cap, room)
        for chunk, tape in in_key_order((executor or InOrder()).run(source.draw, chunks)):
            part = slice(chunk.block * CHUNK, chunk.block * CHUNK + chunk.size)
            cast, transitions = source.play(chunk, tape)
            if steps < MOST_ROLLED:
                transitions = _noted(transitions, rows)
            members[part], starts[part] = cast
            gains[part], running = _gains(problem, baseline, cast, transitions, observers, part.start)
            steps += len(tape.next_states)
            cut |= room * chunk.size - len(tape.next_states) < running
    examine_rollouts(model, rows, (seed, int(Stream.ROLLOUT), group, 0))
    at_starts = np.array([f(problem.start.states) for f in baseline.functions])  # (k, starts, 1+m)
    mixed = np.einsum("k,ksj->sj", mixture.weights, at_starts)
    centre = problem.start.weights @ mixed
    low, high = range_of(gamma, baseline, plan.cap)
    left = gamma**plan.cap
    tails = -left * baseline.high, left * (H - baseline.low)
    found = Rollouts(
        gains,
        members,
        starts,
        mixed,
        centre,
        np.array([baseline.low, baseline.high]),
        centre + low,
        centre + high,
        *tails,
        H,
        steps,
        plan.cap,
        len(mixture.weights),
        known_limits(problem, mixture),
    )
    return replace(found.widened(2 * H), cut=True) if cut else found


def _noted(transitions: Iterator[Transition], rows: list[tuple[States, Actions, Draw]]) -> Iterator[Transition]:
    for step in transitions:
        rows.append((step.states, step.actions, step.drawn))
        yield step


def _gains(
    problem: CMDP,
    baseline: Baseline,
    cast: Cast,
    transitions: Iterator[Transition],
    observers: Sequence[Observer],
    first: int,
) -> tuple[Array, int]:
    """The sums of Z over one chunk of rollouts, the first of which has the number ``first``; how many ran to the end."""
    gamma, seen = problem.gamma, problem.observed
    total = np.zeros((len(cast.members), 1 + problem.num_constraints))
    V = _by_member(baseline.functions, cast.members, problem.start.states[cast.starts], total.shape[1])
    at = np.arange(len(cast.members))
    for step in transitions:
        member = cast.members[step.running]
        V = V[np.searchsorted(at, step.running)]  # those of ``at`` that still run
        u = problem.utilities(step.states, step.actions)
        if step.drawn.signals is not None:
            u[:, seen] = problem.utilities_of(step.drawn.signals)[:, seen]
        for observe in observers:
            observe(Step(first + step.running, member, step.states, step.actions, u, step.weight))
        following = _by_member(baseline.functions, member, step.drawn.next_states, total.shape[1])
        total[step.running] += step.weight * (u + gamma * following - V)
        V, at = following, step.running
    return total, len(at)


def _by_member(functions: Sequence[ValueFunction], member: NDArray[np.int64], states: States, columns: int) -> Array:
    if len(functions) == 1:
        return functions[0](states)
    out = np.empty((len(states), columns))
    for k, function in enumerate(functions):
        mine = member == k
        if np.any(mine):
            out[mine] = function(states[mine])
    return out


def range_of(gamma: float, baseline: Baseline, cap: int) -> tuple[Array, Array]:
    """The least and the largest sum of Z over at most ``cap`` steps."""
    low, span, ratio = baseline.low, baseline.high - baseline.low, gamma ** (1 - ALPHA)  # w_t = ratio^t
    ends = []
    for N in (1, cap):
        W = (1 - ratio**N) / (1 - ratio)
        falls = 1 + (W - 1) - gamma * (W - ratio ** (N - 1))  # w_0 + Σ_{0<t<N} (w_t − γ w_{t−1})
        least = -(1 - gamma) * low * W - span * falls
        ends.append((least, (1 - (1 - gamma) * low) * W + gamma * ratio ** (N - 1) * span))
    return np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])


def fit_baseline(problem: CMDP, buffer: Buffer, mixture: MixturePolicy) -> Baseline:
    """V̂ of every member from ``buffer``, which must not hold any sample that the rollouts will use."""
    functions, lows, highs = zip(*(_fitted(problem, buffer, member) for member in mixture.members), strict=True)
    return Baseline(functions, np.min(lows, axis=0), np.max(highs, axis=0))


def _fitted(problem: CMDP, buffer: Buffer, member: Policy) -> tuple[ValueFunction, Array, Array]:
    """V̂ of one member, and its limits ``(1+m,)``."""
    S, H = problem.num_states, problem.horizon
    try:
        fitted = LSTD().value_function(problem, buffer, member)
    except NumericalError:
        middle = np.full(1 + problem.num_constraints, H / 2)
        return lambda states: np.broadcast_to(middle, (len(states), len(middle))), middle, middle
    table = np.arange(S) if S is not None and S <= _TABLE_STATES else None
    V = np.clip(fitted(np.concatenate([problem.start.states, buffer.support]) if table is None else table), 0.0, H)
    low, high = V.min(axis=0), V.max(axis=0)
    return lambda states: np.clip(fitted(states), low, high) if table is None else V[states], low, high
