"""Exported policies take the actions that `saddleback act` takes: in every state of problems of the zoo, and in many of a box.

Each format is read here by a reader of its own, which knows the format and nothing of the package.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import Call, quietly, words
from saddleback import InputError, export, load_policy
from saddleback.errors import optional_package
from saddleback.features.program import OPERATIONS
from saddleback.reports.exports import BY_NAME
from saddleback.runs.stored_policy import load_stored_policy

SEEDS = (0, 7)
SAMPLES = 12_000
FINITE = {
    "queue": ["--set", "capacity=6"],
    "garnet": ["--set", "states=12"],
    "gridworld": [],
    "inventory": [],
    "maintenance": [],
    "river-swim": [],
}
Reader = Callable[[Path, Any, int, int], list[int]]
"""A file, states, the seed of an episode and the number of a step, to actions."""


def chance(seed: int, number: int) -> np.random.Generator:
    """The random numbers of an episode, as docs/policies.md has them."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(1000, number))))


def drawn(rows: Any, seed: int, step: int) -> list[int]:
    """One state after another, each with the first random number of the step."""
    u = chance(seed, 1 + step).random()
    return [int((u * np.cumsum(p)[-1] >= np.cumsum(p)).sum()) for p in rows]


def member(weights: Any, seed: int) -> int:
    return int(chance(seed, 0).choice(len(weights), p=weights))


def from_csv(file: Path, states: Any, seed: int, step: int) -> list[int]:
    with open(file, newline="") as stream:
        rows = list(csv.DictReader(stream))
    weights = {row["member"]: float(row["weight"]) for row in rows} if "member" in rows[0] else {"0": 1.0}
    mine = str(member(list(weights.values()), seed))
    table: dict[Any, list[tuple[int, float]]] = {}
    for row in (row for row in rows if row.get("member", "0") == mine):
        key = int(row["state"]) if "state" in row else tuple(float(row[x]) for x in row if x[0] == "x")
        table.setdefault(key, []).append((int(row["action"]), float(row["probability"])))
    found = []
    for s in states.tolist():
        p = np.zeros(1 + max(a for a, _ in table[s if isinstance(s, int) else tuple(s)]))
        for a, share in table[s if isinstance(s, int) else tuple(s)]:
            p[a] = share
        found += drawn([p], seed, step)
    return found


def from_json(file: Path, states: Any, seed: int, step: int) -> list[int]:
    told = json.loads(file.read_text())
    mine = told["policies"][member(told["weights"], seed)]
    if "action" in mine:
        rows = []
        for s in states.tolist():
            sure = np.eye(told["num_actions"])[mine["action"][s]]
            rows.append(np.array(mine["probabilities"].get(str(s), sure)))
        return drawn(rows, seed, step)
    features, theta = told["features"], np.append(mine["theta"], 0.0)
    known = {"x": states, **{name: np.array(rows) for name, rows in features["constants"].items()}}
    for i, (operation, *names) in enumerate(features["steps"]):
        known[f"t{i}"] = OPERATIONS[operation](*(known[name] for name in names))
    values = known[features["result"]] @ theta[np.array(features["layout"])]
    top = values.max(axis=1, keepdims=True)
    size = np.maximum(np.abs(top), np.abs(values.min(axis=1, keepdims=True)))
    assert mine["beta"] == 0
    return (values >= top - told["tie"] * size).argmax(axis=1).tolist()


def from_python(file: Path, states: Any, seed: int, step: int) -> list[int]:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if states.ndim == 1:
        return [module.act(s, seed, step) for s in states.tolist()]
    return np.asarray(module.act(states, seed, step)).tolist()  # greedy: nothing is drawn


def from_onnx(file: Path, states: Any, seed: int, step: int) -> list[int]:
    onnx = optional_package("onnx", "onnx", "this test")
    model = onnx.load(file)
    told = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    given: dict[str, Any] = {"state": states}
    names = {x.name for x in model.graph.input}
    if "member" in names:
        given["member"] = np.array([member(told["weights"], seed)])
    if "u" in names:
        given["u"] = np.full(len(states), chance(seed, 1 + step).random())
    reference = optional_package("onnx.reference", "onnx", "this test").ReferenceEvaluator(model)
    action, p = reference.run(None, given)
    assert np.allclose(p.sum(axis=1), 1.0)
    return action.tolist()


