"""saddleback: constrained decision problems with a simulator.

    from saddleback import solve, zoo

    instance = zoo.make("wireless")
    solution = solve(instance.problem, instance.simulator, samples=1_000_000, seed=0)
    print(solution)

A folder is a station of the journey from a question to an answer: problem, features, simulators, designs, sampling, method,
theory, exact, certificates, instances, runs, solving, reports, cli. Each imports only stations before it; read from left to
right they are the method. The names below are loaded when they are first used, so importing the package costs little.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from saddleback._version import __version__

if TYPE_CHECKING:
    from saddleback.certificates.certificate import Certificate
    from saddleback.designs.optimal import optimal_design
    from saddleback.errors import InputError, SaddlebackError, SimulatorError, UnmetError
    from saddleback.features import FeatureFunction, FeatureMatrix, OneHot
    from saddleback.instances import zoo
    from saddleback.instances.table_file import load_table, save_table
    from saddleback.problem.cmdp import CMDP, Constraint, Start
    from saddleback.problem.names import ListedStates, ProductStates
    from saddleback.problem.policies import GreedyPolicy, MixturePolicy, SoftmaxPolicy, TabularPolicy
    from saddleback.problem.policy_file import save_policy
    from saddleback.problem.spaces import BoxStates, FiniteStates
    from saddleback.reports.exports import export
    from saddleback.reports.html.page import report
    from saddleback.reports.plots import plot
    from saddleback.runs.settings import Method, Part, Settings
    from saddleback.runs.stored_policy import load_policy
    from saddleback.runs.verdict import Status
    from saddleback.simulators.function import as_simulator
    from saddleback.simulators.generative_model import GenerativeModel
    from saddleback.simulators.table import Table
    from saddleback.solving.frontier import frontier
    from saddleback.solving.solution import Solution
    from saddleback.solving.solve import resume, solve
    from saddleback.solving.strict import issue_certificate

_HOME = {
    "CMDP": "problem.cmdp",
    "BoxStates": "problem.spaces",
    "Certificate": "certificates.certificate",
    "Constraint": "problem.cmdp",
    "FeatureFunction": "features",
    "FeatureMatrix": "features",
    "FiniteStates": "problem.spaces",
    "GenerativeModel": "simulators.generative_model",
    "GreedyPolicy": "problem.policies",
    "InputError": "errors",
    "ListedStates": "problem.names",
    "Method": "runs.settings",
    "MixturePolicy": "problem.policies",
    "Part": "runs.settings",
    "OneHot": "features",
    "ProductStates": "problem.names",
    "SaddlebackError": "errors",
    "SimulatorError": "errors",
    "UnmetError": "errors",
    "SoftmaxPolicy": "problem.policies",
    "Settings": "runs.settings",
    "Solution": "solving.solution",
    "Start": "problem.cmdp",
    "Status": "runs.verdict",
    "Table": "simulators.table",
    "TabularPolicy": "problem.policies",
    "as_simulator": "simulators.function",
    "export": "reports.exports",
    "frontier": "solving.frontier",
    "issue_certificate": "solving.strict",
    "load_policy": "runs.stored_policy",
    "load_table": "instances.table_file",
    "optimal_design": "designs.optimal",
    "plot": "reports.plots",
    "report": "reports.html.page",
    "resume": "solving.solve",
    "save_policy": "problem.policy_file",
    "save_table": "instances.table_file",
    "solve": "solving.solve",
}

_GONE = {"load_mixture": "load_policy", "save_mixture": "save_policy"}  # names of earlier versions


def __getattr__(name: str) -> Any:
    if name == "zoo":
        return importlib.import_module("saddleback.instances.zoo")
    if name in _GONE:
        from saddleback.errors import InputError

        raise InputError(name, "is no longer there", "an import of it", f"use saddleback.{_GONE[name]}")
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
    "ListedStates",
    "Method",
    "MixturePolicy",
    "OneHot",
    "Part",
    "ProductStates",
    "SaddlebackError",
    "Settings",
    "SimulatorError",
    "SoftmaxPolicy",
    "Solution",
    "Start",
    "Status",
    "Table",
    "TabularPolicy",
    "UnmetError",
    "__version__",
    "as_simulator",
    "export",
    "frontier",
    "issue_certificate",
    "load_policy",
    "load_table",
    "optimal_design",
    "plot",
    "report",
    "resume",
    "save_policy",
    "save_table",
    "solve",
    "zoo",
]
