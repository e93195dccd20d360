"""Simulators: adapters from what users have to ``sample(states, actions, rng)``."""

from saddleback.simulators.table import Table

BY_NAME = {"table": Table}
