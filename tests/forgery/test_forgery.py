"""Every leaf of a run changed in turn, with all hashes made to agree: what no longer follows is refused.

The leaves are those of the generated schema, so a new field fails here until a recheck covers it, or says that it does not.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import quietly
from forgery.forging import (
    ARRAYS,
    JSON,
    Change,
    Place,
    arrays_of,
    changed,
    changes_of,
    opened,
    packed,
    places,
    refused,
    schema_leaves,
    write,
)
from helpers import random_table
from saddleback import save_table
from saddleback.runs.recheck import NOT_CHECKED

# Leaves that a recheck does not look at; it says so.
FREE = {
    "run.json": {"versions{}", "target.path"},
    "solution.json": {
        "message", "remarks[]", "multipliers[]", "samples", "gap", "max_slack", "conflict[].best", "constraints[].low", "constraints[].high",
        "constraints[].in_units.low", "constraints[].in_units.high",
        "stationary.value", "stationary.constraints[]", "stationary.label",
        *(f"settings.{name}" for name in ["batches", "condition", "coreset", "design", "error", "evaluator", "iterations", "rank", "rounds[]", "solver", "solver_calls", "target[]"]),
    },
    "certificate.json": {
        "remarks[]", "contradictions[]", "seed", "evidence.bound.estimate", "evidence.fitted.values[]",
        "evidence.fitted.errors[]", "linearity.delta", "leverage.candidates", "leverage.seen", "leverage.state",
        "leverage.state[]", "leverage.action",
        *(f"averages.{name}" for name in ["first_steps", "first_rollouts", "long_run_steps[]", "long_run_rollouts", "constraints[].name"]),
        *(f"averages.constraints[].{name}.{x}" for name in ("first", "long_run") for x in ("mean", "error")),
        *(f"linearity.tests[].{name}" for name in ["name", "statistic", "limit", "meaning", "state", "state[]", "action", "z"]),
    },
    "problem.json": set(),
}  # fmt: skip

# Words of a request that bear on nothing that is stated.
FREE_REQUESTS = {"solver", "evaluator", "design", "buffers", "allocation", "iterations", "error", "batch_size"} | {
    "resolution"
}

# Changes after which every statement still follows: other limits that were kept, what is said twice, and what is the usual.
LIMITS = {"removed", "null", "a tenth more", "a tenth less", "doubled"}
SCALED = {"a tenth less", "a tenth more", "negated", "doubled", "nothing"}
HARMLESS: dict[str, set[str]] = {
    "run.json: request.samples": LIMITS,
    "run.json: request.certificate": LIMITS,
    "run.json: request.dual": {"removed"},
    "certificate.json: evidence.bound.thresholds[]": {"removed"},
    "solution.json: prices[]": {"removed"},
    "solution.json: constraints[].units": {"removed", "null"},
    "certificate.json: linearity.tests[].rigorous": {"removed"},
    "certificate.json: linear.value[]": SCALED,  # true, where the table is known, or said not to be checked
    "certificate.json: linear.constraints[][]": SCALED,
    **{f"solution.json: settings.{name}": {"removed"} for name in ("mode", "feasibility", "delta", "seed", "dual")},
}
NOWHERE = {  # leaves that none of the runs below has
    "run.json": {"problem.sources{}"},
    "solution.json": {"settings.epsilon", "settings.rounds[]", "conflict[].given[]"},
    "certificate.json": {"linearity.failures[]", "contradictions[]"},
    "problem.json": {"states.names[]", "actions[]", "minimise"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with several starts, one with features, a policy in continuous states, and a problem without any."""
    folder = tmp_path_factory.mktemp("forged")
    good = dataclasses.replace(random_table(3), thresholds=np.array([3.0]), units=("per-step",))
    save_table(good, folder / "good.npz")
    save_table(dataclasses.replace(random_table(1), thresholds=np.array([4.9])), folder / "bad.npz")
    small = ["random-linear", "--set", "states=20", "--set", "actions=3", "--set", "dim=4"]
    asked: dict[str, list[Any]] = {"table": [folder / "good.npz"], "none": [folder / "bad.npz"], "linear": small}
    for name, target in (asked | {"zoo": ["linear-quadratic"]}).items():
        samples = {"zoo": 8_000, "table": 60_000}.get(name, 30_000)
        asked_for = ["--feasibility", "relaxed", "--samples", samples]
        assert quietly("solve", *target, *asked_for, "--out", folder / name) in (0, 3)
        shutil.rmtree(folder / name / "samples")
        assert refused(folder / name) is None
    return folder


