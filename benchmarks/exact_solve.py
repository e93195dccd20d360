"""The exact constrained solve by column generation: against HiGHS on the same linear program, and against one P @ V.

One thread on both sides. HiGHS is called directly, interior point without presolve and crossover (the fastest of five settings tried); building the
program is not timed.
"""

from __future__ import annotations

import time

import highspy
import numpy as np
import scipy.sparse

from benchmarks.timing import Row
from saddleback.exact import solve_by_columns
from saddleback.simulators.table import Table
from saddleback.zoo import make


def occupancy_program(table: Table) -> highspy.HighsLp:
    """max reward over occupancies, in the user's units, for one '>=' constraint."""
    S, A = table.reward.shape
    leave = scipy.sparse.csr_array((np.ones(S * A), (np.repeat(np.arange(S), A), np.arange(S * A))), shape=(S, S * A))
    flow = leave - table.gamma * table.P.T
    matrix = scipy.sparse.vstack([flow, scipy.sparse.csr_array(table.constraints[0].reshape(1, -1))]).tocsc()
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = S * A, S + 1
    program.col_cost_ = -table.reward.ravel()
    program.col_lower_, program.col_upper_ = np.zeros(S * A), np.full(S * A, highspy.kHighsInf)
    program.row_lower_ = np.append(table.rho, table.thresholds)
    program.row_upper_ = np.append(table.rho, highspy.kHighsInf)
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    return program


def highs(program: highspy.HighsLp, solver: str, limit: float = np.inf) -> tuple[float, float]:
    """(seconds, objective) of one method of HiGHS."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    model.setOptionValue("small_matrix_value", 1e-12)
    model.setOptionValue("solver", solver)
    model.setOptionValue("run_crossover", "off")
    model.setOptionValue("presolve", "off" if solver == "ipx" else "choose")  # each at its best on these programs
    if np.isfinite(limit):
        model.setOptionValue("time_limit", limit)
    model.passModel(program)
    began = time.perf_counter()
    model.run()
    return time.perf_counter() - began, -model.getInfo().objective_function_value


def against_highs(states: int, floor: float, aim: float, repeats: int) -> Row:
    table = make("garnet", states=states, actions=10, successors=10, gamma=0.95).table
    assert table is not None
    program = occupancy_program(table)
    solve_by_columns(table)  # loads the compiled loops
    pairs = []
    for _ in range(repeats):
        began = time.perf_counter()
        ours = solve_by_columns(table, 1e-6)
        seconds = time.perf_counter() - began
        reference, objective = highs(program, "ipx")
        pairs.append((seconds, reference))
        assert ours.gap <= 1e-6 and abs(ours.value - objective) <= 1e-5, (ours.value, objective, ours.gap)
    simplex, _ = highs(program, "simplex", 2 * pairs[-1][1])
    a, b = np.median(np.array(pairs), axis=0)
    measured = float(np.median([x / y for x, y in pairs]))
    name = f"exact, garnet {states} states / HiGHS interior point ({1 / measured:.0f}x faster; simplex {simplex / b:.1f}x IPM or more)"
    return Row(name, measured, 1 / floor, 1 / aim, float(a), float(b))


def sparse_table(states: int, actions: int = 10, successors: int = 5, gamma: float = 0.95) -> Table:
    """The garnet family without the zoo's bookkeeping, in little more memory than P itself takes."""
    rng = np.random.default_rng(0)
    rows = states * actions
    indices = rng.integers(0, states, rows * successors, dtype=np.int32)
    data = rng.random(rows * successors).reshape(rows, successors)
    data /= data.sum(axis=1, keepdims=True)
    indptr = np.arange(0, rows * successors + 1, successors, dtype=np.int32)
    P = scipy.sparse.csr_array((data.ravel(), indices, indptr), shape=(rows, states))
    P.sum_duplicates()
    r, c = rng.random((2, states, actions))
    rho = np.full(states, 1 / states)
    loose = Table.of(P, r, c[None], [0.0], gamma=gamma, rho=rho)
    free = solve_by_columns(loose, 1e-4, stationary=False)
    b = (free.constraint_values[0] + free.reachable[0]) / 2  # midway, as in the zoo
    return Table.of(P, r, c[None], [b], gamma=gamma, rho=rho)


def against_one_product(states: int, repeats: int) -> tuple[float, float, float]:
    table = sparse_table(states)
    V = np.random.default_rng(0).random(states)
    pairs = []
    for _ in range(repeats):
        began = time.perf_counter()
        answer = solve_by_columns(table, 1e-6, stationary=False)
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        for _ in range(10):
            table.P @ V
        pairs.append((seconds, (time.perf_counter() - began) / 10))
        assert answer.gap <= 1e-6
    ours, product = np.median(np.array(pairs), axis=0)
    return float(np.median([a / b for a, b in pairs])), float(ours), float(product)


def rows() -> list[Row]:
    small = against_one_product(10_000, 5)
    large = against_one_product(1_000_000, 2)
    growth = large[0] / small[0]
    return [
        against_highs(1000, 20, 40, 3),
        against_highs(4000, 100, 300, 1),
        Row("exact, 10^6 states x 10 actions x 5 successors / one P @ V", large[0], 400, 150, large[1], large[2]),
        Row("the same ratio, 10^6 states / 10^4 states", growth, 1.5, 1.0, large[0], small[0]),
    ]
