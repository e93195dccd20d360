"""Evaluators: the PolicyEvaluation oracle."""

from saddleback.evaluators.ls_pe import LSPE
from saddleback.evaluators.tabular_pe import TabularPE

BY_NAME = {"ls-pe": LSPE, "tabular-pe": TabularPE}
