"""What more samples would show, asked of those that are there: near what they do show, for no simulator call."""

from __future__ import annotations

import numpy as np
import pytest

from saddleback import zoo
from saddleback.certificates import Request, balanced, expect
from saddleback.runs.settings import Settings
from saddleback.sampling.counted_buffer import repeated
from saddleback.solving.find import budget_of
from saddleback.solving.outlook import LEAST_GROWTH, MOST_GROWTH, PROOF, Outlook, _between
from saddleback.solving.strict import guide_of

ASKED = Settings(20_000, feasibility="relaxed", seed=5)


def outlook(name: str, samples: int, **parameters: object) -> tuple[Outlook, zoo.Instance]:
    instance = zoo.make(name, **parameters)
    found = budget_of(instance.problem, instance.simulator, ASKED, samples)
    return Outlook(found, samples, 0.025), instance


def test_repeated_samples_have_the_same_means_and_smaller_errors() -> None:
    seen, _ = outlook("garnet", 4_000, states=10)
    assert seen.found.prepared is not None
    one = seen.found.prepared.solver_buffer
    many = repeated(one, 9)  # type: ignore[arg-type]
    V = np.random.default_rng(0).random(len(one.support))  # type: ignore[union-attr]
    np.testing.assert_array_equal(many.average(V), one.average(V))  # type: ignore[union-attr]
    np.testing.assert_array_equal(many.counts, 9 * one.counts)  # type: ignore[union-attr]
    np.testing.assert_allclose(many.half_a_sample(), one.half_a_sample() / 9, rtol=1e-15)  # type: ignore[union-attr]


def test_between_two_numbers_of_samples() -> None:
    """An error of 4 at 100 and 1 at 1,600 falls as 1/√n: it is 2 at 400."""
    assert _between(100, 1_600, 4.0, 1.0, 2.0) == 400
    assert _between(100, 1_600, 4.0, 3.0, 2.0) == 1_600  # what is not reached is not extrapolated
    assert _between(100, 1_600, 1.9, 1.0, 2.0) == 1_600


@pytest.mark.slow
@pytest.mark.parametrize("name", ["garnet", "random-linear"])
def test_eight_times_the_samples_show_what_was_foreseen(name: str) -> None:
    """Both are guesses about the same certificate, from few and from many samples; a rate of 1/√n would be off by more."""
    small, instance = outlook(name, 10_000)
    before = instance.simulator.num_queries
    foreseen = small.error(8)
    assert instance.simulator.num_queries == before
    large, _ = outlook(name, 80_000)
    assert foreseen == pytest.approx(large.error(), rel=0.35)
    assert small.error() / np.sqrt(8) > 1.35 * large.error()


@pytest.mark.slow
def test_more_accuracy_takes_more_and_growth_has_limits() -> None:
    seen, _ = outlook("garnet", 4_000, states=20)
    errors = [seen.error(k) for k in (1, 2, 4)]
    assert errors == sorted(errors, reverse=True)
    totals = [seen.total(share * errors[0], 1e13) for share in (2.0, 0.9, 0.3, 0.1)]
    assert totals == sorted(totals) and totals[0] < totals[-1]  # type: ignore[type-var, operator]
    assert totals[0] < (1 + PROOF) * 4_000 < totals[2]  # type: ignore[operator]
    assert seen.total(1e-12, 1e7) is None
    assert seen.growth(errors[0]) == LEAST_GROWTH and seen.growth(errors[0] / 100) == MOST_GROWTH
    assert LEAST_GROWTH <= seen.growth(errors[1]) <= 2.0
    most = int(PROOF * 4_000)
    proof = seen.proof(1.2 * errors[0], 1, most)
    assert proof.samples < most and seen.error(1, proof.samples) <= 1.25 * errors[0]


@pytest.mark.slow
def test_samples_go_to_the_larger_of_gap_and_violation() -> None:
    """With features the gap needs few samples, and the rollouts of the constraint nearly all."""
    seen, _ = outlook("random-linear", 40_000)
    guide, request = guide_of(seen.found), Request(100_000, 0, any_bound=True)
    usual, (chosen, expected) = expect(guide, request), balanced(guide, request)
    assert usual.half_widths[1] > 3 * usual.gap
    assert chosen.rollouts is not None and chosen.rollouts > 0.5
    assert expected.error < 0.75 * usual.error
    np.testing.assert_array_equal(expect(guide, chosen).half_widths, expected.half_widths)
