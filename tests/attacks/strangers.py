"""Item 16: proofs of strangers, forged with all hashes in order."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attacks.programs import QUEUE, Attack, Tree
from forgery.forging import arrays_of, packed, write

# Relaxed, with enough samples for a bound over all policies, which can be forged too.
KEPT = ["solve", *QUEUE, "--feasibility", "relaxed", "--samples", "40000"]
Forgery = Callable[[dict[str, Any], dict[str, Any]], None]


def _forged(forge: Forgery) -> Attack:
    """The forger changes the certificate and the arrays of the rollouts; a recheck must not find that all follows."""

    def attack(tree: Tree, folder: Path) -> None:
        run = tree.kept(folder, *KEPT)
        told, arrays = json.loads((run / "certificate.json").read_text()), arrays_of(run / "rollouts.npz")
        forge(told, arrays)
        write(run, "certificate.json", told)
        write(run, "rollouts.npz", packed(arrays))
        done = tree.run(folder, "certify", "run", "--recheck")
        assert done.code in (1, 2), f"exit code {done.code}: the forgery was accepted"

    return attack


def _least_mean(y: Any, delta: float) -> float:
    """The lower limit by betting (docs/certificate.md) of values in [0, 1]."""
    n, need, total, squares = len(y), math.log(1 / delta), 0.5, 0.01
    stakes = np.empty(n)
    for i, x in enumerate(y.tolist()):
        stakes[i] = math.sqrt(2 * need / (n * max(squares / (i + 1), 1e-12)))
        total += x
        squares += (x - total / (i + 2)) ** 2
    low, high = 0.0, 1.0
    for _ in range(40):
        mean = (low + high) / 2
        growth = np.log(1 + np.minimum(stakes, 0.75 / mean) * (y - mean))
        low, high = (mean, high) if float(growth.cumsum().max()) >= need else (low, mean)
    return low


def _restate(told: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Limits, verdict and gap as they follow from level, range and tail: what a forger does last."""
    H, delta = told["problem"]["horizon"], told["evidence"]["rollouts"]["delta_of_each"] / 2
    rows, found = [told["problem"]["reward"], *told["problem"]["constraints"]], []
    for j, row in enumerate(rows):
        low, span = arrays["low"][j], arrays["high"][j] - arrays["low"][j]
        y = np.clip((arrays["values"][:, j] - low) / span, 0.0, 1.0)
        ends = np.array([_least_mean(y, delta), 1 - _least_mean(1 - y, delta)])
        ends = np.clip(low + span * ends + arrays["tail"][:, j], 0.0, H)
        found.append(sorted((ends * row["scale"] + row["base"] * H).tolist()))
    told["value"], told["constraints"] = found[0], found[1:]
    told["gap"] = max(0.0, told["upper_bound"] - found[0][0])
    limit = rows[1]["threshold"]
    low, high = found[1]
    told["feasible"] = "certified" if high <= limit else "refuted" if low > limit else "undecided"


def _levels(told: dict[str, Any], arrays: dict[str, Any]) -> None:
    told["evidence"]["rollouts"]["delta_of_each"] = 0.9
    told["evidence"]["bound"]["delta"] = -1.85
    _restate(told, arrays)


def _allowance(told: dict[str, Any], arrays: dict[str, Any]) -> None:
    told |= {"allowance": [5.0], "feasible": "certified"}


def _tail(told: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["tail"] = np.abs(arrays["tail"]) + 1e-3
    told["evidence"]["rollouts"]["tail"] = arrays["tail"].tolist()
    _restate(told, arrays)


def _range(told: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["low"], arrays["high"] = arrays["values"].min(axis=0), arrays["values"].max(axis=0)
    for name in ("low", "high"):
        told["evidence"]["rollouts"][name] = arrays[name].tolist()
    _restate(told, arrays)


def _by_start(told: dict[str, Any], arrays: dict[str, Any]) -> None:
    low, high = told["value"]
    near = [low + 0.49 * (high - low), low + 0.51 * (high - low)]
    told["by_start"] = [{"state": 0, "weight": 1.0, "rollouts": 40, "value": near, "constraints": told["constraints"]}]


def _linear(told: dict[str, Any], arrays: dict[str, Any]) -> None:
    low, high = told["value"]
    near = [low + 0.49 * (high - low), low + 0.51 * (high - low)]
    assumes = f"{told['assumes']['value']}; transition probabilities linear in the features"
    told["linear"] = {"value": near, "constraints": told["constraints"], "assumes": assumes}


def _bound(told: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Bound, upper bound and gap together."""
    bound, step = told["evidence"]["bound"], 0.5 * told["gap"]
    bound["value"] -= step * bound["sigma"][0] / told["problem"]["reward"]["scale"]
    told["upper_bound"] -= step
    told["gap"] -= step


def another_policy(tree: Tree, folder: Path) -> None:
    """The same weights, and every action the other one."""
    run = tree.kept(folder, *KEPT)
    arrays = arrays_of(run / "policy.npz")
    arrays["probabilities"] = arrays["probabilities"][:, :, ::-1]
    write(run, "policy.npz", packed(arrays))
    done = tree.run(folder, "certify", "run", "--recheck")
    assert done.code in (1, 2), f"exit code {done.code}: it is said to be the proof of another policy"


def certified_anew(tree: Tree, folder: Path) -> None:
    """A new proof allows what was asked for, which is nothing, whatever the stored one says."""
    run = tree.kept(folder, *KEPT)
    told = json.loads((run / "certificate.json").read_text())
    told |= {"allowance": [5.0], "feasible": "certified"}
    write(run, "certificate.json", told)
    done = tree.run(folder, "certify", "run", "--samples", "8000", "--json")
    allowed = json.loads(done.out)["certificate"]["allowance"] if done.out else [0.0]
    assert allowed == [0.0], f"the forged allowance {allowed} was taken over"


ATTACKS: dict[str, Attack] = {
    "16 levels that make up for each other": _forged(_levels),
    "16 a widened allowance": _forged(_allowance),
    "16 a widened allowance, certified anew": certified_anew,
    "16 a tail that helps": _forged(_tail),
    "16 a range cut to the data": _forged(_range),
    "16 invented limits by start": _forged(_by_start),
    "16 invented linear limits": _forged(_linear),
    "16 a better bound with all that follows": _forged(_bound),
    "16 another policy file": another_policy,
}
