"""Simulators: adapters from what users have to ``sample(states, actions, rng)``.

What only answers questions becomes a :class:`saddleback.simulators.generative_model.GenerativeModel` (functions and environments); what is
known in full becomes a :class:`Table`, with its own ``problem()`` and ``simulator()``.
"""

from collections.abc import Callable
from typing import Any

from saddleback.problem.registry import Registry
from saddleback.simulators.arrays import from_quantecon, from_sparse, stand_ins
from saddleback.simulators.drn import read_drn, write_drn
from saddleback.simulators.function import as_simulator, from_function
from saddleback.simulators.gymnasium_env import from_gymnasium
from saddleback.simulators.gymnasium_functional import from_functional
from saddleback.simulators.gymnasium_play import play
from saddleback.simulators.gymnasium_table import from_gymnasium_table
from saddleback.simulators.table import Table

BY_NAME: Registry[Callable[..., Any]] = Registry(
    "simulators",
    {
        "table": Table,
        "function": from_function,
        "gymnasium": from_gymnasium,
        "gymnasium-table": from_gymnasium_table,
        "gymnasium-functional": from_functional,
        "quantecon": from_quantecon,
        "sparse": from_sparse,
        "drn": read_drn,
    },
)

__all__ = [
    "BY_NAME",
    "Table",
    "as_simulator",
    "from_function",
    "from_functional",
    "from_gymnasium",
    "from_gymnasium_table",
    "from_quantecon",
    "from_sparse",
    "play",
    "read_drn",
    "stand_ins",
    "write_drn",
]
