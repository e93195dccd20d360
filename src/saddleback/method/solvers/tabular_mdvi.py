"""Alg. 6 (appendix, label alg_MDVICMDP): Tabular-MDVI, the case C = S × A where no regression is needed.

    V̂⁰ = 0,  Q̃^{−1} = 0
    for t = 0 … T−1:
        Q̂^t(s,a) = □(s,a) + γ (P̂_t V̂^t)(s,a)                                  for all (s,a)
        Q̃^t = Σ_{i≤t} Q̂^i
        V̂^{t+1}(s) = max_a Q̃^t(s,a) − max_a Q̃^{t−1}(s,a)
    return π_T(s) ∈ argmax_a Q̃^{T−1}(s,a)

The index is one lower than in Alg. 2, so the paper's output "Q̃^T" is Q̃^{T−1}: Q̃^T is never formed (docs/errata.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy, TabularPolicy, maximum_over_actions
from saddleback.problem.rounding import first_largest
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer


@dataclass(frozen=True)
class TabularMDVI:
    """``burn_in``, in effective horizons, is plain value iteration on the first batches, as in LS-MDVI (0: literal)."""

    burn_in: float = 0.0

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
