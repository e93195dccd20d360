"""Callbacks: what they are told, that they change nothing, and that each writer's files can be read again."""

from __future__ import annotations

import dataclasses
import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from places import DOCS
from saddleback import cli, zoo
from saddleback.errors import InputError
from saddleback.reports.listeners import BY_NAME, JSONLines, MLflow, TensorBoard, make, scalars
from saddleback.runs.run_folder import load_run
from saddleback.solving.progress import LogLines
from saddleback.solving.solution import Solution
from spelled_out import solve


def told(**options: Any) -> tuple[Solution, list[dict[str, Any]]]:
    instance, events = zoo.make("queue"), list[dict[str, Any]]()
    options = {"samples": 20_000, "certificate": 10_000, "seed": 3, **options}
    return solve(instance.problem, instance.simulator, callbacks=[events.append], **options), events


def of(kind: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [e for e in events if e["event"] == kind]


def test_what_is_told_is_what_is_answered() -> None:
    solution, events = told()
    kinds = [e["event"] for e in events]
    assert kinds[0] == "samples" and kinds[-2:] == ["certificate", "finished"]
    assert solution.trace is not None and solution.certificate is not None
    dual = of("dual", events)
    assert [e["iteration"] for e in dual] == list(range(1, 1 + len(solution.trace.values)))
    for event, multipliers, values in zip(dual, solution.trace.multipliers, solution.trace.values, strict=True):
        assert event["value"] == values[0] and event["constraints"] == values[1:].tolist()
        shown = multipliers.tolist() if np.all(np.isfinite(multipliers)) else None
        assert event["multipliers"] == shown
        (row,) = solution.constraints
        missed = values[1] - row.threshold if row.sense == "<=" else row.threshold - values[1]
        assert event["violation"] == [max(0.0, missed)]
    assert dual[-1]["gap"] == solution.gap
    proof = solution.certificate.to_json()
    assert {k: proof[k] for k in ("gap", "upper_bound", "feasible")}.items() <= of("certificate", events)[0].items()
    assert events[0]["drawn"] + proof["samples"] == solution.samples == events[-1]["samples"]
    assert (events[-1]["status"], events[-1]["value"]) == (solution.status.value, solution.value)
    json.dumps(events, allow_nan=False)


def test_projected_descent_has_no_gap() -> None:
    solution, events = told(mode="literal", iterations=25, certificate=0)
    dual = of("dual", events)
    assert len(dual) == 25 and {e["gap"] for e in dual} == {None}
    assert dual[0]["multipliers"] == [0.0]
    assert of("certificate", events) == [] and events[-1]["event"] == "finished" and solution.certificate is None


@pytest.mark.slow
def test_an_accuracy_is_told_round_by_round() -> None:
    instance, events = zoo.make("random-linear", states=30), list[dict[str, Any]]()
    solution = solve(instance.problem, instance.simulator, epsilon=1.5, seed=0, callbacks=[events.append])
    rounds = of("round", events)
    assert [e["round"] for e in rounds] == list(range(1, 1 + len(solution.settings["rounds"])))
    assert rounds[-1]["proved"] and rounds[-1]["error"] <= 1.5 == rounds[-1]["wanted"]
    spent = [e["samples"] for e in rounds]
    assert spent == sorted(spent) and spent[-1] == solution.samples
    assert len(of("samples", events)) == len(rounds)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"feasibility": "strict"}, {"mode": "literal", "iterations": 20}])
def test_callbacks_change_nothing(options: dict[str, Any], tmp_path: Path) -> None:
    instance = zoo.make("queue")
    common: dict[str, Any] = {"samples": 20_000, "certificate": 10_000, "seed": 1, **options}
    alone = solve(instance.problem, instance.simulator, **common)
    watched = solve(
        zoo.make("queue").problem, zoo.make("queue").simulator, callbacks=[JSONLines(tmp_path / "t")], **common
    )
    assert json.dumps(alone.to_json()) == json.dumps(watched.to_json())
    assert alone.mixture is not None and watched.mixture is not None
    assert [m.key() for m in alone.mixture.members] == [m.key() for m in watched.mixture.members]
    other = dataclasses.replace(watched, value=-1.0)
    assert json.dumps(alone.to_json()) != json.dumps(other.to_json())


