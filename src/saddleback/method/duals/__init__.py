"""Duals: rules that move the multipliers."""

from saddleback.method.duals.column_generation import ColumnGeneration
from saddleback.method.duals.projected_descent import ProjectedDescent

BY_NAME = {"column-generation": ColumnGeneration, "projected-descent": ProjectedDescent}
