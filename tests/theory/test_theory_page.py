"""docs/theory.md says what the code gives: every table of figures on the page is made again and compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from saddleback.theory import Plan, comparison, guaranteed_epsilon, plan, tabular_evaluation_error, tabular_solver_error

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()
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


def linear(d: int, H: float, epsilon: float, zeta: float, mode: str, **how: object) -> Plan:
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
    for N in BUDGETS:
        cells = []
        for given in ({"kind": "linear", "dimension": 5}, {"kind": "tabular", "num_pairs": 60}):
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
                given = {"gamma": 1 - 1 / H, "num_pairs": 60, "num_problems": 350, "delta": 0.1}
                a, b = (bound(10**6, M, **given, method=method) for method in ("bernstein", "hoeffding"))
                cells.append(f"{a / b:.2f}")
            rows.append(row(H, name, *cells))
    return rows


def compared() -> list[str]:
    rows = comparison(0.03, 0.05, gamma=0.8, zeta=1.0, threshold=2.5, dimension=5, num_pairs=60)
    return [row(r.setting, r.method, r.remark if r.samples is None else number(r.samples), r.label) for r in rows]


MADE = [paper_dual, rigorous_linear, rigorous_tabular, budgets, ratios, compared]


@pytest.mark.parametrize("make", MADE)
def test_the_tables_are_what_the_code_gives(make) -> None:
    assert "\n".join(make()) in PAGE


def test_no_other_table_holds_figures() -> None:
    """Every line of a table with a number of samples was made above."""
    made = {line for make in MADE for line in make()}
    figures = [line for line in PAGE.splitlines() if line.startswith("|") and re.search(r"\de\d", line)]
    assert set(figures) <= made
    assert len(figures) > 20


def test_numbers_are_written_with_two_figures() -> None:
    assert [number(x) for x in (0.123, 5, 42, 690.4, 4.19e4, 999_999)] == ["0.12", "5", "42", "690", "4.2e4", "1.0e6"]
    assert [size(n) for n in (2_300_000_000, 399 * 10**12)] == ["2.3 GB", "399 TB"]


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.search(r"```python\n(.*?)```", PAGE, re.S)
    assert code is not None
    exec(compile(code.group(1), "theory.md", "exec"), {})
    out = capsys.readouterr().out
    assert "rigorous" in out.splitlines()[0]
    assert len(out.splitlines()) == 2 + len(compared())
