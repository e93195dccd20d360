"""The truth about a problem whose table is known: its optimum, what a policy is really worth, and why nothing is feasible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saddleback.errors import InputError
from saddleback.exact import (
    ExactAnswer,
    constraint_reach,
    exact_frontier,
    mixture_values,
    solve_by_columns,
    solve_exactly,
)
from saddleback.files.json_file import to_plain
from saddleback.instances.instance import Instance
from saddleback.problem.policies import MixturePolicy
from saddleback.runs.constraint_report import constraint_report, prices_in_units
from saddleback.runs.contradiction import ConflictReport, contradiction
from saddleback.simulators.table import Table

LARGE = 2000
"""State-action pairs above which the linear program is used only where it is asked for."""


def exact_answer(instance: Instance, method: str = "auto") -> ExactAnswer:
    """The true optimum; ``method`` is columns, lp, or auto: columns for anything large."""
    table = known_table(instance)
    return _solver(table, method)(table)


def known_table(instance: Instance) -> Table:
    """The table of a problem, or the complaint that it has none."""
    if instance.table is None:
        facts = ", ".join(f"{name} {value:g}" for name, value in instance.known.items())
        rule = "must be a problem whose table is known: a zoo problem with one, a .toml file about such a problem, or an .npz"
        remedy = "use `saddleback solve`, which needs none"
        raise InputError("TARGET", rule, instance.name, f"{remedy}; what is known of it: {facts}" if facts else remedy)
    return instance.table


def _solver(table: Table, method: str) -> Callable[[Table], ExactAnswer]:
    if method not in ("auto", "columns", "lp"):
        raise InputError("--method", "must be auto, columns or lp", repr(method), "leave it out for the usual one")
    columns = method == "columns" or (method == "auto" and table.reward.size > LARGE)
    return solve_by_columns if columns else solve_exactly


def exact_conflict(instance: Instance, method: str = "auto") -> tuple[ConflictReport, ...]:
    """What contradicts what where no policy meets the constraints, computed on the table."""
    table = known_table(instance)
    solve = _solver(table, method)
    return contradiction(instance.problem, lambda i, others: constraint_reach(table, i, others, solve), "exact")


def exact_curve(
    instance: Instance, constraint: int, thresholds: Sequence[float] | int, method: str = "auto"
) -> list[tuple[float, ExactAnswer]]:
    """The exact frontier: thresholds of one constraint, as discounted totals, each with the optimum there."""
    table = known_table(instance)
    return exact_frontier(table, constraint, thresholds, _solver(table, method))


def exact_json(
    instance: Instance, answer: ExactAnswer, conflict: Sequence[ConflictReport] | None = None
) -> dict[str, Any]:
    """The true optimum as one JSON-ready object; ``conflict`` is what there is to say of an infeasible problem."""
    problem, optimal = instance.problem, answer.status == "optimal"
    rows = [constraint_report(problem, i, float(v)) for i, v in enumerate(answer.constraint_values)]
    out = {
        "status": "solved" if optimal else "infeasible",
        "value": float(answer.value) if optimal else None,
        "constraints": rows if optimal else [],
        "multipliers": answer.multipliers.tolist() if optimal else [],
        "prices": prices_in_units(problem, answer.multipliers.tolist()) if optimal else [],
        "slater": float(answer.slater),
        "gap": float(answer.gap),
        "method": answer.method,
        "seconds": answer.seconds,
    }
    if optimal:
        return out
    out["max_slack"] = float(answer.max_slack)
    return out if conflict is None else {**out, "conflict": to_plain(tuple(conflict))}


def exact_curve_json(
    instance: Instance, constraint: int, points: Sequence[tuple[float, ExactAnswer]]
) -> dict[str, Any]:
    """An exact frontier as one JSON-ready object; a threshold that no policy meets has no value."""
    rows, unit = list[dict[str, Any]](), instance.problem.units[constraint]
    for threshold, answer in points:
        optimal = answer.status == "optimal"
        found = {
            "value": float(answer.value) if optimal else None,
            "constraints": answer.constraint_values.tolist() if optimal else [],
            "multiplier": float(answer.multipliers[constraint]) if optimal else None,
            "gap": float(answer.gap),
        }
        rows.append({"threshold": threshold, **found})
        if unit.per_step:
            price = None if found["multiplier"] is None else unit.price_of(found["multiplier"])
            rows[-1]["in_units"] = {"threshold": unit.of(threshold), "price": price}
    name = instance.problem.constraints[constraint].name
    return {"constraint": name, "units": unit.name, "exact": True, "points": rows}


def exact_mixture(answer: ExactAnswer) -> MixturePolicy | None:
    """The optimal policy: one stationary policy where there is one, else the mixture; None where nothing is feasible."""
    if answer.policy is not None:
        return MixturePolicy.of([answer.policy], np.ones(1))
    return answer.mixture


def truth_of(instance: Instance, mixture: MixturePolicy | None) -> dict[str, Any] | None:
    """True values of a mixture, if there is one, beside the true optimum; None where the table is not known."""
    if instance.table is None:
        return None
    best = exact_answer(instance)
    optimum = exact_json(instance, best)
    optimum["constraints"] = best.constraint_values.tolist() if best.status == "optimal" else []
    if mixture is None:
        return {"optimum": optimum}
    value, *constraints = mixture_values(instance.table, mixture).tolist()
    return {"optimum": optimum, "value": value, "constraints": constraints}