def leaves_of(run: Path, file: str, most: int) -> Iterator[tuple[Place, Any, Any]]:
    """Up to so many places of each leaf, with the file's data and the value there."""
    data, seen = json.loads((run / file).read_text()), Counter[str]()
    for place in places(data, opened=opened(file)):
        name = place.leaf if place.leaf != "request{}" else f"request.{place.path[-1]}"
        seen[name] += 1
        if seen[name] <= most and not place.leaf.startswith("seal") and place.leaf != "reason":
            value = data
            for step in place.path:
                value = value[step]
            yield place, data, value


def attempts(run: Path, file: str, most: int) -> Iterator[tuple[str, str, Any]]:
    """Leaf, change and the forged data, but for leaves that are free."""
    for place, data, value in leaves_of(run, file, most):
        if place.leaf in FREE[file] or (place.leaf == "request{}" and place.path[-1] in FREE_REQUESTS):
            continue
        for how, change in changes_of(value).items():
            name = place.leaf if place.leaf != "request{}" else f"request.{place.path[-1]}"
            if how not in HARMLESS.get(f"{file}: {name}", ()):
                yield name, how, changed(data, place.path, change)
    data = json.loads((run / file).read_text())
    if file != "solution.json":  # to which others may add
        yield "a field more", "added", {**data, "bonus": 1}


