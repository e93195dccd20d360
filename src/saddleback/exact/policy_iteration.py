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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddleback.errors import NumericalError
from saddleback.exact.bellman import TIE, Choice, Greedy, Model
from saddleback.exact.evaluation import Evaluation, evaluate
from saddleback.problem.policies import maximum_over_actions
from saddleback.problem.spaces import Array

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
