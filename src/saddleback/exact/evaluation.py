"""§2, the values of one deterministic policy on a known table, V_u^π = u_π + γP_π V_u^π, with limits that prove themselves.

    V ← T_πV + γH·(min + max)(T_πV − V)/2        MacQueen's shift: exact for the part of the error that is constant
    until  γH·(max − min)(T_πV − V)  is small     which bounds the distance to V_u^π at every state

and the discounted visits d_π = ρ + γP_πᵀd_π, started with the right sum, H. Both fall with the part of the start that the
chain has not forgotten yet. Where the first sweeps foretell many more than a sparse factorisation would cost, the equations
are factored; its answer is swept again, so the limits hold whatever it did. (Krylov methods were tried in its place: on
gridworlds BiCGSTAB and GMRES needed two to four times as many passes as these sweeps, where they converged at all.)
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from saddleback.exact.bellman import Chain, Choice, Limits, Model
from saddleback.problem.finite_model import factors
from saddleback.problem.spaces import Array

_DENSE = 100  # states up to which the equations are solved at once
_LOOK = 8  # sweeps between looks at their rate
_SLOW = 60  # further sweeps that make it worth asking what a factorisation would cost
_HUBS = 32  # at most so many states that many others lead to are left out of the band
_MOST_FILL = 1e8  # numbers in the factors
_SETUP = 30.0  # what ordering and setting up cost at least, in sweeps
_FLOOR = 64 * float(np.finfo(np.float64).eps)  # of H: a residual that rounding may keep from falling
_STALL = 4  # sweeps that should halve it, if rounding does not

Form = Literal["N", "T"]  # I − γP_π as it is, or transposed


class Evaluation(NamedTuple):
    """V_u^π ``(S, k)``; limits at ρ of its columns and of the mixture V_u q ``(k+1,)``; what it took.

    ``cost`` counts sweeps; ``at_floor`` says that rounding ended it.
    """

    values: Array
    limits: Limits
    cost: float
    at_floor: bool


def evaluate(model: Model, chain: Chain, V: Array, q: Array, mixed: float, width: float | Array) -> Evaluation:
    """V_u^π from the guess ``V``, until the limits of V_u q are ``mixed`` apart and those of its columns ``width``.

    Where two policies are about equally good for q, V_u q is known long before its parts.
    """
    discount, rho = model.discount, model.rho
    H, k = discount.horizon, V.shape[1]
    sizes, goal = np.append(np.full(k, H), H * q.sum()), np.append(np.broadcast_to(width, k), mixed)
    excess: list[float] = []
    cost, direct = 0.0, model.num_states <= _DENSE
    if direct:
        V = solve_dense(chain, chain.utilities, "N")
    new, spare = np.empty_like(V), np.empty_like(V)  # the guess stays as it is
    while True:
        low, high = chain.sweep(V, q, new)
        V, new, spare, cost = new, spare, new, cost + 1
        limits = discount.bracket(low, high, sizes)  # of V_u^π − T_πV
        apart = limits.high - limits.low
        excess.append(float((apart / goal).max()))
        small = float((high - low)[:k].max()) <= _FLOOR * H
        at_floor = small and len(excess) > _STALL and excess[-1] > 0.5 * excess[-1 - _STALL]
        done = excess[-1] <= 1 or at_floor
        at_rho = rho @ V if done else None
        if done or len(excess) % _LOOK == 1:  # a constant does not change later spans, so now and then will do
            V += (limits.low + limits.high)[:k] / 2
        if at_rho is not None:
            at_rho = np.append(at_rho, q @ at_rho)
            return Evaluation(V, Limits(at_rho + limits.low, at_rho + limits.high), cost, at_floor)
        left = 0.0 if direct else _sweeps_left(excess)
        if left > _SLOW and (price := _price_of_factors(chain, k)) < left:
            V, cost, direct = _factored(chain, chain.utilities, "N"), cost + price, True


def visits(model: Model, actions: Choice, accuracy: float) -> Array:
    """d_π ``(S,)`` ≥ 0, whose total distance from the truth is at most ``accuracy``, or what rounding allows."""
    discount, chain, rho = model.discount, model.chain(actions), model.rho
    H = discount.horizon
    goal = max(accuracy, _FLOOR * H * H)
    d, direct = H * rho, model.num_states <= _DENSE
    excess: list[float] = []
    if direct:
        d = np.maximum(solve_dense(chain, rho[:, None], "T")[:, 0], 0.0)
    while True:
        new = chain.push(rho, d)
        excess.append(discount.reach() * float(np.abs(new - d).sum()) / goal)
        d = new
        if excess[-1] <= 1:
            return d
        left = 0.0 if direct else _sweeps_left(excess)
        if left > _SLOW and _price_of_factors(chain, 1) < left:
            d, direct = np.maximum(_factored(chain, rho[:, None], "T")[:, 0], 0.0), True


def _sweeps_left(excess: list[float]) -> float:
    """How many more sweeps the last few foretell until the excess is 1; looked at now and then."""
    if len(excess) % _LOOK:
        return 0.0
    rate = (excess[-1] / excess[-1 - _LOOK // 2]) ** (2 / _LOOK)
    return np.inf if rate >= 1 else float(np.log(excess[-1]) / -np.log(rate))


def _price_of_factors(chain: Chain, k: int) -> float:
    """What factors of I − γP_π would cost, in sweeps of k columns, judged by the band they need at most.

    The band is that of the reverse Cuthill-McKee order without the states that many others lead to, which a fill-reducing
    order leaves to the end. Such an order does better than the band, by 8 or more on gridworlds, which is reckoned with.
    """
    S, P = chain.P.shape[0], chain.P
    arrivals = np.bincount(P.indices, minlength=S)
    hubs = np.argsort(arrivals)[-_HUBS:]
    hubs = hubs[arrivals[hubs] > 16 * P.nnz / S]
    kept = np.setdiff1d(np.arange(S), hubs, assume_unique=True)
    rest = P if not hubs.size else scipy.sparse.csr_array(P[kept][:, kept])
    order = reverse_cuthill_mckee(scipy.sparse.csr_array(rest + rest.T), symmetric_mode=True)
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    rows = np.repeat(position, np.diff(rest.indptr))
    band = int(np.abs(position[rest.indices] - rows).max(initial=1)) + hubs.size
    return np.inf if S * band > _MOST_FILL else _SETUP + S * band**2 / 8 / (4 * P.nnz * k)


def solve_dense(chain: Chain, right: Array, form: Form) -> Array:
    """(I − γP_π)⁻¹ times ``right`` ``(S, k)``, or its transpose, by dense factors."""
    matrix = np.eye(chain.P.shape[0]) - chain.gamma * chain.P.toarray()
    return np.asarray(np.linalg.solve(matrix if form == "N" else matrix.T, right))


def _factored(chain: Chain, right: Array, form: Form) -> Array:
    return np.asarray(factors(chain.P, chain.gamma).solve(right, form))  # type: ignore[call-overload]  # no "T" in the stubs
