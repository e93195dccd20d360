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
import scipy.sparse
from scipy.sparse.linalg import splu

from saddleback.errors import NumericalError, require
from saddleback.problem.policies import MixturePolicy, Policy, TabularPolicy
from saddleback.problem.spaces import Array
from saddleback.simulators.table import Table

_RESIDUAL = 1e-9  # a Bellman residual e moves a value by at most H·e, so values are right to 1e-9 of their range [0, H]
_UNVISITED = 1e-13  # of all visits: below it there is only rounding error
_TIE = 1e-13  # of H: two actions closer than this are tied; about 500 rounding errors of a value
_MAX_IMPROVEMENTS = 1000


class _Chain:
    """The Markov chain of one policy, with I − γP_π factored once for values and occupancies."""

    def __init__(self, table: Table, policy: Policy):
        S, A = table.num_states, table.num_actions
        self.pi = policy.probabilities(np.arange(S))
        require(
            self.pi.shape == (S, A),
            "policy",
            f"must give probabilities of shape {(S, A)}",
            self.pi.shape,
            "use a policy for this table",
        )
        choose = scipy.sparse.csr_array((self.pi.flatten(), np.arange(S * A), np.arange(0, S * A + 1, A)), (S, S * A))
        choose.eliminate_zeros()
        self.gamma = table.gamma
        self.P = choose @ table.P  # P_π
        # Rows of I − γP_π are diagonally dominant, so the diagonal is a stable pivot; and with no other pivot the
        # occupancy of an unreachable state is exactly zero.
        try:
            self._lu = splu(
                scipy.sparse.csc_array(scipy.sparse.eye_array(S) - self.gamma * self.P),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:
            raise NumericalError(
                f"the Bellman equation could not be solved at gamma = {self.gamma}: {error}."
            ) from None

    def values(self, utilities: Array) -> Array:
        """V^π for utilities ``(S·A, k)``, ``(S, k)``."""
        S, A = self.pi.shape
        u = np.einsum("sa,sak->sk", self.pi, utilities.reshape(S, A, -1))  # u_π
        V = self._lu.solve(u)
        _check("the Bellman equation V = u + γPV", u + self.gamma * (self.P @ V) - V, float(np.abs(u).max(initial=1.0)))
        return np.asarray(V)

    def visits(self, rho: Array) -> Array:
        """d_π, ``(S,)``, which sums to H."""
        d = np.maximum(self._lu.solve(rho, "T"), 0.0)  # type: ignore[call-overload]  # the stubs do not know "T"
        H = 1.0 / (1.0 - self.gamma)
        _check("the flow equation d = ρ + γPᵀd", (rho + self.gamma * (self.P.T @ d) - d) / H, 1.0)
        return d


def state_values(table: Table, policy: Policy) -> Array:
    """V_r^π, V_{c_1}^π … at every state in the paper's units, ``(S, 1+m)``."""
    return _Chain(table, policy).values(table.utilities())


def unit_policy_values(table: Table, policy: Policy) -> Array:
    """V_r^π(ρ), V_{c_1}^π(ρ) … in the paper's units, ``(1+m,)``."""
    return np.asarray(start_distribution(table) @ state_values(table, policy))


def policy_values(table: Table, policy: Policy) -> Array:
    """The discounted reward and constraint totals of a stationary policy in the user's units, ``(1+m,)``."""
    return table.problem().values_of(unit_policy_values(table, policy))


def mixture_values(table: Table, mixture: MixturePolicy) -> Array:
    """The same for a mixture, whose member is drawn once per episode: Σ_k w_k V^{π_k}, ``(1+m,)``."""
    u, rho = table.utilities(), start_distribution(table)
    members = np.array([rho @ _Chain(table, member).values(u) for member in mixture.members])
    return table.problem().values_of(mixture.weights @ members)


def occupancy(table: Table, policy: Policy) -> Array:
    """μ_π(s, a) = Σ_t γᵗ Pr(s_t = s, a_t = a), ``(S, A)``; it sums to H."""
    chain = _Chain(table, policy)
    return np.asarray(chain.visits(start_distribution(table))[:, None] * chain.pi)


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
    S, A, u = table.num_states, table.num_actions, table.utilities()
    sigma = np.asarray(mixing, dtype=np.float64)
    require(sigma.shape == (u.shape[1],), "mixing", f"must have shape ({u.shape[1]},)", sigma.shape, "one a signal")
    box = u @ sigma  # □_σ
    tie = _TIE * float(np.abs(sigma).sum()) / (1.0 - table.gamma)
    actions = np.zeros(S, dtype=np.int64) if start is None else np.asarray(start.table, dtype=np.int64)
    every = np.arange(S)
    for _ in range(_MAX_IMPROVEMENTS):
        V = _Chain(table, TabularPolicy.deterministic(actions, A)).values(u)
        Q = (box + table.gamma * (table.P @ (V @ sigma))).reshape(S, A)
        best = Q.max(axis=1)
        better = best - Q[every, actions] > tie
        if not better.any():
            break
        actions = np.where(better, (best[:, None] - Q <= tie).argmax(axis=1), actions)
    else:
        raise NumericalError(
            f"policy iteration did not settle in {_MAX_IMPROVEMENTS} rounds at gamma = {table.gamma}: "
            "values of size H lose the digits that tell its actions apart; use a smaller gamma."
        )
    lowest = (best[:, None] - Q <= tie).argmax(axis=1)
    policy = TabularPolicy.deterministic(lowest, A)
    if np.any(lowest != actions):
        V = _Chain(table, policy).values(u)
    return table.permitted(policy), np.asarray(start_distribution(table) @ V)


def start_distribution(table: Table) -> Array:
    """ρ as the problem reads it: divided by its sum, which is 1 within 1e-9."""
    return np.asarray(table.rho / table.rho.sum())


def _check(equation: str, residual: Array, size: float) -> None:
    worst = float(np.abs(residual).max())
    if not worst <= _RESIDUAL * size:
        raise NumericalError(
            f"{equation} is left with a residual of {worst:.3g}, more than {_RESIDUAL * size:.3g}; "
            "a gamma so close to 1 cannot be solved in double precision."
        )
