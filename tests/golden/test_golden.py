"""The golden record: a refactor changes no sample, no count, no policy and no number beyond rounding.

``record.json`` is what ``record.py`` has written. A fast part of it is checked here, the whole with SADDLEBACK_GOLDEN=full.
After a change that is meant to change answers, write it anew: ``python tests/golden/record.py --out tests/golden/record.json``.
"""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compare import USUAL_LIMIT, compare, difference, too_far
from notes import Key, Notebook, array_bytes
from processors import ONE_THREAD, probe
from record import CASES, SEED, record_case

HERE = Path(__file__).parent
GOLDEN: dict[str, Any] = json.loads((HERE / "record.json").read_text())
WHOLE = os.environ.get("SADDLEBACK_GOLDEN") == "full"
FAST = re.compile(
    r"(?!taxi|mountain-car|pendulum).*/(default|exact-.*)$"
    r"|wireless/(strict|literal|streamed|pooled|resumed|two-workers|adaptive|reused|tabular-mdvi|perturbed-model)$"
    r"|random-linear/(?!frontier).*$"
    r"|linear-quadratic/(streamed|frank-wolfe|sampled-start)$"
    r"|(inventory/observed|garnet/two-constraints|garnet/infeasible|queue/frontier)$"
)
CHOSEN = [name for name in CASES if WHOLE or FAST.match(name)]
"""About forty processor seconds, or everything."""
QUICK = re.compile(
    r"wireless/(default|strict|resumed|exact-lp)$|(queue|inventory|random-linear|linear-quadratic|ward)/default$"
)
"""What `make test` looks at; the rest of the fast part is left to `make check`, which runs it as two processors round."""


def _marked(name: str) -> Any:
    return pytest.param(name, marks=() if QUICK.match(name) else pytest.mark.slow)


def test_every_case_is_recorded() -> None:
    assert set(GOLDEN) == set(CASES)


@pytest.mark.parametrize("name", [_marked(name) for name in CHOSEN])
def test_as_recorded(name: str) -> None:
    found = difference(GOLDEN[name], _as_read(record_case(name)))
    assert not found.beyond(USUAL_LIMIT), f"{', '.join(found.fields) or 'values'}; first at {found.first}"


@pytest.mark.parametrize("problem", ["wireless", "random-linear", "linear-quadratic"])
def test_samples_may_be_drawn_in_any_way(problem: str) -> None:
    """Cut off and resumed, or drawn by two processes: the same record, bit for bit."""
    plain = GOLDEN[f"{problem}/default"]
    assert GOLDEN[f"{problem}/resumed"] == GOLDEN[f"{problem}/two-workers"] == plain
    assert GOLDEN[f"{problem}/resumed-strict"] == GOLDEN[f"{problem}/strict"] != plain


@pytest.mark.slow
@pytest.mark.parametrize("name", ["queue/default", "random-linear/literal"])
def test_another_seed_is_seen(name: str) -> None:
    """The control: a record with another seed has other samples and other values."""
    found = difference(GOLDEN[name], _as_read(record_case(name, SEED + 1)))
    assert "samples" in found.fields and found.largest > 1e-6
    assert found.first.startswith("draws[0]")


def test_every_field_is_looked_at() -> None:
    """The control: whatever is changed in a record is seen, and a value that moves by less than the limit is not."""
    name = "wireless/default"
    changes: dict[str, Any] = {"calls": 1, "samples": "0" * 64, "actions": "0" * 64, "counts": {}, "exact": {}}
    for field, value in changes.items():
        other = copy.deepcopy(GOLDEN)
        other[name][field] = value
        found = compare(GOLDEN, other)
        assert too_far(found, USUAL_LIMIT) == [name] and difference(GOLDEN[name], other[name]).fields == (field,)
    for factor, seen in ((1 + 5e-9, True), (1 + 1e-10, False)):
        other = copy.deepcopy(GOLDEN)
        other[name]["values"]["value"] *= factor
        assert abs(other[name]["values"]["value"]) > 1
        assert (too_far(compare(GOLDEN, other), USUAL_LIMIT) == [name]) is seen
    missing = {case: entry for case, entry in GOLDEN.items() if case != name}
    assert too_far(compare(GOLDEN, missing), 1.0) == too_far(compare(missing, GOLDEN), 1.0) == [name]
    unnamed = copy.deepcopy(GOLDEN)
    del unnamed[name]["values"]["value"]
    assert too_far(compare(GOLDEN, unnamed), 1.0) == [name]


@pytest.mark.slow
def test_the_programs(tmp_path: Path) -> None:
    """Two records of one case are the same file; the comparison's exit code tells another seed's from it."""
    first, second, other = (tmp_path / f"{word}.json" for word in ("first", "second", "other"))
    for out, more in ((first, []), (second, []), (other, ["--seed", "4"])):
        assert _program("record.py", "--cases", "^queue/(default|exact-lp)$", "--out", str(out), *more).returncode == 0
    assert first.read_bytes() == second.read_bytes()
    same = _program("compare.py", str(first), str(second), "--values", "0")
    assert same.returncode == 0 and "2 cases, 0 beyond" in same.stdout
    differs = _program("compare.py", str(first), str(other))
    assert differs.returncode == 1 and "queue/default: first at draws[0]: seed 3" in differs.stdout
    assert "2 cases, 1 beyond" in differs.stdout  # the exact answer has no seed


@pytest.mark.slow
def test_a_processor_that_cannot_be_imitated_is_named() -> None:
    """numpy refuses to do without what it was compiled for."""
    runs, told = probe(ONE_THREAD)
    assert runs and told
    runs, told = probe({**ONE_THREAD, "NPY_DISABLE_CPU_FEATURES": "X86_V2 SSE SSE2 SSE3 NEON ASIMD"})
    assert not runs and re.match("cannot be imitated: .*Error: .*NPY_DISABLE_CPU_FEATURES", told)


def test_notes_do_not_depend_on_the_order() -> None:
    forward, backward, changed = Notebook(), Notebook(), Notebook()
    keys = [Key(1, 0, pair, block) for pair in range(3) for block in range(2)]
    for key in keys:
        forward.note(key, 2, [key.group], [np.array([key.number, 7])])
        changed.note(key, 2, [key.group], [np.array([key.number, 7 if key != keys[3] else 8])])
    for key in keys[::-1]:
        backward.note(key, 2, [key.group], [np.array([key.number, 7])])
    assert forward.samples() == backward.samples() != changed.samples()
    assert forward.draws() == backward.draws() != changed.draws()
    assert forward.counts() == changed.counts() and forward.counts()["by_stream"] == {"0": 12}


def test_bytes_of_arrays() -> None:
    assert array_bytes(np.array([0.0, 1.0])) == array_bytes(np.array([-0.0, 1.0]))
    assert array_bytes(np.array([1.0])) != array_bytes(np.array([np.nextafter(1.0, 2.0)]))
    assert array_bytes(np.array([1, 2], dtype=np.int32)) == array_bytes(np.array([1, 2]))
    assert array_bytes(np.zeros((2, 3))) != array_bytes(np.zeros((3, 2)))


def _as_read(entry: dict[str, Any]) -> dict[str, Any]:
    """As it comes back from a file: tuples as lists."""
    return json.loads(json.dumps(entry))


def _program(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(HERE / name), *arguments], capture_output=True, text=True, check=False)
