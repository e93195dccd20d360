"""Feature maps φ: S × A → R^d."""

from saddleback.features.function import FeatureFunction
from saddleback.features.matrix import FeatureMatrix
from saddleback.features.one_hot import OneHot

BY_NAME = {"one-hot": OneHot, "matrix": FeatureMatrix, "function": FeatureFunction}
