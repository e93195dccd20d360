"""Runs, stores and work folders with every byte damaged in turn: refused, or the answer's bytes are unchanged.

A work folder is read as ``resume`` reads it: its request and its samples, of which the answer is a function. What a kill may
leave may be missing there, and is drawn again; some of those folders are finished for real.
"""

from __future__ import annotations

import hashlib
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import quietly
from damage.byte_damage import damaged, spoil
from helpers import random_table
from saddleback import save_table
from saddleback.errors import InputError
from saddleback.files.json_file import to_plain
from saddleback.instances.table_file import load_table
from saddleback.problem.policy_file import load_mixture
from saddleback.reports.html.page import page_of
from saddleback.reports.html.page import report as write_report
from saddleback.runs.recheck import recheck
from saddleback.runs.run_folder import load_run, verify_run
from saddleback.runs.targets import load_run_target
from saddleback.runs.work_folder import load_work, work_folder
from saddleback.sampling.store.sample_store import SampleStore, verify_store
from sampling.store.store_runs import unsealed

SEED = 16_11_2026
QUEUE = ["queue", "--set", "capacity=3", "--set", "gamma=0.5", "--set", "limit=0.3"]
SOLVE = ["solve", *QUEUE, "--samples", 8_000, "--feasibility", "relaxed"]  # with a bound among its files
POINTS = ["solve", "linear-quadratic", "--samples", 100_000]
ANSWERS = "solution.json", "certificate.json", "policy.npz", "rollouts.npz"


def every(few: int, more: int, most: int = 1) -> pytest.MarkDecorator:
    """Every so-and-so-many-th byte, in the small, the middle and the full form."""
    middle, full = pytest.param(more, marks=pytest.mark.check), pytest.param(most, marks=pytest.mark.study)
    return pytest.mark.parametrize("step", [few, middle, full])


def report(name: str, step: int, found: Counter[str]) -> None:
    print(f"{name}, every {step}th byte, seed {SEED}: {dict(found)}")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    assert quietly(*SOLVE, "--out", folder / "run") in (0, 4)
    assert quietly("sample", *QUEUE, "--out", folder / "samples") == 0
    _interrupted(folder / "cut")
    return folder


def _interrupted(place: Path) -> None:
    """A solve that was killed while it drew: a store with a few lines and no seal."""
    blocks, add = 0, SampleStore.add

    def tired(self: SampleStore, *arguments: Any) -> None:
        nonlocal blocks
        blocks += 1
        if blocks > 6:
            raise KeyboardInterrupt
        add(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SampleStore, "add", tired)
        patch.setattr("saddleback.sampling.executors.durable._SYNC_SECONDS", 0.0)  # a line a block
        assert quietly(*SOLVE, "--out", place) == 130
    for store in (work_folder(place) / "samples").iterdir():
        unsealed(store)


def answer_of(place: Path) -> bytes:
    """All that a finished run is asked: by ``resume``, ``report`` and ``certify --recheck``."""
    run = verify_run(place)
    instance = load_run_target(run)
    assert run.certificate is not None
    checked = recheck(run.certificate, run.rollouts)
    page = page_of(run, instance.problem)
    told = [to_plain(run.solution), to_plain(run.certificate), run.request, run.seed, run.versions, checked, page]
    digest = hashlib.sha256(repr(told).encode())
    for member in run.mixture.members if run.mixture else ():
        digest.update(member.key())
    return digest.digest()


@pytest.mark.slow
@every(997, 31)
def test_a_finished_run(home: Path, tmp_path: Path, step: int) -> None:
    place = Path(shutil.copytree(home / "run", tmp_path / "run"))
    report("a finished run", step, spoil(place, lambda: answer_of(place), step, SEED))


@pytest.mark.check
@pytest.mark.parametrize("step", [601, pytest.param(5, marks=pytest.mark.study)])
def test_the_page_of_a_run(home: Path, tmp_path: Path, step: int) -> None:
    """Shards are not read for it, and nothing on it depends on them."""
    place = Path(shutil.copytree(home / "run", tmp_path / "run"))

    def page() -> bytes:
        return write_report(place, tmp_path / "page.html").read_bytes()

    report("the page of a run", step, spoil(place, page, step, SEED))


@pytest.mark.check
@pytest.mark.parametrize("step", [60, pytest.param(1, marks=pytest.mark.study)])
def test_a_finished_run_with_large_files(tmp_path: Path, step: int) -> None:
    """States that are points, features and a linear policy; 2,000 bytes of each large file."""
    assert quietly(*POINTS, "--out", tmp_path / "run") in (0, 4, 6)
    place = tmp_path / "run"

    def read() -> bytes:
        run = verify_run(place)
        return repr([to_plain(run.solution), to_plain(run.certificate), run.request, run.seed, run.versions]).encode()

    report("a run with large files", step, spoil(place, read, step, SEED))


