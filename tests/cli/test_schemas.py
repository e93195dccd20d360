"""Every verb's ``--json`` against docs/json.schema.json, docs/json.md against the schema, and every exit code."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import Call, quietly, read, rewrite
from helpers import random_table
from places import DOCS
from saddleback import save_table
from saddleback.cli import VERBS

jsonschema = pytest.importorskip("jsonschema", reason="a test tool: pip install 'saddleback[test]'")

SCHEMA = json.loads((DOCS / "json.schema.json").read_text())
PAGE = (DOCS / "json.md").read_text()


def check(name: str, data: Any) -> None:
    pointer = name.replace("~", "~0").replace("/", "~1").replace(" ", "%20")
    jsonschema.Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{pointer}"}).validate(data)


@pytest.fixture(scope="module")
def runs(stored_runs: Path) -> Path:
    return stored_runs


FORMS: dict[str, tuple[str, list[str], int]] = {
    "new": ("new", ["new", "shop"], 0),
    "zoo": ("zoo", ["zoo"], 0),
    "exact": ("exact", ["exact", "queue"], 0),
    "exact, infeasible": ("exact", ["exact", "{runs}/bad.npz"], 3),
    "exact, frontier": ("exact --frontier", ["exact", "queue", "--frontier", "--points", "3"], 0),
    "plan": ("plan", ["plan", "queue", "--epsilon", "5"], 0),
    "plan, out of reach": ("plan", ["plan", "queue", "--epsilon", "0.00001"], 4),
    "plan, infeasible": ("plan", ["plan", "{runs}/bad.npz", "--epsilon", "1"], 3),
    "solve": ("solve", ["solve", "queue", "--samples", "20000", "--check"], 0),
    "solve, linear": ("solve", ["solve", "random-linear", "--set", "states=30", "--samples", "20000"], 0),
    "solve, accuracy": ("solve", ["solve", "queue", "--epsilon", "0.001", "--max-samples", "9000"], 4),
    "solve, infeasible": ("solve", ["solve", "{runs}/bad.npz", "--samples", "60000", "--check"], 3),
    "solve, kept": ("solve", ["solve", "{runs}/good.npz", "--samples", "20000", "--out", "{tmp}/run"], 0),
    "frontier": ("frontier", ["frontier", "queue", "--points", "3", "--samples", "20000"], 0),
    "frontier, band": (
        "frontier",
        ["frontier", "queue", "--points", "3", "--samples", "20000", "--certificate-samples", "20000"],
        0,
    ),
    "sample": ("sample", ["sample", "queue", "--out", "{tmp}/s"], 0),
    "certify": ("certify", ["certify", "{runs}/named", "--seed", "7"], 0),
    "certify --recheck": ("certify --recheck", ["certify", "{runs}/named", "--recheck"], 0),
    "act": ("act", ["act", "{runs}/named", "--state", "3", "--episode-seed", "7"], 0),
    "frontier of a run": ("frontier", ["frontier", "{runs}/named", "--points", "3"], 0),
    "export": ("export", ["export", "{runs}/named", "--to", "csv", "--out", "{tmp}/p.csv"], 0),
    "export, certified": (
        "export",
        ["export", "{runs}/named", "--to", "json", "--out", "{tmp}/p.json", "--certificate-samples", "20000"],
        0,
    ),
    "report": ("report", ["report", "{runs}/named", "--out", "{tmp}/page.html"], 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_what_is_printed_fits_its_schema(
    run: Call, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name, arguments, expected = FORMS[form]
    code, out, _ = run(*(a.format(runs=runs, tmp=tmp_path) for a in arguments), "--json")
    assert code == expected
    answer = json.loads(out)
    check(name, answer)
    for field in answer:  # the schema can fail: a field more, or one of another kind
        with pytest.raises(jsonschema.ValidationError):
            check(name, {**answer, field: object()})
    with pytest.raises(jsonschema.ValidationError):
        check(name, {**answer, "no-such-field": 1})


def test_samples_are_verified_and_merged(run: Call, tmp_path: Path) -> None:
    for seed in (0, 1):
        assert run("sample", "queue", "--out", tmp_path / f"s{seed}", "--seed", seed)[0] == 0
    code, out, _ = run("sample", "queue", "--out", tmp_path / "s0", "--verify", "--json")
    assert code == 0
    check("sample --verify", json.loads(out))
    parts = ["--merge", tmp_path / "s0", "--merge", tmp_path / "s1"]
    code, out, _ = run("sample", "queue", "--out", tmp_path / "all", *parts, "--json")
    assert code == 0
    check("sample --merge", json.loads(out))


@pytest.mark.check
def test_a_resumed_run_prints_what_a_solve_prints(run: Call, tmp_path: Path) -> None:
    """Exit code 130 at the interrupt, 0 for the rest."""
    solve = ["solve", "random-linear", "--samples", "3000000", "--out", str(tmp_path / "run")]
    child = subprocess.Popen(
        [sys.executable, "-m", "saddleback", *solve], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not (tmp_path / "run.work" / "samples").exists() and child.poll() is None:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=120)
    assert child.returncode == 130 and b"saddleback resume" in err
    code, out, _ = run("resume", tmp_path / "run", "--json")
    assert code == 0
    check("solve", json.loads(out))


def test_the_other_exit_codes(run: Call, named: Path, tmp_path: Path) -> None:
    assert run("solve", "no-such-problem", "--json")[:2] == (2, "")
    assert run("solve", "queue", "--samples", "many")[0] == 2
    assert run("act", tmp_path / "nothing", "--state", 0, "--json")[:2] == (2, "")
    certificate = read(named / "certificate.json")
    forged = copy.deepcopy(certificate)
    forged["value"] = [forged["value"][0] + 0.5, forged["value"][1] + 0.5]
    rewrite(named, "certificate.json", forged)
    code, out, _ = run("certify", named, "--recheck", "--json")
    assert code == 1
    check("certify --recheck", json.loads(out))
    assert run("sample", "queue", "--out", tmp_path / "s")[0] == 0
    shard = next((tmp_path / "s" / "samples" / "samples-0").glob("*.npy"))
    shard.write_bytes(shard.read_bytes()[:-8])
    code, out, _ = run("sample", "queue", "--out", tmp_path / "s", "--verify", "--json")
    assert code == 5
    check("sample --verify", json.loads(out))


def test_a_strict_request_may_stay_undecided(run: Call, tmp_path: Path) -> None:
    tight = dataclasses.replace(random_table(1), thresholds=np.array([4.3]))
    save_table(tight, tmp_path / "tight.npz")
    code, out, _ = run("solve", tmp_path / "tight.npz", "--feasibility", "strict", "--samples", 400, "--json")
    answer = json.loads(out)
    check("solve", answer)
    assert code in (3, 4) and answer["status"] in ("infeasible", "undecided", "budget-exhausted")


def rows() -> dict[str, set[str]]:
    table = PAGE[PAGE.index("| verb |") : PAGE.index("`resume` prints")]
    found = {}
    for line in table.splitlines()[2:]:
        if line.startswith("|"):
            verb, fields = [cell.strip() for cell in line.strip("|").split("|")]
            found[verb.strip("`")] = set(re.findall(r"`(\w+)`", fields))
    return found


def test_the_page_names_every_field() -> None:
    for verb, fields in rows().items():
        assert set(SCHEMA["$defs"][verb]["properties"]) <= fields, verb
        inner = json.dumps(SCHEMA["$defs"][verb])
        for field in fields:
            assert f'"{field}"' in inner, (verb, field)
    assert {verb.split()[0] for verb in rows()} | {"resume", "check"} >= set(VERBS)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert quietly("zoo", "--json") == 0
