"""From names and a sample budget to oracles: the part of a solve that every mode shares.

    problem, simulator → design → collect (one buffer for the solver, one for the evaluator) → O(σ) = (π_σ, V̂(π_σ))

The sample budget is the total of simulator calls over all buffers. *Literal* follows the paper: the same N for every pair
of the coreset, M = 4, LS-MDVI and LS-PE from zero. The *default* refines the design, gives each pair samples in proportion
to its weight (which is what makes a refined design pay), solves by plug-in value iteration and evaluates by LSTD.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np

from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.method.framework import Seated
from saddleback.method.oracles import (
    Allocating,
    InteractiveEvaluator,
    InteractiveSolver,
    Remarking,
    needs_of,
)
from saddleback.problem.cmdp import CMDP
from saddleback.problem.remarks import Remark
from saddleback.problem.spaces import Array
from saddleback.runs.settings import Method
from saddleback.sampling.blocks import Executor
from saddleback.sampling.buffer import Buffer, counted
from saddleback.sampling.candidate_pool import grown, growth_remark, may_grow
from saddleback.sampling.collect import Samples, batches_and_counts, collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.memory import Lot, check, predict, predict_run
from saddleback.simulators.generative_model import GenerativeModel, Sampler, Stream, generator
from saddleback.solving.focused_allocation import focused_counts
from saddleback.solving.parts import parts_of, usual_allocation
from saddleback.solving.prepared import Prepared, oracle_of


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
    given = problem
    problem, names, solver, evaluator, designer = parts_of(problem, method)
    if isinstance(evaluator, InteractiveEvaluator):
        require(held is None, "evaluator", "must not play while samples grow", names["evaluator"], "use lstd")
        return _measured(given, model, samples, seed, method, names, evaluator, executor)
    allocation = method.allocation or usual_allocation(method.mode, names["design"] == "full")
    if held is None:
        check(predict_run(problem, 0), 0)  # the features of the design's candidates
    if held is not None:
        problem = dataclasses.replace(problem, candidates=held.problem.candidates)
        design, explored = held.design, held.explored
    elif may_grow(problem) and method.mode == "default":
        check(predict_run(problem, samples, num_signals=model.num_signals), samples)  # before the first sample
        pool = grown(problem, model, designer, samples, seed, executor)
        problem, design, explored = pool.problem, pool.design, pool.samples
        samples -= explored
    else:
        design, explored = designer.design(problem), 0
    interactive = isinstance(solver, InteractiveSolver)
    remarks = [Remark("solver", r) for r in solver.remarks(problem)] if isinstance(solver, Remarking) else []
    if explored and held is None:
        remarks.append(Remark("candidates", growth_remark(pool)))
    if method.buffers == 1:
        remarks.append(
            Remark(
                "one-buffer",
                "one buffer serves solver and evaluator (a heuristic): policies look better on the data that chose them",
            )
        )
    shares = _shares(samples, method, interactive)
    rule: dict[str, Any] = {
        "literal": method.mode == "literal",
        "batch_size": method.batch_size,
        "allocation": allocation,
    }
    own_T, own_counts = batches_and_counts(problem, design, shares[0], **rule)
    T, counts = batches_and_counts(problem, design, shares[1], **rule)
    batched = needs_of(evaluator, problem).batches
    own_lot, lot = Lot.of(own_counts, own_T), Lot.of(counts, T if batched else 1)
    own_lot, lot = Lot() if interactive else own_lot, Lot() if method.buffers == 1 and not interactive else lot
    _check_memory(problem, design, model, own_lot, lot, held)
    if isinstance(solver, InteractiveSolver):
        resolution = method.grid or 20
        sampler = Sampler(model, seed, limit=samples - int(counts.sum()))
        mixing = _grid(problem, resolution)  # all of it from one run of the sampler, before the dual asks for any point
        seated = Seated.at(mixing, solver.solve_interactively(problem, design, sampler, mixing))
        evaluation = cut(
            collect(model, problem, design, counts, seed=seed, stream=Stream.EVALUATION, executor=executor),
            problem,
            design,
            T,
        )
        oracle = oracle_of(problem, seated, evaluation, evaluator, evaluation, resolution)
        drawn = explored + sampler.num_queries + evaluation.num_samples
        return Prepared(
            problem,
            design,
            None,
            evaluation,
            seated,
            evaluator,
            oracle,
            drawn,
            names,
            tuple(remarks),
            resolution,
            explored,
        )
    own = design
    T = T if batched else 1
    if isinstance(solver, Allocating):
        require(
            method.buffers == 2,
            "buffers",
            f"must be 2 for {names['solver']}, whose samples are not cut into batches",
            method.buffers,
            "let the evaluator have its own",
        )
        # GSS collects i.i.d. from the design.
        own, own_counts = solver.allocate(design, int(own_counts.sum()), generator(seed, Stream.SOLVER, 0, 1 << 30))
        own_T = 1
    first = None if held is None else held.solver_buffer
    more = collect(
        model, problem, own, own_counts, seed=seed, stream=Stream.SOLVER, held=_samples(first, own), executor=executor
    )
    solver_buffer = cut(more, problem, own, own_T)
    evaluation_buffer, drawn = solver_buffer, explored + solver_buffer.num_samples
    if method.buffers == 2:
        if T == 1 and method.mode == "default" and method.allocation is None and own is design:
            counts = focused_counts(problem, solver, solver_buffer, counts)
        second = None if held is None else held.evaluation_buffer
        more = collect(
            model,
            problem,
            design,
            counts,
            seed=seed,
            stream=Stream.EVALUATION,
            held=_samples(second, design),
            executor=executor,
        )
        evaluation_buffer = cut(more, problem, design, T)
        drawn += more.total
    oracle = oracle_of(problem, solver, solver_buffer, evaluator, evaluation_buffer, method.grid)
    return Prepared(
        problem,
        design,
        solver_buffer,
        evaluation_buffer,
        solver,
        evaluator,
        oracle,
        drawn,
        names,
        tuple(remarks),
        method.grid,
        explored,
    )


def _samples(buffer: Buffer | None, design: Design) -> Samples | None:
    """What a buffer over the same coreset holds."""
    return None if buffer is None or buffer.design is not design else counted(buffer).samples()


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
    problem: CMDP, design: Design, model: GenerativeModel, solver: Lot, evaluation: Lot, held: Prepared | None
) -> None:
    """Refuse a run whose samples would not fit, before the first of them is drawn."""
    earlier = 0 if held is None else held.evaluation_buffer.num_samples
    needed = predict(problem, design.size, solver, evaluation, num_signals=model.num_signals, earlier=earlier)
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
    mixing = _grid(problem, resolution)
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


def _grid(problem: CMDP, resolution: int) -> Array:
    """Every point of the simplex whose coordinates are multiples of 1/resolution, ``(k, 1+m)``."""
    if (resolution + 1) ** problem.num_constraints > 2000:
        raise InputError(
            "resolution",
            "must leave at most 2000 grid points for interactive oracles, which are asked about all of them at once",
            resolution,
            "use a coarser grid, such as --resolution 20",
        )
    m = problem.num_constraints
    grid = np.array([p for p in itertools.product(range(resolution + 1), repeat=m) if sum(p) <= resolution])
    return np.column_stack([resolution - grid.sum(axis=1), grid]) / resolution
