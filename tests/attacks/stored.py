"""Items 6, 10, 13 and 15: damaged manifests, changed simulators, runs that are mended, samples that outlive versions."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

from attacks import shop
from attacks.programs import QUEUE, Attack, NotSetUp, Tree, alive, end, everything, flip
from attacks.table_problem import COST, REWARD, RHO, SCRIPT, P
from forgery.forging import write
from saddleback.sampling.store.sample_store import SampleStore

KEPT = ["solve", *QUEUE, "--samples", "20000"]
SAMPLE = ["sample", "queue", "--set", "capacity=3", "--set", "gamma=0.5"]


def _damaged(tree: Tree, folder: Path) -> dict[str, Any]:
    """Two rounds of samples, and one flipped bit in the last line of the manifest; what there was before."""

    def make(home: Path) -> None:
        for rounds in ("1", "2"):
            done = tree.must(home, *SAMPLE, "--rounds", rounds, "--out", "samples", "--json")
            (home / "said").write_text(done.out)

    tree.copied("two rounds", make, folder)
    flip(folder / "samples" / "samples" / "samples-0" / "manifest.jsonl", -40)
    whole: dict[str, Any] = json.loads((folder / "said").read_text())
    return whole


def damage_verified(tree: Tree, folder: Path) -> None:
    _damaged(tree, folder)
    done = tree.run(folder, *SAMPLE, "--rounds", "2", "--out", "samples", "--verify")
    assert done.code == 5 and "manifest.jsonl" in done.out + done.err, f"exit code {done.code}: {done.out[:200]}"


def damage_solved_from(tree: Tree, folder: Path) -> None:
    _damaged(tree, folder)
    done = tree.run(folder, "solve", *SAMPLE[1:], "--from", "samples", "--json")
    assert (done.code, done.out) == (2, ""), f"exit code {done.code}: solved from what was left"


def damage_paid_for(tree: Tree, folder: Path) -> None:
    _damaged(tree, folder)
    done = tree.run(folder, *SAMPLE, "--rounds", "2", "--out", "samples", "--json")
    drawn = json.loads(done.out)["drawn_now"] if done.out else 0
    assert (done.code, drawn) == (2, 0), f"{drawn} samples were paid for again"


# ---- changed simulators ---------------------------------------------------------------------------------------------------------

RARELY = "if rng.random() > {limit}: return 0"


def changed_code(tree: Tree, folder: Path) -> None:
    """In what happens once in ten thousand calls: no probe sees it."""
    sample = ["sample", "problem.toml", "--out", "samples", "--rounds"]
    shop.write(folder, RARELY.format(limit=2), states="2")
    tree.must(folder, *sample, "1")
    shop.write(folder, RARELY.format(limit=0.9999), states="2")
    done = tree.run(folder, *sample, "2")
    assert done.code == 2 and "shop.py" in done.words, f"exit code {done.code}: samples of two simulators in one folder"


def changed_import(tree: Tree, folder: Path) -> None:
    """The same, in a file that the simulator imports."""
    sample = ["sample", "problem.toml", "--out", "samples", "--rounds"]
    shop.write(folder, RARELY.format(limit="rare.LIMIT"), before="import rare", states="2")
    (folder / "rare.py").write_text("LIMIT = 2.0\n")
    tree.must(folder, *sample, "1")
    (folder / "rare.py").write_text("LIMIT = 0.9999\n")
    done = tree.run(folder, *sample, "2")
    assert done.code == 2 and "rare.py" in done.words, f"exit code {done.code}: samples of two simulators in one folder"


def short_run(tree: Tree, folder: Path) -> None:
    """No block was drawn twice: nothing is known."""
    done = tree.must(folder, "solve", *QUEUE, "--samples", "2000", "--json", "--out", "run")
    assert json.loads(done.out)["reproducible"] is not True, "it says that it is reproducible"


def _killed(tree: Tree, folder: Path) -> None:
    """A solve that was killed in its simulator."""
    shop.write(folder, shop.DRAWING)
    with alive(
        tree.begin(folder, "solve", "problem.toml", "--samples", "4000", "--out", "run"), folder / "waiting"
    ) as it:
        end(it)
    (folder / "go").touch()


def edited_request(tree: Tree, folder: Path) -> None:
    _killed(tree, folder)
    path = folder / "run.work" / "request.json"
    text = path.read_text()
    if text == (edited := re.sub(r'"seed": 0\b', '"seed": 7', text, count=1)):
        raise NotSetUp(text)
    path.write_text(edited)
    done = tree.run(folder, "resume", "run", "--problem", "problem.toml")
    assert done.code == 2 and "seed" in done.words, f"exit code {done.code}: another run than was asked for"


def _another_problem(*words: str) -> Attack:
    """Another problem of the same shape is written into run.json, with its hashes in order."""

    def attack(tree: Tree, folder: Path) -> None:
        run = tree.kept(folder, *KEPT)
        manifest = json.loads((run / "run.json").read_text())
        manifest["target"]["settings"].append("service=0.3")
        write(run, "run.json", manifest)
        done = tree.run(folder, words[0], "run", *words[1:])
        assert done.code == 2, f"exit code {done.code}: it is shown as a run of another problem"

    return attack


# ---- mending ------------------------------------------------------------------------------------------------------------------------

NARROW = """
def step(s, a, rng):
    after = int((s + a + rng.integers(0, 2)) % 5)
    return after, s / 4, 1.4 if rng.random() < 1e-3 and a else a * rng.random()