READERS: dict[str, Reader] = {"csv": from_csv, "json": from_json, "python": from_python, "onnx": from_onnx}
FORMATS = [
    form if form != "onnx" else pytest.param(form, marks=pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="the extra onnx"))
    for form in READERS
]  # fmt: skip


def acts(run: Path, which: str, states: Any, seed: int, step: int) -> list[int]:
    """What `saddleback act` does, one state after another at the same step."""
    policy = load_stored_policy(run, None, (), which)
    texts = [str(s) if isinstance(s, int) else ",".join(map(repr, s)) for s in states.tolist()]
    return [policy.actions([text], seed, step)["actions"][0]["action"] for text in texts]


def same_actions(run: Path, form: str, states: Any, out: Path, *more: Any) -> None:
    for which in ("stationary", "mixture"):
        if which == "stationary" and not (run / "stationary.npz").is_file():
            continue
        assert quietly("export", run, "--to", form, "--which", which, "--out", out, *more) == 0
        for seed in SEEDS:
            assert READERS[form](out, states, seed, 2) == acts(run, which, states, seed, 2), (run.name, form, which)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("exports")

    def made(name: str) -> Path:
        if not (folder / name).is_dir():
            options = FINITE.get(name, [])
            assert quietly("solve", name, *options, "--samples", SAMPLES, "--out", folder / name) in (0, 4, 6)
        return folder / name

    return made


def every_state(run: Path) -> Any:
    return np.arange(len(load_policy(run).members[0].table))  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_actions_in_every_state(form: str, runs: Callable[[str], Path], tmp_path: Path) -> None:
    same_actions(runs("queue"), form, every_state(runs("queue")), tmp_path / f"policy{BY_NAME[form][0]}")


@pytest.mark.check
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", [name for name in FINITE if name != "queue"])
def test_the_same_actions_on_the_zoo(name: str, form: str, runs: Callable[[str], Path], tmp_path: Path) -> None:
    same_actions(runs(name), form, every_state(runs(name)), tmp_path / f"policy{BY_NAME[form][0]}")


def points(number: int) -> Any:
    from saddleback.instances import zoo

    box: Any = zoo.make("linear-quadratic").problem.states
    return box.spread(number)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("number", [100, pytest.param(10_000, marks=pytest.mark.check)])
def test_the_same_actions_over_a_box(form: str, number: int, runs: Callable[[str], Path], tmp_path: Path) -> None:
    run, states = runs("linear-quadratic"), points(number)
    listed = tmp_path / "states.csv"
    listed.write_text("x\n" + "\n".join(",".join(map(repr, s)) for s in states.tolist()))
    same_actions(
        run, form, states, tmp_path / f"policy{BY_NAME[form][0]}", *(["--states", listed] if form == "csv" else [])
    )


