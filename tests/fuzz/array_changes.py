"""Changes of the arrays in an ``.npz`` file: values, types and shapes, in an archive that is itself sound."""

from __future__ import annotations

from typing import Any

import numpy as np

Random = np.random.Generator
Arrays = dict[str, np.ndarray]

ODD = (np.nan, np.inf, -np.inf, -1.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-300, 1e308, -1e308, 1.0, 2.0, 0.0, 1e16)
EDGES = (-1, 0, 1, 2, 127, 2**31 - 1, 2**31, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
TYPES = ("<f4", "<f2", "<f8", ">f8", "<c16", "<i8", ">i8", "|i1", "<u8", "<i4", "?", "S8", "<U4", "<m8[s]", "<M8[D]")
TEXTS = ("", " ", "a", ">=", "<=", ">", "\0", "\n", "\x1b[2J", "\u202e", "\ud800", "é", "\U0010ffff", "x" * 300)


def _one(arrays: Arrays, rng: Random, kinds: str) -> str:
    return str(rng.choice([name for name, x in arrays.items() if x.dtype.kind in kinds] or list(arrays)))


def value(arrays: Arrays, rng: Random) -> Arrays:
    """One entry becomes NaN, infinite, a denormal, negative or huge."""
    name = _one(arrays, rng, "f")
    x = arrays[name].copy()
    if x.size and x.dtype.kind == "f":
        x.flat[rng.integers(x.size)] = rng.choice(ODD)
    return {**arrays, name: x}


def row_scaled(arrays: Arrays, rng: Random) -> Arrays:
    """A row of probabilities times 1 ± 10^−k."""
    names = [n for n in ("P", "P_data", "rho", "weights", "probabilities") if n in arrays]
    name = str(rng.choice(names)) if names else _one(arrays, rng, "f")
    x = arrays[name].copy()
    factor = 1 + rng.choice([-1.0, 1.0]) * 10.0 ** -int(rng.integers(1, 17))
    if name == "P_data" and "P_indptr" in arrays:
        row = int(rng.integers(len(arrays["P_indptr"]) - 1))
        x[arrays["P_indptr"][row] : arrays["P_indptr"][row + 1]] *= factor
    elif x.size and x.dtype.kind == "f":
        x.reshape(-1, x.shape[-1] if x.ndim else 1)[rng.integers(x.size // max(1, x.shape[-1] if x.ndim else 1))] *= (
            factor
        )
    return {**arrays, name: x}


def entry_moved(arrays: Arrays, rng: Random) -> Arrays:
    """Two neighbours exchanged, or an amount moved between them: sums stay."""
    name = _one(arrays, rng, "f")
    x = arrays[name].copy()
    if x.size > 1 and x.dtype.kind == "f":
        i = int(rng.integers(x.size - 1))
        if rng.random() < 0.5:
            x.flat[[i, i + 1]] = x.flat[[i + 1, i]]
        else:
            amount = rng.choice([1e-12, 1e-3, 0.5, 2.0, 1e300])
            x.flat[i] += amount
            x.flat[i + 1] -= amount
    return {**arrays, name: x}


def index(arrays: Arrays, rng: Random) -> Arrays:
    """An index off by one, negative, huge, out of order, or twice there."""
    name = _one(arrays, rng, "i")
    x = arrays[name].copy()
    if not x.size or x.dtype.kind != "i":
        return value(arrays, rng)
    i = int(rng.integers(x.size))
    match int(rng.integers(5)):
        case 0:
            x[i] += rng.choice([-1, 1])
        case 1:
            x[i] = rng.choice(EDGES)
        case 2:
            x[[i, i - 1]] = x[[i - 1, i]]
        case 3:
            x[i] = x[i - 1]
        case 4:
            x = x[::-1].copy() if rng.random() < 0.5 else x + rng.choice([-1, 1])
    return {**arrays, name: x}


def discount(arrays: Arrays, rng: Random) -> Arrays:
    """γ at its edges."""
    if "gamma" not in arrays:
        return value(arrays, rng)
    gamma = rng.choice([1.0, 0.0, -0.0, 1 - 2.0**-53, 1 - 1e-12, -5e-324, 5e-324, 1 + 1e-15, np.nan, 2.0])
    shape = [(), (1,), (2,), (0,)][int(rng.choice(4, p=[0.6, 0.3, 0.05, 0.05]))]
    return {**arrays, "gamma": np.full(shape, gamma)}


def cut(arrays: Arrays, rng: Random) -> Arrays:
    """An axis shorter, longer, empty, or one more of it."""
    name = _one(arrays, rng, "fiU")
    x = arrays[name]
    if x.ndim == 0:
        return {**arrays, name: x[None]}
    axis = int(rng.integers(x.ndim))
    n = x.shape[axis]
    match int(rng.integers(5)):
        case 0:
            x = np.take(x, range(n - 1), axis)
        case 1:
            x = np.concatenate([x, np.take(x, range(min(1, n)), axis)], axis)
        case 2:
            x = np.take(x, range(0), axis)
        case 3:
            x = x[..., None]
        case 4:
            x = x.reshape(-1) if rng.random() < 0.5 else np.moveaxis(x, axis, 0)
    return {**arrays, name: x}


def emptied(arrays: Arrays, rng: Random) -> Arrays:
    """No states, no actions, no constraints or no members, everywhere alike."""
    sizes = {n for x in arrays.values() for n in x.shape}
    gone = int(rng.choice(sorted(sizes))) if sizes else 0
    out = {}
    for name, x in arrays.items():
        for axis in [i for i, n in enumerate(x.shape) if n == gone]:
            x = np.take(x, range(0), axis)
        out[name] = np.zeros(1, dtype=np.int64) if name == "P_indptr" else x
    return out


def typed(arrays: Arrays, rng: Random) -> Arrays:
    """Another type."""
    name = _one(arrays, rng, "fiU")
    with np.errstate(all="ignore"):
        try:
            x = arrays[name].astype(str(rng.choice(TYPES)))
        except (ValueError, TypeError, OverflowError, UnicodeError):
            x = np.zeros(arrays[name].shape, dtype=np.int32)
    return {**arrays, name: x}


def text(arrays: Arrays, rng: Random) -> Arrays:
    """Names that are empty, twice there, invisible, or no characters at all."""
    name = _one(arrays, rng, "U")
    x = arrays[name]
    if x.dtype.kind != "U" or x.size == 0:
        return {**arrays, "state_names": np.array([TEXTS[int(rng.integers(len(TEXTS)))]] * 4)}
    entries = x.tolist()
    at = int(rng.integers(len(entries)))
    if rng.random() < 0.15:
        codes = np.full(x.size, 0x110000 + int(rng.integers(2**20)), dtype=np.uint32)
        return {**arrays, name: codes.view("<U1")}
    entries[at] = entries[at - 1] if rng.random() < 0.2 else TEXTS[int(rng.integers(len(TEXTS)))]
    return {**arrays, name: np.array(entries)}


def dropped(arrays: Arrays, rng: Random) -> Arrays:
    """An array is missing, one too many is there, or two are exchanged."""
    names = list(arrays)
    one, other = (str(name) for name in rng.choice(names, 2))
    match int(rng.integers(3)):
        case 0:
            return {name: x for name, x in arrays.items() if name != one}
        case 1:
            more: dict[str, Any] = {"P": np.ones((1, 1, 1)), "extra": np.ones(2), "ranges": np.zeros((2, 2))}
            new = str(rng.choice(sorted(more)))
            return {**arrays, new: more[new]}
        case _:
            return {**arrays, one: arrays[other], other: arrays[one]}


def units(arrays: Arrays, rng: Random) -> Arrays:
    """All numbers of an array times or plus something."""
    name = _one(arrays, rng, "f")
    with np.errstate(all="ignore"):
        factor = float(rng.choice([0.0, -1.0, 1e-320, 1e-160, 1e160, 1e300]))
        x = arrays[name] * factor if rng.random() < 0.7 else arrays[name] + factor
    return {**arrays, name: x}


BY_NAME = {
    f.__name__: f for f in (value, row_scaled, entry_moved, index, discount, cut, emptied, typed, text, dropped, units)
}
