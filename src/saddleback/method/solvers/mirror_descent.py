"""§4.2 and appendix "Deriving LS-MDVI": entropic mirror descent with KL weight τ and entropy weight κ, both finite.

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
from saddleback.method.solvers.ls_mdvi import mixed_reward
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy, SoftmaxPolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, SoftDifference, Value


@dataclass(frozen=True)
class MirrorDescent:
    """``kl`` is τ, ``entropy`` is κ; rewards are utilities in [0, 1]."""

    kl: float = 0.1
    entropy: float = 0.0

    def __post_init__(self) -> None:
        require(
            self.kl >= 0 and self.entropy >= 0 and self.kl + self.entropy > 0,
            "kl, entropy",
            "must be non-negative and not both zero",
            (self.kl, self.entropy),
            "use ls-mdvi for the limit of zero regularisation",
        )

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
