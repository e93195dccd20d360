"""Everything the golden record asks of saddleback, and the only module here that imports it.

The record's own vocabulary (the names of settings, facts and values) is fixed by this module: when saddleback's modules move
or its keywords change, this file changes and the record does not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from notes import Key, Notebook

import spelled_out
from saddleback.exact import solve_by_columns, solve_exactly
from saddleback.instances.zoo import BY_NAME, CONTINUOUS, make
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import BoxStates
from saddleback.runs.settings import Method
from saddleback.sampling.blocks import BlockSource, Executor, InOrder, blocks_for
from saddleback.sampling.executors import Joblib
from saddleback.sampling.executors.durable import Durable
from saddleback.sampling.fingerprint import fingerprint_of
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.pooling import pool
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import Draw, GenerativeModel, Stream
from saddleback.simulators.table import Table
from saddleback.solving.frontier import frontier
from saddleback.solving.prepared import parts_of
from saddleback.solving.solution import Solution

NAMES = tuple(BY_NAME)
TABLES = tuple(name for name in BY_NAME if name not in CONTINUOUS)

_PROBE_STATES = 500  # of a continuous problem, at which its policies are compared


@dataclass(frozen=True)
class Case:
    """A problem with its simulator and, where there is one, its table."""

    problem: CMDP
    simulator: GenerativeModel
    table: Table | None = None


@dataclass
class Answer:
    """What a case has found. Policies are action tables; facts are compared exactly, values up to rounding."""

    calls: int
    actions: list[Any] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)


# ---- problems ---------------------------------------------------------------------------------------------------------


def zoo_case(name: str, **parameters: Any) -> Case:
    """A named problem of the zoo."""
    instance = make(name, **parameters)
    return Case(instance.problem, instance.simulator, instance.table)


def observed_case(name: str) -> Case:
    """A problem of the zoo whose reward and constraints are seen with noise and not known beforehand."""
    instance = make(name)
    known, table = instance.problem, instance.table
    assert table is not None
    signals = np.stack([table.reward, *table.constraints], axis=-1).round(
        9
    )  # those of some problems end in rounding errors

    def sample(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        after = instance.simulator.sample(states, actions, rng).next_states
        return after, signals[states, actions] + rng.random((len(states), signals.shape[-1]))

    thresholds = known.user_thresholds() + 0.5 * known.horizon  # the noise's mean, discounted
    ranges = [(float(x.min()), float(x.max()) + 1.0) for x in np.moveaxis(signals, -1, 0)]
    constraints = [
        Constraint(c.name, None, c.sense, float(b), range=r)
        for c, b, r in zip(known.constraints, thresholds, ranges[1:], strict=True)
    ]
    problem = dataclasses.replace(known, reward=None, reward_range=ranges[0], constraints=constraints)
    return Case(problem, GenerativeModel(sample, known.states, signals.shape[-1]))


def harder_case(case: Case, share: float) -> Case:
    """The same problem with every threshold moved to be harder to meet, by a share of the signal's largest total."""
    problem = case.problem
    thresholds = problem.user_thresholds() + share * problem.horizon * problem.scale[1:]
    constraints = [
        dataclasses.replace(c, threshold=float(b), units="discounted")
        for c, b in zip(problem.constraints, thresholds, strict=True)
    ]
    return Case(dataclasses.replace(problem, constraints=constraints), case.simulator)


def sampled_start_case(name: str) -> Case:
    """A problem of the zoo over continuous states that starts anywhere in the middle of its box."""
    instance = make(name)
    low, high = _box(instance.problem)

    def anywhere(number: int, rng: np.random.Generator) -> Any:
        return low + (high - low) * (0.4 + 0.2 * rng.random((number, len(low))))

    problem = dataclasses.replace(instance.problem, start=Start.sampled(anywhere, number=64, seed=1))
    return Case(problem, instance.simulator)


# ---- whoever watches --------------------------------------------------------------------------------------------------


