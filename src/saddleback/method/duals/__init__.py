"""Duals: rules that move the multipliers. A name stands for a class that configures itself for a run."""

from saddleback.method.duals.column_generation import ColumnGeneration
from saddleback.method.duals.projected_descent import ProjectedDescent
from saddleback.method.oracles import DualKind

BY_NAME: dict[str, DualKind] = {"column-generation": ColumnGeneration, "projected-descent": ProjectedDescent}
