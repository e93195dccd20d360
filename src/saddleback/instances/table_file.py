"""Problem tables as files: DRN models (:mod:`saddleback.simulators.drn`), and our own format, a pickle-free ``.npz`` with these arrays, in the user's units.

    P            (S, A, S)   or its CSR parts  P_data (nnz,), P_indices (nnz,), P_indptr (S·A + 1,)  with row s·A + a
    reward       (S, A)
    constraints  (m, S, A)
    thresholds   (m,)        discounted totals
    senses       (m,)        ">=" or "<="; optional, ">=" by default
    names        (m,)        optional
    gamma        ()          or (1,)
    rho          (S,)
    phi          (S, A, d)   optional features

Three more are optional: ``reward_range (2,)`` and ``ranges (m, 2)`` declare spans of the signals wider than what occurs,
``state_names (S,)`` is for display. So are three that are written only where they say something: ``actions_allowed (S, A)`` of 0
and 1, ``preferred (k,)``, actions, the most preferred first, ``minimise ()``, 1 where the reward is a cost, and ``units (m,)``,
"discounted" or "per-step": what values are shown in (thresholds stay totals). Numbers are float64 or integers. The name of a loaded
table is the file's.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.errors import InputError, require
from saddleback.files.json_file import plain, short
from saddleback.files.npz import BUDGET, ArraySpec, read_arrays, write_arrays
from saddleback.instances.instance import Instance
from saddleback.problem.cmdp import Constraint
from saddleback.problem.criteria import UnitName
from saddleback.problem.names import file_name
from saddleback.simulators.drn import read_drn
from saddleback.simulators.table import Table

_LIMIT_OF_MODEL = re.compile(r"\s*(<=|>=)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*(per-step|discounted)?\s*")
_CSR = ("P_data", "P_indices", "P_indptr")
_SPECS = {
    "P": ArraySpec("real", (3,), required=False),
    "P_data": ArraySpec("real", (1,), required=False),
    "P_indices": ArraySpec("integer", (1,), required=False),
    "P_indptr": ArraySpec("integer", (1,), required=False),
    "reward": ArraySpec("real", (2,)),
    "constraints": ArraySpec("real", (3,)),
    "thresholds": ArraySpec("real", (1,)),
    "senses": ArraySpec("text", (1,), required=False),
    "names": ArraySpec("text", (1,), required=False),
    "gamma": ArraySpec("real", (0, 1)),
    "rho": ArraySpec("real", (1,)),
    "phi": ArraySpec("real", (3,), required=False),
    "reward_range": ArraySpec("real", (1,), required=False),
    "ranges": ArraySpec("real", (2,), required=False),
    "state_names": ArraySpec("text", (1,), required=False),
    "actions_allowed": ArraySpec("integer", (2,), required=False),
    "preferred": ArraySpec("integer", (1,), required=False),
    "minimise": ArraySpec("integer", (0,), required=False),
    "units": ArraySpec("text", (1,), required=False),
}


def load_table(path: str | os.PathLike[str], budget: int = BUDGET) -> Table:
    """Read and check a table; every fault is an :class:`InputError` that names the file, the array and the entry."""
    arrays = read_arrays(path, _SPECS, budget)
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            table = _table(arrays, file_name(path))
            problem = table.problem()
            problem.values_of(np.full(1 + problem.num_constraints, problem.horizon))  # the largest values there can be
        return table
    except InputError as error:
        raise InputError(f"{path}: {error.name}", error.rule, error.value, error.remedy) from None
    except FloatingPointError as error:
        rule = "must hold numbers whose discounted totals fit in float64"
        raise InputError(str(path), rule, str(error), "choose other units for reward and constraints") from None


def save_table(table: Table, path: str | os.PathLike[str]) -> None:
    """Write a table, P as CSR parts; :func:`load_table` gives the same arrays back, bit for bit."""
    problem = table.problem()
    arrays: dict[str, NDArray[Any]] = {
        **dict(zip(_CSR, (table.P.data, table.P.indices, table.P.indptr), strict=True)),
        "reward": np.asarray(table.reward, dtype=np.float64),
        "constraints": np.asarray(table.constraints, dtype=np.float64),
        "thresholds": table.thresholds,
        "senses": np.array(table.senses, dtype=str),
        "names": np.array(table.names, dtype=str),
        "gamma": np.array(table.gamma),
        "rho": table.rho,
    }
    if table.phi is not None:
        arrays["phi"] = table.phi
    if table.reward_range is not None:
        arrays["reward_range"] = np.array(table.reward_range, dtype=np.float64)
    if table.ranges is not None:
        arrays["ranges"] = np.array([(signal.low, signal.high) for signal in problem.signals[1:]])
    if table.state_names is not None:
        arrays["state_names"] = np.array(table.state_names, dtype=str)
    if table.actions_allowed is not None:
        arrays["actions_allowed"] = table.actions_allowed.astype(np.int64)
    if table.preferred is not None:
        arrays["preferred"] = np.array(table.preferred, dtype=np.int64)
    if table.minimise:
        arrays["minimise"] = np.array(1)
    if table.units is not None:
        arrays["units"] = np.array(table.units, dtype=str)
    write_arrays(path, arrays)


def _table(arrays: dict[str, NDArray[Any]], name: str) -> Table:
    S, A = arrays["reward"].shape
    m = len(arrays["thresholds"])
    shapes = {
        "gamma": (1,) if arrays["gamma"].ndim else (),
        "constraints": (m, S, A),
        "rho": (S,),
        "senses": (m,),
        "names": (m,),
        "reward_range": (2,),
        "ranges": (m, 2),
        "state_names": (S,),
        "actions_allowed": (S, A),
        "units": (m,),
    }
    for key in (key for key in shapes if key in arrays):
        _require_shape(arrays, key, shapes[key])
    if "phi" in arrays and arrays["phi"].shape[2] == 0:
        raise InputError("phi", "must have at least one feature", arrays["phi"].shape, "leave phi out, or give some")
    for i, sense in enumerate(arrays.get("senses", ())):
        if sense not in (">=", "<="):
            raise InputError(f"senses[{i}]", 'must be ">=" or "<="', repr(str(sense)), "use one of the two")
    for i, unit in enumerate(arrays.get("units", ())):
        if unit not in get_args(UnitName):
            raise InputError(f"units[{i}]", "must be discounted or per-step", repr(str(unit)), "use one of the two")
    lists = ("senses", "names", "state_names", "reward_range", "ranges", "units", "preferred")
    more: dict[str, Any] = {key: tuple(arrays[key].tolist()) for key in lists if key in arrays}
    if "ranges" in more:
        more["ranges"] = tuple(map(tuple, more["ranges"]))
    for flags in ("actions_allowed", "minimise"):
        if flags in arrays:
            found = arrays[flags]
            if not np.isin(found, (0, 1)).all():
                raise InputError(flags, "must be 0 or 1", found.max(), "write 1 for yes and 0 for no")
            more[flags] = found.astype(bool) if found.ndim else bool(found)
    return Table.of(
        _transitions(arrays, S, A),
        arrays["reward"],
        arrays["constraints"],
        arrays["thresholds"],
        gamma=arrays["gamma"].item(),
        rho=arrays["rho"],
        phi=arrays.get("phi"),
        name=name,
        **more,
    )


def _transitions(arrays: dict[str, NDArray[Any]], S: int, A: int) -> Any:
    """P, dense or sparse; scipy trusts index arrays with its memory, so they are checked before it sees them."""
    parts = [part for part in _CSR if part in arrays]
    if ("P" in arrays) == bool(parts):
        found = "both" if parts else "neither"
        raise InputError("P", "must be given either dense or as CSR parts", found, f"give P, or {', '.join(_CSR)}")
    if "P" in arrays:
        return arrays["P"]
    for part in _CSR:
        if part not in arrays:
            raise InputError(part, "must be given with the other CSR parts", "no such array", f"add `{part}`")
    data, indices, indptr = (arrays[part] for part in _CSR)
    _require_shape(arrays, "P_indptr", (S * A + 1,))
    _require_shape(arrays, "P_indices", data.shape)
    remedy = "write the parts of scipy's csr_array(P) with row s*A + a"
    if indptr[0] != 0:
        raise InputError("P_indptr[0]", "must be 0", indptr[0], remedy)
    for row in np.flatnonzero(indptr[1:] < indptr[:-1])[:1]:
        rule = f"must not be less than the entry before it ({indptr[row]})"
        raise InputError(f"P_indptr[{row + 1}]", rule, indptr[row + 1], remedy)
    if indptr[-1] != len(data):
        raise InputError(f"P_indptr[{S * A}]", f"must be the length of P_data, {len(data)}", indptr[-1], remedy)
    for i in np.flatnonzero((indices < 0) | (indices >= S))[:1]:
        row = int(np.searchsorted(indptr, i, side="right")) - 1
        rule = f"must be a state, 0 to {S - 1} (row of state {row // A}, action {row % A})"
        raise InputError(f"P_indices[{i}]", rule, indices[i], remedy)
    return scipy.sparse.csr_array((data, indices, indptr), shape=(S * A, S))


def _require_shape(arrays: dict[str, NDArray[Any]], name: str, shape: tuple[int, ...]) -> None:
    if arrays[name].shape != shape:
        remedy = "make it agree with reward and thresholds"
        raise InputError(name, f"must have shape {shape}", arrays[name].shape, remedy)


def load_drn(target: str, parameters: dict[str, str]) -> Instance:
    """A DRN model: ``gamma``, the name of the ``reward``, and a limit for each reward model that is a constraint."""
    example = f"for example `--set gamma=0.95 --set reward=profit --set 'energy=<= 5'` with {plain(Path(target).name)}"
    gamma, reward = parameters.pop("gamma", None), parameters.pop("reward", "reward")
    try:
        discount = float(gamma) if gamma is not None else math.nan
    except ValueError:
        discount = math.nan
    require(0 <= discount < 1, "--set gamma", "must be given for a .drn file, in [0, 1)", gamma, example)
    constraints = []
    for name, text in parameters.items():
        found = _LIMIT_OF_MODEL.fullmatch(text)
        if found is None:
            rule = "must be a limit of the reward model of that name: <= or >= and a number, perhaps per-step"
            raise InputError(f"--set {plain(name)}", rule, short(text), example)
        units: Any = found[3] or "discounted"
        sense: Any = found[1]
        constraints.append(Constraint(name, None, sense, float(found[2]), None, units))
    require(bool(constraints), "--set", "must give a limit to a reward model of a .drn file", "none", example)
    table = read_drn(target, constraints, gamma=discount, reward=reward)
    return Instance(target, table.problem(), table.simulator(), table, "a DRN model", {})
