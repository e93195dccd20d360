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

*Ends and totals.* Where running totals of x/scale are known to stay within [A, B] (:mod:`saddleback.problem.endings`), so does Σ w_t v_t
with the falling weights w_t, v = u − u₀, and with V̂ and the values of all policies within u₀H + [l, l+Δ] and u₀H + [a, b]

    A − (l+Δ)·f_N + γw_{N−1}a  ≤  Z − Σ w_k V̂_k(ρ)  ≤  B − l·f_N + γw_{N−1}b,        f_N = w_0 + Σ_{0<t<N}(w_t − γw_{t−1}) ≤ 2,

which does not grow with H. Where a total is only declared of expectations, a rollout that has gone far beyond it is stopped in s_N,
and what it would have added has a mean between γw_{N−1}(a(s_N) − V̂(s_N)) and γw_{N−1}(b(s_N) − V̂(s_N)): the first counts for lower
limits, the second for upper ones. Stopping depends on that rollout alone. One that is cut for want of steps counts as the least and
as the most that it could be.

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

from saddleback.certificates.values.baseline import Baseline as Baseline
from saddleback.certificates.values.baseline import ValueFunction, range_of
from saddleback.certificates.values.baseline import fit_baseline as fit_baseline
from saddleback.certificates.values.intervals import BY_NAME as INTERVALS
from saddleback.certificates.values.known import known_limits
from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import declares, overall_limits, rollout_totals, value_limits
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Actions, Array, States
from saddleback.sampling.blocks import Executor, InOrder, in_key_order
from saddleback.sampling.drawn_rows import MOST_ROLLED, examine_policies, examine_rollouts
from saddleback.sampling.trajectories import (
    CHUNK,
    Cast,
    RolloutPlan,
    RolloutSource,
    Transition,
    chunks_for,
    utilities_seen,
    waves_of,
)
from saddleback.sampling.trajectories import steps_per_rollout as steps_per_rollout
from saddleback.simulators.generative_model import Draw, GenerativeModel, Stream


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
    ``(2, 1+m)`` and the ``cap``. Where something ends, or a total is known, ``totals`` ``(4, 1+m)`` are A, B, a, b, and ``more`` is
    by how much the gains of rollouts that were stopped or cut may be larger.
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
    more: Array | None = None
    totals: Array | None = None

    @property
    def values(self) -> Array:
        """Z, ``(n, 1+m)``, at the least."""
        return self.baseline + self.gains

    @property
    def highest(self) -> Array:
        """Z, ``(n, 1+m)``, at the most."""
        return self.values if self.more is None else self.values + self.more

    def arrays(self) -> dict[str, Array]:
        """What the limits can be computed again from, by name."""
        fixed = {"low": self.low, "high": self.high, "tail": np.array([self.tail_low, self.tail_high])}
        whole = {
            "cap": np.array(self.cap),
            "cut": np.array(int(self.cut)),
            "members": self.members,
            "starts": self.starts,
        }
        ends = {} if self.totals is None or self.more is None else {"totals": self.totals, "highest": self.highest}
        return {
            "values": self.values,
            **ends,
            **fixed,
            "baseline": np.array([*self.baseline_range, self.baseline]),
            "at_starts": self.baseline_at_starts,
            **whole,
        }

    def limits(self, delta: float, method: str) -> tuple[Array, Array]:
        """Lower and upper limits of the values ``(1+m,)``, with what the cap hides and what is known; each at 1 − δ."""
        low, high = self.low.tolist(), self.high.tolist()
        sides = [
            [INTERVALS[method](z[:, j], low[j], high[j], delta) for j in range(z.shape[1])]
            for z in ([self.values] if self.more is None else [self.values, self.highest])
        ]
        found = np.array([(least.low, most.high) for least, most in zip(sides[0], sides[-1], strict=True)])
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
            more=None if self.more is None else self.more[mine],
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
    m, H, num_rollouts, ends = problem.num_constraints, problem.horizon, plan.number, declares(problem)
    examine_policies(model, mixture.members, problem.start.states, seed)
    gains, more = np.empty((num_rollouts, 1 + m)), np.zeros((num_rollouts, 1 + m))
    unfinished = np.zeros(num_rollouts, dtype=bool)
    members, starts = np.empty((2, num_rollouts), dtype=np.int64)
    steps, rows, chunks_of_all = (
        0,
        list[tuple[States, Actions, Draw]](),
        chunks_for(Stream.ROLLOUT, group, num_rollouts),
    )
    first, last = ((), chunks_of_all) if ends else waves_of(chunks_of_all)  # how long they are is not known beforehand
    for chunks, held in ((first, math.inf), (last, sum(chunk.size for chunk in last))):
        room = math.inf if chunks is first else max(0, plan.steps - steps) / held
        source = RolloutSource(model, problem, mixture, seed, plan.cap, room)
        for chunk, tape in in_key_order((executor or InOrder()).run(source.draw, chunks)):
            part = slice(chunk.block * CHUNK, chunk.block * CHUNK + chunk.size)
            cast, transitions = source.play(chunk, tape)
            if steps < MOST_ROLLED:
                transitions = _noted(transitions, rows)
            members[part], starts[part] = cast
            gains[part], more[part], unfinished[part] = _gains(
                problem, baseline, cast, transitions, observers, part.start
            )
            steps += len(tape.next_states)
    examine_rollouts(model, rows, (seed, int(Stream.ROLLOUT), group, 0))
    at_starts = np.array([f(problem.start.states) for f in baseline.functions])  # (k, starts, 1+m)
    mixed = np.einsum("k,ksj->sj", mixture.weights, at_starts)
    centre = problem.start.weights @ mixed
    low, high = range_of(problem, baseline, plan.cap)
    gains[unfinished & ends], more[unfinished & ends] = low, high - low
    limits, left = overall_limits(problem), problem.gamma**plan.cap
    tails = left * (limits[0] - baseline.high), left * (limits[1] - baseline.low)
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
    if ends:
        return replace(found, more=more, totals=np.concatenate([rollout_totals(problem), limits]))
    return replace(found.widened(2 * H), cut=True) if unfinished.any() else found


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
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Z's sums over one chunk of rollouts, the first of which has the number ``first``: at the least, by how much they may be
    larger, and which were cut."""
    gamma, total = problem.gamma, np.zeros((len(cast.members), 1 + problem.num_constraints))
    more, unfinished = np.zeros_like(total), ~problem.ended(problem.start.states[cast.starts])
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
        unfinished[step.running] = step.cut
        V, at = following, step.running
    return total, more, unfinished


def _by_member(functions: Sequence[ValueFunction], member: NDArray[np.int64], states: States, columns: int) -> Array:
    if len(functions) == 1:
        return functions[0](states)
    out = np.empty((len(states), columns))
    for k, function in enumerate(functions):
        mine = member == k
        if np.any(mine):
            out[mine] = function(states[mine])
    return out
