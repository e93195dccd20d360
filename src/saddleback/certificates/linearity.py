"""Is the problem linear in its features, as asm_32 assumes? Tests that can refute it, each with its false-alarm rate.

    (i)   r, c_1..c_m known:  residual of ⟨φ, W(u)⟩ − u, u the utilities, at worst over the candidate pairs        exact
    (ii)  Σ_{s'} P(s'|s,a) = 1 = ⟨φ(s,a), Σ_{s'} μ(s')⟩:  the same for the constant 1                               exact
    (iii) fresh samples at held-out pairs against the fit from fresh samples at the coreset      :mod:`held_out`, level δ
    (iv)  fitted values V̂(ρ) against intervals from rollouts, which assume nothing                         no sample here

A signal in the span has residual zero; outside, the residual lies between its distance from the span and 1 + Leb times
that. Passing proves nothing but what is said in each finding: linearity can be refuted by samples, never shown.
Tables (C = S × A) assume no linearity, and their report says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saddleback.certificates.held_out import HeldOut, held_out_tests
from saddleback.certificates.probes import StateFunction
from saddleback.designs.design import Design
from saddleback.errors import require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, Array, States
from saddleback.sampling.blocks import Executor
from saddleback.simulators.generative_model import GenerativeModel

FIRST_PAIR = 1 << 30
"""Where the pair numbers of these tests begin in the stream CERTIFICATE; buffers and rollouts count from zero."""

EXACT_TOLERANCE = 1e-6
"""Residual of a known signal, in utilities, above which it does not count as rounding error."""

_REMEDY = "add features, or solve it as a table"
_CHUNK_ENTRIES, _MOST_ENTRIES = 1 << 22, 1 << 28  # of the feature matrix: at a time, and in all


@dataclass(frozen=True)
class Finding:
    """One test: it fails where ``statistic`` exceeds ``limit``. ``state``, ``action``: the worst pair, if there is one."""

    name: str
    passed: bool
    statistic: float
    limit: float
    meaning: str
    state: Any = None
    action: int | None = None
    z: float | None = None
    rigorous: bool = True


@dataclass(frozen=True)
class LinearityReport:
    """What was found. On a linear problem one of the tests (i) to (iii) fails with probability at most ``delta``.

    Test (iv), once joined, has the failure rate of the rollouts' intervals and of the fit's central-limit one.

    ``assumed`` is False for tables, where nothing is tested. ``samples`` are the simulator calls spent.
    """

    assumed: bool
    findings: tuple[Finding, ...]
    samples: int
    delta: float

    @property
    def failures(self) -> list[Finding]:
        """The tests that refute linearity."""
        return [f for f in self.findings if not f.passed]

    @property
    def passed(self) -> bool:
        """Whether nothing refutes linearity; a failure that is not rigorous only warns."""
        return not any(f.rigorous for f in self.failures)

    def joined(self, *findings: Finding) -> LinearityReport:
        """The report with further findings."""
        return replace(self, findings=self.findings + findings)

    def to_json(self) -> dict[str, Any]:
        """Numbers, strings and lists only."""
        return {
            "assumed": self.assumed,
            "passed": self.passed,
            "failures": [f.name for f in self.failures],
            "samples": self.samples,
            "delta": self.delta,
            "tests": [asdict(f) for f in self.findings],
        }


def check_linearity(
    problem: CMDP,
    design: Design,
    model: GenerativeModel,
    *,
    samples: int,
    seed: int,
    delta: float,
    functions: Sequence[StateFunction] = (),
    num_pairs: int = 20,
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
    exact = (*signal_findings(problem, design), constant_finding(problem, design))
    tests = held_out_tests(
        problem,
        design,
        model,
        samples=samples,
        seed=seed,
        delta=delta,
        functions=functions,
        num_pairs=num_pairs,
        num_functions=num_functions,
        first_pair=first_pair,
        executor=executor,
    )
    return LinearityReport(True, (*exact, *_held_out_findings(tests, delta)), tests.samples, delta)


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
        state, action = _plain(tests.states[d.pair]), int(tests.actions[d.pair])
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


def _exact(name: str, residual: float, state: Any, action: int, good: str, bad: str) -> Finding:
    passed = residual <= EXACT_TOLERANCE
    return Finding(name, passed, residual, EXACT_TOLERANCE, good if passed else bad, state, action)


def _worst_residuals(
    problem: CMDP, design: Design, signals: Callable[[States, Actions], Array]
) -> list[tuple[float, Any, int]]:
    """max |⟨φ, W(z)⟩ − z| over the pool for each of k signals z ``(n, k)``, and the pair where it is attained."""
    theta = design.fit(signals(design.states, design.actions))  # (d, k)
    worst: list[tuple[float, Any, int]] = [(-1.0, None, 0)] * theta.shape[1]
    for states, actions in _pool(problem):
        residuals = np.abs(problem.required_features().at(states, actions) @ theta - signals(states, actions))
        for j, i in enumerate(residuals.argmax(axis=0)):
            if residuals[i, j] > worst[j][0]:
                worst[j] = float(residuals[i, j]), _plain(states[i]), int(actions[i])
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


def _plain(state: Any) -> Any:
    """A state as JSON has it: a number or a list of numbers."""
    return np.asarray(state).tolist()
