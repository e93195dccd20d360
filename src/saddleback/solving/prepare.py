"""From names and samples to oracles: the part of a solve that every mode shares.

    problem, simulator → design → collect (one buffer for the solver, one for the evaluator) → O(σ) = (π_σ, V̂(π_σ))
    problem, store     → design → the streams SOLVER and EVALUATION of the store             → O(σ)

The sample budget is the total of simulator calls over all buffers. *Literal* follows the paper: the same N for every pair
of the coreset, M = 4. The *default* gives each pair samples in proportion to its weight, which is what makes a refined design
pay (:mod:`.prepared` has the parts of both).

A run that draws into a folder (:mod:`saddleback.sampling.executors.durable`), or several whose stores were merged, leave a
store whose pairs are those of the design, which the problem and the method fix.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import InputError, Remark, require
from saddleback.method.evaluators.lstd import LSTD
from saddleback.method.framework import Seated
from saddleback.method.oracles import Allocating, InteractiveEvaluator, InteractiveSolver, needs_of
from saddleback.problem.actions import serving_pairs
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.runs.settings import Method
from saddleback.sampling.blocks import Executor
from saddleback.sampling.buffer import Buffer, Samples, counted
from saddleback.sampling.candidate_pool import grown, growth_remark, may_grow
from saddleback.sampling.collect import batches_and_counts, collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.examination import examine
from saddleback.sampling.memory import Lot, check, check_size, predict, predict_run
from saddleback.sampling.reach import Spare
from saddleback.sampling.store.buffers import OnRay, buffer_maker, excerpt
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.streamed_buffer import StreamedBuffer
from saddleback.simulators.generative_model import GenerativeModel, Sampler, Stream, generator
from saddleback.solving.focused_allocation import focused_counts
from saddleback.solving.prepared import USUAL_PARTS, Chosen, Prepared, oracle_of, parts_of
from saddleback.solving.table_size import may_skip, shared_over, table_remarks
from saddleback.solving.ties import ties_of

_ONE_BUFFER = Remark(
    "one-buffer",
    "one buffer serves solver and evaluator (a heuristic): policies look better on the data that chose them",
)


def prepare(
    problem: CMDP,
    model: GenerativeModel,
    samples: int,
    seed: int,
    method: Method,
    held: Prepared | None = None,
    executor: Executor | None = None,
) -> Prepared:
    """Choose the parts, compute the design, draw the samples, wire the oracles.

    ``held`` is an earlier, smaller run of the same problem with the same seed and method: its samples are kept, and only
    what is missing is drawn. ``executor`` draws the blocks (None: here, one by one).
    """
    chosen = parts_of(problem, method)
    names, solver, evaluator = chosen.names, chosen.solver, chosen.evaluator
    if isinstance(evaluator, InteractiveEvaluator):
        require(held is None, "evaluator", "must not play while samples grow", names["evaluator"], "use lstd")
        return _measured(problem, model, samples, seed, method, names, evaluator, executor)
    chosen, design, explored, remarks = _designed(chosen, model, samples, seed, method, held, executor)
    examine(problem, model, seed, (design.states, design.actions), executor)
    problem, interactive = chosen.problem, isinstance(solver, InteractiveSolver)
    samples -= explored if held is None else 0
    own_share, share = _shares(samples, method, interactive)
    own_T, own_counts = _batches(problem, design, own_share, method, names["design"] == "full")
    T, counts = _batches(problem, design, share, method, names["design"] == "full")
    batched = needs_of(evaluator, problem).batches
    serving = serving_pairs(problem.stand_ins, design.states, design.actions)
    held_counts = [n if serving is None else n[serving] for n in (own_counts, counts)]  # a pair may hold another's
    own_lot, lot = Lot.of(held_counts[0], own_T), Lot.of(held_counts[1], T if batched else 1)
    own_lot, lot = Lot() if interactive else own_lot, Lot() if method.buffers == 1 and not interactive else lot
    _check_memory(problem, design, model, own_lot, lot, held, not isinstance(evaluator, LSTD))

    def draw(
        stream: Stream,
        design: Design,
        counts: NDArray[np.int64],
        before: Buffer | Samples | None = None,
        reach: Spare | None = None,
    ) -> Samples:
        known = before if isinstance(before, Samples) else None
        if before is not None and not isinstance(before, Samples) and before.design is design:
            known = counted(before).samples()
        return collect(
            model, problem, design, counts, seed=seed, stream=stream, held=known, executor=executor, reach=reach
        )

    if isinstance(solver, InteractiveSolver):
        resolution = method.grid or 20
        sampler = Sampler(model, seed, limit=samples - int(counts.sum()))
        mixing = grid_points(problem, resolution)  # all from one run of the sampler, before the dual asks for any point
        seated = Seated.at(mixing, solver.solve_interactively(problem, design, sampler, mixing))
        evaluation = cut(draw(Stream.EVALUATION, design, counts), problem, design, T)
        oracle = oracle_of(problem, seated, evaluation, evaluator, evaluation, resolution)
        drawn = explored + sampler.num_queries + evaluation.num_samples
        return Prepared(
            problem, design, None, evaluation, seated, evaluator, oracle, drawn, names, remarks, resolution, explored
        )
    own = design
    T = T if batched else 1
    if isinstance(solver, Allocating):
        rule = f"must be 2 for {names['solver']}, whose samples are not cut into batches"
        require(method.buffers == 2, "buffers", rule, method.buffers, "let the evaluator have its own")
        # GSS collects i.i.d. from the design.
        own, own_counts = solver.allocate(design, int(own_counts.sum()), generator(seed, Stream.SOLVER, 0, 1 << 30))
        own_T = 1
    before = (None, None) if held is None else (held.solver_buffer, held.evaluation_buffer)
    skips = may_skip(problem, design, method, own_counts) and own is design and not batched
    spare = Spare() if skips else None
    found = draw(Stream.SOLVER, own, own_counts, before[0], spare)
    if found.unsampled is not None:  # what is not reached leaves more to what is
        own_T, own_counts, spare = shared_over(problem, design, ~found.unsampled, own_share)
        found = draw(Stream.SOLVER, own, own_counts, found, spare)
    if skips:  # what is reached last may have been given little
        own_T = max(1, min(own_T, min((len(n) for n in found.next_states if len(n)), default=1)))
    solver_buffer = cut(found, problem, own, own_T)
    evaluation_buffer, drawn = solver_buffer, explored + solver_buffer.num_samples
    if method.buffers == 2:
        if solver_buffer.unsampled is None:
            spare = None
        else:
            _, counts, spare = shared_over(problem, design, ~solver_buffer.unsampled, samples - found.total, True)
        if T == 1 and method.mode == "default" and method.allocation is None and own is design:
            counts = focused_counts(problem, solver, solver_buffer, counts)
        evaluation_buffer = cut(draw(Stream.EVALUATION, design, counts, before[1], spare), problem, design, T)
        drawn += evaluation_buffer.num_samples
    remarks = (*remarks, *table_remarks(problem, evaluation_buffer, drawn))
    buffers, grid = (solver_buffer, evaluation_buffer), method.grid
    ties = ties_of(problem, evaluation_buffer) if method.mode == "default" and grid is None else None
    oracle = oracle_of(problem, solver, solver_buffer, evaluator, evaluation_buffer, grid, ties)
    parts = Prepared(problem, design, *buffers, solver, evaluator, oracle, drawn, names, remarks, grid, explored)
    parts = dataclasses.replace(parts, ties=ties)
    return parts if held is None else dataclasses.replace(parts, used_seeds=held.used_seeds)


def prepare_from(
    problem: CMDP,
    store: SampleStore,
    method: Method | None = None,
    *,
    buffer: Literal["memory", "streamed"] | OnRay = "streamed",
    num_batches: Sequence[int] | None = None,
) -> Prepared:
    """Oracles on the samples of a store, without a simulator, as :func:`prepare` makes them on those it draws.

    ``buffer`` says how the samples are held (:mod:`saddleback.sampling.store.buffers`). ``num_batches`` is T of the solver's
    and of the evaluator's buffer (None: what the mode makes of that many samples). Close both buffers of a Prepared on Ray
    when it is done with.
    """
    method = method or Method()
    chosen = parts_of(problem, method)
    problem, names, solver, evaluator, designer = chosen
    if isinstance(solver, (InteractiveSolver, Allocating)):
        rule = "must be one that asks for means over the design's pairs"
        raise InputError("solver", rule, names["solver"], "use plug-in or ls-mdvi")
    if isinstance(evaluator, InteractiveEvaluator):
        raise InputError("evaluator", "must not play where samples are stored", names["evaluator"], "use lstd")
    design = designer.design(problem)
    make = buffer_maker(problem, store, design, buffer)
    streams = (Stream.SOLVER, Stream.EVALUATION)[: method.buffers]
    T = num_batches
    if T is None:
        held = [store.held(stream, design.size) for stream in streams]
        usual = [_batches(problem, design, int(n.sum()), method, design.operator is None)[0] for n in held]
        T = [max(1, int(n.min(initial=most, where=n > 0))) for n, most in zip(held, usual, strict=True)]
    own = make(Stream.SOLVER, T[0])
    evaluation, drawn = own, own.num_samples
    if method.buffers == 2:
        evaluation = make(Stream.EVALUATION, T[-1] if needs_of(evaluator, problem).batches else 1)
        drawn += evaluation.num_samples
    hints = None
    if isinstance(own, StreamedBuffer) or isinstance(evaluation, StreamedBuffer):
        hints = tuple(cut(excerpt(store, stream, problem, design), problem, design, 1) for stream in streams)
    ties = ties_of(problem, evaluation) if method.mode == "default" and method.grid is None else None
    oracle = oracle_of(problem, solver, own, evaluator, evaluation, method.grid, ties)
    remarks = tuple(chosen.remarks())
    parts = Prepared(problem, design, own, evaluation, solver, evaluator, oracle, drawn, names, remarks, method.grid)
    return dataclasses.replace(parts, hints=hints, used_seeds=store.used_seeds, ties=ties)


def _designed(
    chosen: Chosen,
    model: GenerativeModel,
    samples: int,
    seed: int,
    method: Method,
    held: Prepared | None,
    executor: Executor | None,
) -> tuple[Chosen, Design, int, tuple[Remark, ...]]:
    """The design, over candidates that may have grown; the simulator calls that this took, and what is to be said of it."""
    problem, explored, grew = chosen.problem, 0, None
    if held is not None:
        problem = dataclasses.replace(problem, candidates=held.problem.candidates)
        design, explored = held.design, held.explored
    else:
        check_size(problem)
        if may_grow(problem) and method.mode == "default":
            check(predict_run(problem, samples, num_signals=model.num_signals), samples)  # before the first sample
            grew = grown(problem, model, chosen.designer, samples, seed, executor)
            problem, design, explored = grew.problem, grew.design, grew.samples
        else:
            design = chosen.designer.design(problem)
    chosen = chosen._replace(problem=problem)
    remarks = chosen.remarks()
    if grew is not None and explored:
        remarks.append(Remark("candidates", growth_remark(grew)))
    return chosen, design, explored, (*remarks, _ONE_BUFFER) if method.buffers == 1 else tuple(remarks)


def _batches(problem: CMDP, design: Design, samples: int, method: Method, full: bool) -> tuple[int, NDArray[np.int64]]:
    """T and the samples of each pair, as the method shares out so many."""
    allocation = method.allocation or USUAL_PARTS[method.mode, full][3]
    literal = method.mode == "literal"
    return batches_and_counts(
        problem, design, samples, literal=literal, batch_size=method.batch_size, allocation=allocation
    )


def _shares(samples: int, method: Method, interactive: bool) -> tuple[int, int]:
    """The solver's and the evaluator's samples.

    Half each where guarantees are at stake (an interactive solver's half is a limit). Otherwise a quarter for the solver:
    on linear and tabular problems alike its error is second order, the evaluator's is what a user sees.
    """
    if method.buffers == 1 and not interactive:
        return samples, samples
    if interactive or method.mode == "literal" or method.grid is not None:
        return samples // 2, samples // 2
    return samples // 4, samples - samples // 4


def _check_memory(
    problem: CMDP,
    design: Design,
    model: GenerativeModel,
    solver: Lot,
    evaluation: Lot,
    held: Prepared | None,
    policies: bool,
) -> None:
    """Refuse a run whose samples would not fit, before the first of them is drawn."""
    earlier = 0 if held is None else held.evaluation_buffer.num_samples
    signals = model.num_signals
    needed = predict(problem, design.size, solver, evaluation, num_signals=signals, earlier=earlier, policies=policies)
    check(needed, solver.samples + evaluation.samples)


def _measured(
    problem: CMDP,
    model: GenerativeModel,
    samples: int,
    seed: int,
    method: Method,
    names: dict[str, str],
    evaluator: InteractiveEvaluator,
    executor: Executor | None,
) -> Prepared:
    """Half of the samples for the solver and a buffer, half to play the policies of the grid before the dual asks."""
    resolution = method.grid or 20
    mixing = grid_points(problem, resolution)
    solver = method.solver or names["solver"]
    method = dataclasses.replace(method, solver=solver, evaluator=None, resolution=resolution)
    parts = prepare(problem, model, samples // 2, seed, method, executor=executor)
    parts.oracle.prefetch(mixing)
    seated = Seated.at(mixing, [parts.oracle(sigma)[0] for sigma in mixing])
    sampler = Sampler(model, seed, Stream.MEASUREMENT, limit=samples - parts.samples)
    seen = evaluator.evaluate_interactively(parts.problem, sampler, [policy for policy, _ in parts.oracle.columns])
    buffer = parts.evaluation_buffer
    oracle = oracle_of(parts.problem, seated, buffer, seen, buffer, resolution)
    return dataclasses.replace(
        parts,
        solver_buffer=None,  # other rewards would need other rollouts
        evaluator=seen,
        oracle=oracle,
        samples=parts.samples + sampler.num_queries,
        names=parts.names | {"evaluator": names["evaluator"]},
    )


def grid_points(problem: CMDP, resolution: int) -> Array:
    """Every point of the simplex whose coordinates are multiples of 1/resolution, ``(k, 1+m)``."""
    m = problem.num_constraints
    rule = "must leave at most 2000 grid points for interactive oracles, which are asked about all of them at once"
    remedy = "use a coarser grid, such as --resolution 20"
    require((resolution + 1) ** m <= 2000, "resolution", rule, resolution, remedy)
    grid = np.array([p for p in itertools.product(range(resolution + 1), repeat=m) if sum(p) <= resolution])
    return np.column_stack([resolution - grid.sum(axis=1), grid]) / resolution
