"""The arrays behind a proof: ``rollouts.npz`` and ``bound.npz``, as docs/certificate.md has them, read and checked for shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError
from saddleback.files.npz import ArraySpec, read_arrays
from saddleback.problem.spaces import Array
from saddleback.runs.certificate_file import CertificateRecord

_MOST_UTILITY = 1e100  # of a rollout: far beyond any horizon, and its square is a number
_AGAIN = "run `saddleback solve ... --out` again"
_ARRAYS = {
    "values": ArraySpec("real", (2,)),
    "low": ArraySpec("real", (1,)),
    "high": ArraySpec("real", (1,)),
    "tail": ArraySpec("real", (2,)),
    "baseline": ArraySpec("real", (2,), required=False),
    "at_starts": ArraySpec("real", (2,), required=False),
    "cap": ArraySpec("integer", (0,), required=False),
    "cut": ArraySpec("integer", (0,), required=False),
    "members": ArraySpec("integer", (1,), required=False),
    "starts": ArraySpec("integer", (1,), required=False),
}
_MORE = "baseline", "at_starts", "cap", "cut", "members", "starts"  # what earlier versions did not keep
_BOUND_ARRAYS = {
    **{name: ArraySpec("integer", (1,)) for name in ("counts", "next_states", "first")},
    **{name: ArraySpec("real", (1,)) for name in ("frozen", "spread", "optimistic", "start")},
    **{name: ArraySpec("real", (2,)) for name in ("signals", "noise")},
    "span": ArraySpec("real", (0,)),
    "rare": ArraySpec("integer", (3,), required=False),
}


class RolloutValues(NamedTuple):
    """Single rollouts ``(n, 1+m)`` in utilities, the limits they cannot leave ``(1+m,)``, and what the cap hides ``(2, 1+m)``.

    Then what these follow from: lower and upper limit of V̂ and V̂(ρ) ``(3, 1+m)``, V̂ at the start states, the cap, whether
    the rollouts ran out of steps, and of each its member and its start; None where an earlier version wrote the file.
    """

    values: Array
    low: Array
    high: Array
    tail: Array
    baseline: Array | None = None
    at_starts: Array | None = None
    cap: int | None = None
    cut: bool = False
    members: NDArray[np.int64] | None = None
    starts: NDArray[np.int64] | None = None


class BoundArrays(NamedTuple):
    """The samples of all pairs as counts of next states, the signals there, and the functions that prove the bound.

    ``rare`` ``(2, SA, 1+m)`` is where an observed signal's limit below, and above, is Chernoff's, as was chosen before the samples;
    None where every signal is known, or an earlier version wrote the file.
    """

    counts: NDArray[np.int64]
    next_states: NDArray[np.int64]
    first: NDArray[np.int64]
    frozen: Array
    spread: Array
    optimistic: Array
    start: Array
    signals: Array
    noise: Array
    span: Array
    rare: NDArray[np.int64] | None = None


def load_rollouts(path: Path, certificate: CertificateRecord | None) -> RolloutValues:
    """What the limits of ``certificate`` follow from."""
    arrays = read_arrays(path, _ARRAYS)
    columns = arrays["values"].shape[1]
    shapes = [arrays[k].shape for k in ("low", "high", "tail")]
    if shapes != [(columns,), (columns,), (2, columns)]:
        raise InputError(str(path), f"must have limits for its {columns} columns", shapes, _AGAIN)
    if certificate is None or len(certificate.problem.constraints) + 1 != columns:
        raise InputError(str(path), "must belong to the certificate", f"{columns} columns", _AGAIN)
    largest = max(float(np.abs(x).max(initial=0.0)) for x in arrays.values())
    if not len(arrays["values"]) or largest > _MOST_UTILITY:
        found = f"{len(arrays['values'])} rows, the largest number {largest:.3g}"
        raise InputError(str(path), f"must hold rollouts, with values up to {_MOST_UTILITY:g}", found, _AGAIN)
    known = RolloutValues(*(arrays[k] for k in ("values", "low", "high", "tail")))
    given = [name for name in _MORE if name in arrays]
    if not given:
        return known
    n, wide = len(arrays["values"]), {"baseline": (3, columns), "cap": (), "cut": ()}
    found_shapes = {name: arrays[name].shape for name in given}
    wanted = {**wide, "at_starts": (len(arrays.get("at_starts", ())), columns), "members": (n,), "starts": (n,)}
    if found_shapes != {name: wanted[name] for name in _MORE}:
        raise InputError(str(path), f"must hold {', '.join(_MORE)} for its {n} rollouts", found_shapes, _AGAIN)
    places = len(arrays["at_starts"])
    whole = [arrays["members"].min(initial=0) >= 0, arrays["starts"].min(initial=0) >= 0, arrays["cap"] >= 1]
    if not all(whole) or arrays["starts"].max(initial=0) >= places or arrays["cut"] not in (0, 1):
        raise InputError(str(path), "must have members, starts and a cap that are in range", "others", _AGAIN)
    more: dict[str, Any] = {name: arrays[name] for name in _MORE}
    return known._replace(**{**more, "cap": int(more["cap"]), "cut": bool(more["cut"])})


def load_bound(path: Path) -> BoundArrays:
    """The arrays behind a bound over all policies of a table, which fit each other."""
    arrays = read_arrays(path, _BOUND_ARRAYS)
    first, S, pairs = arrays["first"], len(arrays["frozen"]), len(arrays["spread"])
    right = pairs >= 1 and len(first) == pairs + 1 and first[0] == 0 and bool(np.all(np.diff(first) >= 0))
    right = right and len(arrays["counts"]) == len(arrays["next_states"]) == first[-1]
    right &= S >= 1 and pairs % max(S, 1) == 0
    right &= len(arrays["optimistic"]) == len(arrays["start"]) == S
    right &= arrays["signals"].shape == arrays["noise"].shape and len(arrays["signals"]) == pairs
    right = right and len(arrays["counts"]) > 0
    if (rare := arrays.get("rare")) is not None:
        right &= rare.shape == (2, *arrays["signals"].shape) and bool(np.all((rare == 0) | (rare == 1)))
    right = right and bool(arrays["counts"].min() >= 1 and arrays["next_states"].min() >= 0)
    if (
        not right
        or arrays["next_states"].max() >= S
        or max(np.abs(x).max(initial=0) for x in arrays.values()) > _MOST_UTILITY
    ):
        raise InputError(str(path), "must hold arrays that fit each other", "others", _AGAIN)
    return BoundArrays(**arrays)
