"""True error against the number of samples: every evaluator, every solver, and whole constrained solves.

    evaluator     |V̂(ρ) − V^π(ρ)|           π fixed and independent of the samples       median over problems
    solver        V*_□(ρ) − V_□^π̂(ρ)        □ = ½r + ½c fixed                            mean over problems
    constrained   max(V*(ρ) − V(ρ), b − V_c(ρ))                                          median over problems

A solver's median error is soon exactly zero (most problems are solved to the last action), so its mean is shown. A seed stands
for a random problem and for the samples drawn from it. All evaluators and solvers of a point share one buffer: the literal
mode's design, the same N for each pair, M = 4, so that T = N/4 grows with the samples. Curves marked "T ≤ 200" have the same
samples cut into 200 batches at the most. GSS draws its own pairs, as many. G-Sampling-and-Stop takes an accuracy, not a number
of samples: its x is what it used.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleback import solve
from saddleback.errors import SaddlebackError
from saddleback.method.evaluators import BY_NAME as ALL_EVALUATORS
from saddleback.method.oracles import InteractiveEvaluator, needs_of
from saddleback.method.solvers import BY_NAME as ALL_SOLVERS
from saddleback.method.solvers.gss_stopping import GSSStopping
from saddleback.runs.settings import Method, Mode
from saddleback.simulators.generative_model import Sampler
from saddleback.solving.prepare import prepare
from saddleback.solving.prepared import Prepared
from saddleback.testing import small_table
from studies.measuring import Curve, signed
from studies.panels import LAST, Figures, Panel, by_title, compact
from studies.truth import Truth, random_problems

TITLE = "Error against samples"
QUESTION = (
    "How fast does the true error fall with the number of samples, for every evaluator and every solver on tables and on "
    "linear problems, and for whole constrained solves? The paper's rates are all of the form ε ∝ 1/√samples: exponent −1/2."
)
NEEDS = {name: needs_of(part(), small_table(True).problem()) for name, part in ALL_SOLVERS.items()}
EVALUATORS: dict[str, Any] = {
    n: part for n, part in ALL_EVALUATORS.items() if not isinstance(part(), InteractiveEvaluator)
}
SOLVERS: dict[str, Any] = {name: part for name, part in ALL_SOLVERS.items() if NEEDS[name].package is None}
CAPPED = " (T ≤ 200)"
PAPER = -0.5
Say = Callable[[str], None]


@dataclass(frozen=True)
class Kind:
    """Random problems of one kind, and the numbers of samples for oracles and for whole solves.

    The literal mode's thousand iterations are slow: it has numbers of its own, and the first ``few`` problems only, as has
    G-Sampling-and-Stop, whose accuracies are ``epsilons``.
    """

    name: str
    description: str
    problems: Callable[[int], list[Truth]]
    number: int
    few: int
    oracle: Sequence[int]
    default: Sequence[int]
    literal: Sequence[int]
    epsilons: Sequence[float]


FULL = (
    Kind(
        "table",
        "garnet, 50 states, 4 actions, γ = 0.9",
        lambda number: random_problems("garnet", number),
        number=40,
        few=12,
        oracle=[2**k for k in range(12, 21)],
        default=[2**k for k in range(12, 21)],
        literal=[2**k for k in range(12, 21)],
        epsilons=(8.0, 4.0, 2.0, 1.0),
    ),
    Kind(
        "linear",
        "random-linear, 100 states, 10 actions, d = 8, γ = 0.9, ζ at least 0.2",
        lambda number: random_problems("random-linear", number, 0.02, states=100, actions=10),
        number=40,
        few=12,
        oracle=[2**k for k in range(10, 18)],
        default=[2**k for k in range(12, 21)],
        literal=[2**k for k in range(12, 18)],
        epsilons=(2.0, 1.0, 0.5, 0.25),
    ),
)
QUICK = tuple(
    dataclasses.replace(
        kind,
        number=3,
        few=2,
        oracle=[kind.oracle[0], 8 * kind.oracle[0]],
        default=[2**12, 2**14],
        literal=[2**12],
        epsilons=kind.epsilons[:2],
    )
    for kind in FULL
)


def measure(quick: bool, say: Say) -> Figures:
    """Pictures "evaluators", "solvers" and "constrained", of tables and of linear problems each."""
    panels: dict[str, list[Panel]] = {"evaluators": [], "solvers": [], "constrained": []}
    for kind in QUICK if quick else FULL:
        tell, truths = _prefixed(say, kind.name), kind.problems(kind.number)
        evaluators, solvers = oracle_errors(truths, kind.oracle, tell)
        seeds = [truth.seed for truth in truths]
        curves = {
            "evaluators": [Curve.of(n, kind.oracle, rows, seeds, PAPER) for n, rows in _merged(evaluators).items()],
            "solvers": [Curve.of(n, kind.oracle, rows, seeds, PAPER, None) for n, rows in _merged(solvers).items()],
            "constrained": _whole_curves(truths, kind, tell),
        }
        curves["solvers"].append(_stopping_curve(truths[: kind.few], kind, tell))
        errors = ("|V̂ − V| at ρ, median", "V* − V at ρ, mean", "max(V* − V, b − V_c) at ρ, median")
        for (figure, found), y_label in zip(panels.items(), errors, strict=True):
            x_label = "samples in all" if figure == "constrained" else "samples in the buffer"
            title = f"{figure}, {kind.name}"
            found.append(Panel(title, x_label, y_label, kind.description, tuple(curves[figure]), PAPER))
    return {name: tuple(found) for name, found in panels.items()}


Errors = dict[str, list[list[float]]]


def oracle_errors(truths: Sequence[Truth], numbers: Sequence[int], say: Say) -> tuple[Errors, Errors]:
    """Errors of evaluators and of solvers by name, one row for each of ``numbers``, one column for each problem."""
    linear = truths[0].problem.features is not None
    evaluators = [n for n in EVALUATORS if not (linear and n == "tabular-pe")]
    solvers = [n for n in SOLVERS if n != "gss-stopping" and not (linear and NEEDS[n].every_pair)]
    found: tuple[Errors, Errors] = ({}, {})
    for samples in numbers:
        for label_errors in found:
            for rows in label_errors.values():
                rows.append([])
        for truth in truths:
            parts = buffers(truth, samples)
            fewer = buffers(truth, samples, max(4, math.ceil(int(parts.evaluation_buffer.counts[0]) / 200)))
            one = {name: evaluation_error(name, parts, truth) for name in evaluators}
            one["ls-pe" + CAPPED] = evaluation_error("ls-pe", fewer, truth)
            two = {name: _solver_error(name, parts, truth, samples) for name in solvers}
            two["ls-mdvi" + CAPPED] = _solver_error("ls-mdvi", fewer, truth, samples)
            for errors, new in zip(found, (one, two), strict=True):
                for label, error in new.items():
                    errors.setdefault(label, [[]])[-1].append(error)
        say(f"oracles at {samples:,} samples")
    return found


def buffers(truth: Truth, samples: int, batch_size: int | None = None) -> Prepared:
    """Two buffers of ``samples`` each, by the literal mode's rules."""
    choices = Method(mode="literal", resolution=0, batch_size=batch_size)
    return prepare(truth.problem, truth.simulator, 2 * samples, truth.seed, choices)


