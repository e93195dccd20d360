"""saddleback: constrained decision problems with a simulator.

    from saddleback import solve, zoo

    instance = zoo.make("wireless")
    solution = solve(instance.problem, instance.simulator, samples=1_000_000, seed=0)
    print(solution.status, solution.value, solution.constraints)

Read the top-level modules in the order spaces, problem, simulator, policy, design, buffer, oracles, framework, solution,
solving to learn the method; each folder holds the interchangeable parts of one kind. The names below are loaded when they
are first used, so importing the package costs little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from saddleback._version import __version__

if TYPE_CHECKING:
    from saddleback import zoo
    from saddleback.certification import issue_certificate
    from saddleback.certify.certificate import Certificate
    from saddleback.designs.optimal import optimal_design
    from saddleback.errors import InputError, SaddlebackError, SimulatorError
    from saddleback.features import FeatureFunction, FeatureMatrix, OneHot
    from saddleback.policy import GreedyPolicy, MixturePolicy, SoftmaxPolicy, TabularPolicy
    from saddleback.problem import CMDP, Constraint, Start
    from saddleback.simulator import GenerativeModel
    from saddleback.simulators.table import Table
    from saddleback.solution import Solution, Status
    from saddleback.solving import solve
    from saddleback.spaces import BoxStates, FiniteStates
    from saddleback.storage.policy_file import load_mixture, save_mixture
    from saddleback.storage.table_file import load_table, save_table
    from saddleback.tradeoff import frontier

_HOME = {
    "CMDP": "problem",
    "BoxStates": "spaces",
    "Certificate": "certify.certificate",
    "Constraint": "problem",
    "FeatureFunction": "features",
    "FeatureMatrix": "features",
    "FiniteStates": "spaces",
    "GenerativeModel": "simulator",
    "GreedyPolicy": "policy",
    "InputError": "errors",
    "MixturePolicy": "policy",
    "OneHot": "features",
    "SaddlebackError": "errors",
    "SimulatorError": "errors",
    "SoftmaxPolicy": "policy",
    "Solution": "solution",
    "Start": "problem",
    "Status": "solution",
    "Table": "simulators.table",
    "TabularPolicy": "policy",
    "frontier": "tradeoff",
    "issue_certificate": "certification",
    "load_mixture": "storage.policy_file",
    "load_table": "storage.table_file",
    "optimal_design": "designs.optimal",
    "save_mixture": "storage.policy_file",
    "save_table": "storage.table_file",
    "solve": "solving",
}


def __getattr__(name: str) -> Any:
    if name == "zoo":
        return importlib.import_module("saddleback.zoo")
    if name not in _HOME:
        raise AttributeError(f"module 'saddleback' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"saddleback.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "CMDP",
    "BoxStates",
    "Certificate",
    "Constraint",
    "FeatureFunction",
    "FeatureMatrix",
    "FiniteStates",
    "GenerativeModel",
    "GreedyPolicy",
    "InputError",
    "MixturePolicy",
    "OneHot",
    "SaddlebackError",
    "SimulatorError",
    "SoftmaxPolicy",
    "Solution",
    "Start",
    "Status",
    "Table",
    "TabularPolicy",
    "__version__",
    "frontier",
    "issue_certificate",
    "load_mixture",
    "load_table",
    "optimal_design",
    "save_mixture",
    "save_table",
    "solve",
    "zoo",
]
