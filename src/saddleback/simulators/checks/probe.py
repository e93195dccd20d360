"""A simulator under examination: every call is counted, timed and screened, whichever check makes it.

Screened in every call: what :class:`~saddleback.simulators.generative_model.GenerativeModel` refuses; observed signals outside their declared
ranges; inputs that were changed (the simulator gets copies); an array that is the one returned before, so that an earlier answer
changes by itself. The last two are noted and the call goes on; the others raise.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from saddleback.errors import InputError, SimulatorError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, FiniteStates, States
from saddleback.problem.user_code import TimeUp, calling, fail
from saddleback.simulators.generative_model import Draw, GenerativeModel, Stream, generator
from saddleback.simulators.independence import FALSE_ALARM as FALSE_ALARM

Key = tuple[int, ...]
Asked = tuple[States, Actions, Key]
"""Pairs to draw a next state of, and the key of the random stream."""

DrawAll = Callable[[Sequence[Asked]], list[Draw]]
"""Whoever carries out many questions; the answers are in their order."""


class OutOfTime(Exception):
    """The time of the checks is over."""


_AT_A_TIME = 256  # questions that are carried out elsewhere, between two looks at the clock


@dataclass(frozen=True)
class Finding:
    """One mistake in one sentence with its remedy, and the state, action and seed key that show it.

    ``key`` is (seed, stream, pair, block): ``saddleback.simulators.generative_model.generator(*key)`` is the random stream of the call.
    """

    check: str
    severity: Literal["error", "warning"]
    message: str
    state: Any = None
    action: int | None = None
    key: Key | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        state = self.state.tolist() if isinstance(self.state, (np.ndarray, np.generic)) else self.state
        return {**vars(self), "state": state, "key": None if self.key is None else list(self.key)}


@dataclass
class Report:
    """All that was found; ``calls`` counts simulator calls, ``skipped`` says which checks could not be made."""

    findings: list[Finding] = field(default_factory=list)
    calls: int = 0
    tests: int = 0
    seconds_alone: float = math.nan
    seconds_in_batch: float = math.nan
    dim: int | None = None
    rank: int | None = None
    condition: float | None = None
    skipped: list[str] = field(default_factory=list)

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(f.severity == "error" for f in self.findings)

    @property
    def well_formed(self) -> bool:
        """Whether every answer so far has had the form that is declared."""
        return not any(f.check == "conformance" for f in self.findings)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "clean": not self.findings,
            "errors": self.errors,
            "findings": [f.to_json() for f in self.findings],
            "calls": self.calls,
            "tests": self.tests,
            "false_alarm": FALSE_ALARM,
            "seconds_per_call": {"alone": _number(self.seconds_alone), "in_batch": _number(self.seconds_in_batch)},
            "features": {"dim": self.dim, "rank": self.rank, "condition": _number(self.condition)},
            "skipped": self.skipped,
        }


def _number(x: float | None) -> float | None:
    return None if x is None or not math.isfinite(x) else float(x)


class Probe:
    """The simulator of ``problem``, and the report in which all checks write."""

    def __init__(
        self,
        problem: CMDP,
        model: GenerativeModel,
        seed: int,
        report: Report,
        time_limit: float | None = None,
        draw_all: DrawAll | None = None,
        progress: Callable[[int], None] | None = None,
    ):
        self.problem, self.seed, self.report = problem, seed, report
        self.model = copy.copy(model)  # a meter of its own
        self._deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self._draw_all, self._progress = draw_all, progress
        self._last: Any = None
        self._block = 0

    def key(self) -> Key:
        """A seed key that no call has had."""
        self._block += 1
        return (self.seed, int(Stream.DESIGN), 2, self._block)

    def rng(self, purpose: int) -> np.random.Generator:
        """Random numbers for the checks' own choices."""
        return generator(self.seed, Stream.DESIGN, 3, purpose)

    def add(
        self, check: str, text: str, state: Any = None, action: Any = None, key: Key | None = None, warn: bool = False
    ) -> None:
        """Note a finding, the first of its check: it tells the story."""
        if any(f.check == check for f in self.report.findings):
            return
        where = [] if state is None else [f"state {state}, action {action}"]
        where += [] if key is None else [f"seed key {key}"]
        text = f"{text} (at {', '.join(where)})." if where else f"{text}."
        number = None if action is None else int(action)
        self.report.findings.append(Finding(check, "warning" if warn else "error", text, state, number, key))

    @contextmanager
    def noting(self, check: str) -> Iterator[None]:
        """What a simulator must not do becomes a finding, and ends the check."""
        try:
            yield
        except SimulatorError as error:
            self.add(check, f"the simulator {error.problem}; {error.remedy}", error.state, error.action, error.key)
        except InputError as error:
            self.add(check, f"{error.name} {error.rule}, got {error.value}; {error.remedy}")

    def draw_many(self, questions: Sequence[Asked]) -> list[Draw]:
        """The answers to questions that do not depend on one another; elsewhere, if somebody else carries them out.

        Of those the form and the range of every answer are looked at there; copied inputs and returned arrays only here.
        """
        if self._draw_all is None or len(questions) < 2:
            return [self.draw(*question) for question in questions]
        first, answers = self.draw(*questions[0]), list[Draw]()
        for start in range(1, len(questions), _AT_A_TIME):
            self._look_at_the_clock()
            some = questions[start : start + _AT_A_TIME]
            answers += self._draw_all(some)
            self._count(sum(len(states) for states, _, _ in some))
        return [first, *answers]

    def _look_at_the_clock(self) -> None:
        if time.monotonic() > self._deadline:
            raise OutOfTime

    def _count(self, calls: int) -> None:
        self.report.calls += calls
        if self._progress is not None:
            self._progress(self.report.calls)

    def draw(self, states: States, actions: Actions, key: Key) -> Draw:
        """One next state a pair."""
        self._look_at_the_clock()
        given, asked = np.array(states), np.array(actions)
        self._count(len(states))
        began = time.perf_counter()
        try:
            with calling(lambda: self.model._asked(states, actions, key), len(states)):
                returned = self.model._sample(given, asked, generator(*key))
        except SimulatorError as error:  # an adapter, which knows the pair but not the seed
            raise error.at(key=key) from error
        except BaseException as error:  # the user's code: anything can happen
            late = isinstance(error, TimeUp)
            fail(error, lambda said: self.model._failed(said, states, actions, key, late))
        self._time((time.perf_counter() - began) / len(states), len(states))
        for name, after, before in (("states", given, states), ("actions", asked, actions)):
            if not np.array_equal(after, before):
                at = int(np.argmax((after != before).reshape(len(states), -1).any(axis=1)))
                changed = f"here {before[at]} to {after[at]}; work on a copy, {name}.copy()"
                text = f"the simulator changes the {name} it is given, {changed}"
                self.add("inputs", text, states[at], actions[at], key)
        self._screen_memory(returned, states, actions, key)
        drawn = self.model._checked(returned, states, actions, key)
        self._check_signals(drawn, states, actions, key)
        return drawn

    def _check_signals(self, drawn: Draw, states: States, actions: Actions, key: Key) -> None:
        if drawn.signals is None:
            return
        for i in np.flatnonzero(self.problem.observed):
            signal, x = self.problem.signals[i], drawn.signals[:, i]
            slack = 1e-9 * (signal.high - signal.low)
            bad = np.flatnonzero((x < signal.low - slack) | (x > signal.high + slack))
            if bad.size:
                at = int(bad[0])
                span = f"its declared range [{signal.low:g}, {signal.high:g}]"
                what = f"returned {x[at]:g} for {signal.name}, outside {span}"
                remedy = "declare the true range, since every bound depends on it, or mend the simulator"
                raise SimulatorError(what, state=states[at], action=actions[at], key=key, index=at, remedy=remedy)

    def _screen_memory(self, returned: Any, states: States, actions: Actions, key: Key) -> None:
        array = returned[0] if isinstance(returned, tuple) and len(returned) else returned
        if not isinstance(array, np.ndarray):
            return
        if self._last is not None and np.may_share_memory(self._last, array):
            text = (
                "the simulator returns the same array again, so an earlier answer changes by itself; return a new one"
            )
            self.add("aliasing", text, states[0], actions[0], key, warn=True)
        self._last = array

    def _time(self, seconds: float, rows: int) -> None:
        name = "seconds_alone" if rows == 1 else "seconds_in_batch"
        setattr(self.report, name, float(np.fmin(getattr(self.report, name), seconds)))

    def pairs(self, number: int, purpose: int) -> tuple[States, Actions]:
        """Pairs to ask about: all of a small finite problem, in order; else as many as wanted, by chance, starts first."""
        problem, rng = self.problem, self.rng(purpose)
        space, A = problem.states, problem.num_actions
        if isinstance(space, FiniteStates) and space.num * A <= number:
            return np.repeat(np.arange(space.num), A), np.tile(np.arange(A), space.num)
        if isinstance(space, FiniteStates):
            states: States = rng.integers(0, space.num, number)
        else:
            choices = np.asarray(problem.start.states if problem.candidates is None else problem.candidates[0])
            states = choices[rng.integers(0, len(choices), number)]
        starts = min(len(problem.start.states), number // 4)
        states[:starts] = problem.start.states[:starts]
        return states, rng.integers(0, A, number)
