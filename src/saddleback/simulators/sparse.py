"""scipy.sparse transition tables: a list of A matrices ``(S, S)``, or one ``(S·A, S)`` with row s·A + a.

Nothing is ever made dense but the signals, which have one number a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from saddleback.errors import require
from saddleback.problem.cmdp import Constraint
from saddleback.simulators.table import Table
from saddleback.simulators.tabulate import checked_csr, signal_array, table_of


def from_sparse(
    P: Any,
    reward: Any,
    constraints: Sequence[Constraint],
    *,
    gamma: float,
    rho: ArrayLike,
    name: str = "sparse",
    **more: Any,
) -> Table:
    """A table from sparse transition matrices, one an action or all in one.

    ``reward`` and the signals of ``constraints`` are arrays ``(S, A)`` or functions ``(states, actions) -> (n,)``. Other
    options are those of :class:`Table` (``reward_range``, ``phi``, ``state_names``).
    """
    if scipy.sparse.issparse(P):
        rows = checked_csr("P", P)
        S = rows.shape[1]
        require(
            S > 0 and rows.shape[0] > 0 and rows.shape[0] % S == 0,
            "P",
            "must have shape (S·A, S)",
            rows.shape,
            "stack the actions so that row s*A + a is P(· | s, a)",
        )
        A = rows.shape[0] // S
    else:
        rows, S, A = _interleaved(P)
    costs = [signal_array(c.name, c.signal, S, A) for c in constraints]
    return table_of(
        rows, signal_array("reward", reward, S, A), costs, constraints, gamma=gamma, rho=rho, name=name, **more
    )


def _interleaved(P: Any) -> tuple[scipy.sparse.csr_array, int, int]:
    """The matrices of a list, one an action, as one with row s·A + a."""
    matrices = list(P)
    require(
        len(matrices) > 0 and all(map(scipy.sparse.issparse, matrices)),
        "P",
        "must be a sparse matrix or a list of them, one an action",
        [type(m).__name__ for m in matrices[:3]],
        "use Table.of for dense arrays",
    )
    checked = [checked_csr(f"P[{a}]", m) for a, m in enumerate(matrices)]
    S, A = checked[0].shape[1], len(checked)
    for a, m in enumerate(checked):
        require(m.shape == (S, S), f"P[{a}]", f"must have shape {(S, S)}", m.shape, "index it [s, s']")
    stacked = scipy.sparse.csr_array(scipy.sparse.vstack(checked, format="csr"))  # row a·S + s
    order = (np.arange(A) * S + np.arange(S)[:, None]).ravel()
    return scipy.sparse.csr_array(stacked[order]), S, A
