"""Limits of □ + γPV on a table: one e-process a pair, also where a part of □ is only observed.

Let □ = k + O with k(x) known and O = Σ_j σ_j u_j over the observed signals, which come with the next state; u_j ∈ [0, 1] by their declared
ranges, so 0 ≤ O ≤ Ō = Σ_j σ_j. The variable to bet on is one: **Y_V = O + γV(s')**, of mean y = E O + γ(PV)(x). With a stake g that
was fixed before the samples and L = log(S/δ),

    U_x(V) = min{ max{ sup{μ : Σ_i log(1 − g (Y_V,i − μ)) ≤ L},  max Y_V − 1/g },  max Y_V },       max Y_V = Ō + γ max_{s'} V(s'),

the last over the states that may follow. For one fixed V, y ≤ U_x(V) with probability 1 − e^{−L}: y ≤ max Y_V always. If y < max Y_V − 1/g,
the second term is a limit without any probability. Else g(Y_V,i − y) ≤ g(max Y_V − y) ≤ 1, no factor 1 − g(Y_V,i − y) is negative, they are
independent of mean one, so their product has mean one and by Markov's inequality exceeds e^L with probability e^{−L} at most; where it does
not, y is in the set. Nothing is assumed of how signal and next state hang together.

*Optimism passes through it.* A larger V makes every Y_V,i and max Y_V no smaller, so the factors no larger and U_x(V) no smaller; and
Y_{V+c} = Y_V + γc gives U_x(V + c) = U_x(V) + γc. So T V = min{M, max_a(k + U(V))} is monotone with T(V + c) ≤ T V + γc for c ≥ 0, and with
the event at the S pairs (s, π*(s)) for the fixed function V* of the fixed policy π*, T V* ≥ k + U(V*) ≥ V*: the argument of :mod:`.tabular`
as it stands. All of δ is for these S events: means of signals have no limits, and no share of δ, of their own.

*Fewer values.* Samples that are spread to the edges of cells (:mod:`saddleback.sampling.joint_samples`) lower Σ_i log(1 − g(Y_i − μ)), which is
concave and falling in O, so they raise U.

*Stakes.* What is to be expected of a stake g is the width L/(ng) + g[ψ(g D_O) s_O² + ½γ²s_V²], with ψ(κ) = (−log(1−κ) − κ)/κ² and
D_O = Ō − E O: log(1 + z) ≥ z − ψ(κ)z² for z ≥ −κ, with equality for z = −κ, which is what a rare event is. s_O and s_V are
what earlier samples show and half an event more, that O and V(s') are not correlated is a guess. The g of the least width is taken.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.certificates.values.intervals import Bets, expected_width, stakes
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import first_largest
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, counted
from saddleback.sampling.joint_samples import weighed

_TRIED, _FLATTER = 16, 0.85


class Limits(Protocol):
    """Of □ + γPV at every pair, ``(SA,)`` each."""

    def mean(self, V: Array) -> Array:
        """As the samples have it."""
        ...

    def upper(self, V: Array) -> Array:
        """What it does not exceed, at S pairs that were fixed before the samples, with probability 1 − δ."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The samples of each pair, as they are written down."""
        ...


