"""Features: finite, of the declared dimension, a function of each pair by itself, with 1 in their span, of full rank.

Features of a linear MDP, P(s'|s,a) = ⟨φ(s,a), μ(s')⟩, have the constant in their span, since probabilities sum to one:
1 = ⟨φ(s,a), Σ_s' μ(s')⟩. Where the best fit of 1 is off, no such P exists.
"""

from __future__ import annotations

import numpy as np

from saddleback.features import OneHot
from saddleback.problem.spaces import Actions, Array, FiniteStates, States
from saddleback.simulators.checks.declarations import called
from saddleback.simulators.checks.probe import Probe

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
