"""Edges that random changes seldom meet, and round trips of good files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.folder_changes import signed_run, write
from fuzz.mutants import runs, stores
from fuzz.oracles import any_problem, mixture_is_right
from fuzz.plain_readers import arrays_in, identical
from saddleback.errors import InputError, StorageError
from saddleback.files.json_file import as_record, read_json
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.policy_file import load_mixture, save_policy
from saddleback.runs.run_folder import load_run
from saddleback.runs.targets import load_run_target
from saddleback.sampling.store.sample_store import SampleStore, verify_store

pytestmark = pytest.mark.check


@pytest.mark.parametrize("number", [10**309, -(10**400)])
def test_whole_numbers_that_no_float_can_hold(number: int) -> None:
    with pytest.raises(InputError, match="Number out of range"):
        as_record(number, float, "x", "look again")
    as_record(10**308, float, "x", "look again")


@pytest.mark.parametrize("pieces", [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("depth", [101, 900, 990, 1_000, 50_000])
def test_json_that_is_too_deep(pieces: tuple[str, str], depth: int, tmp_path: Path) -> None:
    inner = "1" if pieces[0] != "[" else ""
    (tmp_path / "x.json").write_text(pieces[0] * depth + inner + pieces[1] * depth)
    with pytest.raises(InputError, match="must be readable JSON"):
        read_json(tmp_path / "x.json", 1 << 20, "look again")
    (tmp_path / "x.json").write_text(pieces[0] * 90 + inner + pieces[1] * 90)
    read_json(tmp_path / "x.json", 1 << 20, "look again")


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "store", {**stores()[0], "lock": ("link", "../mine")})
    (tmp_path / "mine").write_text("not to be touched")
    with pytest.raises(StorageError, match="symbolic link"):
        SampleStore.open(tmp_path / "store")
    assert (tmp_path / "mine").read_text() == "not to be touched"


def test_a_run_of_a_table_must_bring_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or else whatever has its name in the present folder would be taken for it."""
    files = dict(runs()[0])
    (tmp_path / "table.npz").write_bytes(files.pop("problem.npz"))  # type: ignore[arg-type]
    manifest = json.loads(files["run.json"])  # type: ignore[arg-type]
    del manifest["files"]["problem.npz"]
    write(tmp_path / "run", signed_run({**files, "run.json": json.dumps(manifest).encode()}))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="must come with a copy of its table"):
        load_run_target(load_run(tmp_path / "run"))


def test_names_that_the_system_does_not_take(tmp_path: Path) -> None:
    for load in (load_run, verify_store, load_mixture):
        with pytest.raises(InputError, match="must be a"):
            load(tmp_path / ("x" * 5_000))


def test_weights_that_overflow(tmp_path: Path) -> None:
    for name, x in (("weights", np.full(2, 1e308)), ("probabilities", np.full((2, 1, 2), 1e308))):
        good = {"weights": np.full(2, 0.5), "probabilities": np.full((2, 1, 2), 0.5)}
        np.savez(tmp_path / "p.npz", **{**good, name: x})
        with pytest.raises(InputError, match="must sum to 1, got inf"):  # and no warning
            load_mixture(tmp_path / "p.npz")


@settings(derandomize=True, deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4)),
    spread=st.sampled_from([1e-3, 0.1, 1.0, 100.0]),
)
def test_policies_come_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shape: tuple[int, int, int], spread: float
) -> None:
    (k, S, A), rng = shape, np.random.default_rng(seed)
    weights, tables = rng.dirichlet(np.full(k, spread)), rng.dirichlet(np.full(A, spread), size=(k, S))
    mixture = MixturePolicy(tuple(map(TabularPolicy.stochastic, tables)), weights)
    path = tmp_path_factory.mktemp("policies") / "p.npz"
    save_policy(mixture, any_problem(S, A), path)
    got = load_mixture(path)
    mixture_is_right(got, arrays_in(path))
    identical(got.weights, weights, "weights")
    for member, table in zip(got.members, tables, strict=True):
        identical(member.probabilities(np.arange(S)), table, "probabilities")
