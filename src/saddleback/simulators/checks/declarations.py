"""What a problem declares, against itself: thresholds, rewards and constraints, features. No simulator call is made.

Features must be finite, of the declared dimension, a function of each pair by itself, with 1 in their span, of full rank. Those of
a linear MDP, P(s'|s,a) = ⟨φ(s,a), μ(s')⟩, have the constant in their span, since probabilities sum to one: 1 = ⟨φ(s,a), Σ_s' μ(s')⟩.
Where the best fit of 1 is off, no such P exists.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleback.errors import what_happened
from saddleback.features import OneHot
from saddleback.problem.spaces import Actions, Array, FiniteStates, States
from saddleback.simulators.checks.probe import Probe

_PAIRS = 1000


def check_thresholds(probe: Probe) -> None:
    """A threshold outside what the declared range allows is a mistake of units or of sense."""
    problem = probe.problem
    H = problem.horizon
    rows = zip(problem.constraints, problem.user_thresholds(), problem.signals[1:], problem.units, strict=True)
    for c, b, signal, unit in rows:
        low, high = signal.low * H, signal.high * H
        said = f"{c.name} {c.sense} {unit.say(b, '{:g}'.format, both=True)}"
        ends = " to ".join(f"{x:g}" for x in unit.limits_of((low, high)))
        possible = f"its range [{signal.low:g}, {signal.high:g}] allows {unit.plural} from {ends}"
        slack = 1e-9 * (high - low)
        never = b < low - slack if c.sense == "<=" else b > high + slack
        always = b > high - slack if c.sense == "<=" else b < low + slack
        remedy = "check the sense, and whether the threshold is per step or a discounted total"
        if never:
            probe.add(f"threshold of {c.name}", f"no policy can meet {said}, since {possible}; {remedy}")
        elif always:
            probe.add(f"threshold of {c.name}", f"every policy meets {said}, since {possible}; {remedy}", warn=True)


def check_signals(probe: Probe) -> None:
    """Known rewards and constraints: shape, dtype, finiteness, range, and rows that do not depend on one another."""
    states, actions = probe.pairs(_PAIRS, 4)
    for signal in probe.problem.signals:
        if callable(signal.values):  # arrays were checked when the problem was made
            x = called(probe, signal.name, signal.values, states, actions)
            if x is None:
                continue
            slack = 1e-9 * (signal.high - signal.low)
            bad = np.flatnonzero(~np.isfinite(x) | (x < signal.low - slack) | (x > signal.high + slack))
            if bad.size:
                i = bad[0]
                rule = f"must be finite and within its declared range [{signal.low:g}, {signal.high:g}]"
                remedy = "declare the true range, since every bound depends on it, or mend the function"
                probe.add(signal.name, f"{signal.name} {rule}, got {x[i]:g}; {remedy}", states[i], actions[i])


def called(
    probe: Probe, name: str, function: Any, states: States, actions: Actions, shape: tuple[int, ...] = ()
) -> Array | None:
    """What a user's function of pairs gives, float64 ``(n, *shape)``; None where it is not that, which is noted."""
    given, asked, n = states.copy(), actions.copy(), len(states)
    x: Any = None
    try:
        with probe.noting(name):
            x = np.asarray(function(given, asked))
    except Exception as error:  # the user's code: anything can happen
        text = f"{name} {what_happened(error)}; it must answer for every state and action"
        probe.add(name, text, *_culprit(function, states, actions))
    if x is None:
        return None
    if x.shape != (n, *shape):
        text = (
            f"{name} must give an array {(n, *shape)} for {n} pairs, got {x.shape}; vectorise it, or mend its dimension"
        )
        probe.add(name, text, states[0], actions[0])
        return None
    if x.dtype.kind not in "iub" and x.dtype != np.float64:
        probe.add(name, f"{name} must be float64, got {x.dtype}; convert it where it is made", states[0], actions[0])
        return None
    if not (np.array_equal(given, states) and np.array_equal(asked, actions)):
        probe.add(name, f"{name} changes the states or actions it is given; work on a copy", states[0], actions[0])
    for i in np.unique(np.linspace(0, n - 1, 8).astype(int)):
        alone = np.asarray(function(states[i : i + 1].copy(), actions[i : i + 1].copy()))
        if alone.shape != (1, *shape) or not np.allclose(alone[0], x[i], rtol=1e-9, atol=1e-12, equal_nan=True):
            text = (
                f"{name} must be a function of each pair by itself, got {x[i]} among {n} pairs and {alone.tolist()} "
                "alone; do not mix rows"
            )
            probe.add(name, text, states[i], actions[i])
            return None
    return x.astype(np.float64)


