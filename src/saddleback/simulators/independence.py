"""Are values independent? Exact tests, whatever their law.

**Two yes-no answers** that do not hang together: given how often each is yes, the number of pairs with two yeses has the
hypergeometric distribution, whatever the chances are (Fisher's exact test; ``scipy.stats`` has it too, but takes a second to
import). So for N pairs, j and k yeses,

    p = 2·min{P(X ≤ x), P(X ≥ x)},    P(X = x) = C(k, x)·C(N−k, j−x) / C(N, j)

is at most α with probability at most α under independence.

**Groups that agree within themselves too often.** Of N = M·n values in M groups of n, J are yes. Given J every arrangement is
as likely, the groups' numbers of yeses are negatively associated, and each is hypergeometric. So for every a and k

    P(at least k groups have a yeses or more)  ≤  C(M, k)·q_a^k,       q_a = P(hypergeometric(N, J, n) ≥ a)

One random number for a whole call, for every eighth row or for every call alike makes groups (the rows of a call, the same row
of all calls) that agree, in whatever order.

Values become yes-no answers by a threshold. One that depends on all values alike, such as a quantile of them, does not spoil
this: given the values in no order, every order is as likely. Where all values are the same there is nothing to test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.problem.spaces import Array

FALSE_ALARM = 1e-6
"""Chance that all tests of a run together accuse a sound simulator of anything."""

_MOST_COLUMNS = 8  # coordinates and signals that are tested


def columns(states: NDArray[Any], signals: Array | None) -> Array:
    """Next states and observed signals as numbers, one row a column ``(k, n)``."""
    values = states[:, None] if states.ndim == 1 else states
    table = values if signals is None else np.column_stack([values, signals])
    return np.asarray(table.T, dtype=np.float64)


def few_columns(states: NDArray[Any], signals: Array | None = None) -> Array:
    """The same, a few of them where they are many."""
    table = columns(states, signals)
    return table[np.unique(np.linspace(0, len(table) - 1, min(len(table), _MOST_COLUMNS)).astype(int))]


def fisher(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """The p-value that yes-no answers ``(N,)``, given in pairs, are independent."""
    N, j, k = len(first), int(first.sum()), int(second.sum())
    x = int((first & second).sum())
    low, masses = _hypergeometric(N, j, k)
    return float(min(1.0, 2 * min(masses[: x - low + 1].sum(), masses[x - low :].sum())))


def one_law(one: Array, two: Array) -> float:
    """The p-value that values ``(n,)`` and ``(m,)`` are from one law: the smallest over a few thresholds, times their number."""
    which = np.repeat([True, False], [len(one), len(two)])
    answers = list(_answers(np.concatenate([one, two])))
    return min([1.0, *(fisher(which, yes) * len(answers) for yes in answers)])


def unrelated(one: Array, two: Array) -> float:
    """The p-value that values ``(n,)`` and ``(n,)``, of one law each, are independent in pairs; likewise."""
    answers = list(zip(_answers(one), _answers(two), strict=False))
    return min([1.0, *(fisher(first, second) * len(answers) for first, second in answers)])


def in_no_order(values: Array) -> float:
    """The p-value that values ``(n,)`` do not depend on those so many places before, for whatever number of places.

    The distance with the largest autocorrelation is tested on pairs that have no value in common; its p-value is
    multiplied by the number of distances.
    """
    n, answers = len(values), list(_answers(values))
    most, smallest = 2 * n // 3, 1.0
    for yes in answers:
        spectrum = np.abs(np.fft.rfft(yes - yes.mean(), 2 * n)) ** 2
        found = np.abs(np.fft.irfft(spectrum, 2 * n)[1 : most + 1]) / np.sqrt(n - np.arange(1, most + 1))
        distance = 1 + int(found.argmax())
        first = np.arange(n - distance)
        first = first[first // distance % 2 == 0]
        smallest = min(smallest, fisher(yes[first], yes[first + distance]) * most * len(answers))
    return smallest


def ungrouped(table: Array) -> float:
    """The p-value that values ``(M, n)``, all from one law, do not agree within the M groups more than chance has it."""
    M, n = table.shape
    answers = [a for yes in _answers(table.ravel()) for a in (yes.reshape(M, n), ~yes.reshape(M, n))]
    if not answers:
        return 1.0
    smallest, log_factorials = 0.0, _log_factorials(M)
    for yes in answers:
        total = int(yes.sum())
        low, masses = _hypergeometric(M * n, total, n)
        tails = np.cumsum(masses[::-1])[::-1]  # q_a for a = low, low + 1 …
        k = np.bincount(yes.sum(axis=1), minlength=n + 1)[::-1].cumsum()[::-1][low : low + len(masses)]
        log_chance = log_factorials[M] - log_factorials[k] - log_factorials[M - k]
        log_chance = log_chance + k * np.log(np.clip(tails, 1e-300, 1.0))
        smallest = min(smallest, float(log_chance[max(0, total // M + 1 - low) :].min(initial=0.0)))
    return min(1.0, math.exp(max(-690.0, smallest)) * len(answers) * n)


def _hypergeometric(N: int, j: int, k: int) -> tuple[int, Array]:
    """P(X = x) for x = low, low + 1 … where X of j marked ones among N are among k that are drawn; and low."""
    low, high = max(0, j + k - N), min(j, k)
    log_factorials = _log_factorials(N)
    x = np.arange(low, high + 1)

    def choose(n: Any, r: Any) -> Any:
        return log_factorials[n] - log_factorials[r] - log_factorials[n - r]

    return low, np.exp(choose(k, x) + choose(N - k, j - x) - choose(N, j))


_KNOWN: list[Array] = [np.zeros(1)]


def _log_factorials(most: int) -> Array:
    """log 0! … log most!, kept from call to call."""
    if len(_KNOWN[0]) <= most:
        _KNOWN[0] = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 2 * most + 1)))])
    return _KNOWN[0]


def _answers(values: Array) -> Iterator[NDArray[np.bool_]]:
    """Values as yes-no answers: above a quarter, a half and three quarters of them, and equal to the commonest."""
    distinct, counts = np.unique(values, return_counts=True)
    places = np.floor(np.array([0.25, 0.5, 0.75]) * (len(values) - 1))
    quantiles = distinct[np.searchsorted(counts.cumsum(), places, side="right")]
    candidates = [*(values > x for x in quantiles), values == distinct[counts.argmax()]]
    seen: set[bytes] = set()
    for yes in candidates:
        same = {yes.tobytes(), (~yes).tobytes()}
        if yes.any() and not yes.all() and not same & seen:
            seen |= same
            yield yes
