"""The way to a Ray cluster, shared by all who use one, and whether it has room for what they ask.

A cluster that was started here, or joined by its address, is let go when the last of its users has released it; one that the
program was connected to before stays. A demand that no living node could meet, however idle, is *homeless*: Ray would keep
it waiting for such a node to come, without a word. A node that is merely busy is worth waiting for.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from multiprocessing.util import Finalize
from typing import Any

from saddleback.errors import optional_package

PATIENCE = 120.0
"""Seconds for a node to come, or come back, before what only it could do is given up."""

_users: set[int] = set()  # of a connection that was made here


class Connection:
    """``ray`` is the module, connected to ``address`` (None: what ``RAY_ADDRESS`` says) or to a cluster of ``num_cpus`` here."""

    def __init__(self, name: str, address: str | None, num_cpus: int | None):
        self.ray: Any = optional_package("ray", "ray", f"this {name}")
        self._last: Finalize | None = None
        if self.ray.is_initialized():
            if not _users:
                return  # the program's own
        else:
            _users.clear()
            address = address or os.environ.get("RAY_ADDRESS")
            quiet = {"log_to_driver": False, "logging_level": "WARNING"}
            if address is None:
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a private cluster tells nobody
                self.ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, **quiet)
            else:
                self.ray.init(address=address, **quiet)
        _users.add(id(self))
        self._last = Finalize(self, _release, (id(self), self.ray), exitpriority=10)

    def release(self) -> None:
        """No longer needed here."""
        if self._last is not None:
            self._last()
            self._last = None

    def homeless(self, options: Mapping[str, Any]) -> str | None:
        """What is asked for and no living node has, beside what they have; None if one could take it."""
        wanted = _wanted(options)
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        if any(all(have.get(name, 0.0) >= amount for name, amount in wanted.items()) for have in nodes):
            return None
        return f"it asks for {_shown(wanted)}; there are nodes with {'; '.join(map(_shown, nodes)) or 'nothing'}"

    def in_turn(self, i: int) -> dict[str, Any]:
        """Options for the i-th of several actors that reserve nothing: the nodes in turn, or another if that one is gone."""
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        nodes = sorted(n["NodeID"] for n in self.ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0.0) > 0)
        if not nodes:
            return {}
        return {"scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(nodes[i % len(nodes)], soft=True)}


def _release(user: int, ray: Any) -> None:
    _users.discard(user)
    if not _users:
        ray.shutdown()


def _wanted(options: Mapping[str, Any]) -> dict[str, float]:
    plain = {"CPU": options.get("num_cpus"), "GPU": options.get("num_gpus"), "memory": options.get("memory")}
    return {name: float(amount) for name, amount in (plain | (options.get("resources") or {})).items() if amount}


def _shown(resources: Mapping[str, float]) -> str:
    """Without what Ray adds for itself."""
    own = sorted((k, v) for k, v in resources.items() if ":" not in k and k != "object_store_memory")
    return ", ".join(f"{amount:g} {name}" for name, amount in own) or "no resources"
