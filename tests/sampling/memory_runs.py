"""One solve in a process of its own, and the height of its memory: ``python memory_runs.py CASE [repeat N]``.

The height is VmHWM above what the process held before the solve: libraries, the problem, and nothing else, for what the
problem's making gave back is returned to the system, and the mark is reset, first.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

import saddleback
from saddleback import CMDP, InputError, features, zoo
from saddleback.files.memory import LIMIT_VARIABLE
from saddleback.problem.signals import with_limits
from saddleback.sampling.memory import predict_run
from saddleback.simulators.generative_model import GenerativeModel
from sampling.streamed_runs import square

PROC = Path("/proc") / "self"


class Case(NamedTuple):
    """A problem of the zoo (or points of the unit square, with observed signals), and what to ask."""

    name: str
    parameters: dict[str, Any]
    samples: int
    certificate: int = 0
    feasibility: Any = "relaxed"

    def make(self) -> tuple[CMDP, GenerativeModel]:
        """The problem and its simulator."""
        if self.name == "square":
            return square(**self.parameters)[:2]
        if self.name == "tiles":
            problem, model = square()[:2]
            tiles = features.make("tiles", problem.states, problem.num_actions, **self.parameters)
            easy = with_limits(problem.constraints, {"care": 0.1})
            return dataclasses.replace(problem, features=tiles, candidates=None, constraints=easy), model
        instance = zoo.make(self.name, **self.parameters)
        return instance.problem, instance.simulator


CASES = {
    "tabular": Case("garnet", {}, 1_200_000),
    "linear": Case("random-linear", {}, 1_600_000),
    "support": Case("random-linear", {"states": 800, "dim": 6, "actions": 4}, 800_000),
    "points": Case("square", {"observed": True}, 30_000),
    "strict": Case("random-linear", {}, 100_000, 100_000, "strict"),
    "tiles": Case("tiles", {"tiles": 5, "tilings": 3}, 200_000, 200_000),
    "large tabular": Case("garnet", {}, 8_000_000),
    "large linear": Case("random-linear", {}, 8_000_000),
    "large support": Case("garnet", {"states": 3000}, 1_000_000),
    "large points": Case("square", {"observed": True}, 300_000),
    "large strict": Case("random-linear", {}, 2_000_000, 2_000_000, "strict"),
    "large tabular proof": Case("garnet", {}, 2_000_000, 2_000_000),
    "points with proof": Case("square", {"observed": True}, 20_000, 20_000),
}


def height(mark: str = "VmHWM") -> int:
    """Bytes at the highest so far; with "VmRSS" those now."""
    lines = (PROC / "status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(mark))


def settle() -> int:
    """Give back what is free, lower the mark to what is held, and say how much that is."""
    ctypes.CDLL(None).malloc_trim(0)
    (PROC / "clear_refs").write_text("5")
    return height()


def limited(case: Case, share: float) -> dict[str, Any]:
    """Solve with the limit at ``share`` of the prediction: what was predicted and taken, or the refusal."""
    os.environ.pop(
        LIMIT_VARIABLE, None
    )  # it is meant for the solve: making the problem's table takes memory of its own
    problem, model = case.make()
    predicted = predict_run(problem, case.samples, certificate=case.certificate, num_signals=model.num_signals).peak
    os.environ[LIMIT_VARIABLE] = str(int(share * predicted))
    before = settle()
    try:
        found = saddleback.solve(
            problem,
            model,
            samples=case.samples + case.certificate,
            feasibility=case.feasibility,
            method=saddleback.Method(certificate=case.certificate),
        )
    except InputError as refused:
        return {"refused": str(refused), "name": refused.name, "calls": model.num_queries, "predicted": predicted}
    return {"status": found.status.value, "peak": height() - before, "predicted": predicted, "calls": model.num_queries}


def repeated(case: Case, times: int, warm: int) -> list[int]:
    """Bytes held after every solve but the first few, each with a seed of its own."""
    problem, model = case.make()
    found = []
    for seed in range(warm + times):
        total = case.samples + case.certificate
        saddleback.solve(
            problem, model, samples=total, seed=seed, method=saddleback.Method(certificate=case.certificate)
        )
        if seed >= warm:
            found.append(height("VmRSS"))
    return found


if __name__ == "__main__":
    asked = CASES[sys.argv[1]]
    if sys.argv[2:3] == ["repeat"]:
        print(json.dumps(repeated(asked._replace(samples=40_000, certificate=20_000), int(sys.argv[3]), 5)))
    else:
        print(json.dumps({"half": limited(asked, 0.5), "whole": limited(asked, 1.2)}))