@pytest.mark.slow
def test_the_trace_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        _, events = told()
        lines = JSONLines(tmp_path / name)
        for event in events:
            lines(event)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    again = [json.loads(line) for line in (tmp_path / "a").read_text().splitlines()]
    assert again == events
    JSONLines(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b""  # begun anew


def test_numbers_have_names() -> None:
    event = {
        "event": "dual",
        "iteration": 3,
        "multipliers": [1.5, 2.0],
        "gap": None,
        "value": 4,
        "proved": True,
        "x": "y",
    }
    assert dict(scalars(event)) == {"dual/multipliers/0": 1.5, "dual/multipliers/1": 2.0, "dual/value": 4.0}


def records(file: Path) -> list[bytes]:
    """The framing of event files: length, its checksum, content, its checksum."""
    from tensorboardX.crc32c import crc32c

    def masked(data: bytes) -> int:
        crc = crc32c(data)
        return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF

    data, out = file.read_bytes(), []
    while data:
        (size,), (check,) = struct.unpack("<Q", data[:8]), struct.unpack("<I", data[8:12])
        content = data[12 : 12 + size]
        assert check == masked(data[:8])
        assert struct.unpack("<I", data[12 + size : 16 + size]) == (masked(content),)
        out.append(content)
        data = data[16 + size :]
    return out


def test_tensorboard_files_hold_the_curves(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="an extra: pip install 'saddleback[tensorboard]'")
    from tensorboardX.proto.event_pb2 import Event

    _, events = told()
    writer = TensorBoard(tmp_path / "logs")
    for event in events:
        writer(event)
    (file,) = (tmp_path / "logs").iterdir()
    curves: dict[str, list[tuple[int, float]]] = {}
    for content in records(file):
        event = Event.FromString(content)
        for value in event.summary.value:
            curves.setdefault(value.tag, []).append((event.step, value.simple_value))
    gaps = [(i, e["gap"]) for i, e in enumerate(of("dual", events), 1) if e["gap"] is not None]
    assert gaps and [step for step, _ in curves["dual/gap"]] == [i for i, _ in gaps]
    np.testing.assert_allclose(
        [v for _, v in curves["dual/gap"]], [g for _, g in gaps], rtol=1e-6
    )  # float32 in the file
    assert curves["finished/samples"] == [(1, events[-1]["samples"])]
    assert "certificate/constraints/0" not in curves  # limits are pairs, not numbers


def test_mlflow_runs_hold_the_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a folder will do here; a database needs another package
    pytest.importorskip("mlflow", reason="an extra: pip install 'saddleback[mlflow]'")
    from mlflow.tracking import MlflowClient

    _, events = told()
    writer = MLflow(str(tmp_path / "runs"))
    for event in events:
        writer(event)
    client = MlflowClient(tracking_uri=str(tmp_path / "runs"))
    values = [(m.step, m.value) for m in client.get_metric_history(writer.run_id, "dual/value")]
    assert values == [(i, e["value"]) for i, e in enumerate(of("dual", events), 1)]
    run = client.get_run(writer.run_id)
    assert run.info.status == "FINISHED" and run.data.tags["status"] == events[-1]["status"]
    assert MLflow(str(tmp_path / "runs")).run_id != writer.run_id  # the same experiment, another run


def test_a_store_that_mlflow_does_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="an extra: pip install 'saddleback[mlflow]'")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "false")
    with pytest.raises(InputError, match="must open its tracking store"):
        MLflow(str(tmp_path / "other"))


