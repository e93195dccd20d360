"""What a problem of the zoo may cost: the memory of its table, and the time its reference values take."""

from __future__ import annotations

from saddleback.errors import InputError

MEMORY_LIMIT = 4 << 30
"""Bytes a problem of the zoo may take before it is refused."""

_BYTES_PER_ENTRY = 64  # at the peak, the sampler included (measured: 40 to 55)

_MOST_STEPS = 6e8  # numbers of P times sweeps of value iteration: about five seconds
_OVERHEAD = 2e5  # of a signal's optimum, however small the table is
_DENSE = 1000  # states up to which values are solved for, without sweeps
_DIGITS = 27.6  # −log 10⁻¹²: sweeps to the accuracy of the reference values, in horizons


def memory(name: str, entries: int, remedy: str) -> None:
    """Refuse a table whose ``entries`` (of P, and per pair of features and signals) would exceed ``MEMORY_LIMIT``."""
    need = entries * _BYTES_PER_ENTRY
    if need > MEMORY_LIMIT:
        huge = entries > 10**300  # more than float64 can say
        found = "more than 1e+300 numbers" if huge else f"{entries:.3g} numbers, about {need / 2**30:.3g} GiB"
        raise InputError(name, f"must give a table of at most {MEMORY_LIMIT / 2**30:.0f} GiB", found, remedy)


def effort(name: str, num_states: int, entries: int, gamma: float, remedy: str, num_signals: int = 2) -> None:
    """Refuse a table whose reference values (:mod:`saddleback.instances.landmarks`) would take more than a few seconds.

    A name with settings may come from a stranger's run: building it must not keep anyone waiting.
    """
    steps: float = _OVERHEAD + num_states**3 / 30  # a few dense systems of equations
    if num_states > _DENSE:
        steps = _OVERHEAD + entries * max(1.0, _DIGITS / (1 - gamma))
    if num_signals * steps > _MOST_STEPS:
        rule = f"must give a table whose reference values take at most {_MOST_STEPS:.0e} steps"
        raise InputError(name, rule, f"about {num_signals * steps:.0e}", remedy)
