"""User code on the command line: what it prints, changes, closes and breaks, and that the answer does not care."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import Call
from cli.wild_code import write_problem
from saddleback.problem.phases import announced_by, phase
from saddleback.runs.verdict import ExitCode
from saddleback.solving.progress import LogLines

QUICK = ["--samples", "4000", "--json"]
PLACES = ["simulator", "reward", "features", "start", "import"]
Done = subprocess.CompletedProcess[str]

_COUNTED = (
    r"(samples to (solve|evaluate|certify)|dual iterations): [\d,]+ of [\d,]+(, [\d,]+/s, [\d,]+ s left)?"
    r"(, (gap|violation) [-+.\de]+)?"
)
_PHASE = (
    "(choosing where to sample: [\\d,]+ pairs with [\\d,]+ features|computing [\\d,]+ features of [\\d,]+ pairs|"
    "estimating what the constraints leave room for|looking for the best mixture of policies|proving what was found|"
    "drawing the trade-off for the report|writing the run folder)(, [\\d,]+ of [\\d,]+)?, [\\d,]+ s so far"
)
PROGRESS = re.compile(f"({_COUNTED}|{_PHASE})\n")
"""What a solve says every five seconds, which a busy machine gives it time for: these sentences, whole, and no others."""


def command(folder: Path, *arguments: Any, place: str = "", deed: str = "", **options: Any) -> Done:
    """The command in a process of its own, in the folder of the problem."""
    environment = os.environ | {"WILD_PLACE": place, "WILD_DEED": deed}
    words = [sys.executable, "-m", "saddleback", *map(str, arguments)]
    channels = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(words, cwd=folder, env=environment, text=True, check=False, timeout=120, **channels)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_problem(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the problem's code leads to when it behaves."""
    folder = tmp_path_factory.mktemp("tame")
    write_problem(folder)
    return command(folder, "solve", "problem.toml", *QUICK).stdout


def one_short_line(text: str) -> str:
    assert text.count("\n") == 1 and len(text) < 1000 and text[:-1].isprintable(), text[:2000]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("deed", ["print", pytest.param("change", marks=pytest.mark.check)])
@pytest.mark.parametrize("place", ["simulator", *(pytest.param(p, marks=pytest.mark.check) for p in PLACES[1:])])
def test_what_it_prints_or_changes_is_no_part_of_the_answer(folder: Path, answer: str, place: str, deed: str) -> None:
    out = ["--out", "run", "--policy", "policy.npz", "--callback", "jsonl:events.jsonl"]
    done = command(folder, "solve", "problem.toml", *QUICK, *out, place=place, deed=deed)
    assert (done.returncode, done.stdout) == (0, answer)
    assert set(PROGRESS.sub("", done.stderr).split()) == ({"NOISE"} if deed == "print" else set())
    assert {"run", "policy.npz", "events.jsonl"} <= {p.name for p in folder.iterdir()}
    assert all(p.stat().st_mode & 0o600 == 0o600 for p in folder.rglob("*"))


