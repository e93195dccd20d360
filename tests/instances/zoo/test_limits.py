"""Settings may come from a stranger's run: what would take long, or no float64 can hold, is refused at once."""

from __future__ import annotations

import time
from typing import Any

import pytest

from saddleback.errors import InputError
from saddleback.instances.zoo import make


@pytest.mark.parametrize(
    ("name", "settings", "named"),
    [
        ("linear-quadratic", {"actions": 1001}, "actions"),
        ("linear-quadratic", {"actions": 10**9}, "actions"),
        ("linear-quadratic", {"noise": 1e300, "start": 1e300}, "noise"),
        ("linear-quadratic", {"noise": 1e-300, "start": 0}, "noise"),
        ("linear-quadratic", {"limit": 1e300}, "limit"),
        ("linear-quadratic", {"start": 1e300}, "start"),
        ("streaming", {"capacity": 1_000_000}, "capacity"),
        ("streaming", {"capacity": 5000, "gamma": 0.9999}, "capacity"),
        ("gridworld", {"width": 2000, "height": 2000}, "width"),
        ("gridworld", {"width": 40, "height": 40, "gamma": 0.9999}, "width"),
        ("garnet", {"states": 1_000_000}, "states"),
        ("garnet", {"states": 2000, "successors": 2000, "actions": 1, "gamma": 0.1}, "successors"),
        ("garnet", {"constraints": 100_000}, "states"),
    ],
)
def test_what_takes_long_is_refused_at_once(name: str, settings: dict[str, Any], named: str) -> None:
    began = time.process_time()
    with pytest.raises(InputError) as refused:
        make(name, **settings)
    assert refused.value.name == named and time.process_time() - began < 1


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("linear-quadratic", {"actions": 1000}),
        ("linear-quadratic", {"noise": 1e100, "start": 1e100}),
        ("linear-quadratic", {"noise": 1e-100, "start": 0.0}),
        ("streaming", {"capacity": 20_000}),
        ("gridworld", {"width": 100, "height": 100}),
        ("garnet", {"states": 10_000}),
    ],
)
def test_what_is_large_but_quick_is_built(name: str, settings: dict[str, Any]) -> None:
    began = time.process_time()
    assert make(name, **settings).problem.num_actions >= 2
    assert time.process_time() - began < 10
