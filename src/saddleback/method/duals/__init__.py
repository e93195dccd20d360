"""Duals: rules that move the multipliers. A name stands for a class that configures itself for a run."""

from saddleback.method.duals.column_generation import ColumnGeneration
from saddleback.method.duals.projected_descent import ProjectedDescent
from saddleback.method.oracles import DualKind
from saddleback.problem.registry import Registry

BY_NAME: Registry[DualKind] = Registry(
    "duals", {"column-generation": ColumnGeneration, "projected-descent": ProjectedDescent}
)
