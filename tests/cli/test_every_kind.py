"""Every verb on a problem of every kind: a problem file, a table, a DRN model, one of the zoo, and one made in Python.

What is done with a run is done from another folder than the one it was made in. The quick form calls the command line in this
process, the slow one starts a process a verb.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.command_line import quietly, read, words
from cli.first_projects import write
from helpers import random_table
from saddleback import CMDP, load_policy, resume, save_table, solve
from saddleback.cli import solve as solve_verb
from saddleback.runs.run_folder import load_run
from saddleback.simulators import write_drn

SAMPLES = 4_000
DRN = ["--set", "gamma=0.8", "--set", "reward=profit", "--set", "constraint-0=>= 2"]
MADE = '''\
"""Two machines, a problem with names of its own."""
from saddleback import CMDP, Constraint


def step(state, action, rng):
    worn = state == "worn"
    if action == "repair":
        return "new"
    return "worn" if worn or rng.random() < 0.3 else "new"


def make():
    problem = CMDP(
        gamma=0.8,
        start="new",
        states=["new", "worn"],
        actions=["run", "repair"],
        reward=lambda state, action: float(state == "new" and action == "run"),
        reward_range=(0.0, 1.0),
        constraints=[Constraint("repairs", lambda s, a: float(a == "repair"), "<=", 0.4, (0.0, 1.0), "per-step")],
        name="machines",
    )
    return problem, step
'''


class Kind(NamedTuple):
    """The words of a target, and what `exact` says of it."""

    target: list[str]
    exact: int


def prepared(kind: str, home: Path) -> Kind:
    """The files of a problem of this kind in a folder."""
    if kind == "toml":
        return Kind([write(home, "step").name], 2)  # its simulator is code
    if kind == "npz":
        save_table(random_table(1), home / "table.npz")
        return Kind(["table.npz"], 0)
    if kind == "drn":
        write_drn(random_table(1), home / "model.drn", reward="profit")
        return Kind(["model.drn", *DRN], 0)
    if kind == "zoo":
        return Kind(["queue", "--set", "capacity=3"], 0)
    (home / "machines.py").write_text(MADE)
    return Kind([], 2)


KINDS = ("toml", "npz", "drn", "zoo", "python")
Start = Callable[..., int]


def walk(kind: str, home: Path, start: Start) -> None:
    """All verbs in the order in which a user meets them; ``start(folder, *words)`` runs one."""
    asked, away = prepared(kind, home), home / "elsewhere"
    away.mkdir()
    target, code = asked.target, []
    if target:
        assert start(home, "check", *target, "--calls", 4_000) == 0
        assert start(home, "plan", *target, "--epsilon", 3, "--samples", 2_000) in (0, 4)
        assert start(home, "exact", *target) == asked.exact
        assert start(home, "frontier", *target, "--samples", SAMPLES, "--points", 3) == 0
        assert start(home, "solve", *target, "--samples", SAMPLES, "--out", "run") in (0, 4, 6)
    else:
        program = "import saddleback, machines; saddleback.solve(*machines.make(), samples=4000, out='run')"
        done = subprocess.run([sys.executable, "-c", program], cwd=home, check=False, env=dict(os.environ))
        assert done.returncode == 0
        code = ["--problem", home / "machines.py:make"]
    run = home / "run"
    assert start(away, "report", run) == 0
    assert start(away, "frontier", run, "--points", 3) == 0
    assert start(away, "act", run, "--state", 0, "--episode-seed", 3) == 0
    for form in ("csv", "json", "npz", "python"):
        assert start(away, "export", run, "--to", form) == 0
        assert start(away, "export", run, "--to", form, "--which", "mixture", "--out", away / f"mixture.{form}") == 0
    assert start(away, "certify", run, "--recheck") == 0
    if code:
        assert start(away, "certify", run, "--samples", SAMPLES) == 2, "the message names --problem FILE.py:NAME"
    assert start(away, "certify", run, "--samples", SAMPLES, *code) in (0, 4, 6)
    assert start(away, "export", run, "--to", "csv", "--certificate-samples", SAMPLES, *code) in (0, 4, 6)
    assert start(away, "resume", run) in (0, 4, 6)


def in_process(monkeypatch: pytest.MonkeyPatch) -> Start:
    def start(folder: Path, *words: Any) -> int:
        monkeypatch.chdir(folder)
        return quietly(*words)

    return start


def in_a_new_process(folder: Path, *words: Any) -> int:
    command = [sys.executable, "-m", "saddleback", *map(str, words)]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert "Traceback" not in done.stderr and done.returncode != 70, done.stderr
    return done.returncode


@pytest.mark.parametrize("kind", ["toml", *(pytest.param(k, marks=pytest.mark.slow) for k in KINDS if k != "toml")])
def test_every_verb(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk(kind, tmp_path, in_process(monkeypatch))


@pytest.mark.check
@pytest.mark.parametrize("kind", KINDS)
def test_every_verb_in_a_new_process(kind: str, tmp_path: Path) -> None:
    walk(kind, tmp_path, in_a_new_process)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["toml", *(pytest.param(k, marks=pytest.mark.slow) for k in ("npz", "drn", "zoo"))])
def test_the_hint_after_an_interrupt_works_as_printed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder with a blank in its name, carried out from another one."""
    home = tmp_path / "my work"
    home.mkdir()
    asked, start = prepared(kind, home), in_process(monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(solve_verb, "carry_out", _interrupted)
        assert start(home, "solve", *asked.target, "--samples", SAMPLES, "--out", "run") == 130
    said = words(capsys.readouterr().err)
    command = shlex.split(said.partition("Go on with: ")[2])
    assert command[:2] == ["saddleback", "resume"]
    assert start(tmp_path, *command[1:], "--json") in (0, 4, 6)
    assert json.loads(capsys.readouterr().out)["samples"] > 0 and (home / "run" / "run.json").is_file()


def _interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def machines() -> tuple[CMDP, Any]:
    space: dict[str, Any] = {}
    exec(MADE, space)
    made: tuple[CMDP, Any] = space["make"]()
    return made


@pytest.mark.slow
def test_the_hint_after_an_interrupt_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways that it names: a call in Python, and a command."""
    (tmp_path / "machines.py").write_text(MADE)
    problem, simulator = machines()
    for name in ("one", "two"):
        with monkeypatch.context() as patched:
            patched.setattr("saddleback.solving.solve.carry_out", _interrupted)
            with pytest.raises(KeyboardInterrupt) as stopped:
                solve(problem, simulator, samples=SAMPLES, out=tmp_path / name)
        (said,) = stopped.value.__notes__
        call, command = said.partition("Go on with: ")[2].split(", or with: ")
        if name == "one":
            assert call == f"saddleback.resume({str(tmp_path / 'one')!r}, problem, simulator)"
            resume(tmp_path / "one", problem, simulator)
        else:
            typed = shlex.split(
                command.partition(", where")[0].replace("FILE.py:NAME", str(tmp_path / "machines.py:make"))
            )
            assert quietly(*typed[1:]) in (0, 4, 6)
    one, two = (read(tmp_path / name / "solution.json") for name in ("one", "two"))
    assert one == two, "either way the same"


@pytest.mark.slow
def test_a_table_in_memory_is_kept(tmp_path: Path) -> None:
    """A run made in Python from a table needs no code to be certified; one with other limits is not taken for it."""
    table = random_table(1)
    solve(table.problem(), table.simulator(), samples=SAMPLES, out=tmp_path / "run")
    assert quietly("certify", tmp_path / "run", "--samples", SAMPLES) in (0, 4, 6)
    assert quietly("certify", tmp_path / "run", "--recheck") == 0
    other = random_table(1, gamma=0.7).problem()
    solve(other, table.simulator(), samples=SAMPLES, out=tmp_path / "other")
    assert load_run(tmp_path / "run").table is not None and load_run(tmp_path / "other").table is None


@pytest.mark.slow
def test_a_problem_made_in_python_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problem, simulator = machines()
    solve(problem, simulator, samples=SAMPLES, out=tmp_path / "run")
    (tmp_path / "machines.py").write_text(MADE)
    (tmp_path / "other.py").write_text(MADE.replace('"per-step"', '"discounted"'))
    (tmp_path / "bad.py").write_text("value = 3\ndef broken(): raise OSError('tired')\ndef nothing(): return 3\n")
    for given, said in {
        "nowhere.py:make": "must name an existing file",
        "machines.py": "must name a function in a Python file",
        "machines.py:absent": "there is no absent",
        "bad.py:broken": "tired",
        "bad.py:nothing": "must return a CMDP and a simulator",
        "other.py:make": "describe the problem as it was",
    }.items():
        assert quietly("certify", tmp_path / "run", "--problem", tmp_path / given) == 2
        assert said in words(capsys.readouterr().err)


@pytest.mark.slow
def test_names_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solve(*machines(), samples=SAMPLES, out=tmp_path / "run")
    assert quietly("act", tmp_path / "run", "--state", "worn", "--state", "new", "--episode-seed", 1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("step 1, state new: action 0 (run)")
    assert quietly("act", tmp_path / "run", "--state", "worn", "--which", "stationary", "--json") == 0
    row = json.loads(capsys.readouterr().out)["actions"][0]
    assert row["state"] == 1 and row["action_name"] in ("run", "repair")
    assert quietly("report", tmp_path / "run") == 0
    page = (tmp_path / "run.html").read_text()
    assert "repair" in page and "worn" in page


BOX = """\
gamma = 0.9
states = {low = [0.0], high = [1.0]}
actions = ["left", "right"]
start = {states = [[0.5]], weights = [1.0]}
[simulator]
function = "line:step"
kind = "batch"
[reward]
values = "line:reward"
kind = "batch"
range = [0, 1]
[[constraints]]
name = "effort"
values = "line:effort"
kind = "batch"
range = [0, 1]
limit = "<= 6"
units = "discounted"
[features]
"""
LINE = """\
import numpy as np
def step(x, a, rng):
    return np.clip(x + 0.2 * (2 * a[:, None] - 1) * rng.random((len(x), 1)), 0, 1)
def reward(x, a):
    return x[:, 0].copy()
def effort(x, a):
    return a.astype(float)
def phi(x, a):
    one = np.column_stack([np.ones(len(x)), x[:, 0]])
    return np.hstack([one * (a == 0)[:, None], one * (a == 1)[:, None]])
"""
NAMED, CODED = 'name = "radial-basis"\ngrid = 4\n', 'function = "line:phi"\ndim = 4\nkind = "batch"\n'


@pytest.mark.slow
def test_features_with_a_name_need_no_code_and_others_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "line.py").write_text(LINE)
    for name, features in (("named", NAMED), ("coded", CODED)):
        (tmp_path / f"{name}.toml").write_text(BOX + features)
        out = tmp_path / name
        assert quietly("solve", tmp_path / f"{name}.toml", "--samples", SAMPLES, "--out", out) in (0, 4, 6)
    before = {}
    for name in ("named", "coded"):
        assert quietly("act", tmp_path / name, "--state", "0.3", "--episode-seed", 4, "--json") == 0
        capsys.readouterr()
        assert quietly("act", tmp_path / name, "--state", "0.7", "--episode-seed", 4, "--json") == 0
        before[name] = json.loads(capsys.readouterr().out)["actions"]
    (tmp_path / "line.py").unlink()
    (tmp_path / "named.toml").unlink()
    assert quietly("act", tmp_path / "named", "--state", "0.7", "--episode-seed", 4, "--json") == 0
    assert json.loads(capsys.readouterr().out)["actions"] == before["named"]
    assert load_policy(tmp_path / "named").predict([0.7])[0] in (0, 1)
    assert quietly("export", tmp_path / "named", "--to", "python") == 0
    assert quietly("report", tmp_path / "named") == 0 and quietly("report", tmp_path / "coded") == 0
    assert "features are code" in (tmp_path / "coded.html").read_text()
    capsys.readouterr()
    (tmp_path / "coded.toml").unlink()
    assert quietly("act", tmp_path / "coded", "--state", "0.7") == 2
    assert "--problem` must be given" in words(capsys.readouterr().err)
