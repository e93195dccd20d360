"""Memory: what a solve will take, what there is, and the refusal of one that would not fit."""

from saddleback.sampling.memory.limit import LIMIT_VARIABLE, Limit, check, limit, parse_bytes, spelled
from saddleback.sampling.memory.prediction import Lot, Prediction, design_bytes, predict, predict_run

__all__ = [
    "LIMIT_VARIABLE",
    "Limit",
    "Lot",
    "Prediction",
    "check",
    "design_bytes",
    "limit",
    "parse_bytes",
    "predict",
    "predict_run",
    "spelled",
]
