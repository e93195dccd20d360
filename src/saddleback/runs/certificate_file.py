"""The fields of ``certificate.json``; docs/certificate.md says what each means and how to check it by hand.

What :class:`~saddleback.certificates.Certificate` says, and the few numbers of the problem without which the limits cannot be
computed again: the discount, and the maps from the user's units to utilities.
"""

from __future__ import annotations

from typing import Any

from saddleback.errors import InputError
from saddleback.files.json_file import Maybe, check_shape, short
from saddleback.problem.cmdp import CMDP

SCHEMA = "saddleback-certificate/1"

_PROBLEM = {
    "name": "text",
    "gamma": "number",
    "horizon": "number",
    "states": Maybe("whole"),
    "actions": "whole",
    "reward": {"base": "number", "scale": "number"},
    "constraints": [
        {
            "name": "text",
            "sense": "text",
            "threshold": "number",
            "base": "number",
            "scale": "number",
            "unit_threshold": "number",
        }
    ],
}
_ROLLOUTS = {
    "number": "whole",
    "steps": "whole",
    "method": "text",
    "delta_of_each": "number",
    "mean": ["number"],
    "variance": ["number"],
    "low": ["number"],
    "high": ["number"],
    "tail": [["number"]],
    "by_member": ["whole"],
}
_BOUND = {
    "kind": "text",
    "sigma": ["number"],
    "value": "number",
    "estimate": "number",
    "delta": "number",
    "samples": "whole",
    "thresholds?": ["number"],
}
_TEST = {
    "name": "text",
    "passed": "flag",
    "statistic": "number",
    "limit": "number",
    "meaning": "text",
    "state": "anything",
    "action": Maybe("whole"),
    "z": Maybe("number"),
    "rigorous": "flag",
}
SHAPE: dict[str, Any] = {
    "schema": "text",
    "confidence": "number",
    "value": Maybe("limits"),
    "constraints": ["limits"],
    "upper_bound": Maybe("number"),
    "gap": Maybe("number"),
    "feasible": "text",
    "allowance": ["number"],
    "slack_bound?": "number",
    "infeasible?": "text",
    "assumes": "object",
    "samples": "whole",
    "seed": "whole",
    "by_start": [
        {"state": "anything", "weight": "number", "rollouts": "whole", "value": "limits", "constraints": ["limits"]}
    ],
    "linear": Maybe({"value": "limits", "constraints": ["limits"], "assumes": "text"}),
    "leverage?": Maybe({"candidates": "number", "seen": "number", "state": "anything", "action": "whole"}),
    "linearity": Maybe(
        {
            "assumed": "flag",
            "passed": "flag",
            "failures": ["text"],
            "samples": "whole",
            "delta": "number",
            "tests": [_TEST],
        }
    ),
    "evidence": {"rollouts?": _ROLLOUTS, "bound?": _BOUND},
    "remarks": ["text"],
    "problem": _PROBLEM,
}
"""The fields of the file and their kinds."""


def problem_fields(problem: CMDP) -> dict[str, Any]:
    """What a certificate must say of its problem to be checked without it."""
    base, scale, thresholds = problem.base.tolist(), problem.scale.tolist(), problem.user_thresholds().tolist()
    return {
        "name": problem.name,
        "gamma": float(problem.gamma),
        "horizon": problem.horizon,
        "states": problem.num_states,
        "actions": problem.num_actions,
        "reward": {"base": base[0], "scale": scale[0]},
        "constraints": [
            {
                "name": c.name,
                "sense": c.sense,
                "threshold": thresholds[i],
                "base": base[1 + i],
                "scale": scale[1 + i],
                "unit_threshold": float(problem.thresholds[i]),
            }
            for i, c in enumerate(problem.constraints)
        ],
    }


def check_certificate(data: Any, where: str, remedy: str) -> None:
    """Raise an :class:`InputError` unless ``data`` is a certificate of this version, with lists of the right lengths."""
    if isinstance(data, dict) and data.get("schema") != SCHEMA:
        raise InputError(f"{where}.schema", f"must be {SCHEMA!r}", short(data.get("schema")), remedy)
    check_shape(data, SHAPE, where, remedy)
    problem, m = data["problem"], len(data["problem"]["constraints"])

    def require(right: bool, name: str, rule: str, value: Any) -> None:
        if not right:
            raise InputError(f"{where}.{name}", rule, short(value), remedy)

    require(0 < data["confidence"] < 1, "confidence", "must lie in (0, 1)", data["confidence"])
    require(
        data["feasible"] in ("certified", "refuted", "undecided"), "feasible", "must be a verdict", data["feasible"]
    )
    require(0 <= problem["gamma"] < 1, "problem.gamma", "must lie in [0, 1)", problem["gamma"])
    for i, c in enumerate(problem["constraints"]):
        require(c["sense"] in (">=", "<="), f"problem.constraints[{i}].sense", "must be >= or <=", c["sense"])
    for i, c in enumerate([problem["reward"], *problem["constraints"]]):
        name = "problem.reward.scale" if i == 0 else f"problem.constraints[{i - 1}].scale"
        require(c["scale"] != 0, name, "must not be zero", 0)
    for name in ("constraints", "allowance"):
        rows = len(data[name])
        require(rows == (0 if data["value"] is None else m), name, f"must have {m} entries", rows)
    rollouts, bound = data["evidence"].get("rollouts"), data["evidence"].get("bound")
    require(
        (rollouts is None) == (data["value"] is None), "evidence.rollouts", "must be there where a value is", rollouts
    )
    for name in ("mean", "variance", "low", "high") if rollouts else ():
        rows = len(rollouts[name])
        require(rows == 1 + m, f"evidence.rollouts.{name}", f"must have {1 + m} entries", rows)
    if rollouts:
        lengths = [len(row) for row in rollouts["tail"]]
        require(lengths == [1 + m] * 2, "evidence.rollouts.tail", f"must have 2 rows of {1 + m}", lengths)
        level = rollouts["delta_of_each"]
        require(0 < level < 1, "evidence.rollouts.delta_of_each", "must lie in (0, 1)", level)
    if bound:
        sigma = bound["sigma"]
        simplex = len(sigma) == 1 + m and min(sigma) >= 0 and abs(sum(sigma) - 1) <= 1e-9
        require(simplex, "evidence.bound.sigma", f"must be {1 + m} probabilities", sigma)
