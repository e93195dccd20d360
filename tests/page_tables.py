"""The tables of figures that the pages show, row by row, under the names that the pages call them by."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback import optimal_design, zoo
from saddleback.exact import solve_by_columns, solve_exactly
from saddleback.theory import Plan, comparison, guaranteed_epsilon, plan
from saddleback.theory.errors import tabular_evaluation_error, tabular_solver_error

EXAMPLES = [
    (5, 5, 0.5, 1, "relaxed"),
    (5, 5, 0.5, 1, "strict"),
    (10, 10, 0.1, 1, "relaxed"),
    (10, 10, 0.1, 1, "strict"),
    (20, 20, 1, 2, "relaxed"),
    (50, 100, 1, 10, "relaxed"),
]
TABLES = [(60, 5, 0.5, 1), (1000, 10, 0.1, 1), (1000, 50, 0.01, 5)]
BUDGETS = [10**6, 10**8, 10**10, 10**12]
UNITS = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def number(x: float) -> str:
    """Two figures: 690, 4.2e4, 5.7e8."""
    if x < 1000:
        return f"{x:.2g}" if x < 100 else f"{float(f'{x:.2g}'):.0f}"
    mantissa, exponent = f"{x:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def size(n: int) -> str:
    scale, unit = next(u for u in UNITS if n >= u[0])
    return f"{n / scale:.2g} {unit}" if n < 100 * scale else f"{n / scale:.0f} {unit}"


def row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def linear(d: int, H: float, epsilon: float, zeta: float, mode: Any, **how: Any) -> Plan:
    return plan(epsilon, 0.1, kind="linear", gamma=1 - 1 / H, dimension=d, zeta=zeta, feasibility=mode, **how)


def paper_dual() -> list[str]:
    rows = []
    for d, H, epsilon, zeta, mode in EXAMPLES:
        p = linear(d, H, epsilon, zeta, mode, dual="projected-descent", buffers="alike", rounding=False)
        assert p.dual_iterations is not None
        T, M = p.solver
        cells = (number(T), number(M), number(p.samples), size(p.bytes), number(p.dual_iterations))
        rows.append(row(d, H, epsilon, zeta, mode, *cells))
    return rows


def rigorous_linear() -> list[str]:
    rows = []
    for d, H, epsilon, zeta, mode in EXAMPLES:
        a = linear(d, H, epsilon, zeta, mode)
        b = linear(d, H, epsilon, zeta, mode, dual="projected-descent")
        stages = (f"{number(T)} × {number(M)}" for T, M in (a.solver, a.evaluation))
        rows.append(row(d, H, epsilon, zeta, mode, *stages, number(a.resolution), number(a.samples), number(b.samples)))
    return rows


def rigorous_tabular() -> list[str]:
    rows = []
    for SA, H, epsilon, zeta in TABLES:
        for mode in ("relaxed", "strict"):
            p = plan(epsilon, 0.1, kind="tabular", gamma=1 - 1 / H, num_pairs=SA, zeta=zeta, feasibility=mode)
            stages = (f"{number(T)} × {number(M)}" for T, M in (p.solver, p.evaluation))
            rows.append(row(SA, H, epsilon, zeta, mode, *stages, number(p.resolution), number(p.samples)))
    return rows


def budgets() -> list[str]:
    rows = []
    sizes: list[dict[str, Any]] = [{"kind": "linear", "dimension": 5}, {"kind": "tabular", "num_pairs": 60}]
    for N in BUDGETS:
        cells = []
        for given in sizes:
            for gamma in (0.8, 0.9):
                found = guaranteed_epsilon(N, 0.1, **given, gamma=gamma, feasibility="relaxed")
                cells.append(f"{number(found.epsilon)}{' (vacuous)' if found.vacuous else ''}")
        rows.append(row(number(N), *cells))
    return rows


def ratios() -> list[str]:
    rows = []
    for H in (10, 50):
        for name, bound in (("f_mdp", tabular_solver_error), ("f_eva", tabular_evaluation_error)):
            cells = []
            for M in (10**3, 10**4, 10**5, 10**6):
                given: dict[str, Any] = {"gamma": 1 - 1 / H, "num_pairs": 60, "num_problems": 350, "delta": 0.1}
                a, b = (bound(10**6, M, **given, method=method) for method in ("bernstein", "hoeffding"))
                cells.append(f"{a / b:.2f}")
            rows.append(row(H, name, *cells))
    return rows


def compared() -> list[str]:
    rows = comparison(0.03, 0.05, gamma=0.8, zeta=1.0, threshold=2.5, dimension=5, num_pairs=60)
    return [row(r.setting, r.method, r.remark if r.samples is None else number(r.samples), r.label) for r in rows]


def optima() -> list[str]:
    """The problems of the zoo whose answers are known, at their default parameters."""
    rows = []
    for name in zoo.BY_NAME:
        instance = zoo.make(name)
        if instance.table is not None:
            large = instance.table.P.nnz > 50_000  # minutes of linear programming, a second of columns
            found = (solve_by_columns if large else solve_exactly)(instance.table)
            value, multiplier = found.value, found.multipliers[0]
        elif "multiplier" in instance.known:
            value, multiplier = instance.known["value"], instance.known["multiplier"]
        else:
            continue
        problem = instance.problem
        states = "an interval" if problem.num_states is None else f"{problem.num_states} states"
        limit = problem.constraints[0]
        threshold = f"{limit.name} {limit.sense} {problem.user_thresholds()[0]:.5g}"
        figures = (f"{x:.4f}".replace("-", "−") for x in (value, multiplier))
        rows.append(row(f"`{name}`", f"{states}, {problem.num_actions} actions", threshold, *figures))
    return rows


def gaussian(rng: np.random.Generator, d: int) -> NDArray[np.float64]:
    return rng.standard_normal((3000, d))


def dirichlet(rng: np.random.Generator, d: int) -> NDArray[np.float64]:
    return rng.dirichlet(np.full(d, 0.3), size=3000)


def radial(rng: np.random.Generator, d: int) -> NDArray[np.float64]:
    points, centres = rng.random((3000, 2)), rng.random((d, 2))
    return np.exp(-d / 2 * ((points[:, None] - centres) ** 2).sum(axis=-1))


CLOUDS = [
    ("Gaussian", gaussian, 10),
    ("Gaussian", gaussian, 30),
    ("radial basis functions in a square", radial, 20),
    ("Dirichlet(0.3)", dirichlet, 10),
    ("Dirichlet(0.3)", dirichlet, 30),
]


def passes() -> list[str]:
    """Passes and supports of both designs, medians over five seeds."""
    rows = []
    for name, draw, d in CLOUDS:
        cells = []
        for method in ("exchange", "frank-wolfe"):
            found = [optimal_design(draw(np.random.default_rng(s), d), 0.01, method, seed=s) for s in range(5)]
            cells.append(f"{median(f.iterations for f in found)}, {median(len(f.support) for f in found)}")
        rows.append(row(f"{name}, d = {d}", *cells))
    return rows


BY_NAME: dict[str, Callable[[], list[str]]] = {
    make.__name__: make
    for make in (paper_dual, rigorous_linear, rigorous_tabular, budgets, ratios, compared, optima, passes)
}
