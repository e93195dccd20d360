"""Policies as csv, json and npz.

A csv file has a row for each action that a state may get, with its probability: one row a state where the policy decides. Those of a
mixture begin with the member and its weight.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from saddleback.files.disk import written_whole
from saddleback.files.json_file import to_plain
from saddleback.problem.numerics import TIE
from saddleback.problem.policy_file import save_policy
from saddleback.problem.spaces import Array
from saddleback.reports.exports.policy import ExportedPolicy, Points
from saddleback.runs.problem_record import FeaturesRecord

JSON_START = b'{"format": "saddleback-policy/1"'
_PIECE = 4096  # states at a time
_LAST = ["action", "action_name", "probability"]


def write_csv(policy: ExportedPolicy, place: Path, points: Points) -> None:
    """The rows of every state, or of those of a box that were asked for."""
    states, mixture = policy.points(points), policy.mixture
    finite = policy.problem.num_states is not None
    names = policy.problem.state_names
    first = ["member", "weight"] if policy.kind == "mixture" else []
    where = ["state", "state_name"] if finite else [f"x{j}" for j in range(states.shape[1])]
    with written_whole(place) as file:
        _write_rows(file, [[*first, *where, *_LAST]])
        for k, (member, weight) in enumerate(zip(mixture.members, mixture.weights.tolist(), strict=True)):
            head = [k, weight] if first else []
            for start in range(0, len(states), _PIECE):
                piece = states[start : start + _PIECE]
                said = [[s, names[s] if names else str(s)] for s in piece.tolist()] if finite else piece.tolist()
                _write_rows(file, _rows(policy, head, said, member.probabilities(piece)))


def _rows(policy: ExportedPolicy, head: list[Any], said: list[Any], p: Array) -> Iterator[list[Any]]:
    words = policy.action_names
    for i, a in np.argwhere(p > 0).tolist():
        yield [*head, *said[i], a, words[a], float(p[i, a])]


def _write_rows(file: Any, rows: Any) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.write(text.getvalue().encode())


def is_csv(path: Path) -> bool:
    """Whether a file begins as ours do, or is empty."""
    with open(path, encoding="utf-8", errors="replace") as file:
        line = file.readline(10_000)
    return not line or line.rstrip("\n").endswith(",".join(["", *_LAST]))


def write_json(policy: ExportedPolicy, place: Path, points: Points) -> None:
    """One object; docs/policies.md says what its fields are."""
    problem = policy.problem
    data: dict[str, Any] = {
        "format": "saddleback-policy/1",
        **policy.to_json(),
        "num_actions": problem.num_actions,
        "actions": policy.action_names,
        "weights": policy.mixture.weights.tolist(),
    }
    if policy.tabular:
        data["states"] = {"number": problem.num_states, "names": problem.state_names}
        data["policies"] = [choices(table) for table in policy.tables]
    else:
        theta, beta = policy.thetas
        data["states"] = {"coordinates": policy.problem.start.states.shape[1]}
        data["policies"] = [{"theta": t.tolist(), "beta": b} for t, b in zip(theta, beta.tolist(), strict=True)]
        data |= {"features": to_plain(FeaturesRecord.of(policy.program)), "tie": TIE}
    with written_whole(place) as file:
        file.write(json.dumps(data, allow_nan=False).encode() + b"\n")


def choices(table: Array) -> dict[str, Any]:
    """A table of probabilities as one action a state, and the probabilities of states where there is a choice."""
    sure = table.max(axis=1) == 1.0
    rows = {str(s): table[s].tolist() for s in np.flatnonzero(~sure).tolist()}
    return {"action": table.argmax(axis=1).tolist(), "probabilities": rows}


def write_npz(policy: ExportedPolicy, place: Path, points: Points) -> None:
    """The arrays of a policy file, and names."""
    save_policy(policy.mixture, policy.problem, place, names=True)
