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
_MOST_ROLLOUTS = 1 << 53
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
    "totals": ArraySpec("real", (2,), required=False),
    "highest": ArraySpec("real", (2,), required=False),
    "waves": ArraySpec("integer", (2,), required=False),
}
_ENDS = "totals", "highest"  # where something is declared of ends and totals
_MORE = "baseline", "at_starts", "cap", "cut", "members", "starts"  # what earlier versions did not keep
_BOUND_ARRAYS = {
    **{name: ArraySpec("integer", (1,)) for name in ("counts", "next_states", "first")},
    **{name: ArraySpec("real", (1,)) for name in ("optimistic", "start")},
    **{name: ArraySpec("real", (2,)) for name in ("signals", "noise")},
    **{name: ArraySpec("real", (1,), required=False) for name in ("stakes", "ceiling", "frozen", "spread")},
    **{name: ArraySpec("integer", (1,), required=False) for name in ("followers", "followers_first")},
    "span": ArraySpec("real", (0,), required=False),
    "observed": ArraySpec("real", (1,), required=False),
    "rare": ArraySpec("integer", (2, 3), required=False),
}
_BEFORE = {"frozen", "spread", "span"}  # what earlier versions kept in the place of the stakes


_ADVANTAGE_ARRAYS = {
    **{
        f"{which}{name}": ArraySpec("integer", (1,))
        for which in ("", "earlier_")
        for name in ("counts", "next_states", "first")
    },
    **{name: ArraySpec("real", (1,)) for name in ("start", "weights", "reach", "gain")},
    **{name: ArraySpec("real", (2,)) for name in ("signals", "gains", "limits")},
    "policies": ArraySpec("real", (3,)),
}


