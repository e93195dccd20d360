"""DRN, the explicit exchange format of the Storm model checker: MDPs read and written, by ourselves.

    @type: MDP
    @value_type: double                  optional: double or rational ("1/3")
    @parameters
                                         a line of names; must be empty
    @reward_models
    reward energy                        names, separated by blanks
    @nr_states
    2
    @nr_choices                          optional
    3
    @model
    state 0 [0, 0] init "door open"      rewards of the state, labels
        action 0 [1, 0.5]                rewards of the choice
            0 : 0.25                     target : probability
            1 : 0.75
        …

r(s, a) is the reward of the state plus that of the choice. States come in order and without gaps. The start is uniform
over the states labelled ``init``; labels ``rho=0.25`` on them, which Storm takes as any other label, give other weights.
Choices are actions 0, 1, … in the order of the file, whatever they are called; where a state has fewer than others, an
action that does not exist stands for the lowest one that does, choice 0 (:mod:`saddleback.simulators.arrays`).

Files may come from strangers: sizes are bounded before anything is allocated, numbers and names are read strictly, nothing
is guessed, and every fault names the file and the line.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from saddleback.errors import InputError, require
from saddleback.files.disk import written_whole
from saddleback.files.memory import require_room, spelled
from saddleback.problem.cmdp import Constraint
from saddleback.problem.names import file_name
from saddleback.problem.spaces import Array
from saddleback.simulators._drn_model import MOST_BYTES, Lines, Reading, plain_name
from saddleback.simulators.arrays import signal_array, table_of
from saddleback.simulators.table import Table

_PAIR_BYTES, _ENTRY_BYTES = 110, 24  # of a table while it is made (measured)
_GROWTH = 500  # bytes of a table for each byte of its file: states with one choice get as many as any state has
_FREE_BYTES = 100_000_000


def read_drn(
    path: str | os.PathLike[str],
    constraints: Sequence[Constraint],
    *,
    gamma: float,
    reward: str = "reward",
    rho: ArrayLike | None = None,
    normalise: bool = False,
    most_bytes: int = MOST_BYTES,
    **more: Any,
) -> Table:
    """A table from a DRN file; ``reward`` is the name of the reward model to maximise.

    A constraint with the signal None means the reward model of its name; other signals are as in :class:`Table`.
    ``normalise`` divides the probabilities of a choice by their sum where that misses 1 by less than 1e-4, for files
    written with few digits. ``rho`` takes the place of the file's start.
    """
    reading = Reading(Lines(path, most_bytes), normalise)
    reading.read()
    S, A = reading.num_states, max(reading.num_choices)
    P, first, means = _padded(path, reading, S, A)

    def model(name: str) -> Array:
        known = ", ".join(reading.models[:20]) or "none"
        remedy = "name one of them as reward, or as a constraint with signal None"
        require(name in reading.models, str(path), f"must hold a reward model {name!r}", known, remedy)
        return _signal(reading, reading.models.index(name), first + means)

    def cost(c: Constraint) -> Array:
        if c.signal is None:
            return model(c.name)
        return np.take_along_axis(signal_array(c.name, c.signal, S, A), means, axis=1)

    costs = [cost(c) for c in constraints]
    start = reading.start() if rho is None else rho
    more = {"name": file_name(path), "state_names": reading.state_names(), **more}
    try:
        return table_of(P, model(reward), costs, constraints, gamma=gamma, rho=start, **more)
    except InputError as error:
        raise InputError(f"{path}: {error.name}", error.rule, error.value, error.remedy) from None


def _padded(path: Any, reading: Reading, S: int, A: int) -> tuple[scipy.sparse.csr_array, Any, Any]:
    """P with A rows a state, the number of each state's first choice ``(S, 1)``, and what each action means ``(S, A)``."""
    first = np.concatenate([[0], np.cumsum(reading.num_choices)])
    missing = A - np.asarray(reading.num_choices)
    starts = np.asarray(reading.starts)
    lengths = np.diff(starts)
    entries = int(lengths.sum() + (missing * lengths[first[:-1]]).sum())
    needed, remedy = (
        _PAIR_BYTES * S * A + _ENTRY_BYTES * entries,
        "split states with many choices into several with few",
    )
    size = f"{S * A:,} pairs and {entries:,} transitions, with {A:,} actions in every state"
    most = max(_FREE_BYTES, _GROWTH * reading.lines.size)
    rule = f"must give a table of at most {spelled(most)}, {_GROWTH} times its size"
    require(needed <= most, str(path), rule, f"about {spelled(needed)}: {size}", remedy)
    require_room(needed, f"a table of {size}", remedy)
    choice = np.arange(A)[None, :]
    means = np.where(choice < np.asarray(reading.num_choices)[:, None], choice, 0)
    rows = scipy.sparse.csr_array(
        (np.array(reading.probabilities), np.array(reading.targets), starts), shape=(len(lengths), S)
    )
    return scipy.sparse.csr_array(rows[(first[:-1, None] + means).ravel()]), first[:-1, None], means


def _signal(reading: Reading, j: int, source: Any) -> Array:
    return reading.state_rewards.of_model(j)[:, None] + reading.choice_rewards.of_model(j)[source]


def write_drn(table: Table, path: str | os.PathLike[str], reward: str = "reward") -> None:
    """Write a table; :func:`read_drn` gives the same transitions, signals and start back, bit for bit.

    The reward model ``reward`` comes first, then one a constraint. The discount, thresholds and senses are not part of the
    format. The file is there whole or not at all.
    """
    names = [reward, *table.names]
    for name in names:
        plain_name(name)
    require(len(set(names)) == len(names), "reward", "must differ from the constraints' names", reward, "rename one")
    with written_whole(Path(path)) as file:
        file.writelines(text.encode() for text in _lines(table, names))


def _lines(table: Table, names: list[str]) -> Any:
    S, A = table.num_states, table.num_actions
    signals = np.concatenate([table.reward[None], table.constraints]).tolist()
    zeros = ", ".join("0" for _ in names)
    support = np.flatnonzero(table.rho)
    uniform = np.all(table.rho[support] == 1 / len(support))
    yield "@type: MDP\n@value_type: double\n@parameters\n\n@reward_models\n" + " ".join(names) + "\n"
    yield f"@nr_states\n{S}\n@nr_choices\n{S * A}\n@model\n"
    P = table.P
    for s in range(S):
        labels = "" if table.rho[s] == 0 else " init" if uniform else f" init rho={float(table.rho[s])!r}"
        if table.state_names is not None:
            labels += f' "{_label(s, table.state_names[s])}"'
        yield f"state {s} [{zeros}]{labels}\n"
        for a in range(A):
            row = slice(P.indptr[s * A + a], P.indptr[s * A + a + 1])
            values = ", ".join(repr(x[s][a]) for x in signals)
            yield f"\taction {a} [{values}]\n"
            pairs = zip(P.indices[row].tolist(), P.data[row].tolist(), strict=True)
            yield from (f"\t\t{t} : {p!r}\n" for t, p in pairs)


def _label(s: int, name: str) -> str:
    fits = bool(name) and name.isprintable() and '"' not in name and name != "init" and not name.startswith("rho=")
    rule = 'must be printable, without ", not "init" and not of the form rho=…, to be a label'
    require(fits, f"state_names[{s}]", rule, repr(name), "rename it")
    return name