def forged(original: Path, work: Path, file: str, data: Any) -> str | None:
    """Who refuses the run with this file, hashes made to agree."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(original, work)
    write(work, file, data)
    return refused(work)


def passing(runs: Path, work: Path, names: list[str], most: int, every: int = 1) -> tuple[list[str], int]:
    """The forgeries that pass, and how many were tried."""
    found, tried = [], 0
    for name in names:
        for file in JSON:
            for i, (leaf, how, data) in enumerate(attempts(runs / name, file, most)):
                withheld = name == "zoo" and leaf == "evidence.bound.value"  # linearity is refuted: nothing rests on it
                if i % every == 0 and not withheld:
                    tried += 1
                    if forged(runs / name, work, file, data) is None:
                        found.append(f"{name}, {file}: {leaf} {how}")
    return found, tried


def test_every_leaf_of_the_schema_is_met() -> None:
    """Or is free, or stands in none of the runs: a new field must be put somewhere."""
    for file in JSON:
        known = schema_leaves(file)
        strange = (FREE[file] | NOWHERE[file]) - known - {"linearity.tests[].state[]", "leverage.state[]"}
        assert not strange, f"{file} has no such leaves: {strange}"


@pytest.mark.slow
def test_the_runs_have_every_leaf(runs: Path) -> None:
    for file in JSON:
        there = {
            place.leaf for name in ("table", "none", "linear", "zoo") for place, *_ in leaves_of(runs / name, file, 1)
        }
        missing = {leaf for leaf in schema_leaves(file) if leaf not in there and not leaf.startswith("seal")}
        assert missing <= FREE[file] | NOWHERE[file], file


def test_what_is_free_is_said() -> None:
    said = " ".join(text for texts in NOT_CHECKED.values() for text in texts)
    for leaves in FREE.values():
        for leaf in leaves:
            first, last = leaf.split(".")[0], re.sub(r"\[\]|\{\}", "", leaf.split(".")[-1])
            assert first in said and (last in said or first in ("settings", "leverage")), leaf


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table", pytest.param("linear", marks=pytest.mark.check)])
def test_forgeries_are_refused(runs: Path, tmp_path: Path, name: str) -> None:
    """A part of them: every eighth."""
    found, tried = passing(runs, tmp_path / "run", [name], 1, every=8)
    assert not found and tried > 30, found


@pytest.mark.check
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.study)])
def test_all_forgeries_are_refused(runs: Path, tmp_path: Path, every: int) -> None:
    """Every leaf, two places of each, every change, or some of them."""
    found, tried = passing(runs, tmp_path / "run", ["table", "none", "linear", "zoo"], 2, every=every)
    print(f"{tried} changes of JSON files, {len(found)} pass")
    assert not found and tried >= 300, "\n".join(found)


OPEN = "frozen", "spread", "span", "optimistic", "next_states", "noise"  # of a bound: others may prove it too
ROLLOUTS: dict[str, Change] = {
    "one larger": lambda x: _with(x, 1.0),
    "one smaller": lambda x: _with(x, -1.0),
    "negated": lambda x: -x,
    "shorter": lambda x: x[:-1] if x.ndim else np.append(x, x),
    "swapped": lambda x: x[::-1],
}


def _with(x: Any, step: float) -> Any:
    x = x.copy()
    x.reshape(-1)[0] += step
    return x


@pytest.mark.check
@pytest.mark.parametrize("name", ["table", "linear"])
def test_forged_arrays_are_refused(runs: Path, tmp_path: Path, name: str) -> None:
    """Of rollouts every array; of a bound what is not so good a choice as before still proves it, if the bound follows."""
    for file in ARRAYS:
        if not (runs / name / file).is_file():
            continue
        arrays, tried = arrays_of(runs / name / file), 0
        for array, x in arrays.items():
            missing = {k: v for k, v in arrays.items() if k != array}
            assert forged(runs / name, tmp_path / "run", file, packed(missing)) is not None, (file, array, "removed")
            for how, change in ROLLOUTS.items():
                new = change(x) if x.ndim or how not in ("swapped",) else x + 1
                # Nothing rests on the order of members, nor on that of starts with equal weights and no limits of their own.
                spare = how == "swapped" and (array == "members" or (array == "at_starts" and name == "linear"))
                spare |= array == "starts" and name == "linear"
                if spare or np.array_equal(new, x) or (file == "bound.npz" and array in OPEN):
                    continue
                tried += 1
                who = forged(runs / name, tmp_path / "run", file, packed({**arrays, array: new}))
                assert who is not None, (name, file, array, how)
        assert forged(runs / name, tmp_path / "run", file, packed({**arrays, "more": np.ones(2)})) is not None
        assert tried > 5


@pytest.mark.slow
def test_a_bound_that_its_samples_do_not_prove(runs: Path, tmp_path: Path) -> None:
    """The functions behind a bound may be any, but what they prove must be no less than what is stated."""
    arrays = arrays_of(runs / "table" / "bound.npz")
    proved = json.loads((runs / "table" / "certificate.json").read_text())["evidence"]["bound"]["value"]
    assert proved < arrays["start"] @ arrays["frozen"], "so the optimistic function proves it, not the frozen one"
    for array, step in (("optimistic", -1.0), ("frozen", 1.0)):
        moved = {**arrays, array: _with(arrays[array], step)}
        both = {**moved, "optimistic": _with(moved["optimistic"], -1.0)}
        assert "bound over all policies" in str(forged(runs / "table", tmp_path / "run", "bound.npz", packed(both)))


def test_another_policy_is_refused(runs: Path, tmp_path: Path) -> None:
    """Its hash made to agree: by its weights, or by what it is really worth."""
    arrays = arrays_of(runs / "table" / "policy.npz")
    worst = np.eye(3)[random_table(3).reward.argmin(axis=1)]
    other = {**arrays, "probabilities": np.broadcast_to(worst, arrays["probabilities"].shape)}
    assert "the truth" in str(forged(runs / "table", tmp_path / "run", "policy.npz", packed(other)))
    lighter = {**arrays, "weights": arrays["weights"][::-1]}
    assert "policy" in str(forged(runs / "table", tmp_path / "run", "policy.npz", packed(lighter)))


def test_the_forger_can_succeed(runs: Path, tmp_path: Path) -> None:
    """The negative control: without a change nothing is refused, and with a harmless one neither."""
    data = json.loads((runs / "table" / "certificate.json").read_text())
    assert forged(runs / "table", tmp_path / "run", "certificate.json", data) is None
    assert forged(runs / "table", tmp_path / "run", "certificate.json", {**data, "remarks": ["hello"]}) is None
