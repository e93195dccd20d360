"""What a proof is for decides where its samples go; and what is answered where nothing can be proved."""

from __future__ import annotations

import numpy as np
import pytest

from saddleback import InputError, Method, solve
from saddleback.instances.zoo import make

QUEUE = make("queue")


def widths(purpose: str) -> tuple[float, float | None]:
    """Of the constraint's limits, and the gap."""
    method = Method(purpose=purpose)  # type: ignore[arg-type]
    found = solve(QUEUE.problem, QUEUE.simulator, samples=400_000, feasibility="relaxed", method=method)
    assert found.certificate is not None
    low, high = found.certificate.constraints[0]
    return high - low, found.certificate.gap


def test_rollouts_get_more_where_the_constraints_are_what_counts() -> None:
    wide, gap = widths("gap")
    narrow, other = widths("feasibility")
    assert narrow < 0.7 * wide
    assert gap is not None and other is not None and gap < other


def test_a_bound_that_would_say_nothing_is_not_drawn() -> None:
    ward = make("ward", beds=5, waiting=8)
    found = solve(ward.problem, ward.simulator, samples=20_000, feasibility="relaxed")
    assert found.certificate is not None
    assert found.certificate.upper_bound is None and found.certificate.gap is None
    assert any("would say nothing" in remark.text for remark in found.certificate.remarks)


def test_the_best_candidate_is_returned_where_none_is_proved() -> None:
    """Far too few samples: the answer is what looks best, not the policy that never works."""
    machine = make("maintenance")
    found = solve(machine.problem, machine.simulator, samples=4_000, feasibility="strict", seed=1)
    assert found.status.value == "undecided" and found.mixture is not None
    assert found.certificate is not None
    low, high = found.certificate.constraints[0]
    assert low <= 17 <= high
    middles = np.mean(found.certificate.value or (0, 0)), (low + high) / 2
    assert all(np.isfinite(middles))


def test_purposes_by_name() -> None:
    with pytest.raises(InputError, match="purpose"):
        Method(purpose="speed")  # type: ignore[arg-type]