def test_by_name(tmp_path: Path) -> None:
    line = make(f"jsonl:{tmp_path / 'trace.jsonl'}")
    line({"event": "samples", "drawn": 3})
    assert (tmp_path / "trace.jsonl").read_text() == '{"event": "samples", "drawn": 3}\n'
    for text in ("jsonl", "jsonl:", "magic:x", ""):
        with pytest.raises(InputError, match="name:place, the name one of jsonl, tensorboard, mlflow"):
            make(text)


@pytest.mark.parametrize(("name", "module"), [("tensorboard", "tensorboardX"), ("mlflow", "mlflow")])
def test_an_extra_that_is_missing_is_named(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for known in [m for m in sys.modules if m.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=rf'pip install "saddleback\[{name}\]"'):
        BY_NAME[name]("place")


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="existing folder"):
        JSONLines(tmp_path / "no" / "t.jsonl")
    with pytest.raises(InputError, match="must be a plain file"):
        JSONLines(tmp_path)


@pytest.mark.slow
def test_the_command_line_keeps_the_trace_and_tells_others(tmp_path: Path) -> None:
    """The same lines in the run and in a file that was asked for, and the run is whole with them."""
    for name in ("one", "two"):
        options = ["--samples", "20000", "--out", str(tmp_path / name), "--callback", f"jsonl:{tmp_path / name}.jsonl"]
        with pytest.raises(SystemExit) as ended:
            cli.main(["solve", "queue", *options, "--json"])
        assert ended.value.code == 0
    trace = (tmp_path / "one" / "trace.jsonl").read_bytes()
    assert trace == (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two" / "trace.jsonl").read_bytes()
    events = [json.loads(line) for line in trace.splitlines()]
    assert events[-1]["event"] == "finished" and {"samples", "dual", "certificate"} <= {e["event"] for e in events}
    assert "trace.jsonl" in json.loads((tmp_path / "one" / "run.json").read_text())["files"]
    (tmp_path / "one" / "trace.jsonl").write_bytes(trace + b" ")
    with pytest.raises(InputError, match=r"trace\.jsonl"):
        load_run(tmp_path / "one")


def test_a_wrong_callback_is_refused_before_anything_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["solve", "queue", "--out", str(tmp_path / "run"), "--callback", "magic"])
    assert ended.value.code == 2 and "name:place" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_log_tells_gap_and_bound(capsys: pytest.CaptureFixture[str]) -> None:
    lines = LogLines(seconds=0.0)
    lines.notice({"event": "dual", "gap": 0.25, "violation": [0.0]})
    lines("dual iterations", 3, 15)
    lines.notice({"event": "dual", "gap": None, "violation": [0.5, 2.0]})
    lines("dual iterations", 4, 15)
    lines.notice({"event": "round", "error": 0.75, "proved": True, "wanted": 0.5})
    lines("round 2: samples", 10, 100)
    lines.notice({"event": "round", "error": None, "proved": False, "wanted": 0.5})
    lines("round 3: samples", 20, 100)
    lines.notice({"event": "samples", "drawn": 7})
    lines("samples to solve", 5, 10)
    said = capsys.readouterr().err.splitlines()
    assert [line.split(", ")[-1] for line in said[:2]] == ["gap 0.25", "violation 2"]
    assert said[2].endswith("error 0.75 proved, 0.5 wanted") and said[3].endswith("no bound yet, 0.5 wanted")
    assert said[4].startswith("samples to solve: 5 of 10") and "gap" not in said[4]


def test_the_page_has_every_listener_and_field() -> None:
    page = (DOCS / "callbacks.md").read_text()
    for name in BY_NAME:
        assert f"`{name}:" in page
    _, events = told()
    for event in events:  # every field is on the page
        row = next(line for line in page.splitlines() if line.startswith(f"| `{event['event']}`"))
        assert all(f"`{field}`" in row for field in event if field != "event"), event
