"""saddleback: constrained decision problems with a simulator.

    from saddleback import solve, zoo

    instance = zoo.make("wireless")
    solution = solve(instance.problem, instance.simulator, samples=1_000_000, seed=0)
    print(solution.status, solution.value, solution.constraints)

Read the top-level modules in the order problem, simulator, policy, design, buffer, oracles, framework, solution, solve to
learn the method; each folder holds the interchangeable parts of one kind.
"""

from saddleback import zoo
from saddleback._version import __version__
from saddleback.errors import InputError, NumericalError, SaddlebackError, SimulatorError, StorageError
from saddleback.features import FeatureFunction, FeatureMatrix, OneHot
from saddleback.policy import GreedyPolicy, MixturePolicy, SoftmaxPolicy, TabularPolicy
from saddleback.problem import CMDP, Constraint, Start
from saddleback.simulator import GenerativeModel
from saddleback.simulators.table import Table
from saddleback.solution import Solution, Status
from saddleback.solve import solve
from saddleback.spaces import BoxStates, FiniteStates
from saddleback.storage.policy_file import load_mixture, save_mixture
from saddleback.storage.table_file import load_table, save_table

__all__ = [
    "CMDP",
    "BoxStates",
    "Constraint",
    "FeatureFunction",
    "FeatureMatrix",
    "FiniteStates",
    "GenerativeModel",
    "GreedyPolicy",
    "InputError",
    "MixturePolicy",
    "NumericalError",
    "OneHot",
    "SaddlebackError",
    "SimulatorError",
    "SoftmaxPolicy",
    "Solution",
    "Start",
    "Status",
    "StorageError",
    "Table",
    "TabularPolicy",
    "__version__",
    "load_mixture",
    "load_table",
    "save_mixture",
    "save_table",
    "solve",
    "zoo",
]
