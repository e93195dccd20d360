"""Exact constrained solves on random tables ("garnets"), against HiGHS and against one product P @ V.

γ = .95, ten actions, reward and constraint independent and uniform, the threshold midway between V_c of the unconstrained
optimum and max V_c, certified gap ≤ 1e-6. Our side is the whole call: verdict, Slater constant, mixture and stationary
policy. HiGHS is called through highspy on the occupancy program, built beforehand, with one thread: interior point with and
without presolve and crossover, each stopped once it is slower than the best so far, and simplex, stopped at twice that; the
quickest counts.
P @ V is SciPy's CSR product with 32-bit indices. The large tables are solved in a process of their own, whose peak memory,
table and all, is read when it ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import highspy
import numpy as np
import scipy.sparse

from benchmarks.timing import Row
from saddleback.exact import solve_by_columns
from saddleback.exact.bellman import Model
from saddleback.exact.policy_iteration import anywhere, price
from saddleback.instances.zoo import make
from saddleback.instances.zoo.garnet import _distinct_columns
from saddleback.simulators.table import Table

GAMMA, ACTIONS, TOLERANCE = 0.95, 10, 1e-6


def rows() -> list[Row]:
    found = [against_highs(1_000, 1 / 20, 1 / 40, rounds=2), against_highs(4_000, 1 / 100, 1 / 300, rounds=1)]
    done = subprocess.run([sys.executable, "-m", "benchmarks.exact_solve"], capture_output=True, text=True, check=True)
    large, small = (json.loads(line) for line in done.stdout.splitlines())
    growth = large["ratio"] / small["ratio"]
    name = "exact solve, 10⁶ states × 10 × 5"
    return [
        *found,
        Row(f"{name} / P @ V", large["ratio"], 400, 150, large["seconds"], large["product"]),
        Row(f"{name}: growth of that ratio from 10⁴ states", growth, 1.5, 1.0, large["seconds"], small["seconds"]),
        Row(f"{name}: peak memory / 4 GB", large["peak"] / 4e9, 1.0, 0.5, large["seconds"], large["product"]),
    ]


# ---- HiGHS ----------------------------------------------------------------------------------------------------------


def against_highs(states: int, floor: float, aim: float, rounds: int) -> Row:
    """Our time over that of HiGHS's quickest way; the two are timed in turn."""
    table = make("garnet", states=states, actions=ACTIONS, successors=10, gamma=GAMMA).table
    model = occupancy_program(table)
    solve_by_columns(table, TOLERANCE)
    pairs = []
    for _ in range(rounds):
        ours = _median_of_solves(table, 5)
        reference, value = np.inf, np.nan
        for presolve, crossover in (("choose", "off"), ("off", "off"), ("off", "on"), ("choose", "on")):
            reference, value = min((reference, value), _highs(model, "ipm", presolve, crossover, reference))
        simplex, simplex_value = _highs(model, "simplex", "choose", "off", 2 * reference)
        reference, value = min((reference, value), (simplex, simplex_value))
        answer = solve_by_columns(table, TOLERANCE)
        assert answer.gap <= TOLERANCE
        assert abs(answer.value - value) <= 1e-6, (answer.value, value)
        pairs.append((ours, reference))
    ratio = median(a / b for a, b in pairs)
    name = f"exact solve, {states:,} states × 10 × 10 / HiGHS's quickest (floor: {1 / floor:.0f}x faster)"
    return Row(name, ratio, floor, aim, median(a for a, _ in pairs), median(b for _, b in pairs))


