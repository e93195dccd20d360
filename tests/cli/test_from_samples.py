"""``sample --merge`` and ``solve --from``: samples that were drawn before, put together, and solved from."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback.cli import solve as verb
from saddleback.errors import InputError
from saddleback.instances.zoo import make
from saddleback.sampling.blocks import Block, BlockSource, InOrder
from saddleback.sampling.executors import Durable, Replayed
from saddleback.sampling.fingerprint import CHECK_CALLS
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving import progress


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from cli.command_line import quietly

    home = tmp_path_factory.mktemp("samples")
    for seed in (0, 5):
        assert quietly("sample", "queue", "--out", home / f"seed{seed}", "--seed", seed) == 0
    assert quietly("sample", "queue", "--out", home / "longer", "--rounds", 2) == 0
    return home


def answer(run: Any, *arguments: Any) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    return dict(json.loads(out))


def test_runs_with_other_seeds_become_one_whatever_their_order(run: Any, folders: Path, tmp_path: Path) -> None:
    a, b = folders / "seed0", folders / "seed5"
    there = answer(run, "sample", "queue", "--merge", a, "--merge", b, "--out", tmp_path / "ab")
    back = answer(run, "sample", "queue", "--merge", b, "--merge", a, "--out", tmp_path / "ba")
    again = answer(run, "sample", "queue", "--merge", b, "--merge", a, "--out", tmp_path / "ba")  # an interrupted one
    assert there["sha256"] == back["sha256"] == again["sha256"]
    assert there["seeds"] == [0, 5] and there["samples"] == sum(part["samples"] for part in there["parts"])
    assert run("sample", "queue", "--out", tmp_path / "ab", "--verify")[0] == 0


def test_runs_with_the_same_seed_are_united(run: Any, folders: Path, tmp_path: Path) -> None:
    a, longer = folders / "seed0", folders / "longer"
    found = answer(run, "sample", "queue", "--merge", a, "--merge", longer, "--out", tmp_path / "both")
    more = answer(run, "sample", "queue", "--out", tmp_path / "both", "--rounds", 2)
    assert more["drawn_now"] == 0 and more["sha256"] == found["sha256"]  # and it can be continued
    pooled = answer(
        run, "sample", "queue", "--merge", tmp_path / "both", "--merge", folders / "seed5", "--out", tmp_path / "p"
    )
    code, _, err = run("sample", "queue", "--merge", tmp_path / "p", "--merge", a, "--out", tmp_path / "q")
    assert pooled["seeds"] == [0, 5] and code == 2 and "seed 0" in err  # its samples are in the pool already


@pytest.mark.slow
def test_a_solve_from_samples_draws_only_its_certificate(run: Any, folders: Path, tmp_path: Path) -> None:
    answer(run, "sample", "queue", "--merge", folders / "longer", "--merge", folders / "seed5", "--out", tmp_path / "p")
    found = answer(run, "solve", "queue", "--from", tmp_path / "p", "--certificate-samples", 50_000, "--check")
    proof = found["certificate"]
    assert found["samples"] - proof["samples"] == 22 * 4 * 4096 * 3
    low, high = proof["value"]
    assert low <= found["exact"]["policy_value"] <= high if "policy_value" in found["exact"] else low < high
    other = answer(run, "solve", "queue", "--from", tmp_path / "p", "--set", "limit=1", "--certificate-samples", 0)
    assert other["constraints"][0]["threshold"] < found["constraints"][0]["threshold"]  # the samples do not know it


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--set", "capacity=12"], "fingerprint"),
        (["--set", "arrival=.5"], "fingerprint.simulator"),
        (["--set", "gamma=.9"], "fingerprint.gamma"),
        (["--samples", 1000], "--samples"),
        (["--epsilon", 1], "--epsilon"),
        (["--certificate-samples", -1], "--certificate-samples"),
    ],
)
def test_samples_of_something_else_are_refused(run: Any, folders: Path, arguments: list[Any], named: str) -> None:
    code, _, err = run("solve", "queue", "--from", folders / "seed0", *arguments)
    assert code == 2 and named in err and "Traceback" not in err


def test_folders_that_do_not_go_together(run: Any, folders: Path, tmp_path: Path) -> None:
    assert run("sample", "wireless", "--out", tmp_path / "w")[0] == 0
    code, _, err = run(
        "sample", "queue", "--merge", folders / "seed0", "--merge", tmp_path / "w", "--out", tmp_path / "x"
    )
    assert code == 2 and ("layout" in err or "fingerprint" in err)
    code, _, err = run("sample", "queue", "--out", folders / "seed0", "--seed", 5)
    assert code == 2 and "same seed" in err
    code, _, err = run("solve", "queue", "--from", tmp_path)
    assert code == 2 and "saddleback sample" in err
    code, _, err = run("sample", "queue", "--merge", folders / "seed0", "--out", folders / "seed0")
    assert code == 2 and "--out" in err


@pytest.mark.slow
def test_a_pool_of_parts_that_have_grown_is_another_pool(run: Any, tmp_path: Path) -> None:
    a, b, out = tmp_path / "a", tmp_path / "b", tmp_path / "pool"
    for place, seed in ((a, 0), (b, 5)):
        answer(run, "sample", "queue", "--out", place, "--seed", seed)
    merge = ["sample", "queue", "--merge", a, "--merge", b]
    first = answer(run, *merge, "--out", out)
    assert answer(run, *merge, "--out", out) == first
    answer(run, "sample", "queue", "--out", a, "--rounds", 2)
    code, _, err = run(*merge, "--out", out)
    assert code == 2 and "fingerprint.parts" in err and "choose a new folder" in err
    grown = answer(run, *merge, "--out", tmp_path / "anew")
    assert grown["samples"] == sum(part["samples"] for part in grown["parts"]) == first["samples"] * 3 // 2
    assert answer(run, "solve", "queue", "--from", out, "--certificate-samples", 0)["samples"] == first["samples"]


@pytest.mark.slow
def test_a_merge_must_be_of_the_target_and_into_a_folder_of_its_own(run: Any, folders: Path, tmp_path: Path) -> None:
    merge = ["sample", "queue", "--merge", folders / "seed0", "--merge", folders / "seed5"]
    code, _, err = run(*merge, "--set", "arrival=.5", "--out", tmp_path / "other")
    assert code == 2 and "fingerprint.simulator" in err and not (tmp_path / "other").exists()
    solved = tmp_path / "solved"
    assert run("solve", "queue", "--samples", 20_000, "--out", solved)[0] in (0, 4)
    before = sorted(solved.rglob("*"))
    code, _, err = run(*merge, "--out", solved)
    assert code == 2 and "--out" in err and "certificate.json" in err and sorted(solved.rglob("*")) == before
    united = ["sample", "queue", "--merge", folders / "seed0", "--out", tmp_path / "united"]
    answer(run, *united)
    answer(run, "sample", "queue", "--out", tmp_path / "united", "--rounds", 2)
    code, _, err = run(*united)  # it holds more than the parts by now
    assert code == 2 and "choose a new folder" in err


def test_a_request_that_was_mistyped_does_not_keep_the_right_one_out(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "samples"
    answer(run, "sample", "queue", "--out", out)
    code, _, err = run("sample", "queue", "--set", "arrival=.5", "--out", out, "--rounds", 2)
    assert code == 2 and "fingerprint.simulator" in err and not (tmp_path / "samples.work").exists()
    assert answer(run, "sample", "queue", "--out", out, "--rounds", 2)["rounds"] == 2


@pytest.mark.check
def test_every_question_to_stored_samples_has_a_certificate_of_its_own(run: Any, folders: Path, tmp_path: Path) -> None:
    """A threshold that is chosen in the light of the first certificate must not be judged by its samples."""
    ask = ["solve", "queue", "--from", folders / "seed0", "--certificate-samples", 20_000]
    first, again = answer(run, *ask), answer(run, *ask)
    assert first == again
    asked = [
        first,
        answer(run, *ask, "--set", "limit=1.4"),
        answer(run, *ask, "--delta", ".01"),
        answer(run, *ask, "--seed", 1),
        answer(run, "solve", "queue", "--from", folders / "longer", "--certificate-samples", 20_000),
    ]
    assert len({found["certificate"]["seed"] for found in asked}) == len(asked)
    answer(run, *ask, "--out", tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "run.json").read_text())
    assert stored["seed"] == first["certificate"]["seed"] and stored["request"]["seed"] == 0
    code, _, err = run(*ask, "--seed", -1)
    assert code == 2 and "`seed` must be a whole number of at least 0" in err


@pytest.mark.slow
def test_too_few_samples_for_a_certificate_are_named(run: Any, tmp_path: Path) -> None:
    answer(run, "sample", "linear-quadratic", "--out", tmp_path / "s")
    code, _, err = run("solve", "linear-quadratic", "--from", tmp_path / "s", "--certificate-samples", 1)
    assert code != 2 or "--certificate-samples" in err
    fault = verb._in_all(InputError("samples", "must be at least 4", 1, "draw more"), {"certificate": 1})
    assert fault.name == "--certificate-samples"


@pytest.mark.slow
def test_what_is_drawn_again_is_compared_in_little_memory(tmp_path: Path) -> None:
    """Of 6,400 blocks 64 are drawn again; no draw waits for it, and at most eight are asked for at a time."""
    instance, lots, alive = make("queue"), [], [0, 0]

    class Noted(InOrder):
        def run(self, function: Any, tasks: Any) -> Any:
            lots.append(len(tasks))
            for task, draw in super().run(function, tasks):
                alive[0] += 1
                alive[1] = max(alive)
                weakref.finalize(draw.next_states, lambda: alive.__setitem__(0, alive[0] - 1))
                yield task, draw
                del draw

    states, actions = instance.problem.pairs()
    blocks = BlockSource(instance.simulator, instance.problem, states, actions, 0)
    carrier = Noted()
    replayed = Replayed(carrier, Durable(tmp_path / "samples", {}, carrier))
    tasks = [Block(0, 10, number, 64) for number in range(6400)]
    before = instance.simulator.num_queries
    for _ in replayed.run(blocks.draw, tasks):
        pass
    assert lots == [6400, *[8] * 8] and alive[1] <= 8
    assert replayed.finding is None and replayed.check_calls == CHECK_CALLS + 64 * 64
    assert instance.simulator.num_queries - before == 6400 * 64  # checks are counted apart

    rng = np.random.default_rng(1)
    deaf = GenerativeModel(lambda s, a, _: instance.simulator.sample(s, a, rng).next_states, instance.problem.states)
    blocks = BlockSource(deaf, instance.problem, states, actions, 0)
    for _ in replayed.run(blocks.draw, tasks):
        pass
    assert replayed.finding is not None and "(0, 0, 10, 0)" in replayed.finding and "64 blocks" in replayed.finding


@pytest.mark.check
def test_an_interrupt_says_how_to_go_on_and_the_result_is_the_same(tmp_path: Path) -> None:
    base = [sys.executable, "-m", "saddleback"]
    request = ["sample", "garnet", "--rounds", "40", "--json"]
    whole = subprocess.run(
        [*base, *request, "--out", "whole"], cwd=tmp_path, capture_output=True, timeout=120, check=True
    )
    process = subprocess.Popen([*base, *request, "--out", "run"], cwd=tmp_path, stderr=subprocess.PIPE)
    while not any(f.stat().st_size for f in tmp_path.glob("run/samples/*/manifest.jsonl")) and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130 and "saddleback resume" in err and "Traceback" not in err, err
    done = subprocess.run(
        [*base, "resume", "run", "--json"], cwd=tmp_path, capture_output=True, timeout=120, check=True
    )
    assert json.loads(done.stdout)["sha256"] == json.loads(whole.stdout)["sha256"]
    assert json.loads(done.stdout)["drawn_now"] < json.loads(whole.stdout)["drawn_now"]  # nothing is paid for twice


def test_a_log_gets_plain_lines_with_rate_failures_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    out, clock = io.StringIO(), iter([0.0] + [i / 4 for i in range(1, 60)])
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    lines = progress.LogLines(seconds=2.0)
    for done in range(0, 1000, 100):
        lines("samples to solve", done, 1000, failures=1)
    written = out.getvalue().splitlines()
    assert 2 <= len(written) < 10  # not every time
    assert all("of 1,000" in line and "/s" in line and "s left" in line and "1 tried again" in line for line in written)


@pytest.mark.slow
def test_a_run_that_cannot_be_repeated_says_so(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A simulator that ignores its random generator: its samples are samples, but they are not kept."""
    import numpy as np

    from saddleback import zoo
    from saddleback.cli import solve as verb

    honest, rng = zoo.make("queue"), np.random.default_rng(1)
    deaf = honest.simulator.__class__(
        lambda s, a, _: honest.simulator.sample(s, a, rng).next_states, honest.problem.states
    )
    monkeypatch.setattr(verb, "load_source", lambda *_: dataclasses.replace(honest, simulator=deaf))
    code, out, _ = run("solve", "queue", "--samples", 20_000, "--json")
    assert code in (0, 4) and json.loads(out)["reproducible"] is False
    code, out, _ = run("solve", "queue", "--samples", 20_000)
    assert code in (0, 4) and "cannot be repeated" in " ".join(out.split())
    code, _, err = run("solve", "queue", "--samples", 20_000, "--out", tmp_path / "run")
    assert code == 5 and "cannot be repeated" in err


def test_absurd_numbers_are_refused_at_once(run: Any, tmp_path: Path) -> None:
    code, _, err = run("sample", "queue", "--out", tmp_path / "x", "--rounds", 10**11)
    assert code == 2 and "--rounds" in err and not (tmp_path / "x").exists()
    code, _, err = run("solve", "queue", "--delta", "1e-320")
    assert code == 2 and "delta" in err