def evaluation_error(name: str, parts: Prepared, truth: Truth) -> float:
    return truth.evaluation_error(EVALUATORS[name]().evaluate(parts.problem, parts.evaluation_buffer, truth.policy))


def _solver_error(name: str, parts: Prepared, truth: Truth, samples: int) -> float:
    try:
        if name == "gss":
            choices = Method(solver="gss", mode="literal", resolution=0)
            parts = prepare(truth.problem, truth.simulator, 2 * samples, truth.seed, choices)
        policy = SOLVERS[name]().solve(parts.problem, parts.solver_buffer, truth.mixing[None])[0]
    except SaddlebackError:  # a regression that expands, a pair that was never drawn: no answer
        return math.inf
    return truth.solver_error(policy)


def _stopping_curve(truths: Sequence[Truth], kind: Kind, say: Say) -> Curve:
    """Errors of G-Sampling-and-Stop by accuracy; x is the median number of samples that it took."""
    drawn, errors = [], []
    for epsilon in kind.epsilons:
        used, found = [], []
        for truth in truths:
            parts = buffers(truth, kind.oracle[0])
            sampler = Sampler(truth.simulator, truth.seed, limit=2**22)
            result = GSSStopping(epsilon=epsilon).run(parts.problem, parts.design, sampler, truth.mixing[None])
            used.append(result.rounds[-1].num_samples)
            found.append(truth.solver_error(result.policies[0]) if result.reached else math.inf)
        drawn.append(float(np.median(used)))
        errors.append(found)
        say(f"gss-stopping to {epsilon:g}: {drawn[-1]:,.0f} samples")
    return Curve.of("gss-stopping", drawn, errors, [truth.seed for truth in truths], PAPER, None)


