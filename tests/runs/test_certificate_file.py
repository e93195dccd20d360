"""certificate.json: its documented fields are its fields, and its example runs."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from helpers import random_table
from places import DOCS
from saddleback import InputError, Solution, zoo
from saddleback.certificates.certificate import SCHEMA
from saddleback.files.json_file import as_record, to_plain
from saddleback.runs.certificate_file import AboutRecord, CertificateRecord, certificate_fields
from saddleback.runs.run_folder import Origin, save_run
from spelled_out import solve

PAGE = (DOCS / "certificate.md").read_text()


def solutions() -> dict[str, Solution]:
    """One of each kind: a table, a linear problem, one whose design rests on a pool, an infeasible one, one given per step."""
    table = random_table(1)
    linear = zoo.make("random-linear", states=20, dim=3)
    hopeless = dataclasses.replace(table, thresholds=np.array([4.9]))
    pool = tuple(x[:40] for x in linear.problem.pairs())
    pooled = dataclasses.replace(linear.problem, candidates=pool)
    per_step = dataclasses.replace(table, units=("per-step",))
    return {
        "per step": solve(per_step.problem(), per_step.simulator(), samples=10_000, certificate=40_000),
        "pool": solve(pooled, linear.simulator, samples=10_000, certificate=10_000),
        "table": solve(table.problem(), table.simulator(), samples=10_000, certificate=10_000),
        "linear": solve(linear.problem, linear.simulator, samples=10_000, certificate=10_000),
        "infeasible": solve(hopeless.problem(), hopeless.simulator(), samples=20_000, certificate=20_000),
    }


SOLUTIONS = solutions()


def file_of(solution: Solution) -> dict[str, Any]:
    assert solution.certificate is not None
    about = AboutRecord("0123", "a" * 64, "b" * 64, "c" * 64)
    return json.loads(json.dumps(certificate_fields(solution.certificate, solution.problem, about)))


def fields(value: Any, name: str = "") -> set[str]:
    """Dotted names of all fields; lists of objects and of text are marked with brackets, ``assumes`` is one field."""
    if isinstance(value, dict) and name != "assumes":
        return {f for k, v in value.items() for f in fields(v, f"{name}.{k}".lstrip("."))}
    if isinstance(value, list) and value and isinstance(value[0], (dict, str)):
        return {f for entry in value for f in fields(entry, f"{name}[]")}
    return {name}


def record_fields(kind: Any, name: str = "") -> set[str]:
    """The same of a type."""
    if isinstance(kind, msgspec.inspect.UnionType):
        inner = [k for k in kind.types if isinstance(k, msgspec.inspect.StructType)]
        return record_fields(inner[0], name) if inner else {name}
    if isinstance(kind, msgspec.inspect.StructType):
        return {f for x in kind.fields for f in record_fields(x.type, f"{name}.{x.encode_name}".lstrip("."))}
    if isinstance(kind, (msgspec.inspect.ListType, msgspec.inspect.VarTupleType)):
        marked = isinstance(kind.item_type, (msgspec.inspect.StructType, msgspec.inspect.StrType))
        return record_fields(kind.item_type, f"{name}[]") if marked else {name}
    return {name}


def documented() -> list[str]:
    table = PAGE[PAGE.index("| Field |") : PAGE.index("### Intervals")]
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_every_field_is_documented_once() -> None:
    names = documented()
    assert len(names) == len(set(names)) > 50
    real = set().union(*(fields(file_of(s)) for s in SOLUTIONS.values()))
    empty = {
        "remarks",
        "contradictions",
        "by_start",
        "linearity.failures",
    } & real  # lists that happened to be empty somewhere
    assert set(names) - real <= {"remarks[]", "contradictions[]", "linearity.failures[]"}
    assert real - set(names) <= empty | {"linear", "linearity", "leverage", "averages"}  # null where there is nothing
    assert set(names) == record_fields(msgspec.inspect.type_info(CertificateRecord))


def test_the_version_is_documented() -> None:
    assert f"`{SCHEMA}`" in PAGE


@pytest.mark.parametrize("name", SOLUTIONS)
def test_real_certificates_have_the_right_shape(name: str) -> None:
    data = file_of(SOLUTIONS[name])
    record = as_record(data, CertificateRecord, "certificate.json", "look again")
    assert {k: v for k, v in json.loads(json.dumps(to_plain(record))).items() if v != data[k]} == {}


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (
            "schema",
            "saddleback-certificate/2",
            "schema` must be 'saddleback-certificate/1', got 'saddleback-certificate/2'",
        ),
        ("confidence", 1.0, "`float` < 1.0 - at `$.confidence`"),
        ("value", [3, 2], "limits must be two numbers [low, high]"),
        ("value", None, "constraints must have 0 entries"),
        ("feasible", "maybe", "'maybe' - at `$.feasible`"),
        ("samples", -1, "`int` >= 0 - at `$.samples`"),
        ("samples", True, "`int`, got `bool` - at `$.samples`"),
        ("allowance", [0.0, 0.0], "allowance must have 1 entries"),
        ("linearity", {}, "missing required field `assumed` - at `$.linearity`"),
        ("evidence", {}, "evidence.rollouts must be there"),
        ("evidence.rollouts.mean", [1.0], "evidence.rollouts.mean must have 2 entries"),
        ("evidence.rollouts.tail", [[0.0, 0.0]], "at `$.evidence.rollouts.tail`"),
        ("evidence.rollouts.tail", [[0.0], [0.0, 0.0]], "evidence.rollouts.tail must have 2 rows"),
        ("evidence.rollouts.delta_of_each", 0, "`float` > 0.0 - at `$.evidence.rollouts.delta_of_each`"),
        ("evidence.bound.sigma", [0.5, 0.6], "evidence.bound.sigma must be 2 probabilities"),
        ("problem.gamma", 1, "`float` < 1.0 - at `$.problem.gamma`"),
        ("problem.reward.scale", 0, "every scale must not be zero - at `$.problem`"),
        ("problem.extra", 0, "unknown field `extra` - at `$.problem`"),
    ],
)
def test_wrong_fields_are_named(path: str, value: Any, says: str) -> None:
    data = file_of(SOLUTIONS["table"])
    *outer, last = path.split(".")
    place = data
    for name in outer:
        place = place[name]
    place[last] = value
    with pytest.raises(InputError) as caught:
        as_record(data, CertificateRecord, "certificate.json", "look again")
    assert says in str(caught.value)


@pytest.mark.parametrize("name", ["table", "linear"])
def test_the_documented_check_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page's program finds the stated limits of the reward in a real run folder."""
    save_run(tmp_path / "run", SOLUTIONS[name], Origin("garnet"), {}, 0)
    monkeypatch.chdir(tmp_path / "run")
    found = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    exec(compile(found.group(1), "certificate.md", "exec"), {})
    numbers = [float(x) for x in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", capsys.readouterr().out)]
    assert numbers[:2] == pytest.approx(numbers[2:], abs=1e-5)
    assert numbers[:2] == pytest.approx(SOLUTIONS[name].certificate.value)  # type: ignore[union-attr]
