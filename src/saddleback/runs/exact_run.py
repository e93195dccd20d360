"""The true optimum as a run, for whoever reads runs: it took no sample and needs no proof from any."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from saddleback.exact import ExactAnswer, policy_values
from saddleback.instances.instance import Instance
from saddleback.runs.answer import Answer, MemberReport, constraint_reports
from saddleback.runs.contradiction import ConflictReport
from saddleback.runs.run_folder import Origin, Run, save_run
from saddleback.runs.truth import exact_mixture, known_table
from saddleback.runs.verdict import Proof, Reason, Shortfall, Status, Verdict

EXACT: Final = "computed on the known table"
"""What takes the place of a proof."""


def is_exact(run: Run) -> bool:
    """Whether a run was computed, not solved from samples."""
    return run.solution.settings.get("mode") == "exact"


def save_exact(
    place: Path,
    instance: Instance,
    answer: ExactAnswer,
    conflict: Sequence[ConflictReport],
    origin: Origin,
    method: str,
    *,
    force: bool = False,
) -> None:
    """Write the answer to ``place`` as a run; ``method`` is what was asked for."""
    request = {"verb": "exact", "method": method, "feasibility": "strict"}
    save_run(place, exact_solution(instance, answer, conflict), origin, request, 0, force=force)


def exact_solution(instance: Instance, answer: ExactAnswer, conflict: Sequence[ConflictReport] = ()) -> Answer:
    """The true optimum in the form of a solve's answer."""
    problem, table = instance.problem, known_table(instance)
    chosen: Any = {"mode": "exact", "solver": answer.method, "feasibility": "strict", "seed": 0}
    mixture = exact_mixture(answer)
    if mixture is None:
        rows = zip(problem.constraints, problem.user_thresholds(), answer.reachable, problem.units, strict=True)
        short = tuple(Shortfall(c.name, c.sense, float(b), float(v), unit) for c, b, v, unit in rows)
        verdict = Verdict(Status.INFEASIBLE, Reason.NO_POLICY, proof=Proof.PROVED, shortfalls=short)
        return Answer(verdict, problem, 0, max_slack=answer.max_slack, settings=chosen, conflict=tuple(conflict))
    members = np.array([policy_values(table, member) for member in mixture.members])
    values = mixture.weights @ members
    reports = (
        MemberReport(float(w), float(v[0]), tuple(map(float, v[1:])))
        for w, v in zip(mixture.weights, members, strict=True)
    )
    return Answer(
        Verdict(Status.SOLVED, Reason.OPTIMUM_OF_TABLE),
        problem,
        0,
        mixture,
        float(values[0]),
        constraint_reports(problem, problem.unit_values_of(values)),
        tuple(map(float, answer.multipliers)),
        tuple(reports),
        gap=float(answer.gap),
        settings=chosen,
    )