def test_a_file_alone_plays(runs: Callable[[str], Path], tmp_path: Path) -> None:
    """In an interpreter that finds nothing but numpy, as a program."""
    file = export(runs("queue"), "python", tmp_path / "policy.py")
    text = f"import sys; sys.modules['saddleback'] = None; sys.argv = ['policy.py', '3', '4', '--seed', '7']\nexec(open({str(file)!r}).read())"
    done = subprocess.run([sys.executable, "-I", "-c", text], capture_output=True, text=True, check=True)
    expected = load_stored_policy(runs("queue"), None, (), "stationary").actions(["3", "4"], 7)["actions"]
    assert [line.split("action ")[1].split()[0] for line in done.stdout.splitlines()] == [
        str(r["action"]) for r in expected
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "wrong"), [("queue", "-1"), ("queue", "seven"), ("linear-quadratic", "0.1,much")])
def test_a_file_alone_refuses_what_is_no_state(
    problem: str, wrong: str, runs: Callable[[str], Path], tmp_path: Path
) -> None:
    file = export(runs(problem), "python", tmp_path / "policy.py")
    done = subprocess.run([sys.executable, file, "--", wrong], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith("error: a state must be "), done.stderr
    assert done.stderr.count("\n") == 1 and wrong in done.stderr


def test_what_it_is_worth_is_said(runs: Callable[[str], Path], run: Call, tmp_path: Path) -> None:
    """Of the mixture what is proved; of a stationary policy in its place an estimate, until it is certified itself."""
    told = {}
    for name, options in {
        "mixture": ["--which", "mixture"],
        "stationary": [],
        "certified": ["--certificate-samples", SAMPLES],
    }.items():
        code, out, _ = run("export", runs("queue"), "--to", "json", "--out", tmp_path / "p.json", *options, "--json")
        told[name] = json.loads(out)
        assert code in (0, 4, 6)
        assert json.loads((tmp_path / "p.json").read_text())["worth"] == told[name]["worth"]
    mixture, stationary, certified = (told[name]["worth"] for name in ("mixture", "stationary", "certified"))
    assert mixture["proved"] and not stationary["proved"] and certified["proved"]
    assert stationary["limits"] is None and "not proved" in told["stationary"]["says"]
    assert "The run's proof is about the mixture" in stationary["note"]
    assert certified["limits"]["reward"] == told["certified"]["certificate"]["value"]
    assert told["stationary"]["feasible"] is None
    for name, said in {
        "certified": "is proved to hold",
        "undecided": "Feasibility is open",
        "refuted": "proved to miss",
    }.items():
        for one in (told["mixture"], told["certified"]):
            assert (one["feasible"] == name) == (said in one["says"])
    assert told["mixture"]["kind"] == "mixture" and told["stationary"]["kind"] == "stationary"


def test_what_is_said_fits_a_terminal(runs: Callable[[str], Path], run: Call, tmp_path: Path) -> None:
    """The path alone is never broken: it is there to be copied."""
    place = tmp_path / "p.json"
    code, out, _ = run("export", runs("queue"), "--to", "json", "--out", place)
    first, *rest = out.splitlines()
    assert code == 0 and first.startswith(str(place))
    assert len(rest) > 1 and max(map(len, rest)) <= 80


def test_only_exports_of_ours_are_replaced(runs: Callable[[str], Path], run: Call, tmp_path: Path) -> None:
    for form, (ending, *_) in BY_NAME.items():
        if form == "onnx" and importlib.util.find_spec("onnx") is None:
            continue
        file = tmp_path / f"mine{ending}"
        file.write_text("somebody else's\n")
        code, _, err = run("export", runs("queue"), "--to", form, "--out", file)
        assert code == 2 and "which holds something else" in words(err) and file.read_text() == "somebody else's\n"
        assert run("export", runs("queue"), "--to", form, "--out", file, "--force")[0] == 0
        first = file.read_bytes()
        assert run("export", runs("queue"), "--to", form, "--out", file)[0] == 0, "ours"
        assert file.read_bytes() == first
    inside = runs("queue") / "policy.csv"
    code, _, err = run("export", runs("queue"), "--to", "csv", "--out", inside)
    assert code == 2 and "must lie outside the folders of runs" in words(err)


def test_bad_requests(runs: Callable[[str], Path], run: Call, tmp_path: Path) -> None:
    box, out = runs("linear-quadratic"), ["--out", tmp_path / "p.csv"]
    (tmp_path / "states.csv").write_text("x\n0.1\noops\n")
    (tmp_path / "far.csv").write_text("1e9\n")
    for command, said in (
        (["export", runs("queue"), "--to", "xls"], "`--to` must be one of csv, json, npz, onnx, python"),
        (["export", runs("queue"), "--to", "csv", "--which", "best", *out], "must be mixture or stationary"),
        (["export", box, "--to", "csv", "--which", "stationary", *out], "a run keeps no stationary policy"),
        (["export", box, "--to", "csv", "--states", tmp_path / "states.csv", *out], "line 3"),
        (["export", box, "--to", "csv", "--states", tmp_path / "far.csv", *out], "must lie between"),
        (["export", box, "--to", "csv", "--points", 0, *out], "`--points` must be 1 to"),
        (["export", runs("queue"), "--to", "csv", "--states", "x.csv", *out], "every state is listed"),
        (["export", runs("queue"), "--to", "csv", "--certificate-samples", -1, *out], "must not be negative"),
    ):
        code, _, err = run(*command)
        assert code == 2 and said in words(err), err
    assert not (tmp_path / "p.csv").exists()


def test_without_the_package_onnx(runs: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"must be installed for this format.*saddleback\[onnx\]"):
        export(runs("queue"), "onnx", tmp_path / "p.onnx")
    assert not (tmp_path / "p.onnx").exists()


def test_npz_with_names_is_a_policy_file(runs: Callable[[str], Path], tmp_path: Path) -> None:
    file = export(runs("queue"), "npz", tmp_path / "p.npz", which="mixture")
    back, kept = load_policy(file), load_policy(runs("queue"))
    assert [m.key() for m in back.members] == [m.key() for m in kept.members]
