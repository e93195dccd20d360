"""Plain averages over time of constraints that were given per step: estimates from rollouts, which no proof rests on.

A limit per step is kept, and proved, as a *discounted* average, (1 − γ) Σ_t γᵗ x_t, which the first H steps or so decide. People
often mean another average, so two are measured of the frozen mixture:

    first steps    (1/H) Σ_{t < H} E x_t
    long run       (1/(T − S)) Σ_{S ≤ t < T} E x_t        T as long as the calls allow, up to 100 H;  S = max(3 H, T/10)

Half of the calls go into rollouts of H steps, half into long ones, all of a fixed length and from a random stream of their own, so
that no other sample changes. Members get rollouts by their weights, at least two each where there are few members, and are
weighed exactly; errors are standard errors over rollouts. The long run is what these steps show: a process that forgets its start
more slowly than that has another.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import Remark
from saddleback.files.json_file import Limits, Record, Whole
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.blocks import Block, Executor, InOrder, in_key_order
from saddleback.sampling.trajectories import CHUNK, RolloutSource, steps_per_rollout
from saddleback.simulators.generative_model import GenerativeModel, Stream

SHARE = 0.05
"""Of a certificate's simulator calls, where a constraint was given per step."""

_NUMBERS = (32, 16, 8)  # of long rollouts: the most that leave each of them long enough
_MOST_LONG, _MOST_SHORT = 256, 4096  # rollouts: more would say no more
_LONGEST, _SETTLED, _LEAST_LONG_RUN = 100, 3, 6  # in H
_ERRORS = 3.0  # standard errors: what is nearer may be chance
_NOTEWORTHY = 0.05  # of value, threshold or range: what keeps the limit and is nearer need not be said
_ROUNDING = 1e-9  # of the range


class Average(Record, frozen=True):
    """An estimate per step, in the user's units, and its standard error."""

    mean: float
    error: float


class ConstraintAverages(Record, frozen=True):
    """Of one constraint that was given per step; ``long_run`` is None where the rollouts were too short for it."""

    name: str
    first: Average
    long_run: Average | None = None


class Averages(Record, frozen=True):
    """Averages over time from ``samples`` calls: over the ``first_steps`` of so many rollouts, and in the long run of others.

    ``long_run_steps`` are the first step of the long run and the one after its last.
    """

    samples: Whole
    first_steps: Whole
    first_rollouts: Whole
    constraints: tuple[ConstraintAverages, ...]
    long_run_steps: tuple[Whole, Whole] | None = None
    long_run_rollouts: Whole = 0


class Plan(NamedTuple):
    """Rollouts of ``length`` steps with these ``members``, and the step from which on they are averaged."""

    group: int
    members: NDArray[np.int64]
    length: int
    since: int = 0

    @property
    def calls(self) -> int:
        """What they cost."""
        return len(self.members) * self.length


def calls_for(problem: CMDP, samples: int) -> int:
    """How many of a certificate's calls are set aside for averages: none where no constraint was given per step."""
    return int(SHARE * samples) if any(unit.per_step for unit in problem.units) else 0


