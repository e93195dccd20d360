"""A simulator that several threads use at once: every run counts its own calls, and the simulator counts all of them."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from saddleback import solve, zoo
from saddleback.solving.strict import issue_certificate

THREADS = 6


@pytest.mark.check
def test_six_threads_count_their_own_calls() -> None:
    instance = zoo.make("river-swim")
    budgets = [2_000 + 500 * i for i in range(THREADS)]
    together = threading.Barrier(THREADS)

    def run(samples: int) -> tuple[int, int]:
        together.wait()
        found = solve(instance.problem, instance.simulator, samples=samples, seed=1)
        again = issue_certificate(found, instance.simulator, samples=2_000, seed=9)
        assert again.samples is not None
        return found.samples, again.samples

    with ThreadPoolExecutor(THREADS) as pool:
        counted = list(pool.map(run, budgets))
    total = sum(map(sum, counted))
    assert instance.simulator.num_queries == total, "the simulator counts what all of them drew, and no check"
    for i in (0, THREADS - 1):
        alone = solve(instance.problem, zoo.make("river-swim").simulator, samples=budgets[i], seed=1)
        assert counted[i][0] == alone.samples


def test_a_meter_of_its_own_counts_for_the_whole_too() -> None:
    whole = zoo.make("river-swim").simulator
    part = whole.metered()
    states, actions = np.zeros(10, dtype=np.int64), np.zeros(10, dtype=np.int64)
    part.sample(states, actions, np.random.default_rng(0))
    whole.sample(states[:3], actions[:3], np.random.default_rng(0))
    assert (part.num_queries, whole.num_queries) == (10, 13)
    part.num_queries = 4  # checks are taken off
    assert (part.num_queries, whole.num_queries) == (4, 7)


def test_copies_count_for_themselves() -> None:
    whole = zoo.make("river-swim").simulator
    part = whole.metered()
    for other in (copy.copy(part), pickle.loads(pickle.dumps(part))):
        other.count(5)
    assert (part.num_queries, whole.num_queries) == (0, 0)


def test_counting_from_many_threads_loses_nothing() -> None:
    whole = zoo.make("river-swim").simulator
    parts = [whole.metered() for _ in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda part: [part.count(1) for _ in range(2_000)], parts))
    assert whole.num_queries == 2_000 * THREADS and all(part.num_queries == 2_000 for part in parts)
