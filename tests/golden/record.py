"""The golden record: what every kind of run finds on every problem of the zoo, from small budgets and fixed seeds.

    python tests/golden/record.py [--cases REGEX] [--out FILE] [--times] [--list]

Two records of the same tree must be equal; a record before and one after a refactor must be equal too. One entry per case:

    calls     simulator calls
    samples   SHA-256 of all questions and answers, in the order of their keys
    counts    numbers of samples, by stream and (as a hash) by pair
    draws     the same in the order of time, to find the first difference
    actions   SHA-256 of the action tables of all policies of the answer, in their order; policies over continuous states
              are asked at 500 fixed states
    exact     what must be equal besides: status, verdict, sizes
    values    every number of the answer, by name
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # tests/spelled_out.py, when this runs as a program

import calls
from calls import Answer
from notes import Notebook, digest_of

SEED = 3
Run = Callable[[Notebook, int, Path], Answer]

SMALL: dict[str, dict[str, Any]] = {  # parameters that keep a case within two seconds
    "queue-network": {"capacity": 6, "knots": 4},
    "warehouse": {"capacity": 6, "knots": 4},
    "mountain-car": {"knots": 5, "speeds": 4},
    "pendulum": {"knots": 5},
    "taxi": {"limit": 6.0},
    "ward": {"beds": 3, "waiting": 4, "limit": 0.4},
}
FEWER_SAMPLES = {"mountain-car": 0.2, "pendulum": 0.4}  # shares of the usual, where a simulator call takes long
REPRESENTATIVES = {"table": "wireless", "linear": "random-linear", "continuous": "linear-quadratic"}

DEFAULT: dict[str, Any] = {"samples": 30_000, "certificate": 30_000}
STRICT = {**DEFAULT, "feasibility": "strict"}
LITERAL: dict[str, Any] = {"samples": 20_000, "mode": "literal", "iterations": 50}
ACCURACY, MOST_SAMPLES = 0.15, 150_000  # of an adaptive run: ε as a share of the largest total, and where it gives up
PARTS_OF_LINEAR: dict[str, dict[str, Any]] = {
    "ls-mdvi": {"solver": "ls-mdvi"},
    "ls-mdvi-burn-in": {"solver": "ls-mdvi-burn-in"},
    "mirror-descent": {"solver": "mirror-descent"},
    "gss": {"solver": "gss"},
    "ls-pe": {"evaluator": "ls-pe"},
    "ls-pe-burn-in": {"evaluator": "ls-pe-burn-in"},
    "frank-wolfe": {"design": "frank-wolfe"},
    "frank-wolfe-literal": {"design": "frank-wolfe-literal"},
    "projected-descent": {"dual": "projected-descent", "iterations": 100},
    "equal-allocation": {"allocation": "equal"},
    "one-buffer": {"buffers": 1},
    "grid": {"resolution": 50},
    "batches-of-ten": {"batch_size": 10, "solver": "ls-mdvi"},
    "error-by-hand": {"error": 0.01},
}
PARTS_OF_TABLE: dict[str, dict[str, Any]] = {
    "tabular-mdvi": {"solver": "tabular-mdvi"},
    "tabular-mdvi-burn-in": {"solver": "tabular-mdvi-burn-in"},
    "perturbed-model": {"solver": "perturbed-model"},
    "tabular-pe": {"evaluator": "tabular-pe"},
    "projected-descent": {"dual": "projected-descent", "iterations": 100},
    "one-buffer": {"buffers": 1},
}


def _problem(name: str) -> calls.Case:
    return calls.zoo_case(name, **SMALL.get(name, {}))


def _solve(name: str, settings: dict[str, Any], notebook: Notebook, seed: int, folder: Path) -> Answer:
    share = FEWER_SAMPLES.get(name, 1.0)
    fewer = {word: int(share * settings[word]) for word in ("samples", "certificate") if word in settings}
    return calls.solved(_problem(name), notebook, seed, **(settings | fewer))


def _interactive(
    parameters: dict[str, Any], settings: dict[str, Any], notebook: Notebook, seed: int, folder: Path
) -> Answer:
    return calls.solved_interactively(calls.zoo_case("random-linear", **parameters), notebook, seed, **settings)


def _resumed(name: str, after: int, settings: dict[str, Any], notebook: Notebook, seed: int, folder: Path) -> Answer:
    return calls.resumed(_problem(name), notebook, seed, folder / "run", after, **settings)


def _workers(name: str, settings: dict[str, Any], notebook: Notebook, seed: int, folder: Path) -> Answer:
    return calls.solved_by_workers(_problem(name), notebook, seed, **settings)


def _stored(name: str, each: int, parts: int, notebook: Notebook, seed: int, folder: Path) -> Answer:
    settings = {"each": each, "parts": parts, "certificate": 20_000}
    return calls.solved_from_store(_problem(name), notebook, seed, folder / "stores", **settings)


def _adaptive(name: str, notebook: Notebook, seed: int, folder: Path) -> Answer:
    case, most = _problem(name), int(FEWER_SAMPLES.get(name, 1.0) * MOST_SAMPLES)
    epsilon = ACCURACY * case.problem.horizon * float(case.problem.scale[0])
    return calls.solved(case, notebook, seed, epsilon=epsilon, max_samples=most)


def _reused(name: str, notebook: Notebook, seed: int, folder: Path) -> Answer:
    return calls.reused(_problem(name), notebook, seed, harder=0.002, certificate=20_000, samples=30_000)


def _frontier(name: str, notebook: Notebook, seed: int, folder: Path) -> Answer:
    samples = int(30_000 * FEWER_SAMPLES.get(name, 1.0))
    return calls.trade_off(_problem(name), notebook, seed, points=7, certificate=samples, samples=samples)


def _exact(name: str, method: str, notebook: Notebook, seed: int, folder: Path) -> Answer:
    return calls.exact(_problem(name), method)


def _special(
    make: Callable[[], calls.Case], settings: dict[str, Any], notebook: Notebook, seed: int, folder: Path
) -> Answer:
    return calls.solved(make(), notebook, seed, **settings)


def _cases() -> dict[str, Run]:
    cases: dict[str, Run] = {}
    for name in calls.NAMES:
        cases[f"{name}/default"] = partial(_solve, name, DEFAULT)
        cases[f"{name}/strict"] = partial(_solve, name, STRICT)
        cases[f"{name}/literal"] = partial(_solve, name, LITERAL)
        cases[f"{name}/frontier"] = partial(_frontier, name)
        cases[f"{name}/adaptive"] = partial(_adaptive, name)
    for name in calls.TABLES:
        cases[f"{name}/exact-lp"] = partial(_exact, name, "lp")
        cases[f"{name}/exact-columns"] = partial(_exact, name, "columns")
    each = {"table": 150, "linear": 1500, "continuous": 1500}
    for kind, name in REPRESENTATIVES.items():
        cases[f"{name}/streamed"] = partial(_stored, name, each[kind], 1)
        cases[f"{name}/pooled"] = partial(_stored, name, each[kind], 2)
        cases[f"{name}/resumed"] = partial(_resumed, name, 20_000, DEFAULT)
        cases[f"{name}/resumed-strict"] = partial(_resumed, name, 40_000, STRICT)
        cases[f"{name}/two-workers"] = partial(_workers, name, DEFAULT)
        cases[f"{name}/reused"] = partial(_reused, name)
        parts = PARTS_OF_TABLE if kind == "table" else PARTS_OF_LINEAR
        for part, chosen in parts.items():
            cases[f"{name}/{part}"] = partial(_solve, name, {"samples": 30_000, **chosen})
    rollouts = {"samples": 60_000, "evaluator": "rollouts", "resolution": 5}
    stopping = {"samples": 400_000, "solver": "gss-stopping", "resolution": 3}
    cases["random-linear/rollouts"] = partial(_interactive, {}, rollouts)
    cases["random-linear/gss-stopping"] = partial(_interactive, {"gamma": 0.5}, stopping)
    special: dict[str, Callable[[], calls.Case]] = {
        "queue-network/full-size": partial(calls.zoo_case, "queue-network"),
        "warehouse/full-size": partial(calls.zoo_case, "warehouse"),
        "garnet/two-constraints": partial(calls.zoo_case, "garnet", constraints=2),
        "random-linear/two-constraints": partial(calls.zoo_case, "random-linear", constraints=2),
        "garnet/infeasible": lambda: calls.harder_case(_problem("garnet"), 0.4),
        "inventory/observed": partial(calls.observed_case, "inventory"),
        "random-linear/observed": partial(calls.observed_case, "random-linear"),
        "linear-quadratic/sampled-start": partial(calls.sampled_start_case, "linear-quadratic"),
    }
    for name, make in special.items():
        cases[name] = partial(_special, make, DEFAULT)
    return cases


CASES = _cases()
"""All cases by name, "problem/kind of run"."""


def record_case(name: str, seed: int = SEED) -> dict[str, Any]:
    """The entry of one case."""
    notebook = Notebook()
    with tempfile.TemporaryDirectory() as folder:
        answer = CASES[name](notebook, seed, Path(folder))
    return {
        "calls": answer.calls,
        "samples": notebook.samples(),
        "counts": notebook.counts(),
        "draws": notebook.draws(),
        "actions": digest_of(answer.actions).hex(),
        "exact": {"policies": len(answer.actions), **answer.facts},
        "values": answer.values,
    }


def chosen_cases(pattern: str) -> list[str]:
    """The names that match a regular expression somewhere."""
    return [name for name in CASES if re.search(pattern, name)]


def record(names: Iterable[str], seed: int = SEED, times: bool = False) -> dict[str, Any]:
    """The entries of these cases."""
    entries, began = {}, time.process_time()
    for name in names:
        start = time.process_time()
        entries[name] = record_case(name, seed)
        if times:
            print(f"{time.process_time() - start:7.2f} s  {name}", file=sys.stderr, flush=True)
    if times:
        print(f"{time.process_time() - began:7.2f} s  in all, {len(entries)} cases", file=sys.stderr, flush=True)
    return entries


def as_text(entries: dict[str, Any]) -> str:
    """JSON with one case a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}" for name, entry in sorted(entries.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="Write the golden record.")
    parser.add_argument("--cases", default="", help="a regular expression: only cases whose names match it somewhere")
    parser.add_argument("--out", type=Path, help="the file to write (default: standard output)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"the seed of every run (default: {SEED})")
    parser.add_argument("--times", action="store_true", help="print the processor seconds of every case")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and stop")
    given = parser.parse_args()
    names = chosen_cases(given.cases)
    if not names:
        parser.error(f"--cases {given.cases!r} matches no case; --list shows their names")
    if given.list:
        print("\n".join(names))
        return
    text = as_text(record(names, given.seed, given.times))
    if given.out is None:
        print(text, end="")
    else:
        given.out.write_text(text)


if __name__ == "__main__":
    main()
