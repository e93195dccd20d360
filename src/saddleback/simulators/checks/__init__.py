"""Is a simulator what its problem says, and can samples of it be trusted? All checks in order, within a number of simulator
calls; what a later check rests on comes first. Each group of checks is one small file.

    declarations     thresholds, rewards and constraints, features: what is wrong before a single call
    here             every answer: shapes, dtypes, states outside the space, NaN, signals outside their ranges, changed inputs
    repeatability    the same seed gives the same answer, in whatever order it is asked
    agreement        a batch of n is n calls of one; samples of one call, and of different calls, do not hang together

Where chance is involved the tests are exact: a sound simulator is accused of anything with probability at most 10⁻⁶.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from saddleback.errors import at_least, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.phases import phase
from saddleback.problem.spaces import Actions, States
from saddleback.simulators.checks.agreement import ROWS, WAYS, check_agreement, check_independence
from saddleback.simulators.checks.declarations import check_features, check_signals, check_thresholds
from saddleback.simulators.checks.probe import DrawAll, Finding, OutOfTime, Probe, Report
from saddleback.simulators.checks.repeatability import check_repeatability
from saddleback.simulators.function import as_simulator
from saddleback.simulators.generative_model import GenerativeModel, SampleFunction
from saddleback.simulators.independence import FALSE_ALARM, columns

__all__ = ["Finding", "Report", "run_checks"]

LEAST_CALLS, MOST_CALLS = 100, 10**8
_ENOUGH = 4000  # calls from which on laws are compared and rows tested for independence: fewer would show nothing
_LAWS = 4  # pairs whose laws are compared and whose samples are tested for independence
_PILOT_PAIRS, _PILOT = 64, 8  # and draws of each, to find where chance is at work
_BATCH = 256  # pairs in a call of the sweep


def run_checks(
    problem: CMDP,
    simulator: GenerativeModel | SampleFunction,
    *,
    calls: int = 20_000,
    seed: int = 0,
    time_limit: float | None = None,
    draw_all: DrawAll | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Report:
    """Examine a simulator with at most ``calls`` calls; nothing is known of it but its answers.

    ``time_limit``, in seconds, ends the checks early: what could not be made by then is in ``skipped``. ``draw_all`` carries
    out many questions, in other processes for instance. ``progress`` is told (what, done, total), and ``say`` what the checks
    will cost as soon as one call was timed.
    """
    at_least("calls", calls, LEAST_CALLS, MOST_CALLS, "fewer would show little, more would hardly show more")
    require(seed >= 0, "seed", "must not be negative", seed, "use 0, 1, 2 …")
    report = Report()
    if not isinstance(simulator, GenerativeModel):
        signals = 1 + problem.num_constraints if problem.observed.any() else 0
        simulator = GenerativeModel(simulator, problem.states, signals)
    if problem.stand_ins is not None:
        simulator = as_simulator(problem, simulator)
    total = _planned(problem, calls)
    shown = None if progress is None else lambda done: progress("calls to check", min(done, total), total)
    probe = Probe(problem, simulator, seed, report, time_limit, draw_all, shown)
    check_thresholds(probe)
    check_signals(probe)
    with phase("checking the features"):
        check_features(probe)
    try:
        _check_simulator(probe, calls, None if say is None else lambda seconds: say(_cost(total, seconds)))
    except OutOfTime:
        report.skipped.append(f"what is left after {report.calls:,} calls, for want of time ({time_limit:g} s)")
    return report


def _planned(problem: CMDP, calls: int) -> int:
    """About how many calls the checks of a sound simulator make."""
    pairs = calls // 8 if problem.num_states is None else min(calls // 8, problem.num_states * problem.num_actions)
    conformance = (pairs if calls >= _ENOUGH else calls // 4) + calls // 8
    rest = _PILOT_PAIRS * _PILOT + calls // 4 + _LAWS * 2 * (calls // (8 * _LAWS * ROWS)) * ROWS
    return min(calls, 1 + conformance + 8 * 3 * max(1, calls // 200) + (rest if calls >= _ENOUGH else 0))


def _cost(calls: int, seconds: float) -> str:
    took = f"{calls * seconds:,.2g} s at {seconds:.2g} s a call"
    return f"about {calls:,} simulator calls, which would take {took} one by one, less in batches"


def _check_simulator(probe: Probe, calls: int, timed: Callable[[float], None] | None) -> None:
    report = probe.report
    if timed is not None:
        with probe.noting("conformance"):
            states, actions = probe.pairs(1, 10)
            probe.draw(states[:1], actions[:1], probe.key())
            timed(report.seconds_alone)
    form = "until the answers have the right form"
    _check_conformance(probe, calls // 4, alone=timed is None)
    same = report.well_formed and check_repeatability(probe, max(1, calls // 200))
    if not report.well_formed:  # a rare answer may be met in either
        report.skipped.append(f"repeatability, agreement and independence, {form}")
    elif not same:
        report.skipped.append("agreement and independence, until the same seed gives the same answer")
    elif calls < _ENOUGH:
        report.skipped.append(f"agreement and independence, which need a budget of {_ENOUGH:,} calls")
    else:
        with probe.noting("conformance"):
            states, actions = _where_chance_is(probe)
            report.tests = len(actions) * (1 + len(WAYS))
            level = FALSE_ALARM / report.tests
            check_agreement(probe, (states, actions), calls // (4 * 2 * _LAWS), level)
            check_independence(probe, (states, actions), 2 * (calls // (8 * _LAWS * ROWS)), level)
        if not report.well_formed:
            report.skipped.append(f"agreement and independence, {form}")


def _check_conformance(probe: Probe, number: int, alone: bool = True) -> None:
    """Whether the simulator answers about ``number`` pairs as declared; half of them reached from the start by chance.

    Each pair is asked once, and so are the states they lead to; :class:`Probe` looks at every answer. ``alone``: one of them in
    a call of its own too, unless that was done.
    """
    with probe.noting("conformance"):
        states, actions = probe.pairs(max(1, number // 2), 0)
        pieces = [slice(first, first + _BATCH) for first in range(0, len(states), _BATCH)]
        probe.draw_many([(states[rows], actions[rows], probe.key()) for rows in pieces])
        if alone:
            probe.draw(states[:1], actions[:1], probe.key())
        # From the start on, wherever chance leads: a pool may miss what is reached.
        rng, walkers = probe.rng(1), min(32, max(1, number // 32))
        starts = np.asarray(probe.problem.start.states)
        at = starts[rng.integers(0, len(starts), walkers)]
        for _ in range(max(1, number // 2 // walkers)):
            at = probe.draw(at, rng.integers(0, probe.problem.num_actions, walkers), probe.key()).next_states


def _where_chance_is(probe: Probe) -> tuple[States, Actions]:
    """A few pairs, those with the most varied next states in a pilot of their own, of two actions at least.

    A batch in which one row's action is used for all rows shows where actions differ.
    """
    states, actions = probe.pairs(_PILOT_PAIRS, 7)
    order = probe.rng(8).permutation(len(actions))
    states, actions = states[order], actions[order]
    drawn = probe.draw(np.repeat(states, _PILOT, axis=0), np.repeat(actions, _PILOT), probe.key())
    table = columns(*drawn).reshape(-1, len(actions), _PILOT)
    variety = [max(len(set(values)) for values in table[:, i].tolist()) for i in range(len(actions))]
    ranked = np.argsort(-np.array(variety), kind="stable")
    others = ranked[actions[ranked] != actions[ranked[0]]]
    wanted = [*ranked[: _LAWS // 2], *others[: _LAWS // 2], *ranked]
    chosen = list(dict.fromkeys(wanted))[:_LAWS]
    return states[chosen], actions[chosen]
