"""Explicit constants: the parameters of Alg. 1, the errors of its oracles, and the paper's rates as written."""

from saddleback.theory.columns import column_guarantee, column_target
from saddleback.theory.errors import (
    Split,
    best_split,
    linear_evaluation_error,
    linear_solver_error,
    num_grid_points,
    tabular_evaluation_error,
    tabular_solver_error,
    with_rounding,
)
from saddleback.theory.meta_theorem import DualSettings, Guarantee, dual_settings, error_for, guarantee_of
from saddleback.theory.paper_rates import (
    COMPARATORS,
    PaperParameters,
    linear_parameters,
    lower_bound,
    tabular_parameters,
)

__all__ = [
    "COMPARATORS",
    "DualSettings",
    "Guarantee",
    "PaperParameters",
    "Split",
    "best_split",
    "column_guarantee",
    "column_target",
    "dual_settings",
    "error_for",
    "guarantee_of",
    "linear_evaluation_error",
    "linear_parameters",
    "linear_solver_error",
    "lower_bound",
    "num_grid_points",
    "tabular_evaluation_error",
    "tabular_parameters",
    "tabular_solver_error",
    "with_rounding",
]