def _whole_curves(truths: Sequence[Truth], kind: Kind, say: Say) -> list[Curve]:
    modes: dict[Mode, tuple[Sequence[int], Sequence[Truth]]] = {
        "default": (kind.default, truths),
        "literal": (kind.literal, truths[: kind.few]),
    }
    curves = []
    for mode, (numbers, some) in modes.items():
        errors = []
        for samples in numbers:
            answers = [
                solve(t.problem, t.simulator, samples=samples, seed=t.seed, method=Method(mode=mode, certificate=0))
                for t in some
            ]
            errors.append([t.constrained_error(answer) for t, answer in zip(some, answers, strict=True)])
            say(f"{mode} solves at {samples:,} samples")
        curves.append(Curve.of(f"{mode} mode", numbers, errors, [t.seed for t in some], PAPER))
    return curves


def _merged(errors: Errors) -> Errors:
    """Parts that give the same answers to the last digit are one curve: on a table, least squares are averages."""
    found: Errors = {}
    for label, rows in errors.items():
        twin = next((known for known, others in found.items() if np.allclose(others, rows, rtol=1e-6)), None)
        if twin is None:
            found[label] = rows
        else:
            found = {f"{known}, {label}" if known == twin else known: others for known, others in found.items()}
    return found


def _prefixed(say: Say, kind: str) -> Say:
    return lambda line: say(f"{kind}, {line}")


def answer(figures: Figures) -> list[str]:
    """What came out, in words, with the measured numbers."""
    panels = by_title(figures)
    return [
        *_about_evaluators(panels["evaluators, table"], panels["evaluators, linear"]),
        *_about_solvers(panels["solvers, table"], panels["solvers, linear"]),
        _about_whole_solves(panels["constrained, table"], panels["constrained, linear"]),
    ]


def _about_evaluators(table: Panel, linear: Panel) -> list[str]:
    slow, capped = (table.curve("ls-pe"), linear.curve("ls-pe")), "ls-pe" + CAPPED
    floors = table.curve(capped), linear.curve(capped)
    return [
        f"""**Evaluators.** `lstd` has no bias and errs as 1/√samples: exponent {table.curve("lstd").fit()} on tables,
        {linear.curve("lstd").fit()} on linear problems. `ls-pe` (on tables the same numbers as `tabular-pe`) starts from
        V⁰ = 0, which costs about γH·V/T. With batches of M = 4 the number of batches T grows with the samples, so this bias
        falls as 1/samples, exponents {slow[0].fit(LAST).short} and {slow[1].fit(LAST).short} over the last three points:
        faster than noise, and yet it is all there is to see. At the last point `ls-pe` errs
        {_ratio(table, "ls-pe", "lstd"):.0f} and {_ratio(linear, "ls-pe", "lstd"):.0f} times as much as `lstd`; it would meet
        the noise, and bend to −1/2, at about {compact(_meeting(table))} and {compact(_meeting(linear))} samples.""",
        f"""**Floors.** With at most 200 batches, however many samples, the bias stays: `{capped}` lies flat at
        {floors[0].middle[-1]:.2f} and {floors[1].middle[-1]:.2f}, exponents {floors[0].fit(LAST).short} and
        {floors[1].fit(LAST).short} over the last three points. It bends where 200 batches of four are full, at 800 samples a
        pair: 160,000 for the 200 pairs of a table, 6,400 for a coreset of 8 pairs (d = 8). A burn-in takes most of the bias away
        once there are batches enough to spend: `ls-pe-burn-in` ends at {_ratio(table, "ls-pe-burn-in", "lstd"):.1f} and
        {_ratio(linear, "ls-pe-burn-in", "lstd"):.1f} times the error of `lstd`.""",
    ]


