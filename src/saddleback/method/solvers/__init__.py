"""Solvers: the MDP-Solver oracle, by name; each says itself what it needs."""

from collections.abc import Callable
from functools import partial
from typing import Any

from saddleback.method.solvers.elsewhere import MDPSolver, QuantEcon
from saddleback.method.solvers.gss import GSS
from saddleback.method.solvers.gss_stopping import GSSStopping
from saddleback.method.solvers.ls_mdvi import LSMDVI, MirrorDescent, TabularMDVI
from saddleback.method.solvers.perturbed_model import PerturbedModel
from saddleback.method.solvers.plug_in import PlugIn
from saddleback.method.solvers.stable_baselines import StableBaselines
from saddleback.problem.registry import Registry

BY_NAME: Registry[Callable[..., Any]] = Registry(
    "solvers",
    {
        "plug-in": PlugIn,
        "ls-mdvi": LSMDVI,
        "ls-mdvi-burn-in": partial(LSMDVI, burn_in=2.0),
        "mirror-descent": MirrorDescent,
        "gss": GSS,
        "gss-stopping": GSSStopping,
        "tabular-mdvi": TabularMDVI,
        "tabular-mdvi-burn-in": partial(TabularMDVI, burn_in=2.0),
        "perturbed-model": PerturbedModel,
        "quantecon": QuantEcon,
        "mdpsolver": MDPSolver,
        "stable-baselines3": StableBaselines,
    },
)