class WatchedExecutor:
    """Lets ``inner`` do the work and enters every task with its result."""

    def __init__(self, notebook: Notebook, inner: Executor | None = None):
        self._notebook, self._inner = notebook, inner or InOrder()

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Every task with its result."""
        source: Any = function.__self__  # type: ignore[attr-defined]
        for task, draw in self._inner.run(function, tasks):
            asked: list[Any] = []  # rollouts are known by their key alone
            if isinstance(source, BlockSource):
                pair = task.pair - source.first_pair
                asked = [source.states[pair], source.actions[pair]]
            self._notebook.note(Key(*source.key(task)), len(draw.next_states), asked, draw)
            yield task, draw


class WatchedModel(GenerativeModel):
    """A simulator whose calls are entered one by one: for whoever takes no executor."""

    def __init__(self, notebook: Notebook, inner: GenerativeModel):
        super().__init__(inner._sample, inner.states, inner.num_signals)
        self._notebook = notebook

    def sample(self, states: Any, actions: Any, rng: np.random.Generator, key: tuple[int, ...] | None = None) -> Draw:
        """One next state per pair."""
        drawn = super().sample(states, actions, rng, key)
        assert key is not None
        if key[1] != Stream.EXAMINATION:  # which is no sample
            self._notebook.note(Key(*key), len(states), [states, actions], drawn)
        return drawn


class _InterruptedError(Exception):
    """The power cut."""


class _Interrupted(InOrder):
    """Stops in the middle of the work: once so many samples have been drawn."""

    def __init__(self, after: int):
        self._left = after

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """The tasks in order, up to the power cut."""
        for task in tasks:
            if self._left <= 0:
                raise _InterruptedError
            draw = function(task)
            self._left -= len(draw.next_states)
            yield task, draw


# ---- runs -------------------------------------------------------------------------------------------------------------


def solved(case: Case, notebook: Notebook, seed: int, **settings: Any) -> Answer:
    """A solve, with all samples drawn in this process."""
    return _counted(case, notebook, lambda executor: _solve(case, seed, executor, settings), WatchedExecutor(notebook))


def solved_interactively(case: Case, notebook: Notebook, seed: int, **settings: Any) -> Answer:
    """A solve whose oracles play with the simulator themselves."""
    watched = dataclasses.replace(case, simulator=WatchedModel(notebook, case.simulator))
    return _counted(watched, notebook, lambda executor: _solve(watched, seed, executor, settings), None)


def solved_by_workers(case: Case, notebook: Notebook, seed: int, workers: int = 2, **settings: Any) -> Answer:
    """A solve with the samples drawn by other processes."""
    with Joblib(workers) as staff:
        watched = WatchedExecutor(notebook, staff)
        return _counted(case, notebook, lambda executor: _solve(case, seed, executor, settings), watched)


def resumed(case: Case, notebook: Notebook, seed: int, folder: Path, after: int, **settings: Any) -> Answer:
    """A solve that is cut off after so many samples, and repeated with the folder it left; the second run is recorded."""
    fingerprint = fingerprint_of(case.problem, case.simulator)
    interrupted = False
    with Durable(folder, fingerprint, _Interrupted(after)) as executor, contextlib.suppress(_InterruptedError):
        interrupted = True
        _solve(case, seed, executor, settings)
        interrupted = False
    assert interrupted, "the first run ended before it could be interrupted"
    case.simulator.num_queries = 0  # what is read from the folder counts as drawn
    with Durable(folder, fingerprint) as executor:
        watched = WatchedExecutor(notebook, executor)
        return _counted(case, notebook, lambda executor: _solve(case, seed, executor, settings), watched)


def solved_from_store(
    case: Case, notebook: Notebook, seed: int, folder: Path, *, each: int, parts: int = 1, **settings: Any
) -> Answer:
    """A solve from samples on disk, ``each`` for every pair and buffer; several ``parts`` have seeds of their own."""
    executor = WatchedExecutor(notebook)
    with contextlib.ExitStack() as stack:
        stores = [
            stack.enter_context(_filled(case, executor, seed + i, folder / f"part-{i}", each)) for i in range(parts)
        ]
        store = stores[0] if parts == 1 else stack.enter_context(pool(stores, folder / "pool"))
        return _counted(
            case, notebook, lambda executor: _solve(case, seed, executor, {**settings, "store": store}), executor
        )


def reused(case: Case, notebook: Notebook, seed: int, *, harder: float, certificate: int, **settings: Any) -> Answer:
    """A second solve from the samples of a first, with thresholds that are harder to meet."""
    problem, executor = harder_case(case, harder).problem, WatchedExecutor(notebook)

    def run(executor: Executor | None) -> Solution:
        first = _solve(case, seed, executor, settings)
        return spelled_out.solve(
            problem, case.simulator, reuse=first, certificate=certificate, seed=seed, executor=executor
        )

    return _counted(case, notebook, run, executor)


def trade_off(case: Case, notebook: Notebook, seed: int, *, points: int, certificate: int, **settings: Any) -> Answer:
    """The frontier over the first constraint's threshold, with its proved band."""
    watched = dataclasses.replace(case, simulator=WatchedModel(notebook, case.simulator))
    curve = frontier(_solve(watched, seed, None, settings), None, points)
    curve = curve.certified(watched.simulator, samples=certificate, seed=seed)
    answer = Answer(watched.simulator.num_queries)
    answer.facts = {"points": len(curve.points)}
    for i, point in enumerate(curve.points):
        name = f"point {i}"
        _put(answer.values, f"{name} threshold", point.threshold)
        _put(answer.values, f"{name} value", point.value)
        _put(answer.values, f"{name} constraints", point.constraints)
        _put(answer.values, f"{name} multiplier", point.multiplier)
        _put(answer.values, f"{name} gap", point.gap)
        _put(answer.values, f"{name} low", point.low)
        _put(answer.values, f"{name} high", point.high)
        _put_mixture(answer, name, case.problem, point.mixture)
    if case.problem.num_constraints == 1:
        _put(answer.values, "vertices", list(itertools.chain(*curve.breakpoints())))
    return answer