def _culprit(function: Any, states: States, actions: Actions) -> tuple[Any, Any]:
    """The first pair at which a function raises by itself, as far as that can be told."""
    for i in range(len(states)):
        try:
            function(states[i : i + 1].copy(), actions[i : i + 1].copy())
        except Exception:
            return states[i], actions[i]
    return states[0], actions[0]


_MOST_DIM = 2000  # features above which rank and span are left to the design
_A_FEATURE = 20  # pairs a feature: local ones are zero nearly everywhere
_MOST_NUMBERS = 10_000_000  # of Φ
_OFF = 1e-6
_ILL = 1e8  # condition number of Φ above which half of float64's digits are gone


def check_features(probe: Probe) -> None:
    """All of it; one-hot features are right by construction."""
    features, report = probe.problem.features, probe.report
    if features is None or isinstance(features, OneHot):
        return
    d = report.dim = features.dim
    wanted = _A_FEATURE * d if d <= _MOST_DIM else 0
    states, actions = probe.pairs(max(1000, min(wanted, _MOST_NUMBERS // d)), 5)
    phi = called(probe, "features", features.at, states, actions, (d,))
    if phi is None:
        return
    bad = np.argwhere(~np.isfinite(phi))
    if bad.size:
        i, j = bad[0]
        text = f"features must be finite, got {phi[i, j]} in column {j}; mend the map"
        probe.add("features", text, states[i], actions[i])
        return
    if d > _MOST_DIM:
        report.skipped.append(f"rank and span of {d} features (more than {_MOST_DIM})")
        return
    _check_span(probe, phi, states, actions)
    _check_rank(probe, phi)


def _check_span(probe: Probe, phi: Array, states: States, actions: Actions) -> None:
    fit = phi @ np.linalg.lstsq(phi, np.ones(len(phi)), rcond=None)[0]
    i = int(np.abs(fit - 1).argmax())
    if abs(fit[i] - 1) > _OFF:
        text = (
            f"the constant 1 is not in the span of the features, whose best fit to it is {fit[i]:.4g} here: probabilities "
            "sum to one, so no transition law is linear in them; add a constant feature"
        )
        probe.add("span", text, states[i], actions[i])


def _check_rank(probe: Probe, phi: Array) -> None:
    report, d = probe.report, phi.shape[1]
    singular = np.linalg.svd(phi, compute_uv=False)
    large = singular[singular > singular[0] * max(phi.shape) * np.finfo(float).eps]
    report.rank = len(large)
    report.condition = float(large[0] / large[-1]) if len(large) else float("inf")
    space = probe.problem.states
    complete = isinstance(space, FiniteStates) and space.num * probe.problem.num_actions <= len(phi)
    if report.rank < d and (complete or len(phi) >= 2 * d):
        text = (
            f"{d} features have rank {report.rank} on {len(phi)} pairs: some are sums of others, or zero all over; leave "
            "those out"
        )
        probe.add("rank", text, warn=True)
    if report.condition > _ILL:
        text = f"the features' condition number is {report.condition:.1g}; scale them alike, or leave out near copies"
        probe.add("conditioning", text, warn=True)
