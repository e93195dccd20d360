"""What the command line can be pointed at."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest

from helpers import random_table
from saddleback import InputError, save_table
from saddleback.files.json_file import sha256_of
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.runs.certificate_file import CertificateRecord, ProblemRecord
from saddleback.runs.run_folder import load_run, save_run
from saddleback.runs.targets import load_run_target, load_target, origin_of
from spelled_out import solve


def test_a_name_with_settings() -> None:
    instance = load_target("queue", ["capacity=4", "gamma=0.9"])
    assert (instance.problem.num_states, instance.problem.gamma) == (5, 0.9)
    assert origin_of("queue", ["capacity=4"]).settings == ("capacity=4",)


@pytest.mark.parametrize(
    ("target", "settings", "says"),
    [
        ("quay", [], "one of the zoo"),
        ("queue", ["capacity"], "name=value"),
        ("queue", ["size=3"], "size"),
        ("x.npz", ["size=3"], "must not be given for a file"),
        ("x.npz", [], "x.npz"),
    ],
)
def test_bad_targets(target: str, settings: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_target(target, settings)


def described(certificate: CertificateRecord, problem: ProblemRecord) -> CertificateRecord:
    """The same proof of another problem; what relates the two is looked at elsewhere."""
    other = copy.copy(certificate)
    msgspec.structs.force_setattr(other, "problem", problem)
    return other


def test_a_stored_run_finds_its_problem(tmp_path: Path) -> None:
    """The table's copy, under the name of the file it was copied from; and only the problem that was solved."""
    table = random_table(1)
    save_table(table, tmp_path / "mine.npz")
    origin = origin_of(str(tmp_path / "mine.npz"), [])
    assert origin.sha256 == sha256_of(tmp_path / "mine.npz")
    instance = load_target(origin.target)
    solution = solve(instance.problem, instance.simulator, samples=2_000, certificate=2_000)
    save_run(tmp_path / "run", solution, origin, {}, 0)
    (tmp_path / "mine.npz").unlink()
    run = load_run(tmp_path / "run")
    found = load_run_target(run)
    assert found.problem.name == "mine"
    np.testing.assert_array_equal(found.problem.reward, instance.problem.reward)
    assert run.certificate is not None
    told = run.certificate.problem
    others = {"gamma": {"gamma": 0.81, "horizon": 1 / 0.19}, "name": {"name": "yours"}, "states": {"states": 7}}
    others["constraints"] = {"constraints": [*told.constraints, *told.constraints], "observed": [False] * 3}
    for field, values in others.items():
        problem = msgspec.structs.replace(told, **values)
        other = dataclasses.replace(run, certificate=described(run.certificate, problem))
        with pytest.raises(InputError, match=f"as it was when the run was made \\({field}"):
            load_run_target(other)
    nearly = msgspec.structs.replace(run.certificate.problem, gamma=0.8 * (1 + 1e-15))
    load_run_target(dataclasses.replace(run, certificate=described(run.certificate, nearly)))
    small = MixturePolicy.of([TabularPolicy.stochastic(np.full((6, 2), 0.5))], np.ones(1))
    with pytest.raises(InputError, match=r"tables of shape \(6, 3\)"):
        load_run_target(dataclasses.replace(run, mixture=small))
