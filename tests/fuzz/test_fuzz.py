"""Mutants of every kind of file: refused in the documented way, or accepted and right.

No bug among n mutants drawn at random bounds the rate at which this mutator finds one below log(1/α)/n with confidence 1 − α:
4.6e-4 for 20,000 and 9.2e-5 for 100,000 at 99.99 %. It says nothing of other mutators.
"""

from __future__ import annotations

import json
import resource
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz import children
from fuzz.mutants import KINDS, NPZ, SEED, TEXTS, Recipe, mutant, recipe, warm
from fuzz.oracles import check
from saddleback.files import npz
from saddleback.instances import table_file
from saddleback.runs import run_folder
from saddleback.sampling.store import manifest, recovery

pytestmark = pytest.mark.check

CORPUS = Path(__file__).parent / "corpus"
SHARES = {
    "table": 4_000,
    "policy": 5_500,
    "run": 3_000,
    "store": 3_000,
    "proof": 1_000,
    "request": 1_000,
    "toml": 1_500,
    "drn": 1_000,
}
"""Mutants of each kind in the ordinary suite, 20,000 in all."""


def fuzz(folder: Path, kind: str, count: int, first: int = 0) -> list[children.Outcome]:
    """Recipes ``first`` and following, with a table of what became of them."""
    warm()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcomes = children.run(check, [recipe(kind, first + i) for i in range(count)], folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"seed {SEED}, {count:,} mutants from number {first}, {seconds:.1f} s of CPU\n{children.table_of(outcomes)}")
    return outcomes


def wrong(outcomes: list[children.Outcome]) -> list[str]:
    """Recipes to keep, with what they brought to light."""
    return [f"{x.verdict}: {x.detail} {json.dumps(x.recipe.to_json())}" for x in outcomes if not x.allowed]


@pytest.mark.parametrize("kind", KINDS)
def test_no_mutant_does_harm(kind: str, tmp_path: Path) -> None:
    number = SHARES[kind] // 2
    outcomes = fuzz(tmp_path, kind, number)
    assert wrong(outcomes) == []
    counts = Counter(x.verdict for x in outcomes)
    least = 0.03 if kind in TEXTS else 0.05  # most changes of a text make it another language
    assert counts["accepted"] > least * number and counts["InputError"] > 0.3 * number


@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
def test_no_mutant_in_a_hundred_thousand_does_harm(kind: str, tmp_path: Path) -> None:
    """Others than those of the ordinary suite."""
    assert wrong(fuzz(tmp_path, kind, 5 * SHARES[kind], first=1_000_000)) == []


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_what_once_did_harm(path: Path, tmp_path: Path) -> None:
    warm()
    recipes = [Recipe.from_json(fields) for fields in json.loads(path.read_text())["recipes"]]
    assert recipes and wrong(children.run(check, recipes, tmp_path)) == []


def test_recipes_repeat() -> None:
    for kind in KINDS:
        one, other = recipe(kind, 3), recipe(kind, 3)
        assert one == other == Recipe.from_json(json.loads(json.dumps(one.to_json())))
        assert mutant(one) == mutant(other)
        assert len({recipe(kind, i) for i in range(200)}) == 200


# ---- loaders with a bug ------------------------------------------------------------------------------------------------


def trusting_index_arrays(arrays: dict[str, Any], S: int, A: int) -> Any:
    """P as compiled code would see it that does not look at its indices."""
    if "P" in arrays:
        return arrays["P"]
    P = np.zeros((S * A, S))
    for row in range(S * A):
        for i in range(arrays["P_indptr"][row], arrays["P_indptr"][row + 1]):
            P[row, arrays["P_indices"][i] % S] += arrays["P_data"][i % len(arrays["P_data"])]
    return P.reshape(S, A, S)


def unpickling(self: Any, archive: Any, info: Any) -> Any:
    with archive.open(info) as stream:
        return self._converted(np.lib.format.read_array(stream, allow_pickle=True))


def as_it_is(self: Any, x: Any) -> Any:
    return x


def line_without_check(line: bytes) -> manifest.Entry | None:
    try:
        fields = json.loads(line)
        blocks = np.array(fields["blocks"], dtype=np.int64).reshape(-1, 5)
        return manifest.Entry(fields["shard"], fields["bytes"], fields["sha256"], blocks)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def no_check(*arguments: Any, **options: Any) -> None:
    return None


PLANTED: dict[str, tuple[str, Any, str, Callable[..., Any], set[str]]] = {
    "index arrays are trusted": ("table", table_file, "_transitions", trusting_index_arrays, {"AssertionError"}),
    "objects are unpickled": ("table", npz._Member, "read", unpickling, {"SystemExit"}),
    "numbers may be NaN": ("policy", npz._Member, "_converted", as_it_is, {"AssertionError"}),
    "hashes are not compared": ("run", run_folder, "_check_file", no_check, {"AssertionError"}),
    "lines are not compared": ("store", manifest, "from_line", line_without_check, {"AssertionError"}),
    "shards are not compared": ("store", recovery, "shard_fault", no_check, {"AssertionError"}),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In at most 1,000 mutants: without it they do no harm, see above."""
    kind, where, name, planted, verdicts = PLANTED[bug]
    warm()
    monkeypatch.setattr(where, name, planted)
    seen: set[str] = set()
    for first in range(0, 1000, 50):
        outcomes = children.run(check, [recipe(kind, i) for i in range(first, first + 50)], tmp_path)
        seen |= {x.verdict for x in outcomes if not x.allowed}
        if verdicts <= seen:
            break
    print(f"{bug}: {sorted(seen)} within {first + 50} mutants")
    assert verdicts <= seen


def test_each_way_to_fail_has_its_name(tmp_path: Path) -> None:
    """A crash, a leak, a loop and a bad message, each among recipes that are well: only the culprits are blamed."""

    def faulty(one: Recipe, folder: Path) -> str:
        match one.base:
            case 1:
                import ctypes

                ctypes.string_at(0)
            case 2:
                np.ones(3 * 10**8)
            case 3:
                while True:
                    pass
            case 4:
                raise KeyError("a key")
        return "accepted"

    recipes = [Recipe("table", i, ()) for i in range(6)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(children, "CPU_SECONDS", 0)
        outcomes = children.run(faulty, recipes, tmp_path)
    want = ["accepted", "died of signal 11", "MemoryError", "timeout", "KeyError", "accepted"]
    assert [x.verdict for x in outcomes] == want
    assert [x.recipe for x in outcomes] == recipes
    assert NPZ in mutant(Recipe("table", 0, ()))
