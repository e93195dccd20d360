"""What is promised before a run, with explicit constants: plans, what a budget buys, and rates side by side.

The parameters of Alg. 1 are in ``meta_theorem``, the errors of its oracles in ``errors``, the paper's rates in ``paper_rates``.
"""

from saddleback.theory.paper_rates import comparison
from saddleback.theory.plan import Plan, guaranteed_epsilon, plan

__all__ = ["Plan", "comparison", "guaranteed_epsilon", "plan"]