def plan_averages(problem: CMDP, mixture: MixturePolicy, samples: int) -> tuple[Plan, Plan | None] | None:
    """Short rollouts and long ones for at most ``samples`` calls; None where these are too few even for the short."""
    weights, half = mixture.weights, samples // 2
    first = max(1, round(problem.horizon))
    if half < _NUMBERS[-1] * first:
        return None
    short = Plan(0, _cast(weights, min(_MOST_SHORT, half // first)), first)
    lengths = [min(_LONGEST * first, half // n) for n in _NUMBERS]
    length = next((n for n in lengths if n >= _LEAST_LONG_RUN * first), None)
    if length is None:
        return short, None
    since = max(_SETTLED * first, length // 10)
    return short, Plan(1, _cast(weights, min(_MOST_LONG, half // length)), length, since)


def measure_averages(
    problem: CMDP,
    model: GenerativeModel,
    mixture: MixturePolicy,
    samples: int,
    *,
    seed: int,
    executor: Executor | None = None,
) -> Averages | None:
    """The averages from at most ``samples`` calls; None where these are too few, or no constraint was given per step."""
    columns = [1 + i for i, unit in enumerate(problem.units) if unit.per_step]
    plans = plan_averages(problem, mixture, samples) if columns else None
    if plans is None:
        return None
    short, long = plans
    found = [
        None if plan is None else _measured(problem, model, mixture, plan, columns, seed, executor) for plan in plans
    ]
    rows = []
    for k, j in enumerate(columns):
        first, later = (None if averages is None else averages[k] for averages in found)
        assert first is not None
        rows.append(ConstraintAverages(problem.constraints[j - 1].name, first, later))
    calls, number = short.calls, len(short.members)
    if long is None:
        return Averages(calls, short.length, number, tuple(rows))
    window = (long.since, long.length)
    return Averages(calls + long.calls, short.length, number, tuple(rows), window, len(long.members))


def differences(problem: CMDP, averages: Averages, limits: Sequence[Limits]) -> tuple[Remark, ...]:
    """A remark for each constraint whose averages over time are not what its discounted average, within ``limits``, is.

    An average that misses the threshold by more than chance is always named, however near to it.
    """
    found = []
    spans = np.abs(problem.scale[1:]).tolist()
    rows = zip(problem.constraints, problem.units, limits, spans, strict=True)
    known = {c.name: (c, unit, ends, span) for c, unit, ends, span in rows}
    for row in averages.constraints:
        c, unit, (low, high), span = known[row.name]
        low, high = unit.limits_of((low, high))
        said = []
        for words, average in ((_long_run(averages), row.long_run), (_first(averages), row.first)):
            if average is None:
                continue
            size = _NOTEWORTHY * min(max(abs(low), abs(high), abs(c.threshold)), span)
            far = max(low - average.mean, average.mean - high)
            missed = c.threshold - average.mean if c.sense == ">=" else average.mean - c.threshold
            chance = _ERRORS * average.error + _ROUNDING * span
            if far > max(chance, size) or missed > chance:
                about = _apart(average.mean, c.threshold)
                said.append(f"{words} it is about {about}{', beyond the limit' if missed > 0 else ''}")
        if said:
            of = f"'{c.name}' {c.sense} {c.threshold:g} per step is a limit on the discounted average, which early steps decide"
            found.append(Remark("average-differs", f"{of}: {'; '.join(said)} (estimates, not proved)"))
    return tuple(found)


def _apart(x: float, threshold: float) -> str:
    """Three digits, or as many as tell it from the threshold."""
    return next((text for n in range(3, 10) if float(text := f"{x:.{n}g}") != threshold), f"{x:.3g}")


def _first(averages: Averages) -> str:
    n = averages.first_steps
    return "over the first step" if n == 1 else f"over the first {n:,} steps"


def _long_run(averages: Averages) -> str:
    begin, end = averages.long_run_steps or (0, 0)
    return f"in the long run (steps {begin:,} to {end - 1:,})"


def _cast(weights: Array, number: int) -> NDArray[np.int64]:
    """The members of so many rollouts: shares nearest to the weights, and two of each where there are few."""
    played = np.flatnonzero(weights > 0)
    if 2 * len(played) > number:  # spread evenly over the weights
        middles = (np.arange(number) + 0.5) / number
        return np.minimum(np.searchsorted(np.cumsum(weights), middles), len(weights) - 1).astype(np.int64)
    counts = np.zeros(len(weights), dtype=np.int64)
    counts[played] = 2
    for _ in range(number - int(counts.sum())):
        counts[np.argmax(weights / np.maximum(counts, 1))] += 1
    return np.repeat(np.arange(len(weights)), counts)


def _measured(
    problem: CMDP,
    model: GenerativeModel,
    mixture: MixturePolicy,
    plan: Plan,
    columns: list[int],
    seed: int,
    executor: Executor | None,
) -> list[Average]:
    """The averages of some ``columns`` of reward and constraints over the rollouts of a plan."""
    means = _means(problem, model, mixture, plan, seed, executor)[:, columns]
    weights, members, counts = mixture.weights, plan.members, np.bincount(plan.members, minlength=len(mixture.weights))
    if counts[weights > 0].min() >= 2:  # member by member
        groups, shares = [means[members == k] for k in range(len(weights))], weights
    else:  # too many for two rollouts each: the cast itself follows the weights
        groups, shares = [means], np.ones(1)
    known = [(w, x) for w, x in zip(shares.tolist(), groups, strict=True) if w > 0]
    mean = np.sum([w * x.mean(axis=0) for w, x in known], axis=0)
    error = np.sqrt(np.sum([w**2 * x.var(axis=0, ddof=1) / len(x) for w, x in known], axis=0))
    scale, base = problem.scale[columns], problem.base[columns]
    return [Average(float(x), float(e)) for x, e in zip(mean * scale + base, error * np.abs(scale), strict=True)]


def _means(
    problem: CMDP, model: GenerativeModel, mixture: MixturePolicy, plan: Plan, seed: int, executor: Executor | None
) -> Array:
    """Mean utilities of every rollout from step ``since`` on, ``(n, 1+m)``."""
    n, length = len(plan.members), plan.length
    # As many at once as make no longer tape than a chunk of the certificate's own rollouts, which memory is planned for.
    at_once = max(1, min(CHUNK, int(CHUNK * steps_per_rollout(problem.gamma) / length)))
    cast = tuple(plan.members[first : first + at_once] for first in range(0, n, at_once))
    chunks = [Block(int(Stream.AVERAGE), plan.group, i, len(members)) for i, members in enumerate(cast)]
    source = RolloutSource(model, problem, mixture, seed, length, cast=cast)
    means = np.zeros((n, 1 + problem.num_constraints))
    for chunk, tape in in_key_order((executor or InOrder()).run(source.draw, chunks)):
        part = slice(chunk.block * at_once, chunk.block * at_once + chunk.size)
        for step in itertools.islice(source.play(chunk, tape)[1], plan.since, None):
            u = problem.utilities(step.states, step.actions)
            if step.drawn.signals is not None:
                u[:, problem.observed] = problem.utilities_of(step.drawn.signals)[:, problem.observed]
            means[part] += u / (length - plan.since)
    return means
