"""Run folders: what is saved comes back, a failure at any step leaves the old run or none, and nothing is trusted."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import random_table
from saddleback import Solution, save_table
from saddleback.errors import InputError, StorageError
from saddleback.files.json_file import sha256_of, to_plain
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import BoxStates
from saddleback.runs.run_folder import Origin, check_place, load_run, save_run
from saddleback.runs.verdict import Reason, Status, Verdict
from spelled_out import solve

TABLE = random_table(1)
SOLUTIONS = [solve(TABLE.problem(), TABLE.simulator(), samples=4_000, certificate=4_000, seed=s) for s in (0, 1)]
FILES = ["bound.npz", "certificate.json", "policy.npz", "problem.json", "rollouts.npz", "run.json", "solution.json"]
FILES += ["stationary.npz"]


def save(path: Path, solution: Solution = SOLUTIONS[0], **options: Any) -> None:
    save_run(path, solution, Origin("garnet", ("states=6",)), {"samples": 4_000}, 0, **options)


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_round_trip(tmp_path: Path) -> None:
    solution = SOLUTIONS[0]
    save(tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert sorted(contents(tmp_path / "run")) == FILES
    assert (run.target, run.settings, run.request, run.seed) == ("garnet", ["states=6"], {"samples": 4_000}, 0)
    assert run.table is None
    answer = json.loads(json.dumps(solution.to_json()))
    certificate = answer.pop("certificate")
    kept = json.loads(json.dumps(to_plain(run.solution)))
    assert kept.items() <= answer.items() and answer.keys() - kept.keys() == {"reason"}
    assert run.certificate is not None and run.certificate.problem.actions == 3
    proof = json.loads(json.dumps(to_plain(run.certificate)))
    assert {k: v for k, v in certificate.items() if v is not None} == {
        k: v for k, v in proof.items() if k not in ("problem", "about") and v is not None
    }
    assert run.mixture is not None and solution.mixture is not None and run.rollouts is not None
    assert run.mixture.weights.tobytes() == solution.mixture.weights.tobytes()
    every = np.arange(6)
    for one, other in zip(run.mixture.members, solution.mixture.members, strict=True):
        np.testing.assert_array_equal(one.probabilities(every), other.probabilities(every))
    assert run.rollouts.values.tobytes() == solution.certificate.rollout_values.tobytes()  # type: ignore[union-attr]
    np.testing.assert_array_equal(run.rollouts.tail, certificate["evidence"]["rollouts"]["tail"])
    assert set(run.versions) == {"saddleback", "python", "numpy", "scipy"}


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    save(tmp_path / "a")
    save(tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_a_table_is_copied(tmp_path: Path) -> None:
    source = tmp_path / "problem.npz"
    save_table(TABLE, source)
    origin = Origin(str(source), (), source, sha256_of(source))
    save_run(tmp_path / "run", SOLUTIONS[0], origin, {}, 0)
    run = load_run(tmp_path / "run")
    assert run.table is not None and run.table.read_bytes() == source.read_bytes()
    source.write_bytes(source.read_bytes()[:-1] + b"x")
    with pytest.raises(StorageError, match="was changed while the run was going on"):
        save_run(tmp_path / "other", SOLUTIONS[0], origin, {}, 0)
    assert not (tmp_path / "other").exists()


def test_a_run_without_policy_or_proof(tmp_path: Path) -> None:
    bare = Solution(Verdict(Status.UNDECIDED, Reason.NO_FEASIBLE_MIXTURE), SOLUTIONS[0].problem, 10)
    save(tmp_path / "run", bare)
    run = load_run(tmp_path / "run")
    assert (run.certificate, run.mixture, run.rollouts) == (None, None, None)
    assert run.solution.value is None


class Faulty:
    """The n-th call of one of these system calls fails as a full or broken disk would; calls are counted."""

    names = ("mkdir", "fsync", "replace", "rename")

    def __init__(self, patch: pytest.MonkeyPatch, at: int):
        self.at, self.calls = at, 0
        for name in self.names:
            patch.setattr(os, name, self._wrapped(getattr(os, name)))

    def _wrapped(self, real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*arguments, **options)

        return call


@pytest.mark.slow
@pytest.mark.parametrize("replacing", [False, True])
def test_a_failure_at_any_step_leaves_the_old_run_or_none(tmp_path: Path, replacing: bool) -> None:
    """One system call after the other fails. The place then holds nothing, the old run, or, at the very end, the new one."""
    if replacing:
        save(tmp_path / "run", SOLUTIONS[1])
    old = contents(tmp_path)
    save(tmp_path / "complete")
    new = contents(tmp_path / "complete")
    shutil.rmtree(tmp_path / "complete")
    outcomes = []
    for at in range(1, 100):
        with pytest.MonkeyPatch.context() as patch:
            faulty = Faulty(patch, at)
            try:
                save(tmp_path / "run", force=replacing)
            except StorageError as error:
                message = str(error)
            else:
                assert faulty.calls < at  # no call was left to fail
                break
        assert "could not be" in message
        found = contents(tmp_path / "run") if (tmp_path / "run").exists() else {}
        outcomes.append("new" if found == new else "old" if contents(tmp_path) == old else "broken")
        if found == new:  # only what comes after the last rename failed
            shutil.rmtree(tmp_path)
            tmp_path.mkdir()
            if replacing:
                save(tmp_path / "run", SOLUTIONS[1])
    assert len(outcomes) > 10
    changed = outcomes.index("new")
    assert set(outcomes[:changed]) == {"old"} and set(outcomes[changed:]) == {"new"}
    assert contents(tmp_path / "run") == new


def test_an_interrupted_replacement_restores_the_old_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "run", SOLUTIONS[1])
    old, real = contents(tmp_path), os.replace

    def interrupted(source: Path, target: Path) -> None:
        if str(source).endswith("finished"):
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "run", force=True)
    assert contents(tmp_path) == old


def test_only_runs_are_replaced(tmp_path: Path) -> None:
    problem = SOLUTIONS[0].problem
    (tmp_path / "empty").mkdir()
    assert check_place(tmp_path / "empty", problem) == tmp_path / "empty"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    save(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for place, force, says in (
        ("run", False, "holds a run"),
        ("mine", True, "thesis.tex"),
        ("link", True, "must be a new folder"),
        ("mine/thesis.tex", True, "which is a file"),
        ("no/run", True, "existing folder"),
    ):
        with pytest.raises(InputError) as caught:
            check_place(tmp_path / place, problem, force=force)
        assert says in str(caught.value)
    assert check_place(tmp_path / "run", problem, force=True)


def test_only_problems_whose_policies_are_tables(tmp_path: Path) -> None:
    signal = lambda states, actions: np.zeros(len(states))  # noqa: E731
    problem = CMDP(
        gamma=0.9,
        start=Start(np.zeros((1, 1)), np.array([1.0])),
        num_actions=2,
        states=BoxStates(np.array([0.0]), np.array([1.0])),
        reward=signal,
        constraints=[Constraint("cost", signal, "<=", 1.0, (0.0, 1.0))],
        reward_range=(0.0, 1.0),
    )
    with pytest.raises(InputError, match="must be left out where a policy is no table"):
        check_place(tmp_path / "run", problem)


def test_every_flipped_byte_is_seen(tmp_path: Path) -> None:
    """One bit of any file but the manifest: refused, with the file's name."""
    save(tmp_path / "run")
    for name in FILES:
        if name == "run.json":
            continue
        path = tmp_path / "run" / name
        good = path.read_bytes()
        for at in np.linspace(0, len(good) - 1, 7).astype(int):
            bad = bytearray(good)
            bad[at] ^= 1
            path.write_bytes(bad)
            with pytest.raises(InputError, match=name):
                load_run(tmp_path / "run")
        path.write_bytes(good)
    load_run(tmp_path / "run")


@pytest.mark.parametrize("seed", range(4))
def test_spoiled_manifests_are_refused_or_harmless(tmp_path: Path, seed: int) -> None:
    """Random bytes of the manifest: an :class:`InputError` or a run whose other files are unchanged, never another fault."""
    save(tmp_path / "run")
    good, rng, refused = (tmp_path / "run" / "run.json").read_bytes(), np.random.default_rng(seed), 0
    for _ in range(60):
        bad = bytearray(good)
        for at in rng.integers(len(good), size=int(rng.integers(1, 4))):
            bad[at] = int(rng.integers(256))
        (tmp_path / "run" / "run.json").write_bytes(bad)
        try:
            load_run(tmp_path / "run")
        except InputError:
            refused += 1
    assert refused > 40
