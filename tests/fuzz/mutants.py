"""Good files, and recipes that make bad ones of them: a kind, a good file by its number, and changes with their seeds.

A recipe is a few words, so that one that has found a bug can be kept (``corpus/``) while its bytes need not be. Recipe
``n`` of a kind is always the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import tempfile
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from fuzz import archive_changes, array_changes, byte_changes, folder_changes, json_changes, store_changes, text_changes
from fuzz.archives import pack
from fuzz.folder_changes import Files
from helpers import begun_and_killed, random_table
from saddleback import save_table, zoo
from saddleback.files.json_file import sha256_of
from saddleback.runs.run_folder import Origin, save_run
from saddleback.runs.work_folder import work_folder
from sampling.store.store_runs import LAYOUTS, filled, some_blocks, unsealed
from spelled_out import solve

SEED = 20_261_116
KINDS = ("table", "policy", "run", "store", "proof", "request", "toml", "drn")
NPZ = "t.npz"
"""The one file of a table or a policy."""
TEXTS = {"toml": "problem.toml", "drn": "model.drn"}
"""The file of a problem, beside which its code lies, and that of a model."""

STORE_LAYOUTS = ("samples with signals", "counts with signals", "points")
STORE_BLOCKS = some_blocks(2, 3, 12)
MODES = ("read", "write", "mend")
_BASES = {"table": 4, "policy": 2, "run": 2, "store": len(STORE_LAYOUTS) * len(MODES), "proof": 3, "request": 3}
_BASES |= {"toml": len(text_changes.PROBLEMS), "drn": 1}

Step = tuple[str, int]
Random = np.random.Generator


@dataclass(frozen=True)
class Recipe:
    """How to make a mutant."""

    kind: str
    base: int
    steps: tuple[Step, ...]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "base": self.base, "steps": [list(step) for step in self.steps]}

    @staticmethod
    def from_json(fields: dict[str, Any]) -> Recipe:
        return Recipe(fields["kind"], fields["base"], tuple((name, seed) for name, seed in fields["steps"]))

    @property
    def harmless(self) -> bool:
        """Whether what it makes is still good."""
        return all(name == "archive:harmless" for name, _ in self.steps)

    @property
    def forged(self) -> bool:
        """Whether hashes and checks were made to fit what was changed."""
        return any(name.startswith("store:forged") for name, _ in self.steps)


def recipe(kind: str, number: int, seed: int = SEED) -> Recipe:
    """The recipe of this number."""
    rng = np.random.default_rng([seed, KINDS.index(kind), number])
    names = _STEPS[kind](rng)
    return Recipe(kind, int(rng.integers(_BASES[kind])), tuple((name, int(rng.integers(2**32))) for name in names))


def mutant(recipe: Recipe) -> Files:
    """What the recipe makes."""
    if recipe.kind in ("table", "policy"):
        return {NPZ: changed_npz((tables() if recipe.kind == "table" else policies())[recipe.base], recipe.steps)}
    if recipe.kind in TEXTS:
        text = text_changes.PROBLEMS[recipe.base] if recipe.kind == "toml" else text_changes.DRN
        files: Files = {TEXTS[recipe.kind]: text_changes.changed(text, recipe.steps)}
        return {**files, "shop.py": text_changes.CODE.encode()} if recipe.kind == "toml" else files
    if recipe.kind == "run":
        return _changed_run(runs()[recipe.base], recipe.steps)
    if recipe.kind == "proof":
        return _changed_run(proofs()[recipe.base], recipe.steps)
    if recipe.kind == "request":
        return folder_changes.signed_request(_changed_run(requests()[recipe.base], recipe.steps))
    files = stores()[recipe.base // len(MODES)]
    for name, seed in recipe.steps:
        change = folder_changes.place if name == "place" else store_changes.BY_NAME[name.removeprefix("store:")]
        files = change(files, np.random.default_rng(seed))
    return files


# ---- one archive -------------------------------------------------------------------------------------------------------


def _npz_steps(rng: Random) -> list[str]:
    arrays, archives, raw = (
        [f"{prefix}:{name}" for name in sorted(changes)]
        for prefix, changes in (
            ("array", array_changes.BY_NAME),
            ("archive", archive_changes.BY_NAME),
            ("bytes", byte_changes.BY_NAME),
        )
    )
    u = rng.random()
    if u < 0.5:
        steps = [str(name) for name in rng.choice(arrays, 1 if rng.random() < 0.7 else 2)]
        return [*steps, "archive:harmless"] if rng.random() < 0.2 else steps
    if u < 0.8:
        weights = np.array(
            [{"archive:bomb": 0.1, "archive:header": 3, "archive:member": 2}.get(a, 0.7) for a in archives]
        )
        return [str(rng.choice(archives, p=weights / weights.sum()))]
    steps = [str(name) for name in rng.choice(raw, 1 if rng.random() < 0.8 else 2)]
    return ["archive:harmless", *steps] if rng.random() < 0.3 else steps


def changed_npz(arrays: dict[str, np.ndarray], steps: tuple[Step, ...]) -> bytes:
    """The archive that the steps make of the arrays: those of arrays first, of bytes last."""
    data: bytes | None = None
    for step, seed in steps:
        level, _, name = step.partition(":")
        rng = np.random.default_rng(seed)
        if level == "array":
            with contextlib.suppress(
                ValueError, IndexError, SystemError, OverflowError, TypeError
            ):  # there may be no such entry left to change
                arrays = array_changes.BY_NAME[name](arrays, rng)
        elif level == "archive":
            data = archive_changes.BY_NAME[name](arrays, rng)
        else:
            data = byte_changes.BY_NAME[name](data or pack(archive_changes.whole(arrays, rng)), rng)
    return data if data is not None else pack(archive_changes.whole(arrays, np.random.default_rng(0)))


@cache
def tables() -> list[dict[str, np.ndarray]]:
    """Dense with everything, sparse, bare with one constraint, and one state with one action."""
    rng = np.random.default_rng(SEED)
    S, A, m = 4, 2, 2
    common = {
        "reward": 10 * rng.normal(size=(S, A)),
        "constraints": rng.normal(size=(m, S, A)),
        "thresholds": np.array([0.5, -0.25]),
        "senses": np.array([">=", "<="]),
        "names": np.array(["yield", "énergie"]),
        "gamma": np.array(0.9),
        "rho": rng.dirichlet(np.ones(S)),
    }
    more = {
        "phi": rng.random((S, A, 3)),
        "reward_range": np.array([-99.0, 99.0]),
        "ranges": np.array([[-9.0, 9.0], [-8.0, 8.0]]),
        "state_names": np.array(["a", "bb", "c", "d"]),
    }
    parts = {
        "P_data": rng.dirichlet(np.ones(2), size=S * A).ravel(),
        "P_indices": np.concatenate([np.sort(rng.choice(S, 2, replace=False)) for _ in range(S * A)]),
        "P_indptr": np.arange(0, 2 * S * A + 1, 2),
    }
    bare = {name: common[name] for name in ("reward", "gamma", "rho")}
    bare |= {"constraints": common["constraints"][:1], "thresholds": np.array([0.5])}
    one = {
        name: np.ones((1,) * n)
        for name, n in (("P", 3), ("reward", 2), ("constraints", 3), ("thresholds", 1), ("rho", 1))
    }
    P = rng.dirichlet(np.ones(S), size=(S, A))
    return [{"P": P, **common, **more}, {**parts, **common}, {**parts, **bare}, {**one, "gamma": np.array([0.5])}]


@cache
def policies() -> list[dict[str, np.ndarray]]:
    """Three members, and one."""
    rng = np.random.default_rng(SEED + 1)
    return [
        {"weights": rng.dirichlet(np.ones(k)), "probabilities": rng.dirichlet(np.ones(A), size=(k, S))}
        for k, S, A in ((3, 4, 2), (1, 2, 3))
    ]


# ---- folders -----------------------------------------------------------------------------------------------------------


def _run_steps(rng: Random) -> list[str]:
    steps = [
        str(rng.choice(["run:json", "run:npz", "place"], p=[0.55, 0.3, 0.15])) for _ in range(1 + (rng.random() < 0.2))
    ]
    return [*steps, "run:signed"] if rng.random() < 0.85 else steps


def _changed_run(files: Files, steps: tuple[Step, ...]) -> Files:
    for name, seed in steps:
        rng = np.random.default_rng(seed)
        if name == "run:signed":
            files = folder_changes.signed_run(files)
            continue
        if name == "place":
            files = folder_changes.place(files, rng)
            continue
        if name.startswith("settings:"):
            files = json_changes.with_settings(files, name.removeprefix("settings:"), rng)
            continue
        ending = name.removeprefix("run:")
        if "." in ending:
            one, ending = ending, ending.rpartition(".")[2]
        else:
            fitting = sorted(n for n in files if n.endswith(ending) and isinstance(files[n], bytes))
            one = str(rng.choice(fitting or ["run.json"]))
        content = files.get(one)
        if ending == "npz":
            arrays = _arrays_of(one, content if isinstance(content, bytes) else b"")
            inner = tuple((step, int(rng.integers(2**32))) for step in _npz_steps(rng))
            files = {**files, one: changed_npz(arrays, inner)}
        elif isinstance(content, bytes):
            try:
                files = {**files, one: json_changes.changed(content, rng)}
            except (
                ValueError,
                RecursionError,
                TypeError,
                AttributeError,
            ):  # it was changed before, and is no JSON any more
                files = {**files, one: json_changes.raw(content, rng)}
    return files


def _arrays_of(name: str, content: bytes) -> dict[str, np.ndarray]:
    """The arrays of a run's archive, or of a good table where it is damaged already."""
    for files in [*runs(), *proofs()]:
        if files.get(name) == content:
            return dict(np.load(io.BytesIO(content), allow_pickle=False))
    return tables()[1]


