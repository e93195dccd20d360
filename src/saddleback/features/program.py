"""A feature map as data: a short list of array operations, which a file can hold and other programs can carry out.

    F(s) ∈ R^f     by the steps, from the coordinates x of n states, ``(n, k)``
    Q(s, ·) = F(s) · θ[layout]     layout ``(f, A)`` says which entry of θ each feature of a state has for each action, −1: none

For φ(s, a) = e_a ⊗ ψ(s) F is ψ and layout[i, a] = a·k + i. A step is an operation and the names of what it is applied to: ``x``,
constants ``c0``, ``c1`` …, results of earlier steps ``t0``, ``t1`` …; all are matrices of float64. Every operation has the same
meaning in NumPy and in ONNX, so one program serves stored runs, exported Python files and exported ONNX models.

A map of states says how it is computed in ``write(writer) -> name``, a map of pairs in ``write(writer) -> (name, layout)``. One that
cannot, such as a function of the user's, has no program (:func:`program_of` returns None).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import InputError, require
from saddleback.features.base import FeatureMap
from saddleback.problem.spaces import Actions, Array, Features, States

_MOST_STEPS = 5_000
_MOST_NUMBERS = 2_000_000  # in constants and layout

OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Min": np.minimum,
    "Max": np.maximum,
    "Exp": np.exp,
    "Cos": np.cos,
    "Sin": np.sin,
    "Floor": np.floor,
    "Equal": lambda a, b: (a == b).astype(np.float64),
    "AtLeast": lambda a, b: (a >= b).astype(np.float64),
    "Columns": lambda a, places: a[:, places[0].astype(np.int64)],
    "Concat": lambda *parts: np.concatenate(parts, axis=1),
    "Sum": lambda a: np.ascontiguousarray(a).sum(axis=1, keepdims=True),
    "Least": lambda a: a.min(axis=1, keepdims=True),
}
"""What a step may do; operands are broadcast as in NumPy."""


class NoProgramError(Exception):
    """A map that is no list of operations."""


@dataclass
class Writer:
    """Collects steps and constants; every method returns the name of its result."""

    steps: list[tuple[str, ...]] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    _known: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def constant(self, value: ArrayLike) -> str:
        """A number, a row or a matrix."""
        x = np.atleast_2d(np.asarray(value, dtype=np.float64))
        name = self._known.setdefault((x.shape, x.tobytes()), f"c{len(self.constants)}")
        self.constants.setdefault(name, x)
        return name

    def do(self, operation: str, *operands: str | ArrayLike) -> str:
        """One step; operands that are no names become constants."""
        assert operation in OPERATIONS
        step = (operation, *(x if isinstance(x, str) else self.constant(x) for x in operands))
        if step not in self._known:
            if len(self.steps) >= _MOST_STEPS:
                raise NoProgramError
            self._known[step] = f"t{len(self.steps)}"
            self.steps.append(step)
        return self._known[step]

    def clipped(self, x: str, low: ArrayLike, high: ArrayLike) -> str:
        """x, moved to the nearer end where it lies outside."""
        return self.do("Min", self.do("Max", x, low), high)

    def column(self, x: str, j: int) -> str:
        """Column j, ``(n, 1)``."""
        return self.do("Columns", x, j)

    def ones(self) -> str:
        """A column of ones."""
        first = self.column("x", 0)
        return self.do("Equal", first, first)


@dataclass(frozen=True, eq=False)
class Program:
    """``steps``, ``constants`` by name, the name of the ``result`` F, ``layout`` ``(f, A)`` and d, the length of θ."""

    steps: tuple[tuple[str, ...], ...]
    constants: Mapping[str, Array]
    result: str
    layout: NDArray[np.int64]
    dim: int

    def __post_init__(self) -> None:
        known = {"x", *self.constants}
        for i, (operation, *operands) in enumerate(self.steps):
            good = operation in OPERATIONS and set(operands) <= known
            require(good, f"features.steps[{i}]", "must be a known operation on what is known", operation, "mend it")
            known.add(f"t{i}")
        least, most = int(self.layout.min(initial=0)), int(self.layout.max(initial=-1))
        good = self.result in known and self.layout.ndim == 2 and least >= -1 and most < self.dim
        require(good, "features.layout", f"must hold places of {self.dim} numbers", self.layout.shape, "mend it")

    def rows(self, states: States) -> Array:
        """F(s), ``(n, f)``."""
        known: dict[str, Any] = {"x": np.asarray(states, dtype=np.float64), **self.constants}
        try:
            for i, (operation, *operands) in enumerate(self.steps):
                known[f"t{i}"] = OPERATIONS[operation](*(known[name] for name in operands))
            found = np.broadcast_to(known[self.result], (len(states), len(self.layout)))
        except (ValueError, IndexError, TypeError) as error:  # a stranger's
            raise InputError("features.steps", "must fit each other and the states", str(error), "mend them") from None
        return np.asarray(found, dtype=np.float64)

    def weights(self, theta: Array) -> Array:
        """θ[layout], ``(f, A)`` or ``(f, A, k)``."""
        none = np.zeros((1, *theta.shape[1:]))
        return np.asarray(np.concatenate([theta, none])[self.layout])


@dataclass(frozen=True, eq=False)
class ProgramFeatures(FeatureMap):
    """The feature map that a program describes."""

    program: Program

    @property
    def dim(self) -> int:
        """d."""
        return self.program.dim

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.program.layout.shape[1])

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, d)``."""
        F, places = self.program.rows(states), self.program.layout[:, actions].T
        rows = np.zeros((len(F), self.dim + 1))
        np.add.at(rows, (np.arange(len(F))[:, None], places), F)
        return rows[:, :-1]

    def values(self, states: States, theta: Array) -> Array:
        """F(s) · θ[layout]."""
        return np.asarray(np.tensordot(self.program.rows(states), self.program.weights(theta), axes=(1, 0)))


def program_of(features: Features | None) -> Program | None:
    """The map as a program; None where it is the user's own function, or a map over numbered states."""
    inner: Any = getattr(features, "inner", features)  # what a guard is put around
    if isinstance(inner, ProgramFeatures):
        return inner.program
    writer = Writer()
    try:
        result, layout = written(inner, writer)
    except NoProgramError:
        return None
    size = layout.size + sum(x.size for x in writer.constants.values())
    return None if size > _MOST_NUMBERS else Program(tuple(writer.steps), writer.constants, result, layout, inner.dim)


def written(part: Any, writer: Writer) -> Any:
    """What a map, or a part of one, writes of itself."""
    inner = getattr(part, "inner", part)
    if not hasattr(type(inner), "write"):
        raise NoProgramError
    return inner.write(writer)


def side_by_side(parts: Sequence[tuple[str, NDArray[np.int64], int]], writer: Writer) -> tuple[str, NDArray[np.int64]]:
    """Maps of pairs stacked: (name, layout, d) of each."""
    first, layouts = 0, []
    for _, layout, dim in parts:
        layouts.append(np.where(layout < 0, layout, layout + first))
        first += dim
    return writer.do("Concat", *(name for name, *_ in parts)), np.concatenate(layouts)