def exact(case: Case, method: str) -> Answer:
    """The truth of a table, by the linear program or by column generation."""
    assert case.table is not None
    found = solve_exactly(case.table) if method == "lp" else solve_by_columns(case.table)
    answer = Answer(0, facts={"status": found.status})
    _put(answer.values, "value", found.value)
    _put(answer.values, "constraints", found.constraint_values)
    _put(answer.values, "multipliers", found.multipliers)
    _put(answer.values, "slater", found.slater)
    _put(answer.values, "reachable", found.reachable)
    if found.policy is not None:
        _put_policy(answer, "policy", case.problem, found.policy)
    return answer


def _solve(case: Case, seed: int, executor: Executor | None, settings: dict[str, Any]) -> Solution:
    return spelled_out.solve(case.problem, case.simulator, seed=seed, executor=executor, **settings)


def _counted(
    case: Case, notebook: Notebook, run: Callable[[Executor | None], Solution], executor: Executor | None
) -> Answer:
    """The answer of a run, once it is sure that the notebook has seen every call."""
    solution, calls = run(executor), case.simulator.num_queries
    assert calls == notebook.num_samples, f"{calls} calls were made and {notebook.num_samples} seen"
    return _answer_of(solution, calls)


def _filled(case: Case, executor: WatchedExecutor, seed: int, folder: Path, each: int) -> SampleStore:
    problem, _, _, _, designer = parts_of(case.problem, Method())
    design = designer.design(problem)
    source = BlockSource(case.simulator, problem, design.states, design.actions, seed)
    fingerprint = {**fingerprint_of(case.problem, case.simulator), "seed": seed}
    layout = Layout.of(case.simulator.states, case.simulator.num_signals)
    folder.parent.mkdir(exist_ok=True)
    with SampleStore.create(folder, fingerprint, layout) as store:
        blocks = [b for stream in (0, 1) for b in blocks_for(stream, np.full(design.size, each))]
        for block, draw in executor.run(source.draw, blocks):
            store.add(block, draw)
    return SampleStore.open(folder, writable=False)


