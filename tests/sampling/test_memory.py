"""Memory: predicted before it is taken, refused where there is not enough, flat over many solves, and lost without harm."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback import CMDP, Constraint, InputError, Start, cli, zoo
from saddleback.features import make
from saddleback.files.memory import _GROUPS, LIMIT_VARIABLE, SHARE, Limit, _group, _machine, limit, parse_bytes, spelled
from saddleback.problem.spaces import BoxStates
from saddleback.runs.verdict import Status
from saddleback.sampling.memory import Lot, check, predict, predict_run
from sampling.memory_runs import CASES
from spelled_out import solve

pytestmark = pytest.mark.check

PROGRAM = Path(__file__).parent / "memory_runs.py"
SMALL = ["tabular", "linear", "support", "points", "strict", "tiles"]
MB = 10**6


def child(*arguments: Any) -> Any:
    """What the program of tests/sampling/memory_runs.py prints."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def fits_its_prediction(name: str) -> float:
    """Run a case with half of what was predicted, and with 1.2 times as much; how much of the prediction it took."""
    found = child(name)
    half, whole = found["half"], found["whole"]
    assert half["name"] == "memory" and half["calls"] == 0
    assert "saddleback sample --out" in half["refused"] and spelled(half["predicted"] // 2)[:2] in half["refused"]
    assert whole["status"] == "solved" and whole["calls"] > 0.7 * CASES[name].samples
    share = whole["peak"] / whole["predicted"]
    print(f"{name}: {whole['peak'] / MB:.1f} MB taken, {whole['predicted'] / MB:.1f} MB predicted, {share:.2f} of it")
    assert share <= 1.2
    return float(share)


@pytest.mark.parametrize("name", SMALL)
def test_a_solve_keeps_to_its_prediction(name: str) -> None:
    assert fits_its_prediction(name) >= 1 / 6  # a constant weighs most here


@pytest.mark.study
@pytest.mark.parametrize("name", [name for name in CASES if name not in SMALL])
def test_a_large_solve_keeps_to_its_prediction(name: str) -> None:
    assert fits_its_prediction(name) >= 1 / 3  # an estimate, not a scare


def growth(times: int) -> int:
    """Bytes by which the process grew from the first third of so many solves to the last."""
    held = child("tabular", "repeat", times)
    print(f"{times} solves: {min(held) / MB:.1f} to {max(held) / MB:.1f} MB")
    third = times // 3
    return int(np.median(held[-third:]) - np.median(held[:third]))


def test_twenty_solves_take_no_more_than_one() -> None:
    assert growth(20) < 2 * MB


@pytest.mark.study
def test_a_hundred_solves_take_no_more_than_one() -> None:
    assert growth(100) < 2 * MB


def test_more_of_anything_takes_more() -> None:
    problem = zoo.make("random-linear").problem
    usual = {"samples": 1_000_000, "certificate": 1_000_000, "num_signals": 0, "earlier": 0}
    base = predict_run(problem, **usual).peak
    for name, more in [("samples", 4_000_000), ("certificate", 4_000_000), ("num_signals", 20), ("earlier", 1_000_000)]:
        assert predict_run(problem, **{**usual, name: more}).peak > base, name
    assert predict_run(problem, 1_000_000).certificate <= predict_run(problem, 1_000_000).solve


def test_the_usual_tiles_fit_an_ordinary_machine() -> None:
    """Features are read in pieces, so what they take does not grow with the samples times their number."""
    box = BoxStates([0.0, 0.0], [1.0, 1.0])
    problem = CMDP(
        gamma=0.9,
        start=Start(np.full((1, 2), 0.5), np.ones(1)),
        num_actions=3,
        states=box,
        reward=lambda s, a: s[:, 0],
        reward_range=(0.0, 1.0),
        constraints=[Constraint("cost", lambda s, a: s[:, 1], "<=", 5.0, range=(0.0, 1.0))],
        features=make("tiles", box, 3),
    )
    assert problem.features is not None and problem.features.dim == 921
    assert predict_run(problem, 500_000, certificate=500_000).peak < 4e9
    whole = predict(
        problem, 1842, Lot(125_000, 8), Lot(375_000, 1), policies=True
    )  # an evaluator that asks again and again
    assert whole.peak > 8 * 375_000 * 921


def test_counts_do_not_grow_with_the_samples_once_all_states_are_seen() -> None:
    """The table of a dense P at 29,511 states and 5 actions would take 34.8 GB; a run of few samples is far from that."""
    problem = zoo.make("garnet", states=2000, actions=2).problem
    table = 8 * 4000 * 2000
    assert predict_run(problem, 100_000).peak < 1.5 * table
    one, ten = (predict(problem, 4000, Lot(), Lot(n, 1, 4000)) for n in (10**8, 10**9))
    assert 8 * 9 * 10**8 < ten.peak - one.peak < 64 * 9 * 10**8  # what is drawn is held until it is counted


def test_the_design_is_refused_before_it_is_made() -> None:
    instance = zoo.make("random-linear", states=400)
    needed = predict_run(instance.problem, 0)
    assert needed.design >= 8 * 400 * 5 * 8
    with pytest.raises(InputError, match="candidates") as refused:
        check(needed, 0, Limit(needed.design - 1, "a test"))
    assert "pool of candidates" in refused.value.remedy


@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_the_number_that_is_offered_fits(share: float) -> None:
    problem, samples = zoo.make("garnet").problem, 5_000_000
    needed = predict_run(problem, samples)
    room = Limit(int(share * needed.peak), "a test")
    with pytest.raises(InputError, match="such as") as refused:
        check(needed, samples, room)
    offered = int(refused.value.remedy.split("such as ")[1].split(";")[0].replace(",", ""))
    assert 0.5 * share * samples < offered < samples
    check(predict_run(problem, offered), offered, room)
    check(needed, samples, Limit(needed.peak, "a test"))


# ---- the limit -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [("800", 800), ("2GB", 2 * 10**9), ("1.5 GiB", 3 << 29), ("64 mb", 64 * MB), ("3k", 3000), ("1Ti", 1 << 40)],
)
def test_sizes_are_read(text: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_bytes(text) == number
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    assert limit() == Limit(number, LIMIT_VARIABLE)


@pytest.mark.parametrize("text", ["much", "-3", "2 XB", "0", "1e9", "inf", "9" * 30])
def test_what_is_no_size_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    with pytest.raises(InputError, match=LIMIT_VARIABLE):
        limit()


def test_the_limit_is_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    found = limit()
    assert 0 < found.bytes < 1e14 and "left" in found.source
    (tmp_path / "meminfo").write_text("MemTotal: 24103 kB\nMemFree: 1 kB\nMemAvailable:    1000 kB\n")
    assert _machine(tmp_path / "meminfo")[0] == 1_024_000
    assert _machine(tmp_path / "nowhere")[0] >= found.bytes / SHARE  # all that is built in


@pytest.mark.parametrize("group", _GROUPS)
def test_control_groups_are_heard(group: tuple[str, str, str, str], tmp_path: Path) -> None:
    assert _group(tmp_path, *group) is None
    (tmp_path / "memory").mkdir()
    for name, text in zip(group, ["1000000\n", "700000\n", f"anon 3\n{group[3]} 50000\n"], strict=False):
        (tmp_path / name).write_text(text)
    assert _group(tmp_path, *group) == 350_000
    (tmp_path / group[0]).write_text("max\n")
    assert _group(tmp_path, *group) is None


# ---- refusals on the way ---------------------------------------------------------------------------------------------


def test_an_adaptive_run_is_refused_at_once_or_ends_with_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = zoo.make("queue")
    monkeypatch.setenv(LIMIT_VARIABLE, "13MB")
    with pytest.raises(InputError, match="memory"):
        solve(instance.problem, instance.simulator, epsilon=0.05)
    assert instance.simulator.num_queries == 0
    monkeypatch.setenv(LIMIT_VARIABLE, "18MB")
    found = solve(instance.problem, instance.simulator, epsilon=0.05)
    assert found.status is Status.BUDGET_EXHAUSTED and found.mixture is not None
    assert "18 MB" in found.message and "allow more memory" in found.message
    assert instance.simulator.num_queries == found.samples > 0


def command(*arguments: Any) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(a) for a in arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("budget", [["--samples", "9000000"], ["--epsilon", "0.01"]])
def test_the_command_line_says_how_much(
    budget: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "13MB")
    assert command("solve", "queue", *budget, "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert "`memory` must hold the run of " in said and "a limit of 13 MB" in said and LIMIT_VARIABLE in said
    assert list(tmp_path.rglob("*.npy")) == []  # nothing was drawn


# ---- memory that gives out all the same ------------------------------------------------------------------------------

SOLVE = ["solve", "random-linear", "--samples", "60000", "--seed", "3"]
ALLOCATING = {"empty", "zeros", "concatenate", "array", "repeat", "bincount", "unique", "cumsum", "flatnonzero"}


class Failing:
    """numpy, but for the n-th allocation of those who were given it, for which there is no memory."""

    def __init__(self, at: int):
        self.at, self.count = at, 0

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name)
        return self._counted(function) if name in ALLOCATING else function

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def allocate(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            if self.count == self.at:
                raise MemoryError
            return function(*arguments, **options)

        return allocate


def contents(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in ("run.json", "solution.json", "certificate.json", "policy.npz")}


def solved_with(numpy: Failing, place: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    with monkeypatch.context() as patch:
        for module in ("buffer", "collect", "counted_buffer", "batches", "blocks"):
            patch.setattr(f"saddleback.sampling.{module}.np", numpy)
        return command(*SOLVE, "--out", place)


def recovers_from_all(numbers: Callable[[int], Any], folder: Path, patch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Let the n-th allocation fail, for some n, and take up each run again: to the bytes of one that never failed."""
    counter, drawn_before = Failing(0), 0
    assert solved_with(counter, folder / "unbroken", patch) == 0
    assert counter.count > 100
    for n in numbers(counter.count):
        place = folder / f"run{n}"
        assert solved_with(Failing(n), place, patch) == 5
        said = capsys.readouterr().err
        assert "memory" in said and "Traceback" not in said and not place.exists()
        samples = folder / f"run{n}.work" / "samples"
        drawn_before += any(store.glob("*.npy") for store in samples.iterdir()) if samples.is_dir() else 0
        assert command("resume", place) == 0
        capsys.readouterr()
        assert contents(place) == contents(folder / "unbroken")
    assert drawn_before > 0  # samples outlived the failure
    print(f"{counter.count} allocations, {len(list(numbers(counter.count)))} of them made to fail")


def test_an_allocation_that_fails_costs_no_sample(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    recovers_from_all(lambda count: range(1, count + 1, count // 4), tmp_path, monkeypatch, capsys)


@pytest.mark.study
def test_any_allocation_may_fail(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    recovers_from_all(lambda count: range(1, count + 1), tmp_path, monkeypatch, capsys)


CRAMPED = """
import resource, sys
from saddleback import cli, solve, zoo
small = zoo.make("random-linear", states=20, dim=3)
solve(small.problem, small.simulator, samples=4000)  # linear algebra libraries end a process otherwise
lines = open(sys.argv[1]).read().splitlines()
size = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (size + int(sys.argv[2]), -1))
cli.main(sys.argv[3:])
"""


LARGER = ["solve", "random-linear", "--samples", "2000000", "--certificate-samples", "100000", "--out"]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    place = tmp_path_factory.mktemp("unbroken") / "run"
    assert command(*LARGER, place) == 0
    return contents(place)


@pytest.mark.parametrize("room", [32 * MB, 40 * MB])  # with less there is not even room for the problem's table
def test_an_address_space_that_is_too_small_is_no_crash(room: int, unbroken: Any, tmp_path: Path) -> None:
    """The real thing: the system has no more memory to give, at a moment nobody has chosen."""
    status = Path("/proc") / "self" / "status"
    words = [sys.executable, "-c", CRAMPED, str(status), str(room), *LARGER, str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 5, (done.returncode, done.stderr)
    assert "memory" in done.stderr.lower() and "Traceback" not in done.stderr
    assert command("resume", tmp_path / "run") == 0
    assert contents(tmp_path / "run") == unbroken
