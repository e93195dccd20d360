"""Solves from a store: certificates for samples that stay on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from saddleback.runs.settings import Method
from saddleback.solving.prepare import prepare_from
from saddleback.solving.prepared import parts_of
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
