"""What the command line says when it reads stored files: the questions, and the part of each answer that must stay.

Used by ``fixtures/*/make_fixtures.py``, which wrote the answers down, and by ``test_yesterday.py``, which asks again. Only the
command line is asked: modules move, verbs stay. Sentences for people, file sizes, versions and seconds are left out of the
answers; they may change without a format having changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

QUEUE = ["queue", "--set", "capacity=3", "--set", "gamma=0.5", "--set", "limit=0.3"]
"""The problem of the sample stores."""

_EPISODE = ["--episode-seed", 7, "--step", 2]
_NUMBERED = ["--state", 0, "--state", 2, "--state", 1]
_POINTS = ["--state", "0.5", "--state", "-0.25", "--state", "0"]
_FILE = ["--problem", "{home}/shop.toml"]
_RELAXED = ["--feasibility", "relaxed"]  # which was the default then

RUNS: dict[str, list[Any]] = {
    "table": _NUMBERED,
    "linear": _NUMBERED,
    "continuous": _POINTS,
    "softmax": _POINTS,
    "strict": _NUMBERED,
    "infeasible": _NUMBERED,
    "literal": _NUMBERED,
    "accuracy": _NUMBERED,
    "many-actions": _NUMBERED,
    "from-samples": _NUMBERED,
    "from-table": ["--state", 0, "--state", "rain"],
    "from-problem-file": ["--state", 0, "--state", 3],
}
"""The run folders, with the states in which their policies are asked to act."""


def readings() -> dict[str, list[Any]]:
    """Every question by name, as arguments of the command line; ``{home}`` stands for the folder with the fixtures."""
    asked: dict[str, list[Any]] = {}
    for name, states in RUNS.items():
        run = f"{{home}}/{name}"
        asked[f"report {name}"] = ["report", run]
        asked[f"act {name}"] = ["act", run, *states, *_EPISODE]
        asked[f"recheck {name}"] = ["certify", run, "--recheck"]
        asked[f"certify {name}"] = ["certify", run, "--samples", 2000, *(_FILE if name == "from-problem-file" else [])]
    for name in ("samples", "pooled", "united"):
        store = f"{{home}}/{name}"
        asked[f"verify {name}"] = ["sample", *QUEUE, "--out", store, "--verify"]
        asked[f"solve from {name}"] = ["solve", *QUEUE, "--from", store, *_RELAXED, "--certificate-samples", 2000]
    asked["continue samples"] = ["sample", *QUEUE, "--out", "{home}/samples", "--rounds", 2]
    asked["act policy.npz"] = ["act", "{home}/policy.npz", *_NUMBERED, *_EPISODE]
    asked["exact weather.npz"] = ["exact", "{home}/weather.npz"]
    asked["check shop.toml"] = ["check", "{home}/shop.toml", "--calls", 4000]
    asked["resume killed-solve"] = ["resume", "{home}/killed-solve"]
    asked["resume killed-certificate"] = ["resume", "{home}/killed-certificate", *_FILE]
    asked["resume interrupted-sample"] = ["resume", "{home}/interrupted-sample"]
    return asked


_KEPT = {
    "solve": ("status", "value", "constraints", "multipliers", "samples", "check_calls", "reproducible", "certificate"),
    "certify": ("samples", "pilot", "certificate", "stored", "agrees", "checks"),
    "act": ("episode_seed", "member", "members", "weight", "actions"),
    "sample": ("samples", "drawn_now", "pairs", "rounds", "seed", "sha256", "sound", "check_calls"),
    "report": ("drawn_from",),
    "exact": ("status", "value", "constraints", "multipliers"),
    "check": ("errors", "calls"),
}
_PROOF = "confidence", "value", "constraints", "upper_bound", "gap", "feasible", "infeasible", "samples", "seed"
_CONSTRAINT = {"solve": ("name", "value", "threshold", "sense", "low", "high")}
_CONSTRAINT["exact"] = "name", "value", "threshold", "sense", "slack"
_PAGE = "columns", "confidence", "asked", "bound", "floor"


Call = Callable[[list[str]], tuple[int, str, str]]
"""Arguments of the command line to (exit code, stdout, stderr)."""


def ask(call: Call, arguments: list[Any], home: Path) -> dict[str, Any]:
    """Exit code and answer of one question to the fixtures in ``home``; a refusal is kept by the name that it gives."""
    command = [str(a).replace("{home}", str(home)) for a in arguments]
    code, out, err = call([*command, "--json"])
    if not out:
        return {"code": code, "refused": re.findall(r"error: `([^`]*)`", err)}
    return {"code": code, "said": _said(command[0], json.loads(out))}


def _said(verb: str, answer: dict[str, Any]) -> dict[str, Any]:
    if verb == "resume":
        verb = "sample" if "sha256" in answer else "solve"
    said = {name: answer[name] for name in _KEPT[verb] if name in answer}
    for name in ("certificate", "stored"):
        if said.get(name) is not None:
            said[name] = {part: said[name][part] for part in _PROOF if part in said[name]}
    if verb in ("solve", "exact"):
        said["constraints"] = [{part: row.get(part) for part in _CONSTRAINT[verb]} for row in said["constraints"]]
    if "checks" in said:
        said["checks"] = [[check["name"], check["passed"]] for check in said["checks"]]
    if verb == "report":
        said["page"] = _numbers_of(Path(answer["report"]))
    return said


def _numbers_of(page: Path) -> dict[str, Any]:
    """The numbers that a page carries for its slider."""
    found = re.search(r'id="numbers">(.*?)</script>', page.read_text(), re.DOTALL)
    numbers = json.loads(found.group(1)) if found else {}
    return {name: numbers[name] for name in _PAGE if name in numbers}


def final_files(run: Path) -> dict[str, str]:
    """SHA-256 of every file that a finished run or store holds, but for locks, which hold a process number."""
    paths = sorted(path for path in run.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def policy_arrays(path: Path) -> dict[str, Any]:
    """The numbers of a policy file, which do not depend on how it is packed."""
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name].tolist() for name in sorted(arrays.files)}


def events(trace: Path) -> dict[str, int]:
    """How often each kind of event occurs in a trace."""
    return dict(Counter(json.loads(line)["event"] for line in trace.read_text().splitlines()))
