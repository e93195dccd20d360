"""Held-out pairs: samples that refute a transition law linear in the features, with a proved false-alarm rate.

If P(·|s,a) = Σ_j φ_j(s,a) μ_j, then Pf is linear in φ for every f: S → [0, 1], and at any pair p

    D(p,f) = P̂f(p) − ⟨φ(p), W(P̂f)⟩ = Σ_y A_py P̂f(y),     A_pp = 1,   A_px = −(φ(p)ᵀB)_x for x ∈ C,   W(z) = Bz

has mean zero. All P̂f(y) are means of n fresh samples, f is drawn or given beforehand, so D is a sum of independent bounded
variables. f runs through random binary functions (a random half of a finite space, random half-spaces otherwise), value
functions mapped affinely to [0, 1], and the utilities of observed signals.

t(V̂, β, L) below is what such a sum exceeds its mean by with probability at most 2e^{−L} (:func:`.deviation_limit`).

*One by one* (δ/2): linearity is rejected if |D(p,f)| > t at L = log(3kK/(δ/2)) for one of k pairs × K functions: two sides
and one variance each. Here R_y = |A_py|. This finds a single bad pair.

*Together* (δ/2): misspecification is often everywhere and everywhere too small for that. Even samples (a) choose weights, odd
ones (b) are tested, and the other way round, at L = log(2/(δ/4)) each (one side, one variance):

    v_pf = D_a(p,f)/(V̂_a(p,f) + β²),  Σ|v| = 1,      T = Σ_pf v_pf D_b(p,f) = Σ_y P̂_b g_y,   g_y = Σ_f (Aᵀv)_yf f

Given (a), g is fixed, R_y = Σ_f |(Aᵀv)_yf|, and ET = 0 if P is linear; else ET ≈ Σ (Pf − fit)²/V > 0.

*What passing shows.* The k pairs are drawn without replacement from a pool. Given the samples of the coreset, a pair of the
pool passes with some probability; if those average less than 1 − q, all k pass with probability at most (1−q)^k ≤ e^{−qk}
(Maclaurin's inequality for the drawing without replacement). At confidence 1 − δ a further pair passes with probability at
least 1 − ln(1/δ)/k. Nothing is proved about deviations smaller than the limits.

*Probes.* The pairs outside the coreset, and the functions of the next state with values in [0, 1], are chosen before the
samples that test them are drawn, and independently of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from saddleback.certificates.values.intervals import deviation_limit
from saddleback.designs.design import Design
from saddleback.errors import require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, Array, States
from saddleback.sampling.blocks import Block, BlockSource, Executor, InOrder, blocks_for
from saddleback.simulators.generative_model import Draw, GenerativeModel, Stream, generator

StateFunction = Callable[[States], Array]
"""A function of states ``(n,)`` or ``(n, k)`` with values ``(n,)``."""

_MOST_STATES = 100_000  # of the pool, where the range of a value function is looked up


class Probes(NamedTuple):
    """K functions of a draw with values in [0, 1]: ``evaluate`` gives ``(n, K)``."""

    names: tuple[str, ...]
    evaluate: Callable[[Draw], Array]


def choose_pairs(problem: CMDP, design: Design, num: int, rng: np.random.Generator) -> tuple[States, Actions]:
    """``num`` distinct candidates outside the coreset, all equally likely; where there are none, any candidates."""
    states, actions = problem.pairs()

    def key(s: States, a: Actions, i: int) -> tuple[bytes, int]:
        return s[i].tobytes(), int(a[i])

    coreset = {key(design.states.astype(states.dtype), design.actions, i) for i in range(design.size)}
    order = rng.permutation(len(actions))
    chosen = list[int]()
    for excluded in (coreset, set[tuple[bytes, int]]()):
        seen = set(excluded)
        for i in order:
            pair = key(states, actions, i)
            if pair not in seen:
                seen.add(pair)
                chosen.append(i)
            if len(chosen) == num:
                break
        if chosen:
            break
    return states[chosen], actions[chosen]


def choose_probes(problem: CMDP, functions: Sequence[StateFunction], num: int, rng: np.random.Generator) -> Probes:
    """``num`` random binary functions, the given ones mapped to [0, 1], and the utilities of observed signals."""
    pool = problem.pairs()[0]
    pool = pool[:: 1 + len(pool) // _MOST_STATES]
    random = _halves(problem.num_states, num, rng) if problem.num_states else _half_spaces(pool, num, rng)
    ranges = []
    for f in functions:
        values = _values(f, pool)
        ranges.append((float(values.min()), float(values.max())))
    seen = np.flatnonzero(problem.observed)

    def evaluate(draw: Draw) -> Array:
        columns = [random(draw.next_states)]
        for f, (low, high) in zip(functions, ranges, strict=True):
            x = (_values(f, draw.next_states) - low) / (high - low or 1.0)
            # Cut where the pool did not show the whole range: what is tested then is another function, a bounded one.
            columns.append(np.clip(x, 0.0, 1.0)[:, None])
        if draw.signals is not None:
            columns.append(problem.utilities_of(draw.signals)[:, seen])
        return np.hstack(columns)

    names = [f"random function {i + 1}" for i in range(num)]
    names += [f"value function {i + 1}" for i in range(len(functions))]
    names += [f"observed {problem.signals[i].name}" for i in seen]
    return Probes(tuple(names), evaluate)


def _halves(num_states: int, num: int, rng: np.random.Generator) -> StateFunction:
    """Indicators of random halves of a finite space, ``(n, num)``."""
    half = np.arange(num_states) < num_states / 2
    halves = rng.permuted(np.repeat(half[:, None], num, axis=1), axis=0)
    return lambda states: halves[states].astype(np.float64)


def _half_spaces(pool: States, num: int, rng: np.random.Generator) -> StateFunction:
    """Indicators of half-spaces whose edges pass through points of the pool, ``(n, num)``."""
    spread = pool.std(axis=0)
    normals = rng.standard_normal((pool.shape[1], num)) / np.where(spread > 0, spread, 1.0)[:, None]
    offsets = (pool[rng.integers(len(pool), size=num)] @ normals).diagonal()
    return lambda states: (states @ normals >= offsets).astype(np.float64)


def _values(function: StateFunction, states: States) -> Array:
    values = np.asarray(function(states), dtype=np.float64)
    n, good = len(states), values.shape == (len(states),) and bool(np.all(np.isfinite(values)))
    rule = f"must return {n} finite numbers for {n} states"
    require(good, "functions", rule, f"shape {values.shape}", "vectorise them over the states")
    return values


class Deviation(NamedTuple):
    """The most suspicious outcome: ``statistic`` rejects above ``limit``; ``z`` is in standard errors, for readers."""

    statistic: float
    limit: float
    z: float
    pair: int
    function: str

    @property
    def rejects(self) -> bool:
        """Whether this refutes linearity."""
        return self.statistic > self.limit


class HeldOut(NamedTuple):
    """Both tests at the pairs ``(states, actions)``, and what they cost."""

    single: Deviation
    together: Deviation
    states: States
    actions: Actions
    samples: int


class _Moments(NamedTuple):
    """Means ``(Y, K)`` and covariances ``(Y, K, K)`` of the probes at every pair, from ``num`` samples each."""

    num: int
    mean: Array
    covariance: Array


class Probing(NamedTuple):
    """What is probed, besides random functions, and the streams (seed, CERTIFICATE, pair) that are used up for it.

    pair = first_pair … first_pair + |C| + num_pairs. ``executor`` draws the blocks (None: here).
    """

    functions: Sequence[StateFunction]
    num_pairs: int
    num_functions: int
    seed: int
    first_pair: int
    executor: Executor | None


def held_out_tests(
    problem: CMDP, design: Design, model: GenerativeModel, probing: Probing, samples: int, delta: float
) -> HeldOut:
    """Draw ``samples`` in all, the same number at every pair, and test."""
    assert design.operator is not None
    rng = generator(probing.seed, Stream.CERTIFICATE, probing.first_pair, 0)
    states, actions = choose_pairs(problem, design, probing.num_pairs, rng)
    probes = choose_probes(problem, probing.functions, probing.num_functions, rng)
    k, c = len(actions), design.size
    n = samples // (k + c)
    rule = f"must give each of the {k} held-out pairs and {c} pairs of the coreset at least 4"
    require(n >= 4, "samples", rule, samples, f"draw {4 * (k + c)} or more, or hold out fewer pairs")
    first = probing.first_pair + 1
    everywhere = np.concatenate([states, design.states]), np.concatenate([actions, design.actions])
    source = BlockSource(model, problem, *everywhere, probing.seed, first)
    tasks = blocks_for(Stream.CERTIFICATE, np.full(k + c, n), first_pair=first)
    folds = _moments(dict((probing.executor or InOrder()).run(source.draw, tasks)), probes, first, k + c, n)
    A = np.hstack([np.eye(k), -problem.required_features().at(states, actions) @ design.operator])
    single = _one_by_one(A, folds[2], probes.names, delta / 2)
    both = [_together(A, folds[a], folds[1 - a], delta / 4) for a in (0, 1)]
    together = max(both, key=lambda t: t.statistic / t.limit if t.limit > 0 else 0.0)
    return HeldOut(single, together, states, actions, n * (k + c))


def _one_by_one(A: Array, m: _Moments, names: tuple[str, ...], delta: float) -> Deviation:
    """The (pair, function) whose |D| is largest beside its limit."""
    D = A @ m.mean
    V = A**2 @ np.einsum("ykk->yk", m.covariance) / m.num
    beta = np.abs(A).max(axis=1, keepdims=True) / (m.num - 1)
    limit = deviation_limit(V, beta, math.log(3 * D.size / delta))
    p, f = np.unravel_index(np.argmax(np.abs(D) / limit), D.shape)
    z = np.abs(D) / np.maximum(np.sqrt(V), beta)
    return Deviation(float(abs(D[p, f])), float(limit[p, f]), float(z[p, f]), int(p), names[f])


def _together(A: Array, a: _Moments, b: _Moments, delta: float) -> Deviation:
    """T with the weights that fold ``a`` chose, on fold ``b``."""
    V_a = A**2 @ np.einsum("ykk->yk", a.covariance) / a.num
    v = (A @ a.mean) / (V_a + (np.abs(A).max(axis=1, keepdims=True) / (a.num - 1)) ** 2)
    v /= max(float(np.abs(v).sum()), np.finfo(np.float64).tiny)
    u = A.T @ v  # (Y, K)
    share = (v * (A @ b.mean)).sum(axis=1)  # of each held-out pair in T
    V = max(float(np.einsum("yj,yjk,yk->", u, b.covariance, u)) / b.num, 0.0)
    beta = float(np.abs(u).sum(axis=1).max()) / (b.num - 1)
    T, limit = float(share.sum()), float(deviation_limit(V, beta, math.log(2 / delta)))
    z = T / max(math.sqrt(V), beta, np.finfo(np.float64).tiny)
    return Deviation(T, limit, z, int(np.argmax(share)), "all functions")


def _moments(
    drawn: dict[Block, Draw], probes: Probes, first_pair: int, num_pairs: int, n: int
) -> tuple[_Moments, _Moments, _Moments]:
    """Of the even samples, the odd ones and all, block by block."""
    Y, K = num_pairs, len(probes.names)
    num, sums, products = np.zeros(2, dtype=np.int64), np.zeros((2, Y, K)), np.zeros((2, Y, K, K))
    for block in sorted(drawn):
        y = block.pair - first_pair
        x = probes.evaluate(drawn.pop(block)) - 0.5  # centred: less is lost when squares are subtracted
        for fold in (0, 1):
            part = x[fold::2]
            num[fold] += len(part) if y == 0 else 0
            sums[fold, y] += part.sum(axis=0)
            products[fold, y] += part.T @ part
    even, odd = (_moments_of(int(num[i]), sums[i], products[i]) for i in (0, 1))
    return even, odd, _moments_of(n, sums.sum(axis=0), products.sum(axis=0))


def _moments_of(num: int, sums: Array, products: Array) -> _Moments:
    mean = sums / num
    covariance = (products - num * np.einsum("yj,yk->yjk", mean, mean)) / (num - 1)
    at = np.arange(sums.shape[1])
    covariance[:, at, at] = np.maximum(covariance[:, at, at], 0.0)
    return _Moments(num, mean + 0.5, covariance)
