"""Explicit constants: the parameters of Alg. 1, the errors of its oracles, plans, and the paper's rates."""

from saddleback.theory.errors import (
    Method,
    Split,
    best_split,
    linear_evaluation_error,
    linear_solver_error,
    num_grid_points,
    tabular_evaluation_error,
    tabular_solver_error,
    with_rounding,
)
from saddleback.theory.meta_theorem import (
    DualSettings,
    Guarantee,
    column_guarantee,
    dual_settings,
    guarantee_of,
)
from saddleback.theory.paper_rates import (
    COMPARATORS,
    PaperParameters,
    Row,
    comparison,
    linear_parameters,
    lower_bound,
    tabular_parameters,
)
from saddleback.theory.plan import Guaranteed, Plan, Question, guaranteed_epsilon, plan

__all__ = [
    "COMPARATORS",
    "DualSettings",
    "Guarantee",
    "Guaranteed",
    "Method",
    "PaperParameters",
    "Plan",
    "Question",
    "Row",
    "Split",
    "best_split",
    "column_guarantee",
    "comparison",
    "dual_settings",
    "guarantee_of",
    "guaranteed_epsilon",
    "linear_evaluation_error",
    "linear_parameters",
    "linear_solver_error",
    "lower_bound",
    "num_grid_points",
    "plan",
    "tabular_evaluation_error",
    "tabular_parameters",
    "tabular_solver_error",
    "with_rounding",
]
