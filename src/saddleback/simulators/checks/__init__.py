"""Is a simulator what its problem says, and can samples of it be trusted? All checks in order, within a number of simulator
calls; what a later check rests on comes first. Each group of checks is one small file.

    declarations     thresholds, rewards and constraints, features: what is wrong before a single call
    here             every answer: shapes, dtypes, states outside the space, NaN, signals outside their ranges, changed inputs
    repeatability    the same seed gives the same answer, in whatever order it is asked
    agreement        a batch of n is n calls of one; samples of one call, and of different calls, do not hang together

Where chance is involved the tests are exact: a sound simulator is accused of anything with probability at most 10⁻⁶.
"""

from __future__ import annotations

import numpy as np

from saddleback.errors import at_least, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, States
from saddleback.simulators.checks.agreement import ROWS, WAYS, check_agreement, check_independence
from saddleback.simulators.checks.declarations import check_features, check_signals, check_thresholds
from saddleback.simulators.checks.probe import Finding, Probe, Report
from saddleback.simulators.checks.repeatability import check_repeatability
from saddleback.simulators.function import as_simulator
from saddleback.simulators.generative_model import GenerativeModel, SampleFunction
from saddleback.simulators.independence import FALSE_ALARM, columns

__all__ = ["Finding", "Report", "run_checks"]

LEAST_CALLS, MOST_CALLS = 4000, 10**8
_LAWS = 4  # pairs whose laws are compared and whose samples are tested for independence
_PILOT_PAIRS, _PILOT = 64, 8  # and draws of each, to find where chance is at work
_BATCH = 256  # pairs in a call of the sweep


def run_checks(
    problem: CMDP, simulator: GenerativeModel | SampleFunction, *, calls: int = 20_000, seed: int = 0
) -> Report:
    """Examine a simulator with at most ``calls`` calls; nothing is known of it but its answers."""
    at_least("calls", calls, LEAST_CALLS, MOST_CALLS, "fewer would show little, more would hardly show more")
    require(seed >= 0, "seed", "must not be negative", seed, "use 0, 1, 2 …")
    report = Report()
    if not isinstance(simulator, GenerativeModel):
        signals = 1 + problem.num_constraints if problem.observed.any() else 0
        simulator = GenerativeModel(simulator, problem.states, signals)
    if problem.stand_ins is not None:
        simulator = as_simulator(problem, simulator)
    probe = Probe(problem, simulator, seed, report)
    check_thresholds(probe)
    check_signals(probe)
    check_features(probe)
    if not _conforms(probe, calls // 4):
        report.skipped.append("repeatability, agreement and independence, until the answers have the right form")
    elif not check_repeatability(probe, calls // 200):
        report.skipped.append("agreement and independence, until the same seed gives the same answer")
    else:
        with probe.noting("conformance"):
            states, actions = _where_chance_is(probe)
            report.tests = len(actions) * (1 + len(WAYS))
            level = FALSE_ALARM / report.tests
            check_agreement(probe, (states, actions), calls // (4 * 2 * _LAWS), level)
            check_independence(probe, (states, actions), 2 * (calls // (8 * _LAWS * ROWS)), level)
    return report


def _conforms(probe: Probe, number: int) -> bool:
    """Whether the simulator answers about ``number`` pairs as declared; half of them reached from the start by chance.

    Each pair is asked once, and so are the states they lead to; :class:`Probe` looks at every answer.
    """
    with probe.noting("conformance"):
        states, actions = probe.pairs(max(1, number // 2), 0)
        for first in range(0, len(states), _BATCH):
            rows = slice(first, first + _BATCH)
            probe.draw(states[rows], actions[rows], probe.key())
        probe.draw(states[:1], actions[:1], probe.key())
        # From the start on, wherever chance leads: a pool may miss what is reached.
        rng, walkers = probe.rng(1), min(32, max(1, number // 32))
        starts = np.asarray(probe.problem.start.states)
        at = starts[rng.integers(0, len(starts), walkers)]
        for _ in range(max(1, number // 2 // walkers)):
            at = probe.draw(at, rng.integers(0, probe.problem.num_actions, walkers), probe.key()).next_states
    return not any(f.check == "conformance" for f in probe.report.findings)


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
