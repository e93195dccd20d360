"""``problem.json``: the question as data, so that a run can be read, played, exported and reported without the code that made it.

All that people are shown of a problem is here: names, spaces, units, limits and start, and where the policy is linear its features
as a list of operations (:mod:`saddleback.features.program`). Signals and next states are not, but which of the signals only the
simulator shows: whoever needs samples needs the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from saddleback.features.program import Program, ProgramFeatures, program_of
from saddleback.files.json_file import Record, Whole, check
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.signals import Sense
from saddleback.problem.spaces import BoxStates, FiniteStates, StateSpace

_MOST_STARTS = 1_000_000
_MOST_BY_NAME = 1_000_000
MOST_BYTES = 1 << 27


class SpanRecord(Record, frozen=True):
    """The smallest and largest value of a signal."""

    low: float
    high: float


class LimitRecord(Record, frozen=True):
    """A constraint as the user gave it."""

    name: str
    sense: Sense
    threshold: float
    units: Literal["discounted", "per-step"]
    range: SpanRecord


class SpaceRecord(Record, frozen=True):
    """So many numbered states, perhaps with names; or a box, where None is an end without a bound."""

    number: Whole | None = None
    names: list[str] | None = None
    low: list[float | None] | None = None
    high: list[float | None] | None = None

    def __post_init__(self) -> None:
        box = self.low is not None and self.high is not None
        check((self.number is None) == box, "states must be a number or a box")

    @staticmethod
    def of(problem: CMDP) -> SpaceRecord:
        """From the problem itself."""
        space, names = problem.states, problem.state_names
        if isinstance(space, BoxStates):
            return SpaceRecord(low=_bounds(space.low.tolist()), high=_bounds(space.high.tolist()))
        return SpaceRecord(space.num, None if names is None else list(names))

    def space(self) -> StateSpace:
        """The space itself."""
        if self.low is None or self.high is None:
            return FiniteStates(self.number or 0)
        low = [-math.inf if x is None else x for x in self.low]
        return BoxStates(np.array(low), np.array([math.inf if x is None else x for x in self.high]))


class StartRecord(Record, frozen=True):
    """Start states with their weights; a sample of them where the start is known by a sampler."""

    states: list[int | list[float]]
    weights: list[float]


class FeaturesRecord(Record, frozen=True):
    """A :class:`~saddleback.features.program.Program`."""

    steps: list[list[str]]
    constants: dict[str, list[list[float]]]
    result: str
    layout: list[list[int]]
    dim: Whole

    @staticmethod
    def of(program: Program) -> FeaturesRecord:
        """From the program itself."""
        constants = {name: x.tolist() for name, x in program.constants.items()}
        steps = [list(step) for step in program.steps]
        return FeaturesRecord(steps, constants, program.result, program.layout.tolist(), program.dim)

    def features(self) -> ProgramFeatures:
        """The map itself."""
        for name, rows in self.constants.items():
            check(len({len(row) for row in rows}) == 1, f"features.constants.{name} must have rows of one length")
        check(len({len(row) for row in self.layout}) == 1, "features.layout must have rows of one length")
        constants = {name: np.array(rows, dtype=np.float64) for name, rows in self.constants.items()}
        layout = np.array(self.layout, dtype=np.int64)
        return ProgramFeatures(Program(tuple(map(tuple, self.steps)), constants, self.result, layout, self.dim))


class QuestionRecord(Record, frozen=True):
    """``problem.json``."""

    format: Literal["saddleback-problem/1"]
    name: str
    gamma: Annotated[float, Meta(ge=0, lt=1)]
    states: SpaceRecord
    num_actions: Whole
    reward: SpanRecord
    constraints: list[LimitRecord]
    start: StartRecord
    actions: list[str] | None = None
    minimise: bool = False
    features: FeaturesRecord | None = None
    observed: list[bool] | None = None

    @staticmethod
    def of(problem: CMDP, linear: bool) -> QuestionRecord | None:
        """From the problem itself; ``linear`` where its policy needs the features. None for one too large to write down."""
        spans = [SpanRecord(float(s.low), float(s.high)) for s in problem.signals]
        if len(problem.start.weights) > _MOST_STARTS or len(problem.actions or ()) > _MOST_BY_NAME:
            return None
        program = program_of(problem.features) if linear else None
        rows = zip(problem.constraints, spans[1:], strict=True)
        return QuestionRecord(
            "saddleback-problem/1",
            problem.name,
            float(problem.gamma),
            SpaceRecord.of(problem),
            problem.num_actions,
            spans[0],
            [LimitRecord(c.name, c.sense, float(c.threshold), c.units, span) for c, span in rows],
            StartRecord(np.asarray(problem.start.states).tolist(), np.asarray(problem.start.weights).tolist()),
            None if problem.actions is None else list(problem.actions),
            bool(problem.minimise),
            None if program is None else FeaturesRecord.of(program),
            problem.observed.tolist(),
        )

    def problem(self) -> CMDP:
        """What is known of the problem: its signals are those that a simulator would show."""
        space = self.states.space()
        finite = isinstance(space, FiniteStates)
        states = np.array(self.start.states, dtype=np.int64 if finite else np.float64)
        return CMDP(
            gamma=self.gamma,
            start=Start(states, np.array(self.start.weights, dtype=np.float64)),
            num_actions=self.num_actions,
            states=space,
            reward=None,
            constraints=[
                Constraint(c.name, None, c.sense, c.threshold, (c.range.low, c.range.high), c.units)
                for c in self.constraints
            ],
            features=None if self.features is None else self.features.features(),
            reward_range=(self.reward.low, self.reward.high),
            name=self.name,
            state_names=self.states.names,
            actions=self.actions,
            minimise=self.minimise,
        )


def _bounds(ends: Sequence[float]) -> list[float | None]:
    return [x if math.isfinite(x) else None for x in ends]
