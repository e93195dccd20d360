"""§2, unconstrained problems on a known table: max_π V_□q^π(ρ), □_q = qᵀ(r, c_1..c_m), with limits that prove themselves.

    repeat   TV = T_q(V_u q),  π' = its maximiser                           one pass over P
             upper = ρᵀTV + γH·max(TV − V_u q)                              holds whatever V_u is
             lower = the lower limit of V_u^π(ρ)ᵀq                           once a π has been evaluated
             stop if upper − lower is small enough
             V_u ← V_u^π' for every utility at once                         until its residual is small beside the above

All utilities are evaluated together, so the values of π for any other prices are known too: V_q = V_u q, and the next
pricing starts where this one ended. Policy iteration ends quickly once it changes few states, so the fewer changed the
better the policy is evaluated. Where evaluation is dear (chains with a long memory), T_q is applied about as many times as
it costs before the next one: news of a distant reward travels one state a round in policy iteration, but one state a pass
in value iteration.

**Evaluation** of one deterministic policy, V_u^π = u_π + γP_π V_u^π:

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

from saddleback.errors import NumericalError
from saddleback.exact.bellman import TIE, Chain, Choice, Greedy, Limits, Model
from saddleback.problem.finite_model import factors
from saddleback.problem.policies import maximum_over_actions
from saddleback.problem.spaces import Array

_DENSE = 100  # states up to which the equations are solved at once
_LOOK = 8  # sweeps between looks at their rate
_SLOW = 60  # further sweeps that make it worth asking what a factorisation would cost
_HUBS = 32  # at most so many states that many others lead to are left out of the band
_MOST_FILL = 1e8  # numbers in the factors
_SETUP = 30.0  # what ordering and setting up cost at least, in sweeps
_FLOOR = 64 * float(np.finfo(np.float64).eps)  # of H: a residual that rounding may keep from falling
_STALLED_SWEEPS = 4  # so many that should halve it, if rounding does not

Form = Literal["N", "T"]  # I − γP_π as it is, or transposed
_PART = 0.1  # of the distance between the limits: the worst a policy is evaluated
_MIXED, _WIDTH = 0.3, 0.5  # of the distance allowed: the best V_u q, and its parts, are evaluated
_UNPRICED = 1e-3  # of H: the same for utilities whose price is zero
_SETTLED = 3  # passes in a row without a change of policy that end a look ahead
_STALL, _NOISE = (
    8,
    100.0,
)  # so many rounds without gain, with limits at most so many times too far apart, are rounding's
_MOST_ROUNDS = 10_000
_OPTIMAL, _TIED = 1e-12, 1e-11  # of Σq·H: what an optimum may leave, and how far apart tied actions may seem
_FINEST = 16 * float(np.finfo(np.float64).eps)  # of H²: limits are hardly ever closer
ROUNDING = 128 * float(np.finfo(np.float64).eps)  # of Σq·H²: limits as far apart as this cannot be told from equal ones


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
        at_floor = small and len(excess) > _STALLED_SWEEPS and excess[-1] > 0.5 * excess[-1 - _STALLED_SWEEPS]
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


class Place(NamedTuple):
    """A policy and its values V_u^π ``(S, k)`` as far as known: where to start from."""

    actions: Choice
    values: Array


class Priced(NamedTuple):
    """An upper limit of max_π V_□q^π(ρ), and the policy found, unless the incumbent left nothing to gain."""

    bound: float
    place: Place
    found: Evaluation | None


def anywhere(model: Model) -> Place:
    """Action 0 in every state, half-way between the least and the greatest value."""
    S, k = model.num_states, model.utilities.shape[1]
    V = np.full_like(model.utilities, model.discount.horizon / 2, shape=(S, k))
    return Place(np.zeros(S, dtype=np.int32), V)


def price(
    model: Model, q: Array, start: Place, target: float, incumbent: float = -np.inf, share: float = 0.0
) -> Priced:
    """A policy whose value for □_q is within ``target`` of the best, or as near as rounding allows.

    ``incumbent`` is a value already known: a policy that leaves at most a ``share`` of what can be gained on it will do.
    """
    box, total, H = model.utilities @ q, float(q.sum()), model.discount.horizon  # □_q
    least = max(target, ROUNDING * total * H * H)
    here, chain, found = start, None, None
    bound, last, stalled = np.inf, np.inf, 0
    for _ in range(_MOST_ROUNDS):
        passes = 1 if found is None else max(1, int(found.cost * model.pass_share))
        step, upper, apart = _look_ahead(model, box, here.values @ q, here.actions, total, passes)
        bound = min(bound, upper)
        allowed = max(least, share * (bound - incumbent) if np.isfinite(incumbent) else 0.0)
        if bound - incumbent <= target:
            return Priced(bound, here, None)
        if found is not None:
            gap = bound - float(found.limits.low[-1])
            stalled, last = (stalled + 1, last) if gap > 0.9 * last else (0, gap)
            if gap <= allowed or (stalled >= _STALL and gap <= _NOISE * ROUNDING * total * H * H):
                break
        changed = np.count_nonzero(step.actions != here.actions) / len(step.actions)
        if chain is None or changed:
            chain = model.chain(step.actions)
        found = evaluate(model, chain, here.values, q, max(min(_PART, changed) * apart, _MIXED * allowed), np.inf)
        here = Place(step.actions, found.values)
        if bound - float(found.limits.low[-1]) <= allowed:
            break
    else:
        raise NumericalError(
            f"policy iteration did not settle in {_MOST_ROUNDS} rounds at gamma = {model.discount.gamma}: "
            "values of size H lose the digits that tell its actions apart; use a smaller gamma."
        )
    assert chain is not None
    # What has no price now may be known roughly; once it matters it will have one.
    width = _WIDTH * allowed / total
    found = evaluate(model, chain, here.values, q, np.inf, np.where(q > 0, width, max(width, _UNPRICED * H)))
    return Priced(bound, Place(here.actions, found.values), found)


def optimum(model: Model, q: Array) -> tuple[Choice, Array]:
    """The best policy for □_q, tied actions to the lowest index, and its values at ρ ``(k,)`` up to rounding.

    It is best in every state: the upper limit allows for the worst residual of all.
    """
    total, H, gamma = float(q.sum()), model.discount.horizon, model.discount.gamma
    V = price(model, q, anywhere(model), _OPTIMAL * total * H).place.values
    Q = (model.utilities @ q + gamma * (model.P @ (V @ q))).reshape(-1, model.num_actions)
    actions = (maximum_over_actions(Q)[:, None] - Q <= _TIED * total * H).argmax(axis=1).astype(np.int32)
    limits = evaluate(model, model.chain(actions), V, q, np.inf, _FINEST * H * H).limits
    return actions, ((limits.low + limits.high) / 2)[: len(q)]


def _look_ahead(
    model: Model, box: Array, V: Array, actions: Choice, total: float, passes: int
) -> tuple[Greedy, float, float]:
    """T_q applied to V up to ``passes`` times: the last one, the least upper limit at ρ, and how far apart the last are."""
    H, bound, settled = model.discount.horizon, np.inf, 0
    for _ in range(passes):
        step = model.greedy(box, V, actions, TIE * total * H)  # TV, π'
        low, high = model.discount.bracket(step.low, step.high, total * H)
        bound = min(bound, float(model.rho @ step.values + high))
        settled = settled + 1 if np.array_equal(step.actions, actions) else 0
        V, actions = step.values, step.actions
        if settled == _SETTLED:
            break
    return step, bound, float(high - low)
