"""Designs: rules that choose the pairs to sample, each with ``design(problem) -> Design``."""

from collections.abc import Callable
from functools import partial

from saddleback.designs.exchange import Exchange
from saddleback.designs.frank_wolfe import FrankWolfe
from saddleback.designs.full import Full
from saddleback.designs.optimal import OptimalDesign, optimal_design

BY_NAME: dict[str, Callable[..., Exchange | FrankWolfe | Full]] = {
    "exchange": Exchange,
    "frank-wolfe": FrankWolfe,
    "frank-wolfe-literal": partial(FrankWolfe, initialization="literal"),
    "full": Full,
}

__all__ = ["BY_NAME", "Exchange", "FrankWolfe", "Full", "OptimalDesign", "optimal_design"]