"""


def widened_range(tree: Tree, folder: Path) -> None:
    """A range declared too small: the message says what to do, and the samples that were drawn are kept."""

    def write_with(limits: str) -> None:
        path = shop.write(folder, range=limits)
        path.write_text(re.sub(r'"shop:(pay|cost)"', '"observed"', path.read_text()))
        with (folder / "shop.py").open("a") as file:
            file.write(NARROW)

    write_with("[0, 1]")
    first = tree.run(folder, "solve", "problem.toml", "--samples", "30000", "--out", "run")
    drawn = {p.name: p.read_bytes() for p in (folder / "run.work").rglob("*.npy")}
    if first.code != 2 or "1.4" not in first.words or not drawn:
        raise NotSetUp(f"{first.code}: {first.words[-500:]}")
    write_with("[0, 1.5]")
    done = tree.run(folder, "resume", "run", "--problem", "problem.toml")
    kept = {p.name: p.read_bytes() for p in (folder / "run").rglob("*.npy")}
    assert done.code == 0 and drawn.items() <= kept.items(), f"exit code {done.code}: {done.words[:300]}"


def moved_file(tree: Tree, folder: Path) -> None:
    """The problem file has moved while the run was under way: the bytes are those of a run from the old place.

    How samples are divided into shards depends on how long drawing took; which they are does not.
    """
    home, away = folder / "home", folder / "away"
    home.mkdir()
    _killed(tree, home)
    (home / "run.work").rename(home / "other.work")
    tree.must(home, "solve", "problem.toml", "--samples", "4000", "--out", "run")
    away.mkdir()
    for name in ("shop.py", "problem.toml"):
        (home / name).rename(away / name)
    tree.must(home, "resume", "other", "--problem", away / "problem.toml")
    whole, found = everything(home / "run"), everything(home / "other")
    other = [name for name in whole if not name.startswith("samples/") and whole[name] != found.get(name)]
    assert not other, f"other bytes in {other}"
    hashes = set()
    for run in ("run", "other"):
        with closing(SampleStore.open(next((home / run / "samples").iterdir()), writable=False)) as store:
            hashes.add(store.content_hash())
    assert len(hashes) == 1, "other samples"


def _flipped(name: str) -> Attack:
    """One bit of a finished run, in the middle of a file."""

    def attack(tree: Tree, folder: Path) -> None:
        path = next(tree.kept(folder, *KEPT).rglob(name))
        flip(path, path.stat().st_size // 2, 4)
        done = tree.run(folder, "resume", "run")
        assert done.code in (2, 5) and path.name in done.words, f"exit code {done.code}: {done.words[-200:]}"

    return attack


def finished_as_json(tree: Tree, folder: Path) -> None:
    run = tree.kept(folder, *KEPT)
    done = tree.run(folder, "resume", "run", "--json")
    value = json.loads((run / "solution.json").read_text())["value"]
    assert done.out and json.loads(done.out)["value"] == value, "no answer"


# ---- other versions and other threads --------------------------------------------------------------------------------------------------

ZERO = """
ZERO = float(os.environ.get("ZERO", "0.0"))
def phi(s, a):
    return [1.0, float(s), float(a), ZERO]
"""


def negative_zero(tree: Tree, folder: Path) -> None:
    """Features with −0.0 for 0.0, as another version of numpy may compute them: the samples are the same."""
    path = shop.write(folder, before=ZERO, states="2")
    path.write_text(f'{path.read_text()}\n[features]\nfunction = "shop:phi"\ndim = 4\n')
    sample = ["sample", "problem.toml", "--out", "samples", "--rounds"]
    tree.must(folder, *sample, "1")
    done = tree.run(folder, *sample, "2", env={"ZERO": "-0.0"})
    assert done.code == 0, f"exit code {done.code}: {done.words[-300:]}"


THREADS = """
from concurrent.futures import ThreadPoolExecutor

def count(model, seed):
    return solve(problem, model, seed=seed, **half).samples

alone = [count(GenerativeModel(step, FiniteStates(S)), seed) for seed in range(6)]
model = GenerativeModel(step, FiniteStates(S))
with ThreadPoolExecutor(6) as pool:
    together = list(pool.map(lambda seed: count(model, seed), range(6)))
print(json.dumps([alone, together]))
"""


def six_threads(tree: Tree, folder: Path) -> None:
    (folder / "table.json").write_text(json.dumps([x.tolist() for x in (P, REWARD, COST, RHO)]))
    text = SCRIPT.format(piece="", samples=2000, seed=0, delta=0.05)
    done = tree.script(folder, text.partition("try:\n")[0] + THREADS)
    if done.code != 0:
        raise NotSetUp(done.err[-2000:])
    alone, together = json.loads(done.out)
    assert together == alone, f"{max(together)} calls reported for {max(alone)}"


ATTACKS: dict[str, Attack] = {
    "6 a flipped bit in the last line, verified": damage_verified,
    "6 a flipped bit in the last line, solved from": damage_solved_from,
    "6 a flipped bit in the last line, paid for again": damage_paid_for,
    "10 a simulator with other code": changed_code,
    "10 a simulator that imports other code": changed_import,
    "10 a short run that calls itself reproducible": short_run,
    "10 a request edited by hand": edited_request,
    "10 another problem in run.json, rechecked": _another_problem("certify", "--recheck"),
    "10 another problem in run.json, shown": _another_problem("report"),
    "13 a range that was too small": widened_range,
    "13 a problem file that has moved": moved_file,
    "13 a flipped bit in a finished policy": _flipped("policy.npz"),
    "13 a flipped bit in a finished certificate": _flipped("certificate.json"),
    "13 a flipped bit in finished samples": _flipped("000000.npy"),
    "13 resume --json of a finished run": finished_as_json,
    "15 minus zero for zero": negative_zero,
    "15 one simulator in six threads": six_threads,
}
