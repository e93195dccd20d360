"""One stationary policy in the place of a mixture, on a finite problem whose every pair was sampled.

    μ̄(s,a) = Σ_k w_k μ_k(s,a),     π(a|s) = μ̄(s,a) / Σ_a' μ̄(s,a')

where μ_k is the discounted occupancy of member k. With the true P this keeps every value exactly; with the estimated P̂
used here it does so approximately, so the policy is evaluated anew and labelled.
"""

from __future__ import annotations

import numpy as np

from saddleback.exact.values import policy_of
from saddleback.method.evaluators.lstd import EmpiricalChain
from saddleback.problem.policies import MixturePolicy
from saddleback.runs.answer import Stationary
from saddleback.solving.prepared import Prepared

_MOST_STATES = 5000


def stationary_copy(parts: Prepared, mixture: MixturePolicy) -> Stationary | None:
    """The stationary policy with (nearly) the mixture's occupancy, or None where P̂ has no row for every pair."""
    problem, buffer = parts.problem, parts.evaluation_buffer
    S, A = problem.num_states, problem.num_actions
    if S is None or S > _MOST_STATES or parts.design.operator is not None or parts.design.size != S * A:
        return None
    chains = [EmpiricalChain(problem, buffer, member) for member in mixture.members]
    mu = sum(w * chain.visits() for w, chain in zip(mixture.weights, chains, strict=True))
    policy = policy_of(np.reshape(mu, (S, A)), chains[0].pi)
    values = problem.values_of(parts.evaluator.evaluate(problem, buffer, policy))
    return Stationary(policy, values, "approximate: occupancies of the estimated model, values evaluated anew")
