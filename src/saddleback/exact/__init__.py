"""Known-model answers: values of policies and mixtures, occupancies, and the exact optimum of a :class:`Table`.

Nothing that learns from samples may import this package; it is what such answers are checked against.
"""

from saddleback.exact.column_generation import solve_by_columns
from saddleback.exact.occupancy_lp import ExactAnswer, solve_exactly
from saddleback.exact.trade_off import constraint_reach, exact_frontier
from saddleback.exact.values import best_policy, mixture_values, occupancy, policy_values, state_values, to_stationary

__all__ = [
    "ExactAnswer",
    "best_policy",
    "constraint_reach",
    "exact_frontier",
    "mixture_values",
    "occupancy",
    "policy_values",
    "solve_by_columns",
    "solve_exactly",
    "state_values",
    "to_stationary",
]
