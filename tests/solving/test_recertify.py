"""New proofs for stored policies: fresh samples, honest counts, limits that hold."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from helpers import random_table
from saddleback import InputError, Table
from saddleback.certificates.certificate import Evidence
from saddleback.exact import mixture_values, solve_exactly
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.runs.run_folder import Origin, Run, load_run, save_run
from saddleback.solving.recertify import prices_of, recertify
from saddleback.solving.strict import guide_of
from spelled_out import solve

TABLE = random_table(1)


def run_of(path: Path, table: Table = TABLE, **options: object) -> Run:
    arguments = {"samples": 10_000, "certificate": 10_000, "seed": 0} | options
    solution = solve(table.problem(), table.simulator(), **arguments)  # type: ignore[arg-type]
    asked = {"epsilon": options["epsilon"]} if "epsilon" in options else {}
    save_run(path / "run", solution, Origin("garnet"), asked, 0)
    return load_run(path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("features", [None, 3])
def test_limits_hold_and_samples_are_counted(tmp_path: Path, features: int | None) -> None:
    """Twenty new proofs at 1 − 5e-8 each: one that misses the truth is a fault with probability 1e-6 at most."""
    table = random_table(2, d=features)
    run, best = run_of(tmp_path, table), solve_exactly(table).value
    assert run.mixture is not None
    truth = mixture_values(table, run.mixture)
    widths, means = [], set()
    for seed in range(100, 120):
        model = table.simulator()
        proof, pilot = recertify(run, table.problem(), model, samples=12_000, seed=seed, delta=5e-8)
        assert proof.samples + pilot == model.num_queries <= 12_000
        assert 0.7 * 3_000 < pilot <= 3_000
        for limits, value in zip((proof.value, *proof.constraints), truth, strict=True):
            assert limits is not None and limits[0] < value < limits[1]
        assert proof.upper_bound is not None and proof.upper_bound > best
        widths.append(proof.value[1] - proof.value[0])  # type: ignore[index]
        assert proof.evidence.rollouts is not None
        means.add(proof.evidence.rollouts.mean)
    assert max(widths) < 0.5 * 5  # of the range [0, 5]
    assert len(means) == 20  # other samples each time


def test_the_check_can_fail(tmp_path: Path) -> None:
    """Another policy's values are not within the limits: the test above would notice."""
    run = run_of(tmp_path)
    worst = MixturePolicy.of([TabularPolicy.deterministic(TABLE.reward.argmin(axis=1), 3)], np.ones(1))
    other = mixture_values(TABLE, worst)
    proof, _ = recertify(run, TABLE.problem(), TABLE.simulator(), samples=12_000, seed=100, delta=5e-8)
    limits = (proof.value, *proof.constraints)
    assert not all(x is not None and x[0] < value < x[1] for x, value in zip(limits, other, strict=True))


@pytest.mark.slow
def test_the_old_proof_decides_nothing(tmp_path: Path) -> None:
    """Its limits and rollouts may be anything; only its prices, level and allowance guide the new one."""
    run = run_of(tmp_path)
    assert run.certificate is not None
    lies = replace(run.certificate, value=(0.0, 0.1), feasible="certified", upper_bound=0.0)
    liar = dataclasses.replace(run, certificate=lies, rollouts=None)
    one, other = (recertify(r, TABLE.problem(), TABLE.simulator()) for r in (run, liar))
    assert one.certificate.to_json() == other.certificate.to_json()


def test_the_usual_number_of_samples(tmp_path: Path) -> None:
    """As many for the proof as the stored one took, and a third more for the pilot."""
    run = run_of(tmp_path)
    assert run.certificate is not None
    proof, pilot = recertify(run, TABLE.problem(), TABLE.simulator())
    assert run.certificate.samples * 0.9 < proof.samples < run.certificate.samples * 1.1
    assert proof.confidence == pytest.approx(0.95)
    assert pilot < proof.samples / 2


@pytest.mark.slow
def test_allowance_is_kept(tmp_path: Path) -> None:
    """A run that may miss its constraint by ε may do so in the new proof too."""
    run = run_of(tmp_path, samples=None, certificate=0, epsilon=0.5)
    assert run.certificate is not None and run.certificate.allowance == [0.5]
    proof, _ = recertify(run, TABLE.problem(), TABLE.simulator(), samples=50_000)
    assert proof.allowance == (0.5,) and proof.feasible == "certified"


def test_prices_come_from_the_bound_or_from_the_multipliers(tmp_path: Path) -> None:
    """Costs in other units: a price per unit is turned back into a point of the simplex."""
    table = dataclasses.replace(
        TABLE, reward=7 * TABLE.reward, reward_range=(0.0, 7.0), constraints=0.5 * TABLE.constraints, ranges=((0.0, 0.5),),
        thresholds=0.5 * TABLE.thresholds,
    )  # fmt: skip
    solution = solve(table.problem(), table.simulator(), samples=10_000, certificate=10_000)
    save_run(tmp_path / "run", solution, Origin("garnet"), {}, 0)
    run = load_run(tmp_path / "run")
    wanted = guide_of(solution).sigma
    assert wanted is not None and run.certificate is not None
    np.testing.assert_array_equal(prices_of(run, table.problem()), wanted)
    unsupported = replace(run.certificate, evidence=Evidence(run.certificate.evidence.rollouts))
    bare = dataclasses.replace(run, certificate=unsupported)
    np.testing.assert_allclose(prices_of(bare, table.problem()), wanted, atol=1e-3)
    none = dataclasses.replace(bare, solution=replace(run.solution, multipliers=()))
    assert prices_of(none, table.problem()) is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"seed": 0}, "must not be one that the run used"),
        ({"seed": 77}, "must not be one that the run used"),  # of the stored certificate
        ({"seed": -3}, "`seed` must be a whole number of at least 0"),
        ({"samples": 3}, "`samples` must be at least 4"),
        ({"samples": 12}, "of the pilot, a quarter of 12; raise the number of samples to"),
        ({"delta": 1.0}, "`delta` must lie in"),
    ],
)
def test_bad_arguments(tmp_path: Path, options: dict[str, float], says: str) -> None:
    run = run_of(tmp_path)
    assert run.certificate is not None
    run = dataclasses.replace(run, certificate=replace(run.certificate, seed=77))
    with pytest.raises(InputError, match=says):
        recertify(run, TABLE.problem(), TABLE.simulator(), **options)  # type: ignore[arg-type]


def test_nothing_to_certify(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    bare = dataclasses.replace(run, certificate=None, mixture=None, solution=replace(run.solution, multipliers=()))
    with pytest.raises(InputError, match="must hold a policy"):
        recertify(bare, TABLE.problem(), TABLE.simulator())
