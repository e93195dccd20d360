"""What a loader may do with a mutant: refuse it in the documented way, or accept it and be right.

Each check writes the mutant, loads it, and looks at what came out with readers of its own. An error must be an
:class:`InputError` with its four parts or a :class:`StorageError` with its remedy, in one printable line of bearable
length: it may be shown in a terminal, and what is in it may have been written by a stranger. Anything else is raised.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.folder_changes import write
from fuzz.mutants import MODES, NPZ, STORE_BLOCKS, STORE_LAYOUTS, TEXTS, Recipe, mutant
from fuzz.plain_readers import agree, arrays_in, distributions, good_lines, identical, json_in, numbers
from saddleback.errors import InputError, SaddlebackError, SimulatorError, StorageError
from saddleback.files.json_file import to_plain
from saddleback.instances.problem_file import load_problem
from saddleback.instances.table_file import load_table, save_table
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.policy_file import load_mixture, save_policy
from saddleback.problem.spaces import FiniteStates
from saddleback.runs.recheck.whole_run import recheck_run
from saddleback.runs.run_folder import load_run
from saddleback.runs.settings import Settings
from saddleback.runs.targets import load_run_target, load_target, with_features_of
from saddleback.runs.work_folder import load_work, work_folder
from saddleback.sampling.memory import check_size
from saddleback.sampling.store.sample_store import SampleStore, verify_store
from saddleback.simulators.drn import read_drn, write_drn
from saddleback.simulators.table import Table
from sampling.store.store_runs import LAYOUTS, QuickDisk, draw

MOST_MESSAGE = 1500
OUTSIDE = b"a file next to the folder, which nobody has any business with"


def check(recipe: Recipe, folder: Path) -> str:
    """The verdict on a mutant; what must not be is raised."""
    folder.mkdir()
    try:
        (folder / "outside").write_bytes(OUTSIDE)
        write(folder / "files", mutant(recipe))
        own_code = (SimulatorError,) if recipe.kind == "toml" else ()
        verdict = refused(lambda: _CHECKS[recipe.kind](recipe, folder / "files"), *own_code)
        agree((folder / "outside").read_bytes() == OUTSIDE, "a file outside was changed")
        agree(verdict == "accepted" or not recipe.harmless, "a good file was refused")
        return verdict
    finally:
        shutil.rmtree(folder)


def refused(action: Callable[[], None], *more: type[SaddlebackError]) -> str:
    """ "accepted", or the name of the error if it is a documented one."""
    try:
        action()
    except SaddlebackError as error:
        agree(type(error) in (InputError, StorageError, *more), f"a {type(error).__name__}")
        if isinstance(error, InputError):
            agree(all(isinstance(x, str) and x for x in (error.name, error.rule, error.remedy)), "parts are missing")
        message = str(error)
        agree("; " in message and message.isprintable(), f"no plain message: {message[:300]!r}")
        agree(len(message) <= MOST_MESSAGE, f"a message of {len(message)} characters: {message[:300]!r}")
        return type(error).__name__
    return "accepted"


# ---- tables and policies -----------------------------------------------------------------------------------------------


def _table(recipe: Recipe, folder: Path) -> None:
    table = load_table(folder / NPZ)
    table_is_right(table, arrays_in(folder / NPZ))
    save_table(table, folder / "again.npz")
    tables_are_equal(table, load_table(folder / "again.npz"))


def table_is_right(table: Table, x: dict[str, np.ndarray]) -> None:
    """Against the arrays as a plain reader finds them."""
    r, c, b = (numbers(x[name]) for name in ("reward", "constraints", "thresholds"))
    (S, A), m = r.shape, len(b)
    agree(min(S, A, m) >= 1 and c.shape == (m, S, A) and b.shape == (m,), "shapes")
    gamma = numbers(x["gamma"])
    agree(gamma.size == 1 and 0 <= gamma.item() < 1 and table.gamma == gamma.item(), "gamma")
    identical(table.reward, r, "reward")
    identical(table.constraints, c, "constraints")
    identical(table.thresholds, b, "thresholds")
    identical(table.rho, numbers(x["rho"]), "rho")
    agree(table.rho.shape == (S,), "the shape of rho")
    distributions(table.rho, "rho")
    P = _dense(x, S, A)
    distributions(P, "P")
    agree(np.abs(table.P.toarray() - P.reshape(S * A, S)).max() <= 1e-15, "P is another")
    names = x["names"].tolist() if "names" in x else list(table.names)
    agree(list(table.names) == names and len(set(names)) == m and all(n and n.isprintable() for n in names), "names")
    agree(list(table.senses) == (x["senses"].tolist() if "senses" in x else [">="] * m), "senses")
    agree(set(table.senses) <= {">=", "<="}, "senses")
    if "phi" in x:
        identical(table.phi, numbers(x["phi"]), "phi")
        agree(x["phi"].shape[:2] == (S, A) and x["phi"].ndim == 3 and x["phi"].shape[2] >= 1, "the shape of phi")
    spans = [x["reward_range"]] if "reward_range" in x else []
    spans += list(x["ranges"]) if "ranges" in x else []
    values = ([r] if "reward_range" in x else []) + (list(c) if "ranges" in x else [])
    for (low, high), z in zip(spans, values, strict=True):
        slack = 1e-9 * (float(high) - float(low))
        agree(low < high and low - slack <= z.min() and z.max() <= high + slack, "values leave their range")
    problem = table.problem()
    agree(all(np.isfinite(y).all() for y in (problem.base, problem.scale, problem.thresholds)), "units that overflow")


def _dense(x: dict[str, np.ndarray], S: int, A: int) -> np.ndarray:
    agree(("P" in x) != ("P_data" in x), "P twice or never")
    if "P" in x:
        agree(x["P"].shape == (S, A, S), "the shape of P")
        return numbers(x["P"])
    data, indices, indptr = numbers(x["P_data"]), x["P_indices"].tolist(), x["P_indptr"].tolist()
    agree(
        len(indptr) == S * A + 1 and indptr[0] == 0 and indptr[-1] == len(data) == len(indices), "lengths of CSR parts"
    )
    agree(all(a <= b for a, b in itertools.pairwise(indptr)), "P_indptr falls")
    agree(all(0 <= i < S for i in indices), "P_indices leaves the states")
    P = np.zeros((S * A, S))
    for row in range(S * A):
        for i in range(indptr[row], indptr[row + 1]):
            agree(data[i] >= 0, "a negative probability")
            P[row, indices[i]] += data[i]
    return P.reshape(S, A, S)


def tables_are_equal(one: Table, other: Table) -> None:
    """All that is stored, bit for bit."""
    for name in ("reward", "constraints", "thresholds", "rho", "gamma", "senses", "names"):
        identical(getattr(one, name), getattr(other, name), f"{name} after a round trip")
    for name in ("data", "indices", "indptr"):
        identical(getattr(one.P, name), getattr(other.P, name), f"P.{name} after a round trip")
    agree((one.phi is None) == (other.phi is None), "phi after a round trip")
    if one.phi is not None:
        identical(one.phi, other.phi, "phi after a round trip")
    agree(one.reward_range == other.reward_range and one.ranges == other.ranges, "ranges after a round trip")
    agree(one.state_names == other.state_names, "state_names after a round trip")


def _policy(recipe: Recipe, folder: Path) -> None:
    mixture = load_mixture(folder / NPZ)
    w, p = mixture_is_right(mixture, arrays_in(folder / NPZ))
    k, S, A = p.shape
    save_policy(mixture, any_problem(S, A), folder / "again.npz")
    again = arrays_in(folder / "again.npz")
    identical(again["weights"], w, "weights after a round trip")
    identical(again["probabilities"], p, "probabilities after a round trip")
    actions = [member.act(np.arange(S), np.random.default_rng(0)) for member in mixture.members]
    agree(
        all(a.min() >= 0 and a.max() < A for a in actions) and 0 <= mixture.draw_member(np.random.default_rng(0)) < k,
        "use",
    )


def mixture_is_right(mixture: MixturePolicy, x: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    w, p = numbers(x["weights"]), numbers(x["probabilities"])
    names = [x[name] for name in ("state_names", "action_names") if name in x]
    agree(len(x) == 2 + len(names) and all(n.dtype.kind == "U" and n.ndim == 1 for n in names), "what it holds")
    agree(p.ndim == 3 and w.shape == p.shape[:1] and p.size > 0, "shapes")
    distributions(w, "weights")
    distributions(p, "probabilities")
    identical(mixture.weights, w, "weights")
    agree(len(mixture.members) == len(w), "members")
    for member, table in zip(mixture.members, p, strict=True):
        agree(isinstance(member, TabularPolicy) and member.num_actions == p.shape[2], "members")
        identical(member.probabilities(np.arange(p.shape[1])), table, "probabilities")
    return w, p


def any_problem(S: int, A: int) -> CMDP:
    zero = np.zeros((S, A))
    start = Start(np.array([0]), np.array([1.0]))
    return CMDP(
        gamma=0.5,
        start=start,
        num_actions=A,
        states=FiniteStates(S),
        reward=zero,
        constraints=[Constraint("c", zero, ">=", 0.0)],
    )


# ---- files of text ---------------------------------------------------------------------------------------------------


def _problem_file(recipe: Recipe, folder: Path) -> None:
    """What ``solve`` does with a problem file, up to its first samples."""
    instance = load_problem(folder / TEXTS["toml"])
    text = tomllib.loads((folder / TEXTS["toml"]).read_bytes().decode().replace("\r\n", "\n"))
    problem = instance.problem
    agree("gamma" not in text or problem.gamma == text["gamma"], "gamma")
    agree(isinstance(text.get("states", {}), dict) or problem.num_states == text["states"], "states")
    names = [problem.name, *(c.name for c in problem.constraints), *(problem.actions or ())]
    agree(all(name.isprintable() and 1 <= len(name) <= 200 for name in names), "names")
    agree(all(np.isfinite(x).all() for x in (problem.base, problem.scale, problem.thresholds)), "units that overflow")
    check_size(problem)
    states, actions = problem.some_pairs(8, np.random.default_rng(0))
    drawn = instance.simulator.sample(states, actions, np.random.default_rng(1)).next_states
    agree(not problem.states.outside(drawn).any(), "next states")
    z = problem.utilities(states, actions)
    agree(bool(np.all(np.isnan(z) | ((z >= 0) & (z <= 1)))), "utilities")
    if problem.features is not None:
        agree(problem.features.at(states, actions).shape == (8, problem.features.dim), "features")


def _model(recipe: Recipe, folder: Path) -> None:
    """A DRN file: read, and against the numbers of states and choices that a plain reader counts."""
    path = folder / TEXTS["drn"]
    limits = [Constraint("wear", None, "<=", 1.0, (-1e9, 1e9))]
    table = read_drn(path, limits, gamma=0.9, reward="gain", reward_range=(-1e9, 1e9))
    lines = [line.strip() for line in path.read_text(encoding="utf-8").split("\n")]
    after = lines[lines.index("@model") :]
    agree(table.num_states == sum(line.startswith("state ") for line in after), "states")
    distributions(table.rho, "rho")
    agree(bool(np.all(table.P.data >= 0)) and bool(np.abs(table.P.sum(axis=1) - 1).max() < 1e-8), "P")
    agree(table.state_names is None or all(len(name) <= 200 for name in table.state_names), "names")
    write_drn(table, folder / "again.drn")
    again = read_drn(folder / "again.drn", limits, gamma=0.9, reward_range=(-1e9, 1e9))
    identical(table.reward, again.reward, "rewards after a round trip")
    identical(table.P.toarray(), again.P.toarray(), "P after a round trip")


# ---- run folders -------------------------------------------------------------------------------------------------------


def _run(recipe: Recipe, folder: Path) -> None:
    run = load_run(folder)
    manifest = json_in((folder / "run.json").read_bytes())
    listed = manifest["files"]
    for name, entry in listed.items():
        content = (folder / name).read_bytes()
        agree(
            name in FILES and entry == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}, f"{name}"
        )
    agree("solution.json" in listed and manifest["format"] in ("saddleback-run/1", "saddleback-run/2"), "the manifest")
    agree([run.target, run.settings] == [manifest["target"][k] for k in ("name", "settings")], "the target")
    agree(
        (run.request, run.seed, run.versions) == tuple(manifest[k] for k in ("request", "seed", "versions")),
        "the request",
    )
    agree(type(run.seed) is int and run.seed >= 0 and all(isinstance(s, str) for s in run.settings), "the seed")
    solution = json_in((folder / "solution.json").read_bytes())
    said = to_plain(run.solution)
    kept = {k: solution.get(k) for k in said}
    kept["settings"] = {k: v for k, v in solution["settings"].items() if k in said["settings"]}
    agree(without_none(kept) == without_none(said), "the solution")
    agree(all(_finite(x) for x in solution["multipliers"]), "the multipliers")
    agree((run.certificate is None) == ("certificate.json" not in listed), "the certificate")
    if run.certificate is not None:
        _certificate(to_plain(run.certificate), json_in((folder / "certificate.json").read_bytes()))
    agree((run.mixture is None) == ("policy.npz" not in listed), "the policy")
    if run.mixture is not None:
        mixture_is_right(run.mixture, arrays_in(folder / "policy.npz"))
    if run.rollouts is not None:
        x = arrays_in(folder / "rollouts.npz")
        for name, got in run.rollouts._asdict().items():
            identical(numbers(np.asarray(got)), numbers(x[name]), name)
        agree(run.rollouts.values.shape[1] == 1 + len(run.certificate.problem.constraints), "columns")  # type: ignore[index]
    if run.table is not None or run.target.endswith(".npz"):
        instance = load_run_target(run)
        table_is_right(instance.table, arrays_in(folder / "problem.npz"))


FILES = ("solution.json", "certificate.json", "policy.npz", "rollouts.npz", "bound.npz", "problem.npz")
FILES += ("trace.jsonl", "frontier.json", "dual.json", "design.json", "stationary.npz", "problem.json")


def _certificate(got: dict[str, Any], text: dict[str, Any]) -> None:
    agree(without_none(got) == without_none(text), "the certificate")
    m, problem = len(text["problem"]["constraints"]), text["problem"]
    agree(0 < text["confidence"] < 1 and 0 <= problem["gamma"] < 1, "levels")
    limits = [*text["constraints"], *([] if text["value"] is None else [text["value"]])]
    agree(all(len(x) == 2 and _finite(x[0]) and _finite(x[1]) and x[0] <= x[1] for x in limits), "limits")
    agree(len(text["constraints"]) == (m if text["value"] is not None else 0), "one pair of limits a constraint")
    agree(all(_finite(c["scale"]) and c["scale"] != 0 for c in [problem["reward"], *problem["constraints"]]), "scales")


def without_none(x: Any) -> Any:
    """Lists for tuples, the nearest float64 for a whole number, and no fields that say nothing."""
    if isinstance(x, dict):
        return {k: without_none(v) for k, v in x.items() if v is not None and v != [] and v != ()}
    if isinstance(x, (list, tuple)):
        return [without_none(v) for v in x]
    return float(x) if isinstance(x, int) and not isinstance(x, bool) else x


def _finite(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool) and abs(x) < 1.8e308 and math.isfinite(float(x))


# ---- proofs and requests -----------------------------------------------------------------------------------------------


def _proof(recipe: Recipe, folder: Path) -> None:
    """What ``certify --recheck`` does with a stranger's run."""
    run = load_run(folder)
    instance = load_run_target(run)
    told = run.certificate
    if told is None:
        return
    agree(instance.problem.num_states == told.problem.states, "another problem")
    checks = recheck_run(with_features_of(instance.problem, run), instance)
    for one in checks:
        text = f"{one.name}: {one.detail}"
        agree(text.isprintable() and len(text) <= MOST_MESSAGE, f"no plain sentence: {text[:300]!r}")
    if not all(one.passed for one in checks) or run.rollouts is None:
        return
    problem, z = told.problem, arrays_in(folder / "rollouts.npz")["values"]
    rows = [problem.reward, *problem.constraints]
    for j, (row, (low, high)) in enumerate(zip(rows, [told.value, *told.constraints], strict=True)):
        mean = float(z[:, j].mean()) * row.scale + row.base * problem.horizon
        slack = 1e-5 * abs(row.scale) * problem.horizon
        agree(low - slack <= mean <= high + slack, "limits that do not hold the mean of the rollouts")


