"""What the command line can be pointed at: a zoo problem, a table (``.npz``, ``.drn``), a problem file (``.toml``), or a stored run.

A run holds what is needed to read it, to play its policy, to export and to report it (:mod:`~saddleback.runs.problem_record`), so
none of that loads code (:func:`load_run_problem`). Whoever draws new samples needs the simulator (:func:`load_run_target`): of the
zoo, from the table that the run keeps, or from code. Code is loaded from the file that the user names with ``--problem``, or else
from where the problem file was when the run was made, if it and the code beside it are unchanged since; nobody is asked.
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

import msgspec
import numpy as np

from saddleback.errors import InputError, nearest, require
from saddleback.files.json_file import plain, sha256_of, short, to_plain
from saddleback.instances import zoo
from saddleback.instances.instance import Instance
from saddleback.instances.table_file import load_drn, load_table
from saddleback.problem.cmdp import CMDP
from saddleback.problem.digest import digest, problem_digest
from saddleback.problem.names import file_name
from saddleback.problem.numerics import on_grid, rounded
from saddleback.problem.policies import TabularPolicy
from saddleback.problem.policy_file import with_features
from saddleback.runs.limits import limit_settings, limits_of, own_settings
from saddleback.runs.problem_place import PYTHON, PYTHON_FILE, Remembered, named_again
from saddleback.simulators.sources import changed_sources, sources_of
from saddleback.simulators.table import Table

if TYPE_CHECKING:
    from saddleback.runs.run_folder import Origin, Run

_MOST_SETTING = 100  # characters of a name with its value: longer ones are no one's choice
_HASH = "sha256="
_QUESTIONS = 256


def load_target(target: str, settings: Sequence[str] = ()) -> Instance:
    """The problem behind a ``target`` that the user named; ``settings`` are "name=value" strings for a zoo problem.

    Among them may be other limits of its constraints (:mod:`~saddleback.runs.limits`), for a problem of any kind. Never call
    it with what a stored run says, other than by way of :func:`named_again`.
    """
    return _named(target, own_settings(settings)).with_limits(limits_of(settings))


def _named(target: str, settings: Sequence[str]) -> Instance:
    """The problem with the limits that it has itself."""
    if target.endswith((".npz", ".toml")):
        if settings:
            remedy = "change the file instead; --limit name=value gives a constraint another limit"
            raise InputError("--set", "must not be given for a file", short(list(settings)), remedy)
        return _of_problem_file(target) if target.endswith(".toml") else _of_file(target, load_table(target))
    if target.endswith(".drn"):
        return load_drn(target, _parameters(settings))
    parameters = {name.replace("-", "_"): value for name, value in _parameters(settings).items()}
    if target not in zoo.BY_NAME:
        raise InputError(
            "TARGET",
            f"must be a .toml, .npz or .drn file or one of the zoo: {', '.join(zoo.BY_NAME)}",
            short(target),
            nearest(target, zoo.BY_NAME, "run `saddleback zoo` for the list"),
        )
    return zoo.make(target, **parameters)


def _parameters(settings: Sequence[str]) -> dict[str, str]:
    parameters = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise InputError("--set", "must look like name=value", short(setting), "for example --set gamma=0.9")
        if len(setting) > _MOST_SETTING or not setting.isprintable():
            raise InputError(
                "--set", f"must be at most {_MOST_SETTING} printable characters", short(setting), "shorten it"
            )
        parameters[name] = value
    return parameters


def load_source(target: str, source: str, settings: Sequence[str] = ()) -> Instance:
    """The problem of ``target`` from where it is now, ``source``: what :func:`named_again` says."""
    return _of_python(source) if target.startswith(PYTHON) else load_target(source, settings)


def origin_of(target: str, settings: Sequence[str], instance: Instance | None = None) -> Origin:
    """How a run folder remembers the problem: by name and settings, or by the file with its hash.

    With its ``instance`` also by what a name may come to mean: the law of a simulator of the zoo, the code that a file names.
    """
    from saddleback.runs.run_folder import Origin  # what runs need is not loaded for a problem alone

    limits = limit_settings(settings)
    if target.endswith(".npz"):
        return Origin(target, tuple(limits), Path(target), sha256_of(Path(target)), path=os.path.abspath(target))
    if instance is not None and PYTHON_FILE.fullmatch(target):
        return Origin(target, model=instance.table)
    if target.endswith(".drn"):
        model = None if instance is None else instance.table
        return Origin(target, tuple(settings), path=os.path.abspath(target), model=model)
    if target.endswith(".toml"):
        sources = {} if instance is None else sources_of(instance.problem, instance.simulator)
        known = f"{_HASH}{sha256_of(Path(target))}"
        question, path = _question_of(Path(target), limits), os.path.abspath(target)
        return Origin(target, (known, *limits), sources=sources, question=question, path=path)
    return Origin(target, tuple(settings), law=None if instance is None else _law_of(instance))


def _question_of(path: Path, limits: Sequence[str]) -> str:
    """What a problem file says, but for the ranges of its signals, and limits in the place of its own, in short."""
    said = tomllib.loads(path.read_text(encoding="utf-8")) | ({"limits": list(limits)} if limits else {})
    constraints = said.get("constraints", [])
    for table in (said.get("reward"), *(constraints if isinstance(constraints, list) else ())):
        if isinstance(table, dict):
            table.pop("range", None)
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def load_run_problem(run: Run, problem_file: str | os.PathLike[str] | None = None) -> CMDP:
    """The problem of a stored run for whoever draws no sample: no code is loaded, unless the user names its file.

    The features of a policy are None where they are code.
    """
    coded = run.target.endswith(".toml") or run.target.startswith(PYTHON)
    if run.question is None or not coded or problem_file is not None:
        return load_run_target(run, problem_file).problem
    try:
        problem = run.question.problem()
    except (InputError, ValueError) as error:
        remedy = "run `saddleback solve ... --out` again"
        raise InputError(
            f"{run.path}: problem.json", "must describe a problem", plain(str(error), 300), remedy
        ) from None
    _require_stated(run, problem, run.question.observed)
    return problem


def load_run_target(run: Run, problem_file: str | os.PathLike[str] | None = None) -> Instance:
    """The problem of a stored run with its simulator; it must still be the one that was solved."""
    if run.table is not None:  # a copy of ours, wherever the problem came from
        if problem_file is not None:
            named_again("" if run.target.startswith(PYTHON) else run.target, problem_file)
        made = run.target.startswith(PYTHON) and run.question is not None
        name = run.question.name if made and run.question is not None else file_name(run.target)
        instance = _of_file(run.target, dataclasses.replace(load_table(run.table), name=name))
    elif run.target.endswith((".npz", ".drn")):  # whatever has that name by now, here, need not be what was solved
        rule, remedy = "must come with a copy of its table, problem.npz", "run `saddleback solve ... --out` again"
        raise InputError(f"{run.path}: target {plain(run.target)}", rule, "none", remedy)
    else:
        sources = None if run.known_by is None else run.known_by.sources
        known = Remembered.of(run.file, run.settings, sources)
        target = named_again(run.target, problem_file, known)
        if target.endswith(".toml"):
            found = sha256_of(Path(target))
            if known.sha256 != found:
                rule = f"must be unchanged since the run was made (SHA-256 {plain(str(known.sha256), 12)})"
                raise InputError(target, rule, f"{found[:12]}", "restore it, or solve the new problem")
            instance = _of_problem_file(target)
        elif run.target.startswith(PYTHON):
            instance = _of_python(target)
        else:
            instance = load_target(run.target, run.settings)
    instance = instance.with_limits(limits_of(run.settings))
    _require_stated(run, instance.problem, instance.problem.observed.tolist())
    _require_known(run, instance)
    return instance


def _require_stated(run: Run, problem: CMDP, observed: list[bool] | None) -> None:
    """Refuse a problem that is not what the certificate and the policy say it is.

    ``observed`` are the signals that only the simulator shows, of which the problem without its code knows none.
    """
    from saddleback.runs.certificate_file import ProblemRecord

    stored = {} if run.certificate is None else to_plain(run.certificate.problem)
    found = to_plain(msgspec.structs.replace(ProblemRecord.of(problem), observed=observed))
    for row, then in zip(found["constraints"], stored.get("constraints", ()), strict=False):
        if "units" not in then:  # written by an earlier version, which did not say in what a limit was given
            row.pop("units", None)
    for name, value in found.items():
        if name in stored and not same_up_to_rounding(stored[name], value):
            rule = f"must describe the problem as it was when the run was made ({name} {plain(str(stored[name]), 300)})"
            remedy = "solve it again, or use the version of saddleback that run.json names"
            raise InputError(f"{run.path}: target {plain(run.target)}", rule, plain(str(value), 300), remedy)
    member = None if run.mixture is None else run.mixture.members[0]
    wanted = (problem.num_states, problem.num_actions)
    if (
        isinstance(member, TabularPolicy) and member.table.shape != wanted
    ):  # linear ones are checked with their features
        remedy = "run `saddleback solve ... --out` again"
        raise InputError(f"{run.path}: policy.npz", f"must have tables of shape {wanted}", member.table.shape, remedy)


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


def same_up_to_rounding(a: Any, b: Any) -> bool:
    """Equal, numbers up to rounding: another version of NumPy may sum in another order."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_up_to_rounding(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same_up_to_rounding, a, b))
    if isinstance(a, float) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return bool(a == b)


def _of_problem_file(target: str) -> Instance:
    from saddleback.instances.problem_file import load_problem  # a zoo problem needs none of it

    return load_problem(target)


def _of_python(target: str) -> Instance:
    from saddleback.instances.problem_file.python_file import load_python  # which hardly anybody needs

    return load_python(target)


def _of_file(target: str, table: Table) -> Instance:
    return Instance(target, table.problem(), table.simulator(), table, "a problem table from a file", {})
