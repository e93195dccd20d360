"""Evaluators: the PolicyEvaluation oracle, by name."""

from collections.abc import Callable
from functools import partial
from typing import Any

from saddleback.method.evaluators.ls_pe import LSPE, TabularPE
from saddleback.method.evaluators.lstd import LSTD
from saddleback.method.evaluators.rollouts import Rollouts
from saddleback.problem.registry import Registry

BY_NAME: Registry[Callable[..., Any]] = Registry(
    "evaluators",
    {
        "lstd": LSTD,
        "ls-pe": LSPE,
        "ls-pe-burn-in": partial(LSPE, burn_in=2.0),
        "tabular-pe": TabularPE,
        "rollouts": Rollouts,
    },
)
