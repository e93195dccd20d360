"""§2, unconstrained problems on a known table: max_π V_□q^π(ρ), □_q = qᵀ(r, c_1..c_m), with limits that prove themselves.

    repeat   TV = T_q(V_u q),  π' = its maximiser                           one pass over P
             upper = ρᵀTV + γH·max(TV − V_u q)                              holds whatever V_u is
             lower = qᵀ(lower limits of V_u^π(ρ))
             stop if upper − lower is small enough
             V_u ← V_u^π' for every utility at once                         to a tenth of upper − lower

All utilities are evaluated together, so the values of π for any other prices are known too: V_q = V_u q, and the next
pricing starts where this one ended. Where evaluation is dear (chains with a long memory), T_q is applied about as many
times as it costs before the next policy is evaluated: news of a distant reward travels one state a round in policy
iteration, but one state a pass in value iteration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddleback.errors import NumericalError
from saddleback.exact.bellman import TIE, Limits, Model
from saddleback.exact.evaluation import Evaluation, evaluate
from saddleback.spaces import Array

_PART = 0.1  # of the distance between the limits: how well the next policy is evaluated
_SETTLED = 3  # passes in a row without a change of policy that end a look ahead
_MOST_ROUNDS = 10_000


class Priced(NamedTuple):
    """The policy found and its values; ``bound`` is an upper limit of max_π V_□q^π(ρ)."""

    found: Evaluation
    bound: float


def nothing_known(model: Model) -> Evaluation:
    """Action 0 everywhere, with limits that hold for any policy."""
    S, k, H = model.num_states, model.utilities.shape[1], model.discount.horizon
    V = np.full_like(model.utilities, H / 2, shape=(S, k))
    return Evaluation(np.zeros(S, dtype=np.int32), V, Limits(np.zeros(k), np.full(k, H)), 0.0, False)


def price(
    model: Model, q: Array, start: Evaluation, target: float, incumbent: float = -np.inf, share: float = 0.0
) -> Priced:
    """A policy whose value for □_q is within ``target`` of the best, or as near as rounding allows.

    ``incumbent`` is a value already known: a policy that leaves at most a ``share`` of what can be gained on it will do.
    """
    box = model.utilities @ q  # □_q
    total, here, bound, last = float(q.sum()), start, np.inf, np.inf
    for _ in range(_MOST_ROUNDS):
        V, actions, settled = here.values @ q, here.actions, 0
        passes = max(1, int(here.cost * model.pass_share))
        for _ in range(passes):
            step = model.greedy(box, V, actions, TIE * total * model.discount.horizon)  # TV, π'
            high = model.discount.bracket(step.low, step.high, total * model.discount.horizon).high
            bound = min(bound, float(model.rho @ step.values + high))
            settled = settled + 1 if np.array_equal(step.actions, actions) else 0
            V, actions = step.values, step.actions
            if settled == _SETTLED:
                break
        gap = bound - float(q @ here.limits.low)
        stuck = here.at_floor and gap > 0.5 * last
        if gap <= max(target, share * (bound - incumbent)) or stuck:
            return Priced(here, bound)
        last = gap
        here = evaluate(model, actions, here.values, _PART * gap / total)
    raise NumericalError(
        f"policy iteration did not settle in {_MOST_ROUNDS} rounds at gamma = {model.discount.gamma}: "
        "values of size H lose the digits that tell its actions apart; use a smaller gamma."
    )
