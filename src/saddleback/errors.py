"""Errors: what went wrong, in four parts (name, rule, value, remedy), with the exit code of the command line.

Bad input is an :class:`InputError`, a fault of the user's simulator a :class:`SimulatorError`, a fault of the disk a
:class:`StorageError`, a computation that cannot be trusted a :class:`NumericalError`. Infeasibility is an answer, not
an error: see :class:`saddleback.runs.solution.Status`.
"""

from __future__ import annotations

from typing import Any


class SaddlebackError(Exception):
    """Root of every error this package raises on purpose."""

    exit_code = 1


class InputError(SaddlebackError):
    """The caller's input breaks a rule: ``InputError("gamma", "must lie in [0, 1)", 1.0, "set a horizon")``."""

    exit_code = 2

    def __init__(self, name: str, rule: str, value: Any, remedy: str):
        self.name, self.rule, self.value, self.remedy = name, rule, value, remedy
        super().__init__(f"`{name}` {rule}, got {value}; {remedy}.")


class SimulatorError(SaddlebackError):
    """The simulator failed or returned something impossible; carries the state, action and seed key that show it."""

    exit_code = 5

    def __init__(self, problem: str, *, state: Any, action: Any, key: tuple[int, ...] | None = None, index: int = 0):
        self.problem, self.state, self.action, self.key, self.index = problem, state, action, key, index
        where = f"state {state}, action {action}, sample {index}"
        seed = "" if key is None else f", seed key (seed, stream, pair, block) = {key}"
        super().__init__(
            f"the simulator {problem} (at {where}{seed}); fix the simulator and run again with the same seed."
        )


class BudgetError(SaddlebackError):
    """An interactive oracle ran out of simulator calls before it had what it was asked for."""

    exit_code = 4


class StorageError(SaddlebackError):
    """A file could not be read or written."""

    exit_code = 5


class NumericalError(SaddlebackError):
    """A linear program or linear system was solved too inaccurately to be trusted."""

    exit_code = 5


def require(condition: bool, name: str, rule: str, value: Any, remedy: str) -> None:
    """Raise :class:`InputError` unless ``condition`` holds."""
    if not condition:
        raise InputError(name, rule, value, remedy)
