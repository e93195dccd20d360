"""The truth about a problem whose table is known: its optimum, and what a policy is really worth."""

from __future__ import annotations

from typing import Any

from saddleback.errors import InputError
from saddleback.exact import ExactAnswer, mixture_values, solve_by_columns, solve_exactly
from saddleback.instances.instance import Instance
from saddleback.problem.policies import MixturePolicy

LARGE = 2000
"""State-action pairs above which the linear program is used only where it is asked for."""


def exact_answer(instance: Instance, method: str = "auto") -> ExactAnswer:
    """The true optimum; ``method`` is columns, lp, or auto: columns for anything large."""
    if instance.table is None:
        rule = f"must be a problem whose table is known (of this one: {instance.known or 'nothing'})"
        raise InputError("TARGET", rule, instance.name, "use `saddleback solve`, which needs none")
    if method not in ("auto", "columns", "lp"):
        raise InputError("--method", "must be auto, columns or lp", repr(method), "leave it out for the usual one")
    columns = method == "columns" or (method == "auto" and instance.table.reward.size > LARGE)
    return solve_by_columns(instance.table) if columns else solve_exactly(instance.table)


def exact_json(instance: Instance, answer: ExactAnswer) -> dict[str, Any]:
    """The true optimum as one JSON-ready object."""
    problem, optimal = instance.problem, answer.status == "optimal"
    rows = []
    for c, b, v in zip(problem.constraints, problem.user_thresholds(), answer.constraint_values, strict=True):
        slack = (v - b) if c.sense == ">=" else (b - v)
        rows.append({"name": c.name, "value": float(v), "threshold": float(b), "sense": c.sense, "slack": float(slack)})
    out = {
        "status": "solved" if optimal else "infeasible",
        "value": float(answer.value) if optimal else None,
        "constraints": rows if optimal else [],
        "multipliers": answer.multipliers.tolist() if optimal else [],
        "slater": float(answer.slater),
        "gap": float(answer.gap),
        "method": answer.method,
        "seconds": answer.seconds,
    }
    return out if optimal else {**out, "max_slack": float(answer.max_slack)}


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
