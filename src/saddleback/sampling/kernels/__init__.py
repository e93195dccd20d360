"""Compiled twins of the hot loops, each tested equal to its readable original; importing one imports numba."""
