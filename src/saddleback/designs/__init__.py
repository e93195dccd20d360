"""Designs: rules that choose the pairs to sample, each with ``design(problem) -> Design``."""

from collections.abc import Callable
from functools import partial
from typing import Any

from saddleback.designs.candidates import Full
from saddleback.designs.exchange import Exchange
from saddleback.designs.frank_wolfe import FrankWolfe
from saddleback.designs.optimal import OptimalDesign, optimal_design
from saddleback.problem.registry import Registry

BY_NAME: Registry[Callable[..., Any]] = Registry(
    "designs",
    {
        "exchange": Exchange,
        "frank-wolfe": FrankWolfe,
        "frank-wolfe-literal": partial(FrankWolfe, initialization="literal"),
        "full": Full,
    },
)

__all__ = ["BY_NAME", "Exchange", "FrankWolfe", "Full", "OptimalDesign", "optimal_design"]
