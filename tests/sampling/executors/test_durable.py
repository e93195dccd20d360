"""Samples that survive: a run from its own folder is the same run, and pays for nothing twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback import FiniteStates, GenerativeModel, InputError, SimulatorError, zoo
from saddleback.sampling.blocks import Block, BlockSource
from saddleback.sampling.examination import EXAMINATION_CALLS
from saddleback.sampling.executors.durable import Durable
from saddleback.sampling.fingerprint import CHECK_CALLS, fingerprint_of
from saddleback.sampling.trajectories import steps_per_rollout
from saddleback.simulators.generative_model import Stream
from spelled_out import solve


class Counting:
    """A zoo problem's simulator that counts the calls that were really made, and fails after ``most`` of them."""

    def __init__(self, instance: zoo.Instance, most: int | None = None):
        self.calls, self._most, self._inner = 0, most, instance.simulator
        self.model = GenerativeModel(self._sample, instance.simulator.states)

    def _sample(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        if self._most is not None and self.calls + len(states) > self._most:
            raise RuntimeError("out of licences")
        self.calls += len(states)
        return self._inner.sample(states, actions, rng).next_states


def run(instance: zoo.Instance, model: GenerativeModel, folder: Path | None, **more: Any) -> tuple[str, dict[str, str]]:
    """The whole answer as text, and the hashes of the samples."""
    if folder is None:
        return json.dumps(solve(instance.problem, model, seed=3, **more).to_json()), {}
    with Durable(folder, fingerprint_of(instance.problem, model)) as executor:
        answer = json.dumps(solve(instance.problem, model, seed=3, executor=executor, **more).to_json())
        return answer, executor.content_hashes()


WAYS: list[dict[str, Any]] = [
    {"samples": 30_000, "certificate": 30_000},
    {"samples": 30_000, "certificate": 60_000, "feasibility": "strict"},
    {"epsilon": 1.0},
    {"samples": 20_000, "mode": "literal", "iterations": 50},
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random-linear", "wireless"])
@pytest.mark.parametrize("way", WAYS, ids=["certified", "strict", "adaptive", "literal"])
def test_the_same_with_and_without_a_folder_and_again(name: str, way: dict[str, Any], tmp_path: Path) -> None:
    instance = zoo.make(name)
    if "epsilon" in way:
        way = {"epsilon": 0.1 * instance.problem.horizon * float(instance.problem.scale[0])}
    plain, _ = run(instance, Counting(instance).model, None, **way)
    first = Counting(instance)
    answer, hashes = run(instance, first.model, tmp_path / "run", **way)
    assert answer == plain
    checks = first.calls - json.loads(answer)["samples"]
    assert CHECK_CALLS < checks <= CHECK_CALLS + EXAMINATION_CALLS
    again = Counting(instance)
    assert run(instance, again.model, tmp_path / "run", **way) == (answer, hashes)
    assert again.calls == checks  # nothing was paid for twice


@pytest.mark.slow
@pytest.mark.parametrize("most", [3_000, 14_000, 31_000, 50_000])
def test_a_fault_in_the_middle_loses_nothing(most: int, tmp_path: Path) -> None:
    """The simulator fails after so many calls; mended, the run ends where it would have, and only the rest is drawn.

    What the failing task itself had drawn is lost: nothing for a block, which is one call; for a chunk of rollouts, whose
    steps are calls of their own, at most the steps of 1,024 rollouts.
    """
    instance, way = zoo.make("random-linear"), WAYS[0]
    plain, _ = run(instance, Counting(instance).model, None, **way)
    whole = Counting(instance)
    _, hashes = run(instance, whole.model, tmp_path / "whole", **way)
    broken = Counting(instance, most)
    with pytest.raises(SimulatorError, match="out of licences"):
        run(instance, broken.model, tmp_path / "run", **way)
    mended = Counting(instance)
    assert run(instance, mended.model, tmp_path / "run", **way) == (plain, hashes)
    lost = broken.calls + mended.calls - whole.calls - (whole.calls - json.loads(plain)["samples"])
    assert 0 <= lost <= 1024 * steps_per_rollout(instance.problem.gamma) * 1.2
    assert lost == 0 or most == 50_000  # which falls into the rollouts


def test_another_simulator_seed_or_discount_is_refused(tmp_path: Path) -> None:
    import dataclasses

    instance, other = zoo.make("garnet"), zoo.make("garnet", seed=1)
    run(instance, instance.simulator, tmp_path, samples=10_000)
    with pytest.raises(InputError, match="simulator"):
        run(instance, other.simulator, tmp_path, samples=10_000)
    problem = dataclasses.replace(instance.problem, gamma=0.95)
    with (
        Durable(tmp_path, fingerprint_of(problem, instance.simulator)) as executor,
        pytest.raises(InputError, match="gamma"),
    ):
        solve(problem, instance.simulator, samples=10_000, seed=3, executor=executor)


def test_a_simulator_that_ignores_its_seed_is_refused() -> None:
    instance = zoo.make("garnet")
    own = np.random.default_rng(0)
    model = GenerativeModel(lambda s, a, rng: instance.simulator.sample(s, a, own).next_states, FiniteStates(40))
    with pytest.raises(SimulatorError, match="same seed"):
        fingerprint_of(instance.problem, model)


def test_checks_are_not_counted_as_samples() -> None:
    counting = Counting(zoo.make("garnet"))
    fingerprint_of(zoo.make("garnet").problem, counting.model)
    assert (counting.calls, counting.model.num_queries) == (CHECK_CALLS, 0)


def test_more_blocks_later_and_prefixes(tmp_path: Path) -> None:
    instance = zoo.make("wireless")
    states, actions = instance.problem.pairs()
    source = BlockSource(instance.simulator, instance.problem, states, actions, 7)
    fingerprint = fingerprint_of(instance.problem, instance.simulator)
    whole = Block(Stream.SOLVER, 5, 0, 4096)
    with Durable(tmp_path, fingerprint) as executor:
        first = dict(executor.run(source.draw, [whole]))
    with Durable(tmp_path, fingerprint) as executor:
        more = dict(executor.run(source.draw, [whole._replace(size=100), Block(Stream.SOLVER, 5, 1, 50)]))
        np.testing.assert_array_equal(more[whole._replace(size=100)].next_states, first[whole].next_states[:100])
        short = more[Block(Stream.SOLVER, 5, 1, 50)].next_states
        before = source.model.num_queries
        (_, longer), *_ = executor.run(source.draw, [Block(Stream.SOLVER, 5, 1, 60)])  # the plan of another version
        assert len(longer.next_states) == 60 and source.model.num_queries == before + 60
        np.testing.assert_array_equal(longer.next_states[:50], short)
    with Durable(tmp_path, fingerprint) as executor:
        (_, again), *_ = executor.run(source.draw, [Block(Stream.SOLVER, 5, 1, 60)])
        np.testing.assert_array_equal(again.next_states, longer.next_states)