def test_only_lines_of_progress_are_taken_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that a display writes, and not a word of what a fault would say, nor one that stands beside them."""
    lines = LogLines(seconds=0.0)
    lines("samples to solve", 1_000, 4_000)
    time.sleep(0.01)
    lines("samples to solve", 2_000, 4_000)
    lines.notice({"event": "dual", "gap": 1.25e-7, "violation": []})
    lines("dual iterations", 3, 1_000)
    with announced_by(LogLines(seconds=0.05)), phase("proving what was found"):
        time.sleep(0.2)
    said = capsys.readouterr().err
    assert said.count("\n") >= 4 and "so far" in said and "gap" in said and PROGRESS.sub("", said) == ""
    for fault in (
        "error: samples to solve: 3 of 4\n",
        "samples to solve: 3 of 4, 1 tried again\n",
        "a warning, 5 s so far\n",
        "Traceback (most recent call last):\n",
        "NOISE",
    ):
        assert PROGRESS.sub("", said + fault + said).strip() in (fault.strip(), "error:")


@pytest.mark.check
@pytest.mark.parametrize("more", [["--workers", "2"], ["--timeout", "60"]], ids=" ".join)
def test_workers_print_to_stderr(folder: Path, answer: str, more: list[str]) -> None:
    done = command(folder, "solve", "problem.toml", *QUICK, *more, place="simulator", deed="print")
    assert (done.returncode, done.stdout) == (0, answer) and "NOISE" in done.stderr


@pytest.mark.check
def test_descriptors_that_it_closes_do_not_become_files_of_samples(folder: Path, answer: str) -> None:
    done = command(folder, "solve", "problem.toml", *QUICK, "--out", "run", place="import", deed="close")
    assert (done.returncode, done.stdout, done.stderr) == (0, answer, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "deed", ["fork", *(pytest.param(d, marks=pytest.mark.check) for d in ("fork and fail", "last word"))]
)
def test_what_it_starts_or_leaves_behind_gives_no_answer(folder: Path, answer: str, deed: str) -> None:
    """A process that it forks and that comes back as if it were ours; an exit handler that ends the process with another code."""
    done = command(folder, "solve", "problem.toml", *QUICK, place="simulator", deed=deed)
    assert (done.returncode, done.stdout, done.stderr) == (0, answer, "")


@pytest.mark.check
def test_threads_that_go_on_are_ended(folder: Path, answer: str) -> None:
    done = command(folder, "solve", "problem.toml", *QUICK, place="simulator", deed="linger")
    assert (done.returncode, done.stdout) == (0, answer) and "they were ended" in one_short_line(done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["simulator", *(pytest.param(p, marks=pytest.mark.check) for p in PLACES[1:])])
def test_an_end_without_a_word_is_no_success(folder: Path, place: str) -> None:
    """``os._exit(0)``: nothing was solved."""
    done = command(folder, "solve", "problem.toml", *QUICK, "--out", "run", place=place, deed="leave")
    text = one_short_line(done.stderr)
    assert (done.returncode, done.stdout) == (ExitCode.FAULT, "") and "ended the process by exit code 0" in text
    assert ("state 3, action 1" in text) == (place == "simulator")


@pytest.mark.check
@pytest.mark.parametrize(
    ("deed", "says"),
    [
        ("leave elsewhere", "ended the process by exit code 0"),
        ("hush", "heard all the same"),
        ("shut", "has closed files that are not its own"),
    ],
)
def test_no_answer_goes_elsewhere(folder: Path, deed: str, says: str) -> None:
    """Least of all into a file that user code has opened under the number of one of ours."""
    done = command(folder, "solve", "problem.toml", *QUICK, place="simulator", deed=deed)
    assert (done.returncode, done.stdout) == (ExitCode.FAULT, "") and says in one_short_line(done.stderr)
    assert all(p.stat().st_size == 0 for p in folder.glob("theirs-*"))


VERBS = {
    "check": ["problem.toml", "--calls", "4000"],
    "plan": ["problem.toml", "--epsilon", "3", "--samples", "4000"],
    "frontier": ["problem.toml", "--points", "2", "--samples", "4000"],
    "sample": ["problem.toml", "--out", "samples"],
    "solve": ["problem.toml", "--samples", "4000", "--out", "run"],
    "certify": ["run", "--problem", "problem.toml"],
    "act": ["run", "--problem", "problem.toml", "--state", "1", "--episode-seed", "1"],
    "report": ["run", "--problem", "problem.toml"],
    "resume": ["run", "--problem", "problem.toml"],
}


@pytest.mark.slow
def test_every_verb_prints_json_and_nothing_else(folder: Path, run: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the process of a program that calls the command line, where stdout is whatever it is."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("WILD_PLACE", "simulator")
    monkeypatch.setenv("WILD_DEED", "say")
    for verb, words in VERBS.items():
        code, out, err = run(verb, *words, "--json")
        assert code in (0, 4) and isinstance(json.loads(out), dict), (verb, out, err)
        assert "NOISE" in err or verb in ("act", "report", "resume"), verb


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "deed"),
    [
        ("simulator", "crash"),
        ("simulator", "exit"),
        *(pytest.param(p, d, marks=pytest.mark.check) for p in PLACES for d in ("exit", "interrupt", "long", "crash")),
    ],
)
def test_what_it_raises_or_breaks_is_one_short_message(folder: Path, place: str, deed: str) -> None:
    done = command(folder, "solve", "problem.toml", *QUICK, "--out", "run", place=place, deed=deed)
    text = one_short_line(done.stderr)
    assert done.stdout == "" and text.startswith("error: ")
    if deed == "crash":
        assert done.returncode == ExitCode.FAULT and "SIGSEGV" in text
        assert ("state 3, action 1" in text and "seed key (0, 5, 1, 0)" in text) == (place == "simulator")
    else:
        assert done.returncode == (ExitCode.FAULT if place == "simulator" else ExitCode.BAD_INPUT)
        assert {"exit": "SystemExit", "interrupt": "KeyboardInterrupt", "long": "\\x1b[2Jxxx"}[deed] in text
        assert ("state 3, action 1" in text) == (place not in ("start", "import"))


@pytest.mark.check
@pytest.mark.parametrize(("deed", "says"), [("hang", "did not return within"), ("stuck", "could not be interrupted")])
@pytest.mark.parametrize("place", PLACES[1:])
def test_what_hangs_here_is_ended_and_named(folder: Path, place: str, deed: str, says: str) -> None:
    """Rewards, features, samplers and modules: called in this process, and some of them deaf to its interruption."""
    done = command(folder, "solve", "problem.toml", *QUICK, "--timeout", "0.5", place=place, deed=deed)
    text = one_short_line(done.stderr)
    assert done.returncode in (ExitCode.FAULT, ExitCode.BAD_INPUT) and says in text and done.stdout == ""
    assert {"reward": "reward", "features": "features", "start": "sampler", "import": "simulator.function wild:step"}[
        place
    ].split()[-1 if deed == "stuck" else 0] in text


@pytest.mark.check
@pytest.mark.parametrize("more", [["--timeout", "1.5"], ["--workers", "2", "--timeout", "1.5"]], ids=" ".join)
@pytest.mark.parametrize("deed", ["hang", "crash"])
def test_a_pair_that_ends_its_process_is_named_before_anything_is_drawn(
    folder: Path, more: list[str], deed: str
) -> None:
    """The probes of the fingerprint are the first calls of all."""
    done = command(folder, "solve", "problem.toml", *QUICK, *more, place="simulator", deed=deed)
    text = one_short_line(done.stderr)
    assert done.returncode == ExitCode.FAULT and "its worker process" in text
    assert "at state 3, action 1, sample 0, seed key (seed, stream, pair, block) = (0, 5, 6, " in text


@pytest.mark.check
def test_check_names_what_hangs_and_survives_it(folder: Path) -> None:
    done = command(folder, "check", "problem.toml", "--timeout", "1", "--json", place="simulator", deed="hang")
    (finding,) = json.loads(done.stdout)["findings"]
    assert done.returncode == ExitCode.FAULT and (finding["state"], finding["action"]) == (3, 1)
    assert "did not return within the timeout of 1 s" in finding["message"]
    done = command(folder, "check", "problem.toml", place="simulator", deed="crash")
    price, said = done.stderr.split("\n", 1)
    assert price.startswith("check: about ") and "simulator calls" in price
    assert done.returncode == ExitCode.FAULT and "the simulator (at state 0, action 0" in one_short_line(said)


@pytest.mark.slow
def test_closed_streams(folder: Path) -> None:
    """Nobody to hear the answer is a fault; nobody to hear the rest is none."""

    def without(number: int) -> Any:
        return lambda: os.close(number)

    done = command(folder, "exact", "queue", "--json", preexec_fn=without(2))
    assert done.returncode == 0 and json.loads(done.stdout)["status"] == "solved"
    done = command(folder, "exact", "queue", "--json", preexec_fn=without(1))
    assert done.returncode == ExitCode.FAULT and "Bad file descriptor" in one_short_line(done.stderr)


@pytest.mark.check
def test_a_full_device_and_a_killed_worker(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        done = command(folder, "exact", "queue", "--json", stdout=full)
    assert done.returncode == ExitCode.FAULT and "No space left" in one_short_line(done.stderr)
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    (folder / "wild.py").write_text(program)
    done = command(folder, "solve", "problem.toml")
    assert done.returncode == -signal.SIGKILL and "SIGKILL (as when memory runs out)" in one_short_line(done.stderr)


@pytest.mark.check
@pytest.mark.parametrize("words", [["zoo", "--json"], ["solve", "--help"], ["exact", "queue", "--json"]], ids=" ".join)
def test_without_docstrings_and_asserts(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "saddleback", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stderr == ""
    assert json.loads(done.stdout) if "--json" in words else "Find a policy from simulator calls alone" in done.stdout


@pytest.mark.check
def test_names_that_are_no_text(tmp_path: Path) -> None:
    place = os.fsencode(tmp_path) + b"/r\xff\x1b[2Jn"
    solve = ["solve", "queue", "--samples", "4000", "--feasibility", "relaxed", "--out"]
    for words in (solve, ["report"], ["resume"], ["certify", "--recheck"]):
        done = subprocess.run([sys.executable, "-m", "saddleback", *words, place], capture_output=True, check=False)
        assert done.returncode == 0 and b"\x1b" not in done.stdout + done.stderr, words
