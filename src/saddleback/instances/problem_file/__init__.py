"""A problem from a TOML file (docs/problem_files.md), with a simulator named by import path and everything around it in the user's
units: read, checked, and put together.

    gamma, states, actions, preferred, start, pool, [simulator], [reward], [[constraints]], [features]

Where the simulator is a problem of the zoo, whatever the file leaves out is that problem's.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np

from saddleback.errors import InputError
from saddleback.files.json_file import plain, short
from saddleback.instances.instance import Instance
from saddleback.instances.problem_file import parts
from saddleback.instances.problem_file.code import imported
from saddleback.instances.problem_file.sections import Section, read_toml
from saddleback.problem.cmdp import CMDP
from saddleback.problem.names import file_name
from saddleback.problem.signals import total_of
from saddleback.problem.spaces import StateSpace
from saddleback.simulators.function import from_function
from saddleback.simulators.table import Table

__all__ = ["load_problem"]

_KEYS = (
    "name",
    "gamma",
    "states",
    "actions",
    "start",
    "pool",
    "kind",
    "simulator",
    "reward",
    "constraints",
    "features",
    "preferred",
)
_CONSTRAINTS = 'write [[constraints]] with name, values, limit = "<= 5" and units'
_OTHER_WORDS = {
    "discount": "gamma",
    "horizon": "gamma",
    "cost": "constraints",
    "costs": "constraints",
    "rho": "start",
    "initial_state": "start",
}


def load_problem(path: str | os.PathLike[str]) -> Instance:
    """The problem and simulator that a file describes; loads the code that the file names."""
    file = read_toml(Path(path))
    for word, meant in _OTHER_WORDS.items():
        if file.has(word):
            raise file.fault(word, "must be a known key", "an unknown one", f"did you mean {meant}?")
    file.allow(*_KEYS)
    remedy = (
        'write [simulator] with function = "shop:step", or with zoo = "queue", or with gymnasium = "MountainCar-v0"'
    )
    where = file.table("simulator", remedy)
    if where.has("zoo"):
        return _from_zoo(file, where)
    if where.has("gymnasium"):
        return _from_environment(file, where)
    where.allow("function", "kind")
    where.get("function", "text", remedy='write function = "shop:step" for the function step in shop.py')
    kind, function = parts.kind_of(where, parts.kind_of(file, "step")), imported(where, "function")
    fields = _fields(file, parts.kind_of(file, kind), parts.states_of(file), parts.actions_of(file))
    problem = _problem(file, fields | {"actions": parts.action_names(file)})
    model = from_function(function, problem.states, signals=_observed(file), batched=kind == "batch")
    return Instance(str(path), problem, model, None, "a problem file", {})


def _observed(file: Section) -> tuple[str | None, ...]:
    """Names of what the simulator returns beside the next state, None for what is known."""
    signals = [("reward", file.values["reward"]), *((c["name"], c) for c in file.values["constraints"])]
    names = tuple(name if table["values"] == "observed" else None for name, table in signals)
    return names if any(names) else ()


def _fields(file: Section, kind: str, space: StateSpace, num_actions: int, ends: bool = False) -> dict[str, Any]:
    """Everything that a CMDP is made of."""
    shape = (getattr(space, "num", None), num_actions)
    reward = file.table("reward", 'write [reward] with values = "shop:reward" and range = [0, 1]')
    reward.allow("values", "range", "kind")
    values = parts.signal_of(reward, kind, shape)
    constraints = parts.constraints_of(file.tables("constraints", _CONSTRAINTS), kind, shape, {})
    if not constraints:
        raise file.fault("constraints", "must hold at least one", "none", _CONSTRAINTS)
    return {
        "gamma": parts.gamma_of(file),
        "start": parts.start_of(file, space),
        "num_actions": num_actions,
        "states": space,
        "reward": values,
        "reward_range": parts.range_of(reward, values),
        "constraints": constraints,
        "candidates": parts.pool_of(file, space, num_actions, ends),
        "features": parts.features_of(file, kind, space, num_actions),
        "name": file.get("name", "text", file_name(file.file)),
        "preferred": file.get("preferred", "anything", None),
    }


def _from_environment(file: Section, where: Section) -> Instance:
    """A Gymnasium environment, which has states of its own, and actions too unless the file lists them."""
    from saddleback.simulators.gymnasium_env import EnvSampler, from_gymnasium

    where.allow("gymnasium", "settings")
    if file.has("states"):
        raise file.fault("states", "must be left out with an environment", short(file.values["states"]), "remove it")
    name, settings = where.get("gymnasium", "text"), where.get("settings", "a table", {})
    for c in (file.table("reward", _CONSTRAINTS), *file.tables("constraints", _CONSTRAINTS)):
        c.get("values", "anything")
    try:
        model = from_gymnasium(name, signals=_observed(file), actions=file.get("actions", "anything", None), **settings)
    except InputError as error:
        at = file if file.has(error.name) else where
        raise at.fault(
            error.name if at.has(error.name) else "gymnasium", error.rule, error.value, error.remedy
        ) from None
    except Exception as error:  # Gymnasium's own, and the environment's
        what = plain(f"{type(error).__name__}: {error}", 300)
        raise where.fault("gymnasium", "must name an environment that can be made", what, "check the name") from error
    sampler = model._sample
    assert isinstance(sampler, EnvSampler)
    kind = parts.kind_of(file, "batch")
    fields = _fields(file, kind, model.states, len(sampler.actions), sampler.terminates)
    return Instance(str(file.file), _problem(file, fields), model, None, f"the environment {name}", {})


def _from_zoo(file: Section, where: Section) -> Instance:
    """A problem of the zoo with its discount, start, features, limits or name changed."""
    instance = parts.zoo_of(where)
    for key in ("states", "actions", "reward", "pool"):
        if file.has(key):
            remedy = "remove it: the zoo problem has its own"
            raise file.fault(key, "must be left out with a zoo problem", short(file.values[key]), remedy)
    problem, kind = instance.problem, parts.kind_of(file, "batch")
    shape = (problem.num_states, problem.num_actions)
    changes: dict[str, Any] = {"name": file.get("name", "text", file_name(file.file))}
    if file.has("preferred"):
        changes["preferred"] = file.get("preferred", "anything")
    if file.has("gamma"):
        changes["gamma"] = parts.gamma_of(file)
    if file.has("start"):
        changes["start"] = parts.start_of(file, problem.states)
    if file.has("features"):
        changes["features"] = parts.features_of(file, kind, problem.states, problem.num_actions)
    if file.has("constraints"):
        known = {c.name: c for c in problem.constraints}
        given = file.tables("constraints", "each is a table")
        changes["constraints"] = parts.constraints_of(given, kind, shape, known)
    fields = {f.name: getattr(problem, f.name) for f in dataclasses.fields(problem) if f.init}
    changed = _problem(file, {**fields, **changes})
    if changed.observed.any() and [c.name for c in changed.constraints] != [c.name for c in problem.constraints]:
        rule = "must be those of the zoo problem, in its order, where its simulator observes them"
        raise file.fault("constraints", rule, "others", "change their limits only")
    table = None if instance.table is None else _changed_table(instance.table, changed)
    return Instance(str(file.file), changed, instance.simulator, table, instance.summary, {})


def _changed_table(table: Table, problem: CMDP) -> Table | None:
    """The known table of a zoo problem after the changes of a file; None where its start is known by a sampler only."""
    if problem.start.sampler is not None:
        return None
    S, A = table.reward.shape
    states, actions = np.repeat(np.arange(S), A), np.tile(np.arange(A), S)
    if problem.stand_ins is not None:
        actions = problem.stand_ins[states, actions]
    signals = []
    for c, signal in zip(problem.constraints, problem.signals[1:], strict=True):
        if signal.values is None:  # observed, under its own name: the table knows the mean
            signals.append(table.constraints[table.names.index(c.name)])
        else:
            signals.append(np.reshape(signal.at(states, actions), (S, A)))
    rho = np.zeros(S)
    np.add.at(rho, problem.start.states, problem.start.weights)
    return dataclasses.replace(
        table,
        constraints=np.array(signals),
        thresholds=np.array([total_of(c, c.threshold, problem.horizon) for c in problem.constraints]),
        senses=tuple(c.sense for c in problem.constraints),
        names=tuple(c.name for c in problem.constraints),
        ranges=tuple(c.range for c in problem.constraints),
        gamma=problem.gamma,
        rho=rho,
        name=problem.name,
    )


def _problem(file: Section, fields: dict[str, Any]) -> CMDP:
    """The problem, whose own complaints get the line of what they are about."""
    try:
        return CMDP(**fields)
    except InputError as error:
        for i, constraint in enumerate(fields["constraints"]):
            if constraint.name == error.name and i < len(file.values.get("constraints", [])):
                where = Section(file.file, file.text, file.values["constraints"][i], ("constraints", i))
                raise where.fault(None, error.rule, error.value, error.remedy) from None
        name = error.name.partition(".")[0].partition("[")[0]
        raise file.fault(name if file.has(name) else None, error.rule, error.value, error.remedy) from None