class RolloutValues(NamedTuple):
    """Single rollouts ``(n, 1+m)`` in utilities, the limits they cannot leave ``(1+m,)``, and what the cap hides ``(2, 1+m)``.

    Then what these follow from: lower and upper limit of V̂ and V̂(ρ) ``(3, 1+m)``, V̂ at the start states, the cap, whether
    the rollouts show nothing since they ran out of steps, and of each its member and its start; None where an earlier version wrote the
    file. Where something is declared of ends, ``totals`` ``(4, 1+m)`` are the limits of a rollout's total and of values, and ``highest``
    what each rollout may be at the most. ``waves`` ``(w, 2)`` are the rollouts that were begun together, the last of which may be missing,
    and how many were then expected in all; None where the number was fixed, as earlier versions did.
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
    totals: Array | None = None
    highest: Array | None = None
    waves: NDArray[np.int64] | None = None


class BoundArrays(NamedTuple):
    """The samples of all pairs as counts of next states, the signals there, the stakes, and the function that proves the bound.

    ``observed`` has what was observed with each next state, weighed by σ; None where every signal is known. Versions before this one
    forgot it: ``rare`` ``(SA, 1+m)`` is where an observed signal's own limit was Chernoff's, and the earliest did not say that. ``ceiling`` ``(S,)`` is what no policy exceeds from each state, and
    ``followers`` of pair x from ``followers_first[x]`` on are the states that can follow it, where these were declared. Others had ``frozen``, ``spread`` and ``span`` in the place of
    ``stakes``, and ``rare`` ``(2, SA, 1+m)`` for the limits below and above.
    """

    counts: NDArray[np.int64]
    next_states: NDArray[np.int64]
    first: NDArray[np.int64]
    optimistic: Array
    start: Array
    signals: Array
    noise: Array
    stakes: Array | None = None
    ceiling: Array | None = None
    followers: NDArray[np.int64] | None = None
    followers_first: NDArray[np.int64] | None = None
    observed: Array | None = None
    rare: NDArray[np.int64] | None = None
    frozen: Array | None = None
    spread: Array | None = None
    span: Array | None = None


class AdvantageArrays(NamedTuple):
    """Behind a gap by pairing: fresh and earlier samples of all pairs as counts, the signals there ``(SA, 1+m)``, and what was frozen.

    The first of the ``policies`` ``(p, S, A)`` is compared with; ``weights`` ``(p,)`` are those in the mixture. ``gains`` ``(z, S)``, ``limits``
    ``(1+p, 2)`` and ``reach`` ``(SA,)`` are guesses from before the samples, and ``gain`` ``(S,)`` proves what the best policy gains.
    """

    counts: NDArray[np.int64]
    next_states: NDArray[np.int64]
    first: NDArray[np.int64]
    earlier_counts: NDArray[np.int64]
    earlier_next_states: NDArray[np.int64]
    earlier_first: NDArray[np.int64]
    signals: Array
    start: Array
    policies: Array
    weights: Array
    gains: Array
    limits: Array
    reach: Array
    gain: Array


def load_rollouts(path: Path, certificate: CertificateRecord | None) -> RolloutValues:
    """What the limits of ``certificate`` follow from."""
    arrays = read_arrays(path, _ARRAYS)
    columns = arrays["values"].shape[1]
    shapes = [arrays[k].shape for k in ("low", "high", "tail")]
    if shapes != [(columns,), (columns,), (2, columns)]:
        raise InputError(str(path), f"must have limits for its {columns} columns", shapes, _AGAIN)
    if certificate is None or len(certificate.problem.constraints) + 1 != columns:
        raise InputError(str(path), "must belong to the certificate", f"{columns} columns", _AGAIN)
    largest = max(float(np.abs(x).max(initial=0.0)) for name, x in arrays.items() if name != "totals")
    if any(name in arrays for name in _ENDS):
        n = len(arrays["values"])
        shapes = [arrays[name].shape if name in arrays else None for name in _ENDS]
        if shapes != [(4, columns), (n, columns)]:
            raise InputError(str(path), f"must hold {' and '.join(_ENDS)} for its {n} rollouts", shapes, _AGAIN)
    if not len(arrays["values"]) or largest > _MOST_UTILITY:
        found = f"{len(arrays['values'])} rows, the largest number {largest:.3g}"
        raise InputError(str(path), f"must hold rollouts, with values up to {_MOST_UTILITY:g}", found, _AGAIN)
    known = RolloutValues(*(arrays[k] for k in ("values", "low", "high", "tail")))
    known = known._replace(**{name: arrays[name] for name in (*_ENDS, "waves") if name in arrays})
    if known.waves is not None and not _in_waves(known.waves, len(known.values)):
        raise InputError(str(path), f"must have waves that make up its {len(known.values)} rollouts", "others", _AGAIN)
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


def _in_waves(waves: NDArray[np.int64], number: int) -> bool:
    """Whether so many rollouts were begun in these waves, and none but of the last is missing."""
    right = waves.shape[1:] == (2,) and len(waves) >= 1
    right = right and int(waves.min()) >= 1 and int(waves.max()) <= _MOST_ROLLOUTS
    return right and sum(waves[:-1, 0].tolist()) <= number <= sum(waves[:, 0].tolist())


def load_bound(path: Path, certificate: CertificateRecord | None) -> BoundArrays | AdvantageArrays:
    """The arrays behind a bound over all policies of a table, which fit each other; others where the gap was proved by pairing."""
    told = None if certificate is None else certificate.evidence.bound
    paired = told is not None and told.paired is not None
    arrays = read_arrays(path, _ADVANTAGE_ARRAYS if paired else _BOUND_ARRAYS)
    fit = _fit_paired(arrays) if paired else _fit(arrays)
    if not fit or max(np.abs(x).max(initial=0) for name, x in arrays.items() if name != "stakes") > _MOST_UTILITY:
        raise InputError(str(path), "must hold arrays that fit each other", "others", _AGAIN)
    return AdvantageArrays(**arrays) if paired else BoundArrays(**arrays)


def _fit(arrays: dict[str, Any]) -> bool:
    S, pairs, before = len(arrays["optimistic"]), len(arrays["first"]) - 1, "stakes" not in arrays
    right = (arrays.keys() & _BEFORE) == (_BEFORE if before else set())
    right = right and S >= 1 and pairs >= 1 and pairs % max(S, 1) == 0 and _counted(arrays, "", pairs, S)
    right = right and len(arrays["start"]) == S and len(arrays["spread" if before else "stakes"]) == pairs
    right = right and (not before or len(arrays["frozen"]) == S)
    right &= "ceiling" not in arrays or len(arrays["ceiling"]) == S
    right = right and _followed(arrays.get("followers"), arrays.get("followers_first"), pairs, S)
    right &= arrays["signals"].shape == arrays["noise"].shape and len(arrays["signals"]) == pairs
    if (observed := arrays.get("observed")) is not None:
        right = right and not before and "rare" not in arrays and len(observed) == len(arrays["counts"])
    if (rare := arrays.get("rare")) is not None:
        shape = arrays["signals"].shape
        right &= rare.shape == ((2, *shape) if before else shape) and bool(np.all((rare == 0) | (rare == 1)))
    return bool(right)


def _followed(followers: NDArray[np.int64] | None, first: NDArray[np.int64] | None, pairs: int, states: int) -> bool:
    """Whether these are lists of states, one a pair and none of them empty."""
    if followers is None or first is None:
        return followers is first
    right = (
        len(first) == pairs + 1 and first[0] == 0 and bool(np.all(np.diff(first) > 0)) and first[-1] == len(followers)
    )
    return bool(right and followers.min() >= 0 and followers.max() < states)


def _fit_paired(arrays: dict[str, Any]) -> bool:
    p, S, A = arrays["policies"].shape
    pairs = S * A
    right = p >= 1 and pairs >= 1 and len(arrays["signals"]) == len(arrays["reach"]) == pairs
    right &= len(arrays["start"]) == len(arrays["gain"]) == S and len(arrays["weights"]) == p
    right &= arrays["limits"].shape == (1 + p, 2) and len(arrays["gains"]) >= 1 and arrays["gains"].shape[1] == S
    return bool(right) and all(
        _counted(arrays, which, pairs, S) and bool(np.all(np.diff(arrays[f"{which}first"]) >= 1))
        for which in ("", "earlier_")
    )


def _counted(arrays: dict[str, Any], which: str, pairs: int, S: int) -> bool:
    """Whether samples are kept as counts of next states, pair after pair."""
    first, counts, states = (arrays[f"{which}{name}"] for name in ("first", "counts", "next_states"))
    right = len(first) == pairs + 1 and first[0] == 0 and bool(np.all(np.diff(first) >= 0))
    right = right and len(counts) == len(states) == first[-1] and len(counts) > 0
    return bool(right and counts.min() >= 1 and states.min() >= 0 and states.max() < S)
