"""What the command line can be pointed at: a zoo problem, a table (``.npz``), a problem file (``.toml``), or a stored run.

A problem file names code, so it is read only where the user has named it. A run remembers such a file by its name and SHA-256,
and whoever takes up or certifies the run names the file again: a run that comes from a stranger makes nothing run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saddleback.errors import InputError, require
from saddleback.files.json_file import plain, sha256_of, short, to_plain
from saddleback.instances import zoo
from saddleback.instances.instance import Instance
from saddleback.instances.table_file import load_table
from saddleback.problem.cmdp import CMDP
from saddleback.problem.digest import digest, problem_digest
from saddleback.problem.names import file_name
from saddleback.problem.numerics import on_grid, rounded
from saddleback.problem.policies import TabularPolicy
from saddleback.problem.policy_file import with_features
from saddleback.simulators.sources import changed_sources, sources_of
from saddleback.simulators.table import Table

if TYPE_CHECKING:
    from saddleback.runs.run_folder import Origin, Run

_MOST_SETTING = 100  # characters of a name with its value: longer ones are no one's choice
_HASH = "sha256="
_QUESTIONS = 256


def load_target(target: str, settings: Sequence[str] = ()) -> Instance:
    """The problem behind a ``target`` that the user named; ``settings`` are "name=value" strings for a zoo problem.

    Never call it with what a stored run says, other than by way of :func:`named_again`.
    """
    if target.endswith((".npz", ".toml")):
        if settings:
            raise InputError("--set", "must not be given for a file", short(list(settings)), "change the file instead")
        return _of_problem_file(target) if target.endswith(".toml") else _of_file(target, load_table(target))
    parameters = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise InputError("--set", "must look like name=value", short(setting), "for example --set gamma=0.9")
        if len(setting) > _MOST_SETTING or not setting.isprintable():
            raise InputError(
                "--set", f"must be at most {_MOST_SETTING} printable characters", short(setting), "shorten it"
            )
        parameters[name.replace("-", "_")] = value
    if target not in zoo.BY_NAME:
        raise InputError(
            "TARGET",
            f"must be a .toml or .npz file or one of the zoo: {', '.join(zoo.BY_NAME)}",
            short(target),
            "run `saddleback zoo` for the list",
        )
    return zoo.make(target, **parameters)


def origin_of(target: str, settings: Sequence[str], instance: Instance | None = None) -> Origin:
    """How a run folder remembers the problem: by name and settings, or by the file with its hash.

    With its ``instance`` also by what a name may come to mean: the law of a simulator of the zoo, the code that a file names.
    """
    from saddleback.runs.run_folder import Origin  # what runs need is not loaded for a problem alone

    if target.endswith(".npz"):
        return Origin(target, (), Path(target), sha256_of(Path(target)))
    if target.endswith(".toml"):
        sources = {} if instance is None else sources_of(instance.problem, instance.simulator)
        known = f"{_HASH}{sha256_of(Path(target))}"
        return Origin(target, (known,), sources=sources, question=_question_of(Path(target)))
    return Origin(target, tuple(settings), law=None if instance is None else _law_of(instance))


def _question_of(path: Path) -> str:
    """What a problem file says, but for the ranges of its signals, in short."""
    said = tomllib.loads(path.read_text(encoding="utf-8"))
    constraints = said.get("constraints", [])
    for table in (said.get("reward"), *(constraints if isinstance(constraints, list) else ())):
        if isinstance(table, dict):
            table.pop("range", None)
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def named_again(target: str, problem: str | os.PathLike[str] | None) -> str:
    """The target of a stored run, where that is safe to load: a problem file only if the user has named it again."""
    if not target.endswith(".toml"):
        if problem is not None:
            raise InputError(
                "--problem", "must be left out: the run was not made from a problem file", problem, "remove it"
            )
        return target
    if problem is None:
        rule = f"must be given: the run was made from the problem file {plain(target)}, which names code to run"
        raise InputError("--problem", rule, "nothing", "name the file again, as in --problem problem.toml")
    if Path(problem).name != Path(target).name or not os.path.isfile(problem):
        rule = f"must be the problem file that the run was made from, {plain(target)}"
        raise InputError("--problem", rule, problem, "name that file, wherever it is now")
    return str(problem)


def load_run_target(run: Run, problem_file: str | os.PathLike[str] | None = None) -> Instance:
    """The problem of a stored run, which must still be the one that was solved; a problem file must be named again."""
    from saddleback.runs.certificate_file import ProblemRecord

    target = named_again(run.target, problem_file)
    if target.endswith(".toml"):
        recorded, found = "".join(run.settings).removeprefix(_HASH), sha256_of(Path(target))
        if recorded != found:
            rule = f"must be unchanged since the run was made (SHA-256 {plain(recorded, 12)})"
            raise InputError(target, rule, f"{found[:12]}", "restore it, or solve the new problem")
        instance = _of_problem_file(target)
    elif run.table is not None:
        table = dataclasses.replace(load_table(run.table), name=file_name(run.target))
        instance = _of_file(run.target, table)
    elif run.target.endswith(".npz"):  # whatever has that name by now, here, need not be what was solved
        rule, remedy = "must come with a copy of its table, problem.npz", "run `saddleback solve ... --out` again"
        raise InputError(f"{run.path}: target {plain(run.target)}", rule, "none", remedy)
    else:
        instance = load_target(run.target, run.settings)
    problem = instance.problem
    stored = {} if run.certificate is None else to_plain(run.certificate.problem)
    for name, value in to_plain(ProblemRecord.of(problem)).items():
        if name in stored and not _same(stored[name], value):
            rule = f"must describe the problem as it was when the run was made ({name} {plain(str(stored[name]), 300)})"
            remedy = "solve it again, or use the version of saddleback that run.json names"
            raise InputError(f"{run.path}: target {plain(run.target)}", rule, plain(str(value), 300), remedy)
    _require_known(run, instance)
    member = None if run.mixture is None else run.mixture.members[0]
    wanted = (problem.num_states, problem.num_actions)
    if (
        isinstance(member, TabularPolicy) and member.table.shape != wanted
    ):  # linear ones are checked with their features
        remedy = "run `saddleback solve ... --out` again"
        raise InputError(f"{run.path}: policy.npz", f"must have tables of shape {wanted}", member.table.shape, remedy)
    return instance


def _require_known(run: Run, instance: Instance) -> None:
    """Refuse a problem that is not the one that was solved, although name and settings may be."""
    known, where = run.known_by, f"{run.path}: target {plain(run.target)}"
    if known is None:  # written by an earlier version
        return
    rule, remedy = "must be the problem that the run was made for", "set run.json back, or solve this problem"
    asks = problem_digest(instance.problem)
    require(asks == known.asks, where, f"{rule} (problem {plain(known.asks)})", asks, remedy)
    if run.target.endswith(".toml"):
        changed = changed_sources(known.sources or {}, sources_of(instance.problem, instance.simulator))
        rule = "must be made of the code that it was made of when it was solved"
        require(not changed, where, rule, changed, "restore the code, or solve the new problem")
    elif known.law is not None:
        law = _law_of(instance)
        require(law == known.law, where, f"{rule} (simulator {plain(known.law)})", law, remedy)


def _law_of(instance: Instance) -> str:
    """P in short, to six digits; where there is no table, answers of the simulator to fixed questions."""
    if instance.table is not None:
        P = instance.table.P
        return digest(P.indices.astype(np.int64), P.indptr.astype(np.int64), on_grid(rounded(P.data), 6))
    model, (states, actions) = instance.simulator, instance.problem.pairs()
    chosen = np.linspace(0, len(actions) - 1, _QUESTIONS).round().astype(np.int64)
    before = model.num_queries
    draw = model.sample(
        np.asarray(states)[chosen], np.asarray(actions)[chosen], np.random.Generator(np.random.Philox(0))
    )
    model.num_queries = before  # a check
    return digest(*(None if x is None else on_grid(rounded(x), 6) for x in draw))


def with_features_of(problem: CMDP, run: Run) -> Run:
    """The run with a policy that can be played: a stored linear one has lost its features, which are the problem's."""
    if run.mixture is None or problem.features is None:
        return run
    return dataclasses.replace(run, mixture=with_features(run.mixture, problem.features))


def _same(a: Any, b: Any) -> bool:
    """Equal, numbers up to rounding: another version of NumPy may sum in another order."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return bool(a == b)


def _of_problem_file(target: str) -> Instance:
    from saddleback.instances.problem_file import load_problem  # a zoo problem needs none of it

    return load_problem(target)


def _of_file(target: str, table: Table) -> Instance:
    return Instance(target, table.problem(), table.simulator(), table, "a problem table from a file", {})
