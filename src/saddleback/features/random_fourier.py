"""Random features of Rahimi and Recht (NIPS 2007): cosines of random frequencies, whose products estimate a Gaussian kernel.

    ψ_i(s) = √(2/d) cos(ω_iᵀu + b_i),   ω_i ~ N(0, I/h²),   b_i ~ U[0, 2π]        E ψ(s)ᵀψ(s') = exp(−‖u − u'‖² / 2h²)

For many coordinates, where grids are out of reach: d is free. h is the ``bandwidth``, in units of the box. The frequencies
follow from the seed alone, and the first ones stay the same when there are more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from saddleback.errors import positive, whole
from saddleback.features.base import StateMap, check_dimension
from saddleback.features.frame import Frame, as_frame
from saddleback.features.program import Writer
from saddleback.problem.spaces import Array, States

_FREQUENCIES, _PHASES = 0, 1  # spawn keys of one word: no block of samples has such a key


@dataclass(frozen=True, eq=False)
class RandomFourier(StateMap):
    """``num`` random cosines over a frame or a state space; a constant is not in their span."""

    frame: Frame
    num: int = 100
    bandwidth: float = 0.3
    seed: int = 0
    constant: bool = field(default=False, init=False)
    frequencies: Array = field(init=False)
    phases: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_frame(self.frame))
        d, h = check_dimension(whole("num", self.num, 1), "use fewer"), positive("bandwidth", self.bandwidth)
        seed = whole("seed", self.seed, 0)
        omega = _generator(seed, _FREQUENCIES).standard_normal((d, self.frame.num)) / h
        object.__setattr__(self, "frequencies", omega)
        object.__setattr__(self, "phases", _generator(seed, _PHASES).uniform(0, 2 * np.pi, d))

    @property
    def dim(self) -> int:
        """d."""
        return self.num

    def at(self, states: States) -> Array:
        """Rows ``(n, d)``."""
        rows = _cosines(self.frame.unit(states), self.frequencies, self.phases)
        rows *= np.sqrt(2 / self.num)
        return rows.T

    def write(self, writer: Writer) -> str:
        """The same as steps of a program."""
        u, angle = self.frame.write_unit(writer), ""
        for j in range(self.frame.num):
            part = writer.do("Mul", writer.column(u, j), self.frequencies[:, j])
            angle = part if j == 0 else writer.do("Add", angle, part)
        return writer.do("Mul", writer.do("Cos", writer.do("Add", angle, self.phases)), float(np.sqrt(2 / self.num)))


def _generator(seed: int, key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(key,))))


def _cosines(u: Array, frequencies: Array, phases: Array) -> Array:
    """cos(⟨ω_i, u⟩ + b_i), ``(d, n)`` for ``frequencies`` ``(d, k)``.

    Summed coordinate by coordinate and not by a matrix product, whose rounding depends on what else is in the batch.
    """
    angle = np.multiply.outer(frequencies[:, 0], u[:, 0])
    for j in range(1, u.shape[1]):
        angle += np.multiply.outer(frequencies[:, j], u[:, j])
    angle += phases[:, None]
    return np.cos(angle, out=angle)
