"""The table that a buffer of every pair estimates: P̂(s'|s,a) = the frequencies of its samples, □ = σᵀ(r, c_1..c_m).

P̂ comes from the buffer over its support, the states that were reached; here it is written over all states.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, counted


def over_all_states(P: scipy.sparse.csr_array, buffer: Buffer, num_states: int) -> scipy.sparse.csr_array:
    """P ``(n, len(support))`` as ``(n, S)``, its columns in order."""
    wide = scipy.sparse.csr_array((P.data, buffer.support[P.indices], P.indptr), shape=(P.shape[0], num_states))
    wide.sort_indices()
    return wide


def estimated_table(problem: CMDP, buffer: Buffer, mixing: Array) -> tuple[scipy.sparse.csr_array, Array]:
    """P̂ ``(S·A, S)``, and □ ``(k, S, A)`` for each row σ of ``mixing`` ``(k, 1+m)``."""
    S, A = buffer.tabular_shape(problem)
    box = buffer.utilities(problem) @ np.asarray(mixing, dtype=np.float64).T
    return over_all_states(counted(buffer).empirical_model(), buffer, S), np.ascontiguousarray(box.T).reshape(-1, S, A)