def _request(recipe: Recipe, folder: Path) -> None:
    """What ``resume`` reads of a stranger's run before it draws anything."""
    place = folder.with_name("asked")
    folder.rename(work_folder(place))
    request = load_work(place)
    text = json_in((work_folder(place) / "request.json").read_bytes())
    text.pop("seal", None)
    agree(to_plain(request) == text and request.format in ("saddleback-work/1", "saddleback-work/2"), "the request")
    options = request.options
    if request.verb == "solve":
        Settings.of_record(options)
    parts = options if request.verb == "sample" else options["parts"]
    agree(request.verb in ("solve", "sample") and type(parts["seed"]) is int and parts["seed"] >= 0, "the seed")
    sizes = [options["rounds"]] if request.verb == "sample" else [x for x in options["budget"].values() if x]
    agree(all(_finite(x) for x in sizes if not isinstance(x, str)), "sizes")
    load_target(request.target, request.settings)


# ---- sample stores -----------------------------------------------------------------------------------------------------


def _store(recipe: Recipe, folder: Path) -> None:
    mode, layout = MODES[recipe.base % len(MODES)], LAYOUTS[STORE_LAYOUTS[recipe.base // len(MODES)]]
    report: list[Any] = []
    told = refused(lambda: report.append(verify_store(folder)))
    for sentence in [*report[0].damage, *report[0].gaps] if report else ():
        agree(sentence.isprintable() and len(sentence) <= MOST_MESSAGE, f"no plain sentence: {sentence[:300]!r}")
    good, only_last = (
        good_lines((folder / "manifest.jsonl").read_bytes()) if (folder / "manifest.jsonl").is_file() else ([], False)
    )
    with SampleStore.open(folder, writable=mode != "read", drop_damaged=mode == "mend", disk=QuickDisk()) as store:
        agree(told == "accepted" and (mode == "mend" or report[0].sound), "verify_store knows better")
        agree(recipe.forged or store.layout == layout, "another layout")
        held = store.blocks()
        for block, rows in store.rows():
            rows_are_right(rows, store.layout, block.size)
            if not recipe.forged:
                agree(block in STORE_BLOCKS, f"{block} was never drawn")
                identical(rows, layout.encode(block, draw(block, layout)), f"{block}")
        named = {tuple(b[:4]) for fields in good for b in fields["blocks"]}
        agree({tuple(b) for b in held} <= named, "blocks that no line names")
        if mode != "mend" and not recipe.forged:  # a forged line may be one that no writer could have written
            agree(only_last and {tuple(b) for b in held} == named, "blocks are lost")
        decoded = [(b, d) for stream in sorted({b.stream for b in held}) for b, d in store.read(stream)]
        agree([b for b, _ in decoded] == held and all(len(d.next_states) == b.size for b, d in decoded), "sizes")
        if not report[0].gaps and held and {b.stream for b in held} == {0} and {b.pair for b in held} == {0, 1}:
            agree(store.samples(0, 2).total == sum(b.size for b in held), "samples")
    if mode != "read":
        with SampleStore.open(folder, writable=False, disk=QuickDisk()) as store:
            agree(store.blocks() == held and store.recovery == (False, [], 0), "the next one finds something else")


def rows_are_right(rows: np.ndarray, layout: Any, size: int) -> None:
    s = rows["next_state"]
    if layout.num_states is not None:
        agree(s.min() >= 0 and all(int(x) < layout.num_states for x in s.tolist()), "next states")
    for name in rows.dtype.names or ():
        agree(rows[name].dtype.kind != "f" or np.isfinite(rows[name]).all(), f"{name} is not finite")
    if layout.kind == "counts":
        counts = rows["count"].tolist()
        agree(min(counts) >= 1 and sum(counts) == size, "counts")
        agree(all(a < b for a, b in itertools.pairwise(s.tolist())), "states out of order")
        agree("deviations" not in rows.dtype.names or (rows["deviations"] >= 0).all(), "a negative sum of squares")
    else:
        agree(len(rows) == size, "the number of rows")


_CHECKS = {
    "table": _table,
    "policy": _policy,
    "run": _run,
    "store": _store,
    "proof": _proof,
    "request": _request,
    "toml": _problem_file,
    "drn": _model,
}
