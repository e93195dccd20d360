"""Duals: rules that move the multipliers."""

from saddleback.duals.projected_descent import ProjectedDescent

BY_NAME = {"projected-descent": ProjectedDescent}
