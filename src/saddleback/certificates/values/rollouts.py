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

*Cap.* What a run beyond L would have added has mean γ^L E[V − V̂], between −γ^L(l+Δ) and γ^L(H − l).

*Steps.* Rollouts go on until the steps that they may take together are spent. Those that came before the first that was cut for want of
steps count, and no others (:mod:`.waves` has the proof); where there is none, and where their number should have been fixed, nothing is shown.

*Ends and totals.* Where running totals of x/scale are known to stay within [A, B] (:mod:`saddleback.problem.endings`), so does Σ w_t v_t
with the falling weights w_t, v = u − u₀, and with V̂ and the values of all policies within u₀H + [l, l+Δ] and u₀H + [a, b]

    A − (l+Δ)·f_N + γw_{N−1}a  ≤  Z − Σ w_k V̂_k(ρ)  ≤  B − l·f_N + γw_{N−1}b,        f_N = w_0 + Σ_{0<t<N}(w_t − γw_{t−1}) ≤ 2,

which does not grow with H. Where a total is only declared of expectations, a rollout that has gone far beyond it is stopped in s_N,
and what it would have added has a mean between γw_{N−1}(a(s_N) − V̂(s_N)) and γw_{N−1}(b(s_N) − V̂(s_N)): the first counts for lower
limits, the second for upper ones. Stopping depends on that rollout alone.

*Baselines.* The V̂_k are fitted on buffers that were drawn before: coreset LSTD (on a table: the values of the estimated
model), cut to [0, H]. Nothing depends on their quality but the width of the intervals; where they cannot be had, a constant
serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.values.baseline import Baseline as Baseline
from saddleback.certificates.values.baseline import fit_baseline as fit_baseline
from saddleback.certificates.values.baseline import range_of
from saddleback.certificates.values.intervals import BY_NAME as INTERVALS
from saddleback.certificates.values.known import known_limits
from saddleback.certificates.values.waves import Observer, Stage, play_waves
from saddleback.certificates.values.waves import Step as Step
from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import declares, overall_limits, rollout_totals
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.blocks import Executor, InOrder
from saddleback.sampling.drawn_rows import examine_policies, examine_rollouts
from saddleback.sampling.trajectories import RolloutPlan
from saddleback.sampling.trajectories import steps_per_rollout as steps_per_rollout
from saddleback.simulators.generative_model import GenerativeModel, Stream


@dataclass(frozen=True)
class Rollouts:
    """n values of Z ``(n, 1+m)`` with the limits they cannot leave, in utilities; ``steps`` is what they cost.

    ``known`` ``(2, 1+m)`` is what the values cannot leave whatever the rollouts show (:mod:`.known`). Of each wave, ``waves``
    ``(w, 2)`` has the number of rollouts and how many were expected in all, and ``expected`` ``(n,)`` the second of each rollout; what was
    cut and what came after it is left out, and ``cut`` says that nothing is shown therefore. ``gains`` is the sum of Z alone, to which the baseline of any start may be added;
    ``tail`` is what the cap may hide, and the limits, as the tail, follow from the limits of the ``baseline_range``
    ``(2, 1+m)`` and the ``cap``. Where something ends, or a total is known, ``totals`` ``(4, 1+m)`` are A, B, a, b, and ``more`` is
    by how much the gains of rollouts that were stopped may be larger.
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
    waves: NDArray[np.int64]
    expected: Array
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
            "waves": self.waves,
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
            [INTERVALS[method](z[:, j], low[j], high[j], delta, self.expected) for j in range(z.shape[1])]
            for z in ([self.values] if self.more is None else [self.values, self.highest])
        ]
        found = np.array([(least.low, most.high) for least, most in zip(sides[0], sides[-1], strict=True)])
        tails = np.array([self.tail_low, self.tail_high])
        ends = np.clip(found.T + tails, *self.known)
        return ends[0], ends[1]

    def widened(self, by: float) -> Rollouts:
        """The rollouts with so much more hidden from them on either side."""
        return replace(self, tail_low=self.tail_low - by, tail_high=self.tail_high + by)

    def from_start(self, start: int, probability: float) -> Rollouts:
        """The rollouts that began in one start state, which has that probability, as values from there."""
        mine = self.starts == start
        shift = self.baseline_at_starts[start] - self.baseline
        return replace(
            self,
            gains=self.gains[mine],
            more=None if self.more is None else self.more[mine],
            members=self.members[mine],
            starts=self.starts[mine],
            expected=probability * self.expected[mine],
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
    H, ends = problem.horizon, declares(problem)
    examine_policies(model, mixture.members, problem.start.states, seed)
    played = play_waves(Stage(problem, model, mixture, baseline, plan, seed, group, observers, executor or InOrder()))
    examine_rollouts(model, played.rows, (seed, int(Stream.ROLLOUT), group, 0))
    at_starts = np.array([f(problem.start.states) for f in baseline.functions])  # (k, starts, 1+m)
    mixed = np.einsum("k,ksj->sj", mixture.weights, at_starts)
    centre = problem.start.weights @ mixed
    low, high = range_of(problem, baseline, plan.cap)
    gains, more, _, cut, members, starts = played.sums
    whole = int(np.argmax(cut)) if cut.any() else len(cut)  # those before the first that was cut
    if whole == 0:
        gains, more, whole = low[None], (high - low)[None], 1  # it may be anything
    limits, left = overall_limits(problem), problem.gamma**plan.cap
    tails = left * (limits[0] - baseline.high), left * (limits[1] - baseline.low)
    found = Rollouts(
        gains[:whole],
        members[:whole],
        starts[:whole],
        mixed,
        centre,
        np.array([baseline.low, baseline.high]),
        centre + low,
        centre + high,
        *tails,
        H,
        played.steps,
        plan.cap,
        len(mixture.weights),
        known_limits(problem, mixture),
        played.waves,
        np.repeat(*played.waves.T[::-1])[:whole].astype(float),
    )
    if ends:
        found = replace(found, more=more[:whole], totals=np.concatenate([rollout_totals(problem), limits]))
    nothing = cut.any() and (plan.total is None or cut[0])
    return replace(found.widened(2 * H), cut=True) if nothing else found
