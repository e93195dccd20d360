"""Is the problem linear in its features, as asm_32 assumes? Tests that can refute it, each with its false-alarm rate.

    (i)   r, c_1..c_m known:  residual of ⟨φ, W(u)⟩ − u, u the utilities, at worst over the candidate pairs        exact
    (ii)  Σ_{s'} P(s'|s,a) = 1 = ⟨φ(s,a), Σ_{s'} μ(s')⟩:  the same for the constant 1                               exact
    (iii) fresh samples at held-out pairs against the fit from fresh samples at the coreset      :mod:`held_out`, level δ
    (iv)  fitted values V̂(ρ) against intervals from rollouts, which assume nothing       no sample here, and only a warning

A signal in the span has residual zero; outside, the residual lies between its distance from the span and 1 + Leb times
that. Passing proves nothing but what is said in each finding: linearity can be refuted by samples, never shown.
Tables (C = S × A) assume no linearity, and their report says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from saddleback.certificates.guide import Guide, Request
from saddleback.certificates.linearity.findings import Finding, LinearityReport, PlainState, plain_state
from saddleback.certificates.linearity.held_out import HeldOut, Probing, StateFunction, held_out_tests
from saddleback.designs.design import Design
from saddleback.errors import require
from saddleback.method.evaluators.lstd import LSTD
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, Array, States
from saddleback.sampling.blocks import Executor
from saddleback.simulators.generative_model import GenerativeModel

FIRST_PAIR = 1 << 30
"""Where the pair numbers of these tests begin in the stream CERTIFICATE; buffers and rollouts count from zero."""

EXACT_TOLERANCE = 1e-6
"""Residual of a known signal, in utilities, above which it does not count as rounding error."""

HELD_OUT = 20
"""Pairs at which linearity is tested."""

_SHARE = 0.1  # of a certificate's samples
_REMEDY = "add features, or solve it as a table"
_CHUNK_ENTRIES, _MOST_ENTRIES = 1 << 22, 1 << 28  # of the feature matrix: at a time, and in all


def check_linearity(
    problem: CMDP,
    design: Design,
    model: GenerativeModel,
    *,
    samples: int,
    seed: int,
    delta: float,
    functions: Sequence[StateFunction] = (),
    num_pairs: int = HELD_OUT,
    num_functions: int = 8,
    first_pair: int = FIRST_PAIR,
    executor: Executor | None = None,
) -> LinearityReport:
    """Tests (i) to (iii) with ``samples`` simulator calls in all, the same number at every held-out and coreset pair.

    ``functions`` of the state, such as the solver's values, are tested beside ``num_functions`` random ones; they must
    not depend on samples of the streams used here, (seed, CERTIFICATE, pair) for the |C| + num_pairs + 1 numbers from
    ``first_pair`` on. ``delta`` is the false-alarm rate of all tests together.
    """
    require(0 < delta < 1, "delta", "must lie in (0, 1)", delta, "0.05 means one false alarm in twenty")
    require(num_pairs >= 1, "num_pairs", "must be at least 1", num_pairs, "use 20")
    require(
        num_functions >= 1, "num_functions", "must be at least 1", num_functions, "use 8: random functions see the most"
    )
    if design.operator is None:
        return LinearityReport(False, (), 0, delta)
    probing = Probing(functions, num_pairs, num_functions, seed, first_pair, executor)
    tests = held_out_tests(problem, design, model, probing, samples, delta)
    findings = (*_exact_findings(problem, design), *_held_out_findings(tests, delta))
    return LinearityReport(True, findings, tests.samples, delta)


def examine_linearity(
    guide: Guide,
    model: GenerativeModel,
    request: Request,
    samples: int,
    limits: Sequence[tuple[float, float]] | None = None,
) -> LinearityReport | None:
    """A certificate's tests from ``samples`` calls (0: those that need none); None where nothing is assumed.

    ``limits`` are those of the mixture's 1+m values in the user's units, against which the fitted ones are held.
    """
    problem = guide.problem
    if guide.design.operator is None:
        return None
    if samples:
        seed, delta, executor = request.seed, request.delta, request.executor
        report = check_linearity(
            problem, guide.design, model, samples=samples, seed=seed, delta=delta, executor=executor
        )
    else:
        report = LinearityReport(True, _exact_findings(problem, guide.design), 0, request.delta)
    if limits is None or guide.mixture is None:
        return report
    buffer, w = guide.earlier[-1], guide.mixture.weights
    fitted = w @ np.array([LSTD().evaluate(problem, buffer, p) for p in guide.mixture.members])
    confidence = 1 - 1e-6 / (1 + problem.num_constraints)  # the fit's own error, by the central limit: only to warn
    widths = np.array([np.ptp(LSTD().interval(problem, buffer, p, confidence), axis=0) for p in guide.mixture.members])
    (lows, highs), error = np.array(limits).T, np.abs(problem.scale) * (w @ widths) / 2
    return report.joined(rollout_finding(problem, problem.values_of(fitted), lows, highs, error))


def samples_for_linearity(design: Design, samples: int) -> int:
    """A tenth; nothing where tables assume no linearity or where it would be too few to say anything."""
    share = int(_SHARE * samples)
    return share if design.operator is not None and share >= 8 * (HELD_OUT + design.size) else 0


def signal_findings(problem: CMDP, design: Design) -> tuple[Finding, ...]:
    """(i): one finding for each known reward and constraint signal; those the simulator returns are left to (iii)."""
    known = np.flatnonzero(~problem.observed)

    def utilities(states: States, actions: Actions) -> Array:
        return problem.utilities(states, actions)[:, known]

    findings = []
    for i, (residual, state, action) in zip(known, _worst_residuals(problem, design, utilities), strict=True):
        what = "the reward" if i == 0 else f"the signal of constraint '{problem.signals[i].name}'"
        good = f"{what} is linear in the features, to rounding error"
        bad = (
            f"{what} is not linear in the features: at state {state}, action {action} the fit misses it by "
            f"{residual * abs(problem.scale[i]):.3g}; add it to the features"
        )
        findings.append(_exact(f"known {problem.signals[i].name}", residual, state, action, good, bad))
    return tuple(findings)


def constant_finding(problem: CMDP, design: Design) -> Finding:
    """(ii): 1 ∈ span φ, without which no features make P linear."""
    ((residual, state, action),) = _worst_residuals(problem, design, lambda s, a: np.ones((len(a), 1)))
    good = "the constant 1 is linear in the features, as rows of P that sum to one require"
    bad = (
        f"no combination of the features is constant (off by {residual:.3g} at state {state}, action {action}), so P cannot "
        "be linear in them, since its rows sum to one; add a constant feature"
    )
    return _exact("constant", residual, state, action, good, bad)


def rollout_finding(
    problem: CMDP, fitted: ArrayLike, low: ArrayLike, high: ArrayLike, half_width: ArrayLike | None = None
) -> Finding:
    """(iv): whether fitted values ``(1+m,)`` contradict intervals that assume nothing, all in the same units.

    They do where [fitted − half_width, fitted + half_width] and [low, high] do not meet. The false-alarm rate is that of
    the intervals; without a half-width the fitted value's own error counts as contradiction too.
    """
    V, lower, upper = (np.asarray(x, dtype=np.float64) for x in (fitted, low, high))
    h = np.broadcast_to(np.asarray(0.0 if half_width is None else half_width, dtype=np.float64), V.shape)
    outside = np.maximum(np.maximum(lower - V, V - upper), 0.0)
    i = int(np.argmax(outside - h))
    name, span = problem.signals[i].name, f"[{lower[i]:.6g}, {upper[i]:.6g}]"
    passed = bool(outside[i] <= h[i])
    if passed:
        meaning = "the fitted values agree with the rollouts"
    else:
        cause = "its own error, which is not known, may be the cause" if half_width is None else "P is hardly linear"
        error = "" if half_width is None else f" ± {h[i]:.3g}"
        meaning = f"the fitted value {V[i]:.6g}{error} of '{name}' contradicts the rollouts, which say {span}: {cause}"
    limit = float(h[i])
    return Finding(f"fitted {name} against rollouts", passed, float(outside[i]), limit, meaning, rigorous=False)


def _held_out_findings(tests: HeldOut, delta: float) -> tuple[Finding, Finding]:
    """(iii) in words."""
    k = len(tests.actions)
    share = max(0.0, 1 - np.log(1 / delta) / k)
    findings = []
    for name, d in (("held-out pairs, one by one", tests.single), ("held-out pairs, together", tests.together)):
        state, action = plain_state(tests.states[d.pair]), int(tests.actions[d.pair])
        if d is tests.single:
            good = (
                f"the fit predicts the next states of {k} random pairs within their noise: with confidence {1 - delta:g} "
                f"at least a share {share:.2f} of the pool would pass too, and deviations up to the limit may remain"
            )
            bad = (
                f"P is not linear in the features: at state {state}, action {action} the mean of {d.function} over next "
                f"states is {d.statistic:.3g} off the fit, where chance allows {d.limit:.3g}; {_REMEDY}"
            )
        else:
            good = f"the deviations of {k} random pairs from the fit, taken together, are noise"
            bad = (
                f"P is not linear in the features: over {k} random pairs the deviations from the fit repeat in fresh "
                f"samples, by {d.statistic:.3g} on average, where chance allows {d.limit:.3g}; {_REMEDY}"
            )
        meaning = bad if d.rejects else good
        findings.append(Finding(name, not d.rejects, d.statistic, d.limit, meaning, state, action, d.z))
    return findings[0], findings[1]


def _exact_findings(problem: CMDP, design: Design) -> tuple[Finding, ...]:
    return (*signal_findings(problem, design), constant_finding(problem, design))


def _exact(name: str, residual: float, state: PlainState, action: int, good: str, bad: str) -> Finding:
    passed = residual <= EXACT_TOLERANCE
    return Finding(name, passed, residual, EXACT_TOLERANCE, good if passed else bad, state, action)


def _worst_residuals(
    problem: CMDP, design: Design, signals: Callable[[States, Actions], Array]
) -> list[tuple[float, PlainState, int]]:
    """max |⟨φ, W(z)⟩ − z| over the pool for each of k signals z ``(n, k)``, and the pair where it is attained."""
    theta = design.fit(signals(design.states, design.actions))  # (d, k)
    worst: list[tuple[float, PlainState, int]] = [(-1.0, 0, 0)] * theta.shape[1]
    for states, actions in _pool(problem):
        residuals = np.abs(problem.required_features().at(states, actions) @ theta - signals(states, actions))
        for j, i in enumerate(residuals.argmax(axis=0)):
            if residuals[i, j] > worst[j][0]:
                worst[j] = float(residuals[i, j]), plain_state(states[i]), int(actions[i])
    return worst


def _pool(problem: CMDP) -> Iterator[tuple[States, Actions]]:
    """The candidate pairs, or an evenly spaced part of very many, in pieces whose features fit in memory."""
    states, actions = problem.pairs()
    dim = problem.required_features().dim
    step = 1 + len(actions) * dim // _MOST_ENTRIES
    states, actions = states[::step], actions[::step]
    size = max(1, _CHUNK_ENTRIES // dim)
    for i in range(0, len(actions), size):
        yield states[i : i + size], actions[i : i + size]