def occupancy_program(table: Table) -> highspy.HighsLp:
    """max Σ μ r  s.t.  Σ_a μ(s, a) − γ Σ P(s|s', a') μ(s', a') = ρ(s),  Σ μ c ≥ b,  μ ≥ 0."""
    S, A = table.reward.shape
    outflow = scipy.sparse.kron(scipy.sparse.eye_array(S), np.ones((A, 1)), format="csr")
    signals = scipy.sparse.csc_array(table.constraints.reshape(-1, S * A))
    matrix = scipy.sparse.vstack([(outflow - GAMMA * table.P).T, signals], format="csc")
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = matrix.shape
    model.col_cost_ = -table.reward.ravel()
    model.col_lower_, model.col_upper_ = np.zeros(S * A), np.full(S * A, np.inf)
    model.row_lower_ = np.append(table.rho, table.thresholds)
    model.row_upper_ = np.append(table.rho, np.full(len(table.thresholds), np.inf))
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data
    return model


def _highs(model: highspy.HighsLp, solver: str, presolve: str, crossover: str, limit: float) -> tuple[float, float]:
    """Seconds and objective; infinitely many seconds where it did not get there within the limit."""
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("solver", solver)
    highs.setOptionValue("presolve", presolve)
    highs.setOptionValue("run_crossover", crossover)
    if np.isfinite(limit):
        highs.setOptionValue("time_limit", limit)
    highs.passModel(model)
    began = time.perf_counter()
    highs.run()
    seconds = time.perf_counter() - began
    optimal = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return (seconds, -highs.getInfo().objective_function_value) if optimal else (np.inf, np.nan)


def _median_of_solves(table: Table, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        solve_by_columns(table, TOLERANCE)
        times.append(time.perf_counter() - began)
    return median(times)


# ---- large tables ---------------------------------------------------------------------------------------------------


def large_garnet(states: int, successors: int = 5) -> Table:
    """A garnet without the zoo's landmarks, which take longer than the solve; its threshold is midway within 1e-3."""
    rng = np.random.default_rng(np.random.SeedSequence(0))
    pairs = states * ACTIONS
    indices = _distinct_columns(pairs, states, successors, rng).astype(np.int32)
    chance = rng.standard_exponential((pairs, successors))
    chance /= chance.sum(axis=1, keepdims=True)
    indptr = np.arange(0, pairs * successors + 1, successors, dtype=np.int32)
    P = scipy.sparse.csr_array((chance.ravel(), indices.ravel(), indptr), shape=(pairs, states))
    P.sort_indices()
    reward, signal, rho = rng.random((states, ACTIONS)), rng.random((1, states, ACTIONS)), np.full(states, 1 / states)
    unit = {"gamma": GAMMA, "rho": rho, "reward_range": (0.0, 1.0), "ranges": ((0.0, 1.0),)}
    loose = Table.of(P, reward, signal, [0.0], **unit)
    model = Model.of(loose, loose.problem())
    ends = [price(model, q, anywhere(model), 1e-3).found.limits.low[1] for q in (np.eye(2)[0], np.eye(2)[1])]
    return Table.of(P, reward, signal, [sum(ends) / 2], **unit)


def measure(states: int, repeats: int) -> dict[str, float]:
    """The median over ``repeats`` of a solve's time over the median of the products timed around it."""
    table = large_garnet(states)
    V = np.random.default_rng(0).random(states)
    solve_by_columns(table, 1.0)  # loads what is compiled
    found = []
    for _ in range(repeats):
        products = [_product(table, V) for _ in range(7)]
        began = time.perf_counter()
        answer = solve_by_columns(table, TOLERANCE)
        seconds = time.perf_counter() - began
        assert answer.gap <= TOLERANCE and answer.status == "optimal"
        product = median(products + [_product(table, V) for _ in range(7)])
        found.append((seconds / product, seconds, product))
    ratio, seconds, product = sorted(found)[len(found) // 2]
    status = Path("/", "proc", "self", "status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) * 1024
    return {"ratio": ratio, "seconds": seconds, "product": product, "peak": peak}


def _product(table: Table, V: np.ndarray) -> float:
    began = time.perf_counter()
    table.P @ V
    return time.perf_counter() - began


if __name__ == "__main__":
    for count, times in ((1_000_000, 2), (10_000, 5)):
        print(json.dumps(measure(count, times)), flush=True)
