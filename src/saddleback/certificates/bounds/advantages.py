"""Gaps by pairing as a bound method: :mod:`.advantage` has the proof, :mod:`.advantage_plan` what is frozen before it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from saddleback.certificates.assumptions import bound_assumes
from saddleback.certificates.bounds.advantage import Compared, prove_gap
from saddleback.certificates.bounds.advantage_plan import Planner
from saddleback.certificates.bounds.bound import Bound, BoundPlan
from saddleback.certificates.bounds.noise_forms import Sampled, Space
from saddleback.certificates.certificate import BoundEvidence
from saddleback.certificates.guide import Guide
from saddleback.errors import NumericalError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, Counted

TABLE, CORESET = "advantages, all pairs", "advantages on a coreset, if P is linear in the features"
MOST_SAMPLED = 600
"""Pairs that are sampled: coefficients are dense, one for each of them."""

_MOST_COEFFICIENTS = 1_000_000  # of all pairs of the problem
_SPANNED = 1e-6  # of the largest feature


@dataclass(frozen=True)
class AdvantageBound(Bound):
    """Besides the bound, V*_□(ρ) − σ_0 V_r(mix)(ρ) ≤ ``paired``: a gap without the limits of the value.

    ``bends`` is by how much a misfit raises both; None on tables.
    """

    paired: float = math.inf
    bends: Callable[[float], tuple[float, float]] | None = None

    def on_gap(self, problem: CMDP, value: tuple[float, float]) -> float:
        """By pairing, or by the limits of the value if that is less: all hold together."""
        short = self.paired - float(self.sigma[1:] @ problem.thresholds)
        by_pairing = max(0.0, short / float(self.sigma[0])) * abs(float(problem.scale[0]))
        return min(super().on_gap(problem, value), by_pairing)

    @property
    def numbers(self) -> tuple[float, ...]:
        """The bound, and what is paired."""
        return self.value, self.paired

    def bent(self, misfit: float) -> Bound:
        """The bound that holds where P may be so far from linear, by the same proof."""
        if self.bends is None:
            return self
        value, paired = self.bends(misfit)
        return dataclasses.replace(self, value=self.value + value, paired=self.paired + paired)

    def raised(self, by: float) -> Bound:
        """For ρ: both V*_□ and V_r(mix) may differ by that much from what they are for the sample."""
        more = by * (1 + float(self.sigma[0]))
        return dataclasses.replace(self, value=self.value + by, paired=self.paired + more)

    def evidence(self, problem: CMDP) -> BoundEvidence:
        """The numbers behind it, ``paired`` among them."""
        sigma, thresholds = tuple(self.sigma.tolist()), tuple(problem.thresholds.tolist())
        told = (self.kind, sigma, self.value, self.estimate, self.delta, self.samples, thresholds)
        return BoundEvidence(*told, paired=self.paired)


@dataclass(frozen=True)
class AdvantagePlan(BoundPlan):
    """What was frozen, what ``paired`` is expected to be, in utilities, and what the bound will rest on."""

    pairs: ClassVar[bool] = True
    frozen: Compared
    expected_paired: float
    assumes: str

    def expected_gap(self, problem: CMDP, half_width: float) -> float:
        """By pairing, which needs no limits of the value."""
        short = self.expected_paired - float(self.sigma[1:] @ problem.thresholds)
        return min(super().expected_gap(problem, half_width), max(0.0, short / float(self.sigma[0])))

    def prove(self, problem: CMDP, fresh: Buffer, delta: float) -> Bound:
        """The bound from a fresh buffer over the design."""
        H, S = problem.horizon, self.frozen.policies.shape[1]
        samples, space, signals = Sampled.of(fresh, S), Space.of(problem, fresh), known_signals(problem)

        def proved(misfit: float) -> tuple[float, float, Array]:
            with suppress(NumericalError):  # then nothing is proved
                return prove_gap(space.bent(misfit), self.frozen, samples, signals, self.sigma, delta)[:3]
            return H, H, np.zeros(S)

        value, paired, gain = proved(0.0)

        @cache
        def bends(misfit: float) -> tuple[float, float]:
            then = proved(misfit)
            return max(0.0, then[0] - value), max(0.0, then[1] - paired)

        table = fresh.design.operator is None
        arrays = self._arrays(samples, signals, space) | {"gain": gain} if table else None
        kind = TABLE if table else CORESET
        told = (self.sigma, value, self.estimate, kind, delta, fresh.num_samples, self.assumes, arrays)
        return AdvantageBound(*told, paired=paired, bends=None if table else bends)

    def _arrays(self, samples: Sampled, signals: Array, space: Space) -> dict[str, Array]:
        """What the bound can be computed again from: both sets of samples as counts, and what was frozen."""
        out = {"signals": signals, "start": space.start}
        for name, part in (("", samples), ("earlier_", self.frozen.earlier)):
            pair, state = np.nonzero(part.P)
            out[f"{name}counts"] = np.rint(part.P[pair, state] * part.counts[pair]).astype(np.int64)
            out[f"{name}next_states"] = state.astype(np.int64)
            out[f"{name}first"] = np.searchsorted(pair, np.arange(len(part.P) + 1)).astype(np.int64)
        frozen = self.frozen
        out |= {"policies": frozen.policies, "weights": frozen.weights, "gains": frozen.gains}
        return out | {"limits": frozen.limits, "reach": frozen.reach}


class Advantages:
    """Values are compared, not bounded one by one; see :mod:`.advantage`."""

    def plan(
        self, guide: Guide, sigma: Array, samples: int, delta: float, *, draft: bool = False
    ) -> AdvantagePlan | None:
        """None where there is nothing to compare, a priced signal is only observed, or there are too many coefficients."""
        problem, mixture = guide.problem, guide.mixture
        if mixture is None or sigma[0] <= 0 or not _applies(problem, guide.earlier, sigma):
            return None
        if guide.design.operator is None and samples < _localised(problem, delta) * guide.design.size:
            return None
        space, earlier = Space.of(problem, guide.earlier[-1]), _pooled(problem, guide.earlier)
        signals, members = known_signals(problem), _members(problem, mixture)
        if not _spanned(space, guide.earlier[-1]):
            return None
        try:
            planner = Planner(
                space, earlier, signals, sigma, delta, samples, guide.design.weights, mixture.weights, members
            )
            compared, counts, expected = planner.best(draft)
        except NumericalError:
            return None
        estimate = float(space.start @ planner.chain.values(planner.box)[0])
        needs = bound_assumes(problem, guide.design)
        told = sigma, counts, estimate, max(0.0, min(problem.horizon, expected.value) - estimate)
        return AdvantagePlan(*told, compared, min(problem.horizon, expected.paired), needs)


def known_signals(problem: CMDP) -> Array:
    """Utilities of all pairs of a finite problem ``(SA, 1+m)``; 0 where they are only observed, and have no price."""
    S, A = problem.num_states, problem.num_actions
    assert S is not None
    return np.nan_to_num(problem.utilities(np.repeat(np.arange(S), A), np.tile(np.arange(A), S)), nan=0.0)


def _localised(problem: CMDP, delta: float) -> float:
    """Samples of each pair of a table below which what is of second order does not settle, about."""
    return 4 * problem.horizon * math.log((problem.num_states or 1) / delta)


def _applies(problem: CMDP, earlier: Sequence[Buffer], sigma: Array) -> bool:
    """Whether there are few enough pairs, each with samples of its own, and known signals."""
    S, c = problem.num_states, earlier[-1].design.size
    if problem.stand_ins is not None:  # pairs that share their samples are not independent
        return False
    if S is None or c > MOST_SAMPLED or np.any(problem.observed & ((sigma > 0) | (np.arange(len(sigma)) == 0))):
        return False
    if earlier[-1].design.operator is not None and problem.required_features().direct:
        return False
    few = S * problem.num_actions * c <= _MOST_COEFFICIENTS
    return few and all(isinstance(b, Counted) and b.unsampled is b.certain is None for b in earlier)


def _pooled(problem: CMDP, earlier: Sequence[Buffer]) -> Sampled:
    """All earlier samples together."""
    assert problem.num_states is not None
    parts = [Sampled.of(b, problem.num_states) for b in earlier]
    counts = np.sum([part.counts for part in parts], axis=0)
    return Sampled(np.sum([part.P * part.counts[:, None] for part in parts], axis=0) / counts[:, None], counts)


def _members(problem: CMDP, mixture: MixturePolicy) -> Array:
    return np.array([member.probabilities(np.arange(problem.num_states or 0)) for member in mixture.members])


def _spanned(space: Space, buffer: Buffer) -> bool:
    """Whether the coreset's features span those of every pair."""
    if (features := buffer.design.features) is None:
        return True
    off = float(np.abs(space.carried @ features - space.phi).max())
    return off <= _SPANNED * float(np.abs(space.phi).max())