@cache
def runs() -> list[Files]:
    """A run on a table from a file, with everything; and one on a problem by name."""
    table = random_table(1, S=4, A=2)
    solution = solve(table.problem(), table.simulator(), samples=600, certificate=200, seed=0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_table(table, folder / "table.npz")
        by_file = Origin("table.npz", (), folder / "table.npz", sha256_of(folder / "table.npz"))
        for i, origin in enumerate((by_file, Origin("garnet", ("states=4",)))):
            save_run(folder / f"run{i}", solution, origin, {"samples": 600}, 0)
        return [folder_changes.read(folder / f"run{i}") for i in range(2)]


def _proof_steps(rng: Random) -> list[str]:
    """Mostly the certificate, which :mod:`saddleback.runs.recheck` computes again, and the settings of a problem by name."""
    what = ["run:certificate.json", "run:rollouts.npz", "settings:run.json"]
    steps = [str(rng.choice(what, p=[0.5, 0.25, 0.25])) for _ in range(1 + (rng.random() < 0.2))]
    return [*steps, "run:signed"]


@cache
def proofs() -> list[Files]:
    """Runs whose problem and proof are as they should be: a proof of a policy, a strict one, and one that there is none."""
    instance = zoo.make("garnet", states=4, successors=2)
    problem = instance.problem
    out = []
    with tempfile.TemporaryDirectory() as name:
        for i, feasibility in enumerate(("relaxed", "strict")):
            solution = solve(problem, instance.simulator, samples=600, certificate=300, seed=0, feasibility=feasibility)
            origin = Origin("garnet", ("states=4", "successors=2"))
            save_run(Path(name) / f"run{i}", solution, origin, {"samples": 600, "feasibility": feasibility}, 0)
            out.append(folder_changes.read(Path(name) / f"run{i}"))
        table = dataclasses.replace(random_table(1, S=4, A=2), thresholds=np.array([4.9]))
        save_table(table, Path(name) / "table.npz")
        none = solve(table.problem(), table.simulator(), samples=20_000, certificate=20_000, seed=0)
        origin = Origin("table.npz", (), Path(name) / "table.npz", sha256_of(Path(name) / "table.npz"))
        save_run(Path(name) / "none", none, origin, {"samples": 20_000}, 0)
        out.append(folder_changes.read(Path(name) / "none"))
    return out


def _request_steps(rng: Random) -> list[str]:
    return [str(rng.choice(["run:request.json", "settings:request.json"], p=[0.7, 0.3]))]


@cache
def requests() -> list[Files]:
    """What runs under way were asked: with a budget, with an accuracy, and to sample."""
    parts: dict[str, Any] = {"feasibility": "relaxed", "mode": "default", "delta": 0.05, "seed": 3, "buffers": 2}
    parts |= dict.fromkeys(("dual", "solver", "evaluator", "design", "allocation"))
    more = {"iterations": 1000, "error": None, "batch_size": None, "resolution": -1}
    options = [
        ("solve", {"budget": {"samples": 600, "certificate": 300}, "parts": {**parts, **more}}),
        ("solve", {"budget": {"epsilon": 0.5, "max_samples": 10**6}, "parts": parts}),
        ("sample", {"rounds": 2, "seed": 3}),
    ]
    out = []
    with tempfile.TemporaryDirectory() as name:
        for i, (verb, asked) in enumerate(options):
            begun_and_killed(Path(name) / str(i), verb, "garnet", ["states=4", "successors=2"], asked)
            out.append(folder_changes.read(work_folder(Path(name) / str(i))))
    return out


def _store_steps(rng: Random) -> list[str]:
    names = ["place", *(f"store:{name}" for name in sorted(store_changes.BY_NAME))]
    return [str(rng.choice(names))]


@cache
def stores() -> list[Files]:
    """Three shards of two blocks in each layout, with no seal: it would know every change of the manifest."""
    with tempfile.TemporaryDirectory() as name:
        folders = [unsealed(filled(Path(name) / str(i), STORE_BLOCKS, LAYOUTS[x])) for i, x in enumerate(STORE_LAYOUTS)]
        return [folder_changes.read(folder) for folder in folders]


def warm() -> None:
    """Make every good file now, before children are forked."""
    tables(), policies(), runs(), stores(), proofs(), requests()


_STEPS = {
    "table": _npz_steps,
    "policy": _npz_steps,
    "run": _run_steps,
    "store": _store_steps,
    "proof": _proof_steps,
    "request": _request_steps,
    "toml": partial(text_changes.steps, "toml"),
    "drn": partial(text_changes.steps, "drn"),
}
