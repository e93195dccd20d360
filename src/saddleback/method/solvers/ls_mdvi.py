"""Alg. 2 (§4.2, label alg_MDVICLMDP): least-squares mirror descent value iteration, LS-MDVI.

    V̂⁰ = 0,  θ̃⁰ = 0
    for t = 0 … T−1:
        Q̂^{t+1}(s,a) = □(s,a) + γ (P̂_t V̂^t)(s,a)                              for (s,a) ∈ C
        θ^{t+1} = argmin_θ Σ_{(x,b)∈C} ρ̃(x,b) (⟨φ(x,b),θ⟩ − Q̂^{t+1}(x,b))²  = W(Q̂^{t+1})
        Q̃^{t+1} = ⟨φ, Σ_{i≤t+1} θ^i⟩
        V̂^{t+1}(s) = max_a Q̃^{t+1}(s,a) − max_a Q̃^t(s,a)
    return π_T(s) ∈ argmax_a Q̃^T(s,a)

Only the running sum of the θ's is kept. The averages lag behind: on a ten-step chain with a delayed reward the literal
policy is optimal from t = 81 on, plain value iteration's from t = 26. With ``burn_in`` the first batches are spent on
plain least-squares value iteration, whose V̂ replaces V̂⁰ = 0; those batches are not used again, so the analysis
holds with V⁰ in the place of zero.

Alg. 6 (appendix, label alg_MDVICMDP): Tabular-MDVI, the case C = S × A where no regression is needed.

    V̂⁰ = 0,  Q̃^{−1} = 0
    for t = 0 … T−1:
        Q̂^t(s,a) = □(s,a) + γ (P̂_t V̂^t)(s,a)                                  for all (s,a)
        Q̃^t = Σ_{i≤t} Q̂^i
        V̂^{t+1}(s) = max_a Q̃^t(s,a) − max_a Q̃^{t−1}(s,a)
    return π_T(s) ∈ argmax_a Q̃^{T−1}(s,a)

The index is one lower than in Alg. 2, so the paper's output "Q̃^T" is Q̃^{T−1}: Q̃^T is never formed (docs/errata.md).

§4.2 and appendix "Deriving LS-MDVI": entropic mirror descent with KL weight τ and entropy weight κ, both finite.

    α = τ/(τ+κ),  β = 1/(τ+κ)
    π_{t+1}(a|s) ∝ π_t(a|s)^α exp(β Q^{t+1}(s,a)),   π_0 uniform
    V^{t+1} = π_{t+1}Q^{t+1} − τ KL(π_{t+1}‖π_t) + κ ℋ(π_{t+1})
            = (1/β) lse_a(β Σ_{i≤t+1} α^{t+1−i} Q^i) − (α/β) lse_a(β Σ_{i≤t} α^{t−i} Q^i)

The paper prints α^{t−i} with the later t in the second sum, which is right only for α = 1 (docs/errata.md). With the
regression of Alg. 2 in place of Q: θ̃^{t+1} = α θ̃^t + θ^{t+1}. LS-MDVI is the limit κ = 0, τ → 0; the output is the
softmax policy of θ̃^T.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddleback.errors import require
from saddleback.method.oracles import Needs, require_bounded
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import first_largest
from saddleback.problem.policies import GreedyPolicy, Policy, SoftmaxPolicy, TabularPolicy, maximum_over_actions
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, MaxDifference, SoftDifference, Value


@dataclass(frozen=True)
class LSMDVI:
    """``burn_in`` is the length of the plain value iteration in effective horizons (0: the paper's V̂⁰ = 0)."""

    burn_in: float = 0.0

    def __post_init__(self) -> None:
        require(self.burn_in >= 0, "burn_in", "must not be negative", self.burn_in, "use 0 for the literal algorithm")

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """π_T for every row of ``mixing``, all in one pass over the buffer."""
        features = problem.required_features()
        box = mixed_reward(problem, buffer, mixing)  # □ on C
        V, first = self._start(problem, buffer, box)  # V̂⁰
        W = buffer.design.fit
        theta_sum = np.zeros((features.dim, *box.shape[1:]))
        with np.errstate(over="ignore", invalid="ignore"):  # said below, in words
            for t in range(first, buffer.num_batches):
                Q = box + problem.gamma * buffer.expect(t, V)  # Q̂^{t+1}
                theta_previous, theta_sum = theta_sum, theta_sum + W(Q)  # Σ_{i≤t+1} θ^i
                V = MaxDifference(theta_sum, theta_previous)  # V̂^{t+1}
        require_bounded(theta_sum)
        columns = theta_sum.reshape(features.dim, -1).T
        return [GreedyPolicy(features, np.ascontiguousarray(theta)) for theta in columns]

    def _start(self, problem: CMDP, buffer: Buffer, box: Array) -> tuple[Value, int]:
        """V̂⁰ and the first batch that is still unused."""
        zero: Value = np.zeros((len(buffer.support), *box.shape[1:]))
        length = buffer.burn_in(self.burn_in * problem.horizon)
        if length == 0:
            return zero, 0
        V, origin = zero, np.zeros((problem.required_features().dim, *box.shape[1:]))
        for t in range(length):
            V = MaxDifference(buffer.design.fit(box + problem.gamma * buffer.expect(t, V)), origin)
        return V, length


def mixed_reward(problem: CMDP, buffer: Buffer, mixing: Array) -> Array:
    """□ = σᵀ(r, c) on the coreset: ``(c,)`` for one row of ``mixing``, ``(c, k)`` for several."""
    box = buffer.utilities(problem) @ mixing.T
    return np.ascontiguousarray(box[:, 0]) if len(mixing) == 1 else box


@dataclass(frozen=True)
class TabularMDVI:
    """``burn_in``, in effective horizons, is plain value iteration on the first batches, as in LS-MDVI (0: literal)."""

    burn_in: float = 0.0

    def needs(self, problem: CMDP) -> Needs:
        """A table."""
        return Needs(every_pair=True)

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """π_T for every row of ``mixing``, all in one pass over the buffer."""
        S, A = buffer.tabular_shape(problem)
        box = (buffer.utilities(problem) @ mixing.T).reshape(S, A, -1)  # □
        V = np.zeros((S, len(mixing)))  # V̂⁰
        first = buffer.burn_in(self.burn_in * problem.horizon)
        for t in range(first):
            V = maximum_over_actions(box + problem.gamma * buffer.expect(t, V[buffer.support]).reshape(S, A, -1))
        Q_sum = np.zeros((S, A, len(mixing)))  # Q̃^{−1}
        top = maximum_over_actions(Q_sum)
        for t in range(first, buffer.num_batches):
            Q_sum += box + problem.gamma * buffer.expect(t, V[buffer.support]).reshape(S, A, -1)  # Q̃^t
            previous, top = top, maximum_over_actions(Q_sum)
            V = top - previous  # V̂^{t+1}
        return [TabularPolicy.deterministic(first_largest(Q_sum[:, :, k], axis=1), A) for k in range(len(mixing))]


@dataclass(frozen=True)
class MirrorDescent:
    """``kl`` is τ, ``entropy`` is κ; rewards are utilities in [0, 1]."""

    kl: float = 0.1
    entropy: float = 0.0

    def __post_init__(self) -> None:
        weights, remedy = (self.kl, self.entropy), "use ls-mdvi for the limit of zero regularisation"
        good = min(weights) >= 0 and sum(weights) > 0
        require(good, "kl, entropy", "must be non-negative and not both zero", weights, remedy)

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """The last softmax policy for every row of ``mixing``, all in one pass over the buffer."""
        features = problem.required_features()
        alpha, beta = self.kl / (self.kl + self.entropy), 1.0 / (self.kl + self.entropy)
        box = mixed_reward(problem, buffer, mixing)  # □ on C
        V: Value = np.zeros((len(buffer.support), *box.shape[1:]))  # V⁰
        theta_sum = np.zeros((features.dim, *box.shape[1:]))
        for t in range(buffer.num_batches):
            Q = box + problem.gamma * buffer.expect(t, V)
            theta_previous, theta_sum = theta_sum, alpha * theta_sum + buffer.design.fit(Q)  # θ̃^{t+1}
            V = SoftDifference(theta_sum, theta_previous, alpha, beta)  # V^{t+1}
        columns = theta_sum.reshape(features.dim, -1).T
        return [SoftmaxPolicy(features, np.ascontiguousarray(theta), beta) for theta in columns]
