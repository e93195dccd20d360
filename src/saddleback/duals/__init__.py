"""Duals: rules that move the multipliers."""

from saddleback.duals.column_generation import ColumnGeneration
from saddleback.duals.projected_descent import ProjectedDescent

BY_NAME = {"column-generation": ColumnGeneration, "projected-descent": ProjectedDescent}
