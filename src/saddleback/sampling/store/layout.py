"""What one row of a shard is, from a block of samples and back.

    samples    next_state, [signals (1+m)]                      one row a sample, in the order they were drawn
    counts     next_state, count, [means, deviations (1+m)]     one row a distinct next state of the block, ascending

``next_state`` is the smallest of one, two, four unsigned bytes and an int64 that holds every state, or k float64 coordinates.
Whoever reads it as samples gets int64. A row is a record of a NumPy dtype, so ``np.load(shard)["next_state"]`` is all it takes
to look at one. ``means`` and ``deviations`` are x̄ and Σ (x − x̄)² of the observed signals over the samples
that went to that state.

Counts are smaller wherever a block repeats states, and forget the order of its samples. Since independent samples do not
mind their order, a block is given back in a random one that its key fixes: sorted samples must never be cut into batches.
Estimates from counts are as good as those from samples, and equal to them bit for bit only where order does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError, require
from saddleback.files.json_file import Record, Whole, as_record, short
from saddleback.problem.spaces import Array, BoxStates, FiniteStates, StateSpace
from saddleback.sampling.blocks import Block
from saddleback.sampling.collect import signal_sums
from saddleback.simulators.generative_model import Draw, generator

Rows = NDArray[np.void]

_MOST_COLUMNS = 1 << 16
_MOST_BINS = 8  # a sample: with more states than that it is quicker to sort
_ORDERS = 1 << 31  # blocks from here on are never drawn: their random streams are free to put counts in order


class LayoutRecord(Record, frozen=True):
    """The fields of a layout in ``store.json``."""

    kind: Literal["samples", "counts"]
    num_states: Whole | None
    dim: Whole
    num_signals: Whole


@dataclass(frozen=True)
class Layout:
    """``num_states`` of a finite space, or ``dim`` coordinates; ``num_signals`` observed ones (0: none)."""

    kind: Literal["samples", "counts"]
    num_states: int | None
    dim: int
    num_signals: int

    def __post_init__(self) -> None:
        right = self.kind in ("samples", "counts") and (self.num_states is None or self.num_states >= 1)
        right = right and (self.dim == 0 if self.num_states is not None else 1 <= self.dim <= _MOST_COLUMNS)
        right = right and 0 <= self.num_signals <= _MOST_COLUMNS
        require(right, "layout", "must describe samples or counts", self, "make it with Layout.of")
        rule = "must be 'samples' where the states are points of R^k, which hardly ever repeat"
        points = self.num_states is None
        require(not points or self.kind == "samples", "layout", rule, self.kind, "leave out counts=True")

    @staticmethod
    def of(states: StateSpace, num_signals: int = 0, *, counts: bool = False) -> Layout:
        """The layout for a simulator's state space and number of signals."""
        kind: Literal["samples", "counts"] = "counts" if counts else "samples"
        if isinstance(states, FiniteStates):
            return Layout(kind, states.num, 0, num_signals)
        assert isinstance(states, BoxStates)
        return Layout(kind, None, states.dim, num_signals)

    @staticmethod
    def from_json(fields: Any, where: str, remedy: str) -> Layout:
        """From the fields in ``store.json``."""
        as_record(fields, LayoutRecord, where, remedy)
        try:
            return Layout(**fields)
        except InputError as error:
            raise InputError(where, error.rule, short(fields), remedy) from None

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The type of a row."""
        state: tuple[Any, ...] = ("next_state", "<f8", (self.dim,))
        if self.num_states is not None:
            sizes = (size for size in (1, 2, 4) if self.num_states <= 1 << 8 * size)
            state = ("next_state", f"<u{size}" if (size := next(sizes, 0)) else "<i8")
        fields = [state, ("count", "<i8")] if self.kind == "counts" else [state]
        if self.num_signals:
            names = ("means", "deviations") if self.kind == "counts" else ("signals",)
            fields += [(name, "<f8", (self.num_signals,)) for name in names]
        return np.dtype(fields)

    def encode(self, block: Block, draw: Draw) -> Rows:
        """A block's samples as rows, checked and copied."""
        states, signals = np.asarray(draw.next_states), draw.signals
        kinds, shape = ("f", (block.size, self.dim)) if self.num_states is None else ("iu", (block.size,))
        if states.dtype.kind not in kinds or states.shape != shape:
            raise _unlike(block, f"next states of shape {shape}", states)
        shape = (block.size, self.num_signals)
        if self.num_signals == 0 and signals is not None:
            raise _unlike(block, "no signals", signals)
        if self.num_signals and (signals is None or signals.shape != shape):
            raise _unlike(block, f"signals of shape {shape}", signals)
        fault = self._outside(states)  # before they are made smaller, which would make other states of them
        if fault is None:
            rows = self._counted(states, signals) if self.kind == "counts" else np.empty(block.size, self.dtype)
            if self.kind == "samples":
                rows["next_state"] = states
                if signals is not None:
                    rows["signals"] = signals
            fault = self._not_finite(rows)
        if fault:
            raise InputError(block.name, f"must hold {fault[0]}", fault[1], "mend the simulator")
        return rows

    def _counted(self, states: NDArray[Any], signals: Array | None) -> Rows:
        assert self.num_states is not None
        if self.num_states <= _MOST_BINS * len(states):
            bins = np.bincount(states)
            distinct = np.flatnonzero(bins)
            n, which = bins[distinct], states if signals is None else (np.cumsum(bins > 0) - 1)[states]
        else:
            distinct, which, n = np.unique(states, return_inverse=True, return_counts=True)
        rows = np.empty(len(distinct), self.dtype)
        rows["next_state"], rows["count"] = distinct, n
        if signals is not None:
            for column in range(self.num_signals):
                x = signals[:, column]
                mean = np.bincount(which, x) / n
                mean += np.bincount(which, x - mean[which]) / n  # what the first sum has lost to rounding
                rows["means"][:, column] = mean
                rows["deviations"][:, column] = np.bincount(which, (x - mean[which]) ** 2)
        return rows

    def fault(self, rows: Rows) -> tuple[str, Any] | None:
        """What rows must hold and these do not, with the first offending value; None if all is well."""
        fault = self._outside(rows["next_state"]) or self._not_finite(rows)
        if fault:
            return fault
        if self.kind == "counts":
            for i in np.flatnonzero(rows["count"] < 1)[:1]:
                return "counts of 1 or more", rows["count"][i]
            for at in np.argwhere(rows["deviations"] < 0)[:1] if self.num_signals else ():
                return "sums of squares of 0 or more", rows["deviations"][tuple(at)]
        return None

    def _outside(self, states: NDArray[Any]) -> tuple[str, Any] | None:
        """The first of finitely many states that is none of them; any whole numbers may be asked about."""
        if self.num_states is None or not len(states):
            return None
        unsigned = states.dtype.kind == "u"
        s = states if unsigned else states.astype(np.int64, copy=False).view(np.uint64)  # −1 is large there
        if int(s.max()) < self.num_states:
            return None
        return f"next states from 0 to {self.num_states - 1}", states[np.flatnonzero(s >= self.num_states)[0]]

    def _not_finite(self, rows: Rows) -> tuple[str, Any] | None:
        for name in self.dtype.names or ():
            x = rows[name]
            if x.dtype.kind == "f" and not np.isfinite(x).all():
                return f"finite numbers in {name}", x[tuple(np.argwhere(~np.isfinite(x))[0])]
        return None

    def decode(self, block: Block, rows: Rows) -> Draw:
        """The samples of a block; signals only where each was kept."""
        if self.kind == "counts":
            states = np.repeat(rows["next_state"].astype(np.int64), rows["count"])
            return Draw(generator(0, block.stream, block.pair, _ORDERS + block.block).permutation(states), None)
        signals = np.ascontiguousarray(rows["signals"]) if self.num_signals else None
        return Draw(np.ascontiguousarray(rows["next_state"], float if self.num_states is None else np.int64), signals)

    def signal_sums(self, rows: Rows, base: Array) -> tuple[Array, Array]:
        """Σ (x − base) and Σ (x − base)² of the observed signals of a block, ``(num_signals,)`` each."""
        if self.kind == "counts":
            n, x = rows["count"][:, None], rows["means"] - base
            return (n * x).sum(axis=0), (rows["deviations"] + n * x**2).sum(axis=0)
        return signal_sums(np.ascontiguousarray(rows["signals"]), base)


def _unlike(block: Block, what: str, found: Any) -> InputError:
    value = "none" if found is None else f"{found.dtype} of shape {found.shape}"
    return InputError(block.name, f"must hold {what}", value, "give the draw of this very block")