def content_of(folder: Path) -> bytes:
    """What ``--verify`` and ``solve --from`` make of a store; they must agree."""
    report = verify_store(folder)
    try:
        with SampleStore.open(folder, writable=False) as store:
            content = store.content_hash().encode()
    except InputError:
        assert not report.sound, "verify knows nothing of it"
        raise
    assert report.sound, f"it was opened all the same: {report.damage}"
    return content


@pytest.mark.slow
@every(20, 3)
def test_a_store(home: Path, tmp_path: Path, step: int) -> None:
    folder = Path(shutil.copytree(home / "samples" / "samples" / "samples-0", tmp_path / "s"))
    report("a store", step, spoil(folder, lambda: content_of(folder), step, SEED))


def held(place: Path) -> dict[Any, bytes]:
    """The blocks of a run under way, as its next owner finds them."""
    found = {}
    for folder in sorted((work_folder(place) / "samples").iterdir()):
        with SampleStore.open(folder, writable=False) as store:
            assert store.fingerprint["seed"] == 0
            found |= {(folder.name, block): rows.tobytes() for block, rows in store.rows()}
    return found


@every(150, 11)
def test_a_run_under_way(home: Path, tmp_path: Path, step: int) -> None:
    """Refused; or the same request, and samples of which none is another and at most the last line's are missing."""
    place = tmp_path / "cut"
    shutil.copytree(work_folder(home / "cut"), work_folder(place))
    right, request, lost = held(place), load_work(place), []

    def read() -> bytes:
        assert load_work(place) == request
        found = held(place)
        assert found.items() <= right.items()
        if len(found) < len(right):
            lost.append(len(right) - len(found))
        return b"as it was"

    found = spoil(work_folder(place), read, step, SEED)
    report("a run under way", step, found + Counter(lost=len(lost)))
    assert len(right) >= 5 and set(lost) <= {1}


@pytest.mark.slow
@every(3000, 200, 20)
def test_a_damaged_run_under_way_ends_as_an_unbroken_one_or_is_refused(home: Path, tmp_path: Path, step: int) -> None:
    rng, found, place = random.Random(SEED), Counter[str](), tmp_path / "cut"
    whole = [(home / "run" / name).read_bytes() for name in ANSWERS]
    names = [p.relative_to(work_folder(home / "cut")) for p in work_folder(home / "cut").rglob("*") if p.is_file()]
    for name in sorted(names):
        content = (work_folder(home / "cut") / name).read_bytes()
        for what, changed in damaged(content, step if name.suffix != ".jsonl" else step // 10, rng):
            shutil.copytree(work_folder(home / "cut"), work_folder(place))
            (work_folder(place) / name).write_bytes(changed)
            code = quietly("resume", place)
            found[f"exit code {code}"] += 1
            if code in (0, 4):
                assert [(place / file).read_bytes() for file in ANSWERS] == whole, (name, what)
                shutil.rmtree(place)
            else:
                assert code == 2 and not place.exists(), (name, what)
                shutil.rmtree(work_folder(place))
    report("runs that were taken up", step, found)
    assert found["exit code 2"] and found.total() > found["exit code 2"]


@every(20, 2)
def test_files_that_stand_alone(home: Path, tmp_path: Path, step: int) -> None:
    """A policy and a problem's table, which no manifest vouches for: the check sums of the archive do."""
    folder = tmp_path / "alone"
    folder.mkdir()
    shutil.copy(home / "run" / "policy.npz", folder)
    save_table(random_table(1), folder / "table.npz")

    def read() -> bytes:
        mixture, table = load_mixture(folder / "policy.npz"), load_table(folder / "table.npz")
        policy = [(float(w), member.key()) for w, member in zip(mixture.weights, mixture.members, strict=True)]
        arrays = [getattr(table, name) for name in ("reward", "constraints", "thresholds", "rho")]
        law = [table.P.data, table.P.indices, table.P.indptr, *arrays]
        return repr([policy, table.gamma, table.senses, table.names, [x.tobytes() for x in law]]).encode()

    report("files that stand alone", step, spoil(folder, read, step, SEED))


def test_the_harness_sees_a_reader_that_trusts_its_files(home: Path, tmp_path: Path) -> None:
    """Negative control: certificates that nobody hashes."""
    place = Path(shutil.copytree(home / "run", tmp_path / "run"))
    path = place / "certificate.json"
    for file in place.rglob("*"):
        if file.is_file() and file != path:
            file.unlink()
    with pytest.raises(AssertionError, match="another answer"):
        spoil(place, path.read_bytes, 131, SEED)
    with pytest.raises(InputError):
        load_run(place)