# ---- answers ----------------------------------------------------------------------------------------------------------


def _answer_of(solution: Solution, calls: int) -> Answer:
    answer, values = Answer(calls), dict[str, float]()
    settings = solution.settings
    answer.facts = {
        "status": solution.status.value,
        "samples": solution.samples,
        **{name: settings.get(name) for name in ("coreset", "rank", "batches", "iterations", "solver_calls", "rounds")},
    }
    _put(values, "value", solution.value)
    for c in solution.constraints:
        for name in ("value", "threshold", "slack", "low", "high"):
            _put(values, f"constraint {c.name} {name}", getattr(c, name))
    _put(values, "multipliers", solution.multipliers)
    _put(values, "gap", solution.gap)
    _put(values, "most slack", solution.max_slack)
    _put(values, "target", settings.get("target"))
    _put(values, "oracle error", settings.get("error"))
    for i, member in enumerate(solution.members):
        _put(values, f"member {i} values", [member.value, *member.constraints])
    if solution.trace is not None:
        _put(values, "last multipliers", solution.trace.multipliers[-1] if len(solution.trace.multipliers) else None)
    if solution.stationary is not None:
        _put(values, "stationary values", solution.stationary.values)
        _put_policy(answer, "stationary", solution.problem, solution.stationary.policy)
    answer.values |= values
    if solution.mixture is not None:
        _put_mixture(answer, "mixture", solution.problem, solution.mixture)
    if solution.certificate is not None:
        _put_certificate(answer, solution.certificate)
    return answer


def _put_certificate(answer: Answer, certificate: Any) -> None:
    answer.facts |= {
        "certificate samples": certificate.samples,
        "certificate seed": certificate.seed,
        "feasible": certificate.feasible,
        "infeasible": certificate.infeasible,
        "start rollouts": [s.rollouts for s in certificate.by_start],
    }
    values = answer.values
    for name in ("confidence", "value", "upper_bound", "gap", "slack_bound", "allowance"):
        _put(values, f"certificate {name.replace('_', ' ')}", getattr(certificate, name))
    _put(values, "certificate constraints", list(itertools.chain(*certificate.constraints)))
    for i, s in enumerate(certificate.by_start):
        _put(values, f"certificate start {i}", [*s.value, *itertools.chain(*s.constraints)])


def _put_mixture(answer: Answer, name: str, problem: CMDP, mixture: MixturePolicy) -> None:
    _put(answer.values, f"{name} weights", mixture.weights)
    for i, member in enumerate(mixture.members):
        _put_policy(answer, f"{name} member {i}", problem, member)


def _put_policy(answer: Answer, name: str, problem: CMDP, policy: Any) -> None:
    """The likeliest action of every state, and a weighted mean of all probabilities, which shows where a policy is random."""
    probabilities = policy.probabilities(_probe_states(problem))
    answer.actions.append(probabilities.round(9).argmax(axis=1))  # the first of those that differ by rounding alone
    weights = np.random.Generator(np.random.Philox(1)).random(probabilities.shape)
    _put(answer.values, f"{name} probabilities", float((weights * probabilities).sum(axis=1).mean()))


def _probe_states(problem: CMDP) -> Any:
    if problem.num_states is not None:
        return np.arange(problem.num_states)
    low, high = _box(problem)
    rng = np.random.Generator(np.random.Philox(2))
    return low + (high - low) * rng.random((_PROBE_STATES, len(low)))


def _box(problem: CMDP) -> tuple[Any, Any]:
    assert isinstance(problem.states, BoxStates)
    return problem.states.low, problem.states.high


def _put(values: dict[str, float], name: str, given: Any) -> None:
    """A number, or the numbers of a list under numbered names; None is left out."""
    if given is None:
        return
    x = np.asarray(given, dtype=np.float64) + 0.0
    if x.ndim == 0:
        values[name] = float(x)
    else:
        values |= {f"{name} {i}": float(v) for i, v in enumerate(x.ravel())}
