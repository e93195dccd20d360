"""Feature maps φ: S × A → R^d, and maps of states ψ: S → R^k from which :class:`PerAction` makes them.

:func:`make` builds one from a name and plain settings, :func:`examine` reports on one. docs/features.md says which to choose.
"""

from saddleback.features.aggregation import Aggregation, Cells
from saddleback.features.base import FeatureFunction, FeatureMap, FeatureMatrix
from saddleback.features.constant import Constant, WithConstant, with_constant
from saddleback.features.fourier import Fourier
from saddleback.features.frame import Frame
from saddleback.features.making import BY_NAME, make, make_stacked, settings_of
from saddleback.features.multilinear import MultilinearInterpolation
from saddleback.features.one_hot import OneHot
from saddleback.features.per_action import PerAction
from saddleback.features.polynomial import Polynomial
from saddleback.features.radial_basis import RadialBasis
from saddleback.features.random_fourier import RandomFourier
from saddleback.features.report import FeatureReport, examine
from saddleback.features.stacked import Joined, Stacked
from saddleback.features.state import StateFeatures, StateFunction, StateMap, StateMatrix
from saddleback.features.tiles import Tiles

__all__ = [
    "BY_NAME",
    "Aggregation",
    "Cells",
    "Constant",
    "FeatureFunction",
    "FeatureMap",
    "FeatureMatrix",
    "FeatureReport",
    "Fourier",
    "Frame",
    "Joined",
    "MultilinearInterpolation",
    "OneHot",
    "PerAction",
    "Polynomial",
    "RadialBasis",
    "RandomFourier",
    "Stacked",
    "StateFeatures",
    "StateFunction",
    "StateMap",
    "StateMatrix",
    "Tiles",
    "WithConstant",
    "examine",
    "make",
    "make_stacked",
    "settings_of",
    "with_constant",
]