class KnownLimits:
    """Where □ is known: γU_x of V alone."""

    def __init__(self, problem: CMDP, fresh: Buffer, sigma: Array, stakes: Array, delta: float):
        self._problem, self._fresh, self._box = problem, fresh, fresh.utilities(problem) @ sigma
        goal = math.log((problem.num_states or 1) / delta)
        self._bets = Bets(counted(fresh).empirical_model(), fresh.counts, stakes, goal)

    def mean(self, V: Array) -> Array:
        """As the samples have it."""
        return np.asarray(self._box + self._problem.gamma * self._fresh.average(V[self._fresh.support]))

    def upper(self, V: Array) -> Array:
        """□ + γU_x(V)."""
        limit = self._bets.upper(V[self._fresh.support], largest_next(self._problem, V))
        return np.asarray(self._box + self._problem.gamma * limit)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Counts of next states."""
        P = counted(self._fresh).empirical_model()
        return {
            "counts": np.rint(P.data * np.repeat(self._fresh.counts, np.diff(P.indptr))).astype(np.int64),
            "next_states": np.asarray(self._fresh.support)[P.indices].astype(np.int64),
            "first": P.indptr.astype(np.int64),
        }


class JointLimits:
    """Where a part of □ is only observed; see the module's first lines."""

    def __init__(self, problem: CMDP, fresh: Buffer, sigma: Array, stakes: Array, delta: float):
        joint = counted(fresh).joint
        assert joint is not None, "a bound over all pairs needs what was observed with each next state"
        seen, means = problem.observed, fresh.utilities(problem)
        self._problem, self._fresh, self._stakes = problem, fresh, stakes
        self._box, self._known = means @ sigma, means[:, ~seen] @ sigma[~seen]
        self._most, self._samples = float(sigma[seen].sum()), weighed(joint, sigma)
        first, _, _, counts = self._samples
        n = np.add.reduceat(counts, first[:-1])
        shape, goal = (len(n), len(counts)), math.log((problem.num_states or 1) / delta)
        frequencies = scipy.sparse.csr_array(
            (counts / np.repeat(n, np.diff(first)), np.arange(len(counts)), first), shape
        )
        self._bets = Bets(frequencies, n, stakes, goal)

    def mean(self, V: Array) -> Array:
        """As the samples have it."""
        return np.asarray(self._box + self._problem.gamma * self._fresh.average(V[self._fresh.support]))

    def upper(self, V: Array) -> Array:
        """k + U_x(V)."""
        gamma, (_, states, observed, _) = self._problem.gamma, self._samples
        top = self._most + gamma * largest_next(self._problem, V)
        return np.asarray(self._known + np.minimum(self._bets.upper(observed + gamma * V[states], top), top))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Counts of next states and O together."""
        first, states, observed, counts = self._samples
        return {"counts": counts, "next_states": states, "first": first, "observed": observed}


class Width(NamedTuple):
    """What to expect of U_x − mean ``(SA,)``, how fast it falls with the number of samples, −n ∂/∂n, and the stakes that bring it about."""

    width: Array
    fall: Array
    stakes: Array


class Expectation:
    """The widths to be expected of the limits, from earlier samples and the ``means`` and ``noise`` ``(SA, 1+m)`` that signals may have."""

    def __init__(self, problem: CMDP, earlier: Buffer, means: Array, noise: Array, sigma: Array, delta: float):
        self._problem, self._earlier, seen = problem, earlier, problem.observed
        self._goal, self._observed = math.log((problem.num_states or 1) / delta), bool(np.any(seen))
        self._noise = noise[:, seen] @ sigma[seen]  # as if all signals rose together
        self._above = float(sigma[seen].sum()) - means[:, seen] @ sigma[seen]

    def width(self, V: Array, counts: Array | NDArray[np.int64]) -> Width:
        """With so many samples of each pair, for a value like V."""
        gamma, L, (spread, reach) = self._problem.gamma, self._goal, _spread_and_reach(self._problem, self._earlier, V)
        if not self._observed:
            fall = gamma * (spread * np.sqrt(L / (2 * counts)) + reach * L / counts)
            return Width(gamma * expected_width(spread, counts, L, reach), fall, stakes(spread, counts, L, reach))
        both = np.sqrt(self._noise**2 + (gamma * spread) ** 2)
        steepest = stakes(both, counts, L, self._above + gamma * reach)
        tried = steepest * _FLATTER ** np.arange(_TRIED)[:, None]
        squares = _psi(tried * self._above) * self._noise**2 + 0.5 * (gamma * spread) ** 2
        widths = L / (counts * tried) + tried * squares
        best = first_largest(-widths, axis=0)[None]
        width, g = (np.take_along_axis(x, best, axis=0)[0] for x in (widths, tried))
        return Width(width, L / (counts * g), g)


def largest_next(problem: CMDP, V: Array) -> Array:
    """The largest V among the states that may follow each pair, ``(SA,)``."""
    if problem.successors is not None:
        return np.asarray(np.maximum.reduceat(V[problem.successors.indices], problem.successors.indptr[:-1]))
    return np.full(len(V) * problem.num_actions, V.max())


def _spread_and_reach(problem: CMDP, buffer: Buffer, V: Array) -> tuple[Array, Array]:
    """Of V at the next states of each pair: its standard deviation, and how far above its mean it can lie.

    A pair whose samples agree gets the deviation of half a dissenting one.
    """
    mean, variance = buffer.moments(V[buffer.support])
    spread = np.sqrt(variance + float(np.ptp(V)) ** 2 * buffer.half_a_sample())
    return np.asarray(spread), np.maximum(largest_next(problem, V) - mean, 0.0)


def _psi(kappa: Array) -> Array:
    """(−log(1−κ) − κ)/κ² for 0 ≤ κ < 1, by ½ + κ/3 where that would cancel."""
    small = kappa < 1e-4
    k = np.where(small, 0.5, kappa)
    return np.where(small, 0.5 + kappa / 3, (-np.log1p(-k) - k) / k**2)
