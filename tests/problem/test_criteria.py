"""What a value is: the numbers and words that everything downstream asks for."""

from __future__ import annotations

import pytest

from helpers import random_table
from saddleback.errors import InputError
from saddleback.problem.criteria import Criterion, Discounted


@pytest.mark.parametrize("gamma", [0.0, 0.5, 0.9, 0.999])
def test_the_horizon_is_the_value_of_a_signal_that_is_always_one(gamma: float) -> None:
    criterion: Criterion = Discounted(gamma)
    value = 0.0
    for _ in range(40_000):
        value = 1.0 + criterion.continuation * value
    assert criterion.horizon == pytest.approx(value, rel=1e-12)


def test_problems_ask_their_criterion() -> None:
    problem = random_table(1).problem()
    assert problem.criterion == Discounted(problem.gamma)
    assert problem.horizon == problem.criterion.horizon
    assert f"discount {problem.gamma:g}" in problem.criterion.words


@pytest.mark.parametrize("gamma", [1.0, -0.1, float("nan")])
def test_a_discount_of_one_is_refused(gamma: float) -> None:
    with pytest.raises(InputError, match="`gamma` must lie in"):
        Discounted(gamma)
