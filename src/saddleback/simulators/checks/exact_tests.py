"""Exact tests of independence, whatever the law of the values.

Two yes-no answers that do not hang together: given how often each is yes, the number of pairs with two yeses has the
hypergeometric distribution, whatever the chances are (Fisher's exact test). So for N pairs, j and k yeses,

    p = 2·min{P(X ≤ x), P(X ≥ x)},    P(X = x) = C(k, x)·C(N−k, j−x) / C(N, j)

is at most α with probability at most α under independence. Values become yes-no answers by a threshold. One that depends on all
values alike, such as a quantile of them, does not spoil this: given the values in no order, every order is as likely.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.problem.spaces import Array


def fisher(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """The p-value that yes-no answers ``(N,)``, given in pairs, are independent."""
    N, j, k = len(first), int(first.sum()), int(second.sum())
    x = int((first & second).sum())
    low, high = max(0, j + k - N), min(j, k)
    total = _log_choose(N, j)
    logs = [_log_choose(k, i) + _log_choose(N - k, j - i) - total for i in range(low, high + 1)]
    masses = np.exp(np.array(logs))
    return float(min(1.0, 2 * min(masses[: x - low + 1].sum(), masses[x - low :].sum())))


def one_law(one: Array, two: Array) -> float:
    """The p-value that values ``(n,)`` and ``(m,)`` are from one law: the smallest over a few thresholds, times their number."""
    which = np.repeat([True, False], [len(one), len(two)])
    answers = list(_answers(np.concatenate([one, two])))
    return min([1.0, *(fisher(which, yes) * len(answers) for yes in answers)])


def unrelated(one: Array, two: Array) -> float:
    """The p-value that values ``(n,)`` and ``(n,)``, all from one law, are independent in pairs; likewise."""
    answers = list(_answers(np.concatenate([one, two])))
    n = len(one)
    return min([1.0, *(fisher(yes[:n], yes[n:]) * len(answers) for yes in answers)])


def _answers(values: Array) -> Iterator[NDArray[np.bool_]]:
    """Values as yes-no answers: above a quarter, a half and three quarters of them, and equal to the commonest."""
    distinct, counts = np.unique(values, return_counts=True)
    candidates = [values > np.quantile(values, share, method="lower") for share in (0.25, 0.5, 0.75)]
    candidates.append(values == distinct[counts.argmax()])
    seen: set[bytes] = set()
    for yes in candidates:
        same = {yes.tobytes(), (~yes).tobytes()}
        if yes.any() and not yes.all() and not same & seen:
            seen |= same
            yield yes


def columns(states: NDArray[Any], signals: Array | None) -> Array:
    """Next states and observed signals as numbers, one row a column ``(k, n)``."""
    values = states[:, None] if states.ndim == 1 else states
    table = values if signals is None else np.column_stack([values, signals])
    return np.asarray(table.T, dtype=np.float64)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