def _about_solvers(table: Panel, linear: Panel) -> list[str]:
    slopes = sorted(c.fit().slope for panel in (table, linear) for c in panel.curves if c.fit().points > 1)
    plain, proved = table.curve("plug-in").middle[0], table.curve("gss-stopping")
    return [
        f"""**Solvers.** The mean loss falls about as 1/samples, exponents from {signed(round(slopes[-1], 2))} to
        {signed(round(slopes[0], 2))}, about twice as fast as the worst case: an action is mistaken only where two actions are closer
        than the noise, and then it costs no more than the noise. At the fewest samples on tables the lag of `ls-mdvi` costs a
        factor of {table.curve("ls-mdvi").middle[0] / plain:.1f} over `plug-in`, the softness of `mirror-descent`
        {table.curve("mirror-descent").middle[0] / plain:.1f}; at the most samples nothing. There is no floor, not even with
        T ≤ 200: a bias that is the same for all actions does not change a policy.""",
        f"""**The price of a proof.** `gss-stopping` stops when its data prove the accuracy asked for. For the last one, on
        tables, that takes {compact(proved.x[-1])} samples, and the policy then loses {compact(proved.middle[-1])} where a loss of
        {FULL[0].epsilons[len(proved.x) - 1]:g} was allowed.""",
    ]


def _about_whole_solves(table: Panel, linear: Panel) -> str:
    default, literal = "default mode", "literal mode"
    return f"""**Whole constrained solves.** Default mode: exponent {table.curve(default).fit()} on tables,
        {linear.curve(default).fit()} on linear problems. The error is mostly the evaluator's; it falls faster on tables, where the
        first points have five samples a pair to find policies with. Literal mode inherits the bias of `ls-pe`: it sees less of
        the constraint than there is, and gives reward away for it. That is flat while the bias exceeds the room ζ, and then
        falls as 1/samples: exponent {linear.curve(literal).fit()} on linear problems, {table.curve(literal).fit(LAST)} over the
        last three points on tables. At {compact(linear.curve(literal).x[-1])} samples it errs {_later(linear):.0f} times as much
        as the default mode on linear problems, at {compact(table.curve(literal).x[-1])} {_later(table):.0f} times on tables. The
        floor that K = 1000 dual iterations must leave was not reached."""


def _ratio(panel: Panel, one: str, other: str) -> float:
    return float(panel.curve(one).middle[-1] / panel.curve(other).middle[-1])


def _meeting(panel: Panel) -> float:
    """Where a bias that falls as 1/N and a noise that falls as 1/√N are equal, to two digits."""
    samples = panel.curve("lstd").x[-1] * _ratio(panel, "ls-pe", "lstd") ** 2
    return float(f"{samples:.1e}")


def _later(panel: Panel) -> float:
    """Literal against default mode at the last number of samples that both have."""
    default, literal = panel.curve("default mode"), panel.curve("literal mode")
    return float(literal.middle[-1] / default.middle[list(default.x).index(literal.x[-1])])
