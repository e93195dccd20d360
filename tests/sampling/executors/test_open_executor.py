"""One executor for a whole run, as the command line has it: samples kept, replayed, and counted on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback import GenerativeModel, zoo
from saddleback.sampling.blocks import Block, BlockSource, InOrder
from saddleback.sampling.executors import open_executor
from saddleback.sampling.fingerprint import CHECK_CALLS, UnrepeatableError
from spelled_out import solve


def opened(instance: zoo.Instance, simulator: GenerativeModel | None = None, **more: Any) -> Any:
    return open_executor(problem=instance.problem, simulator=simulator or instance.simulator, **more)


def test_the_answer_is_the_same_and_every_sample_is_counted(tmp_path: Path) -> None:
    instance, told = zoo.make("wireless"), list[tuple[str, int, int, int]]()
    way: dict[str, Any] = {"samples": 40_000, "seed": 3}
    plain = solve(instance.problem, instance.simulator, **way)
    with opened(instance, folder=tmp_path / "s", progress=lambda *what: told.append(what)) as executor:
        kept = solve(instance.problem, instance.simulator, executor=executor, **way)
        assert next(iter(executor.kept.content_hashes())) == "samples-3"
    assert kept.to_json() == plain.to_json()
    assert executor.finding is None and executor.check_calls > CHECK_CALLS  # one block in a hundred was drawn again
    ends = [(what, done) for what, done, total, _ in told if done == total]  # the reachable states are found in rounds
    assert {what for what, _ in ends} == {"samples to solve", "samples to evaluate"}
    assert sum(done for _, done in ends) == plain.to_json()["samples"]


def test_a_simulator_that_ignores_its_seed_is_found_and_refused_where_samples_are_kept(tmp_path: Path) -> None:
    instance, own = zoo.make("queue"), np.random.default_rng(0)
    deaf = GenerativeModel(lambda s, a, _: instance.simulator.sample(s, a, own).next_states, instance.problem.states)
    with opened(instance, deaf) as executor:
        assert "same seed" in executor.finding and not executor.report()["reproducible"]
    with pytest.raises(UnrepeatableError, match="same seed"), opened(instance, deaf, folder=tmp_path / "s"):
        pass
    assert not (tmp_path / "s").exists()


def test_failures_that_were_survived_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instance, told = zoo.make("queue"), list[int]()
    states, actions = instance.problem.pairs()
    blocks = BlockSource(instance.simulator, instance.problem, states, actions, 0)

    def failing(name: Any, workers: Any, *, progress: Any, **_: Any) -> Any:
        class Failing(InOrder):
            def run(self, function: Any, tasks: Any) -> Any:
                for done, found in enumerate(super().run(function, tasks), start=1):
                    progress(done, 0, 2)
                    yield found

        return Failing()

    monkeypatch.setattr("saddleback.sampling.executors.make", failing)
    with opened(instance, workers=2, progress=lambda what, done, total, failures: told.append(failures)) as executor:
        list(executor.run(blocks.draw, [Block(0, 1, 0, 5), Block(0, 2, 0, 5)]))
    assert told == [2, 2]


def test_the_end_of_the_block_closes_whoever_draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    closed = []

    class Closing(InOrder):
        def close(self) -> None:
            closed.append(self)

    monkeypatch.setattr("saddleback.sampling.executors.make", lambda *_, **__: Closing())
    for folder in (None, tmp_path / "s"):
        with opened(zoo.make("queue"), workers=2, folder=folder, progress=lambda *_: None):
            pass
    assert len(closed) == 2
