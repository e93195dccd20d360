"""Evaluators: the PolicyEvaluation oracle. ``INTERACTIVE`` names those that draw their own samples."""

from functools import partial

from saddleback.method.evaluators.ls_pe import LSPE
from saddleback.method.evaluators.lstd import LSTD
from saddleback.method.evaluators.rollouts import Rollouts
from saddleback.method.evaluators.tabular_pe import TabularPE

BY_NAME = {
    "lstd": LSTD,
    "ls-pe": LSPE,
    "ls-pe-burn-in": partial(LSPE, burn_in=2.0),
    "tabular-pe": TabularPE,
    "rollouts": Rollouts,
}
INTERACTIVE = {"rollouts"}
