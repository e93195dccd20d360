"""Solves from a store: certificates for samples that stay on disk."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saddleback
from helpers import random_table
from saddleback.problem.cmdp import CMDP, Start
from saddleback.runs.settings import Method, Part, Settings
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.solving.prepare import prepare_from
from saddleback.solving.prepared import parts_of
from saddleback.solving.stored_samples import seed_of_question
from saddleback.solving.strict import issue_certificate
from sampling.streamed_runs import fill, square
from spelled_out import solve


@pytest.mark.slow
def test_a_solve_from_a_store_is_certified_from_an_excerpt(tmp_path: Path) -> None:
    """Points of R^k stay on disk; a small buffer guides the certificate, whose limits agree with an independent one."""
    problem, model, _ = square()
    design = parts_of(problem, Method())[4].design(problem)
    with fill(tmp_path / "s", problem, model, design, 3000, streams=(0, 1)) as store:
        parts = prepare_from(problem, store)
        assert parts.hints is not None and len(parts.hints) == 2
        assert all(len(hint.support) <= 1 << 16 for hint in parts.hints)
        found = solve(problem, model, store=store, certificate=60_000, seed=4)
        memory = prepare_from(problem, store, buffer="memory")
        assert found.certificate is not None and found.certificate.value is not None
        low, high = found.certificate.value
        again = issue_certificate(found, model, samples=100_000, seed=77)
    assert again.value is not None
    assert low <= again.value[1] and again.value[0] <= high and high - low < 0.2 * problem.horizon
    assert memory.hints is None and found.samples == 2 * 3000 * design.size + found.certificate.samples


@pytest.mark.slow
def test_every_question_to_a_store_has_a_seed_of_its_own(tmp_path: Path) -> None:
    """Also in another process, which has no register: whatever the policy depends on is part of the question."""
    table = dataclasses.replace(random_table(1), thresholds=np.array([2.4]))
    problem, model = table.problem(), table.simulator()
    design = parts_of(problem, Method())[4].design(parts_of(problem, Method())[0])
    fill(tmp_path / "s", problem, model, design, 300, streams=(0, 1)).close()

    def seed_of(asked: CMDP = problem, **method: Any) -> int:
        with SampleStore.open(tmp_path / "s", writable=False) as store:
            chosen = Method(certificate=4_000, **method)
            found = saddleback.solve(asked, model, reuse=store, feasibility="relaxed", method=chosen)
        assert found.certificate is not None
        return found.certificate.seed

    allowed = np.ones((6, 3), dtype=bool)
    allowed[0, 0] = False
    other_start = Start.equally(np.array([0, 1]))
    questions: list[dict[str, Any]] = [
        {},
        {"target": (1.05 * float(problem.thresholds[0]),)},
        {"dual": Part("column-generation", {"max_columns": 7})},
        {"dual": Part("projected-descent", {"iterations": 20})},
        {"buffers": 1},
        {"asked": dataclasses.replace(problem, preferred=(2, 1, 0))},
        {"asked": dataclasses.replace(problem, start=other_start)},
    ]
    seeds = [seed_of(**question) for question in questions]
    assert len(set(seeds)) == len(seeds)
    assert seed_of() == seeds[0], "the same question, the same seed"
    fewer = dataclasses.replace(problem, actions_allowed=allowed)
    assert seed_of_question(0, fewer) != seed_of_question(0, problem)


def test_a_part_that_is_an_object_is_told_by_what_it_holds() -> None:
    class Mine:
        def __init__(self, steps: int) -> None:
            self.steps = steps

        def solve(self, *_: Any) -> Any: ...

    asked = [Settings(method=Method(solver=part)).question() for part in (Mine(1), Mine(1), Mine(2), None, "plug-in")]
    assert asked[0] == asked[1] and json.dumps(asked)
    assert all(a != b for a, b in itertools.combinations(asked[1:], 2))
