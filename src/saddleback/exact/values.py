"""§2, values of policies on a known table: V^π = (I − γP_π)⁻¹ u_π, and the occupancy measure behind it.

    P_π(s'|s) = Σ_a π(a|s) P(s'|s, a),      u_π(s) = Σ_a π(a|s) u(s, a),      u = (r, c_1..c_m) ∈ [0, 1]
    V^π       = u_π + γ P_π V^π                                      state_values, policy_values
    d_π       = ρ + γ P_πᵀ d_π,   μ_π(s, a) = d_π(s) π(a|s)          occupancy: Σ μ_π = H,  Σ μ_π u = V_u^π(ρ)
    π̄(a|s)    = Σ_k w_k μ_k(s, a) / Σ_a' Σ_k w_k μ_k(s, a')          to_stationary
    max_π V_□σ^π,  □_σ = σᵀ(r, c_1..c_m)                             best_policy, by policy iteration

Every answer is checked by putting it back into its equation. A table whose P was estimated works as well; what the answer
is then worth is for the caller to say.
"""

from __future__ import annotations

import numpy as np

from saddleback.errors import require
from saddleback.problem.finite_model import Resolvent, follow, policy_iteration
from saddleback.problem.policies import MixturePolicy, Policy, TabularPolicy
from saddleback.problem.spaces import Array
from saddleback.simulators.table import Table

_UNVISITED = 1e-13  # of all visits: below it there is only rounding error
_TIE = 1e-13  # of H: two actions closer than this are tied; about 500 rounding errors of a value


def _chain(table: Table, policy: Policy) -> tuple[Array, Resolvent]:
    """The action probabilities ``(S, A)`` of a policy, and (I − γP_π)⁻¹."""
    S, A = table.num_states, table.num_actions
    pi = policy.probabilities(np.arange(S))
    rule = f"must give probabilities of shape {(S, A)}"
    require(pi.shape == (S, A), "policy", rule, pi.shape, "use a policy for this table")
    return pi, Resolvent(follow(pi, table.P), table.gamma)


def state_values(table: Table, policy: Policy) -> Array:
    """V_r^π, V_{c_1}^π … at every state in the paper's units, ``(S, 1+m)``."""
    pi, resolvent = _chain(table, policy)
    return resolvent.values(np.einsum("sa,sak->sk", pi, table.utilities().reshape(*pi.shape, -1)))  # u_π


def unit_policy_values(table: Table, policy: Policy) -> Array:
    """V_r^π(ρ), V_{c_1}^π(ρ) … in the paper's units, ``(1+m,)``."""
    return np.asarray(start_distribution(table) @ state_values(table, policy))


def policy_values(table: Table, policy: Policy) -> Array:
    """The discounted reward and constraint totals of a stationary policy in the user's units, ``(1+m,)``."""
    return table.problem().values_of(unit_policy_values(table, policy))


def mixture_values(table: Table, mixture: MixturePolicy) -> Array:
    """The same for a mixture, whose member is drawn once per episode: Σ_k w_k V^{π_k}, ``(1+m,)``."""
    members = np.array([unit_policy_values(table, member) for member in mixture.members])
    return table.problem().values_of(mixture.weights @ members)


def occupancy(table: Table, policy: Policy) -> Array:
    """μ_π(s, a) = Σ_t γᵗ Pr(s_t = s, a_t = a), ``(S, A)``; it sums to H."""
    pi, resolvent = _chain(table, policy)
    return np.asarray(resolvent.visits(start_distribution(table))[:, None] * pi)


def to_stationary(table: Table, mixture: MixturePolicy) -> TabularPolicy:
    """One stationary policy with the mixture's values on this table's P.

    It is not the average of the members' action probabilities: each member counts by how often it visits a state. States
    that no member visits get the first member's probabilities.
    """
    mu = sum(w * occupancy(table, member) for w, member in zip(mixture.weights, mixture.members, strict=True))
    return policy_of(np.asarray(mu), mixture.members[0].probabilities(np.arange(table.num_states)))


def policy_of(mu: Array, elsewhere: Array) -> TabularPolicy:
    """π(a|s) = μ(s, a)/Σ_a' μ(s, a'); where the denominator is zero, up to rounding, the probabilities ``elsewhere`` ``(S, A)``."""
    d = mu.sum(axis=1, keepdims=True)
    visited = d > _UNVISITED * d.sum()
    return TabularPolicy.stochastic(np.where(visited, mu / np.where(visited, d, 1.0), elsewhere))


def best_policy(table: Table, mixing: Array, start: TabularPolicy | None = None) -> tuple[TabularPolicy, Array]:
    """The exact unconstrained optimum of □_σ = σᵀ(r, c_1..c_m), σ = ``mixing`` ``(1+m,)``, and its unit values ``(1+m,)``.

    Policy iteration from the deterministic policy ``start`` (by default action 0 everywhere). Tied actions go to the
    lowest index.
    """
    u, sigma = table.utilities(), np.asarray(mixing, dtype=np.float64)
    require(sigma.shape == (u.shape[1],), "mixing", f"must have shape ({u.shape[1]},)", sigma.shape, "one a signal")
    first = np.zeros(table.num_states, dtype=np.int64) if start is None else np.asarray(start.table, dtype=np.int64)
    tie = _TIE * float(np.abs(sigma).sum()) / (1.0 - table.gamma)
    actions, V = policy_iteration(table.P, u, sigma, table.gamma, first, tie)
    policy = TabularPolicy.deterministic(actions, table.num_actions)
    return table.permitted(policy), np.asarray(start_distribution(table) @ V)


def start_distribution(table: Table) -> Array:
    """ρ as the problem reads it: divided by its sum, which is 1 within 1e-9."""
    return np.asarray(table.rho / table.rho.sum())
