"""Designs: rules that choose the pairs to sample, each with ``design(problem) -> Design``."""

from collections.abc import Callable
from functools import partial

from saddleback.designs.frank_wolfe import FrankWolfe
from saddleback.designs.full import Full

BY_NAME: dict[str, Callable[..., FrankWolfe | Full]] = {
    "frank-wolfe": FrankWolfe,
    "frank-wolfe-literal": partial(FrankWolfe, initialization="literal"),
    "full": Full,
}
