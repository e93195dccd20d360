"""What a recheck asks of bounds where start states were sampled, or ends declared, with the problem at hand and without."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import saddleback
from helpers import ending_table, random_table
from saddleback import CMDP, Table
from saddleback.problem.start import Start
from saddleback.runs.evidence_file import BoundArrays
from saddleback.runs.recheck.bound import check_bound
from saddleback.runs.recheck.starts import hidden_by_starts
from saddleback.runs.run_folder import load_run


def drawn_start(table: Table) -> CMDP:
    start = Start.sampled(lambda n, rng: rng.choice(table.num_states, size=n, p=table.rho))
    return dataclasses.replace(table.problem(), start=start)


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "kind"), [(3_000, "all pairs"), (12_000, "advantages, all pairs")])
def test_a_bound_must_be_wider_for_sampled_starts(samples: int, kind: str, tmp_path: Path) -> None:
    """By w for the best policy, and by (1 + σ_0)w where the policy's own reward is paired with it; the rollouts tell where nobody else does."""
    table = random_table(3)
    problem = drawn_start(table)
    saddleback.solve(problem, table.simulator(), samples=samples, feasibility="relaxed", out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    record, told = run.certificate, None if run.certificate is None else run.certificate.evidence.bound
    assert record is not None and told is not None and told.kind == kind
    w = hidden_by_starts(record, run.rollouts, problem)
    assert w == hidden_by_starts(record, run.rollouts, None) > 0
    assert hidden_by_starts(record, run.rollouts, table.problem()) == 0

    def words(moved: float, paired: float, known: CMDP | None) -> str:
        less = {"value": told.value - moved} | ({} if told.paired is None else {"paired": told.paired - paired})
        evidence = msgspec.structs.replace(record.evidence, bound=msgspec.structs.replace(told, **less))
        forged = msgspec.structs.replace(record, evidence=evidence)
        return check_bound(forged, run.bound, known, run.mixture, hidden_by_starts(forged, run.rollouts, known)).word

    for known in (problem, None):
        assert words(0.0, 0.0, known) == "agrees"
        assert words(0.9 * w, 0.0, known) == "DISAGREES"
        if told.paired is not None:
            assert words(0.0, 0.9 * w * (1 + told.sigma[0]), known) == "DISAGREES"


def test_an_infeasibility_of_sampled_starts_must_be_wider_too(tmp_path: Path) -> None:
    """One without rollouts, whose bound has all of δ; where its problem is not at hand its start distribution is taken as stated."""
    table = dataclasses.replace(random_table(1), thresholds=np.array([4.9]))
    problem = drawn_start(table)
    saddleback.solve(problem, table.simulator(), samples=40_000, out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    record = run.certificate
    assert record is not None and record.value is None and record.infeasible == "proved"
    bound = record.evidence.bound
    assert bound is not None
    w = hidden_by_starts(record, None, problem)
    assert w > 0 and check_bound(record, run.bound, problem, None, w).word == "agrees"
    less = msgspec.structs.replace(record.evidence, bound=msgspec.structs.replace(bound, value=bound.value - 0.9 * w))
    forged = msgspec.structs.replace(record, evidence=less)
    assert check_bound(forged, run.bound, problem, None, w).word == "DISAGREES"


@pytest.mark.slow
@pytest.mark.parametrize("successors", [False, True])
def test_a_ceiling_that_was_not_declared_is_found(successors: bool, tmp_path: Path) -> None:
    """With the problem to the digit; without it as far as the record tells, and the rest is said not to be checked."""
    table = ending_table(1, declares_successors=successors)
    saddleback.solve(table.problem(), table.simulator(), samples=30_000, feasibility="relaxed", out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    record, arrays = run.certificate, run.bound
    assert record is not None and isinstance(arrays, BoundArrays) and arrays.ceiling is not None

    def word(ceiling: Any, known: CMDP | None) -> str:
        return check_bound(record, arrays._replace(ceiling=ceiling), known, run.mixture).word

    lower, ends = arrays.ceiling.copy(), arrays.ceiling.copy()
    lower[1], ends[5] = 0.9 * lower[1], 0.9 * ends[5]
    assert word(arrays.ceiling, table.problem()) == "agrees"
    assert word(arrays.ceiling, None) == "not checked"
    assert word(lower, table.problem()) == word(ends, table.problem()) == "DISAGREES"
    if not successors:  # these may lower any of them
        assert word(lower, None) == word(ends, None) == "DISAGREES"
