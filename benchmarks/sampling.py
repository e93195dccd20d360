"""What executors cost: against bare calls of the same simulator, with the same random streams, in this process or in two.

A simulator that burns 1 ms of processor time a sample stands for those that need workers: two workers against two bare
processes that share the blocks and send nothing back. The zoo's wireless simulator draws a block of 4,096 in about 0.15 ms,
which is as light as they come: there the cost of checks, of sending and of the disk shows. With 2 ms a block workers are
worth their while. A run that is kept on disk waits for the disk: its samples are synced before they are acknowledged.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from benchmarks.timing import Row, ratio
from saddleback import solve
from saddleback.instances.zoo import make
from saddleback.problem.spaces import Actions, States
from saddleback.sampling.blocks import Block, BlockSource, blocks_for
from saddleback.sampling.executors import Joblib, Serial
from saddleback.sampling.executors.durable import Durable
from saddleback.simulators.generative_model import GenerativeModel, generator

SAMPLES = 2_000_000  # for the solve that is kept, its certificate included


def rows() -> list[Row]:
    return [
        burning(),
        vectorised_serially(),
        vectorised_in_two_workers(),
        heavier_in_two_workers(),
        *kept_samples(),
        kept_solve(),
    ]


def burn(states: States, actions: Actions, rng: np.random.Generator) -> States:
    """1 ms of processor time a sample."""
    end = time.thread_time() + 1e-3 * len(states)
    while time.thread_time() < end:
        rng.random(100)
    return states


class Repeated:
    """The wireless simulator with so many random numbers to draw before: a vectorised one that has more to do."""

    def __init__(self, sample: Callable[..., Any], times: int):
        self.sample, self.times = sample, times

    def __call__(self, states: States, actions: Actions, rng: np.random.Generator) -> States:
        for _ in range(self.times):
            np.sqrt(rng.standard_normal(len(states)) ** 2)
        return self.sample(states, actions, rng)


def burning() -> Row:
    source = wireless(lambda _: burn)
    measured = two_against_two(source, tasks(source, 10))  # 132 blocks of 10 ms
    return Row("1 ms a sample: two workers / two bare processes", measured[0], 1 / 0.9, 1.03, *measured[1:])


def vectorised_serially() -> Row:
    source = wireless()
    blocks, executor = tasks(source, 2 * 4096), Serial()
    measured = ratio(lambda: use(executor, source, blocks), lambda: bare_calls(source, blocks), repeats=41)
    return Row("wireless, 0.15 ms a block: serial executor / bare calls", measured[0], 1.2, 1.1, *measured[1:])


def vectorised_in_two_workers() -> Row:
    source = wireless()
    measured = two_against_two(source, tasks(source, 20 * 4096))
    title = "wireless, 0.15 ms a block: two workers / two bare processes"
    return Row(title, measured[0], 1.8, 1.4, *measured[1:])


def heavier_in_two_workers() -> Row:
    source = wireless(lambda sample: Repeated(sample, 20))
    measured = two_against_two(source, tasks(source, 5 * 4096))
    title = "vectorised, 2 ms a block: two workers / two bare processes"
    return Row(title, measured[0], 1.2, 1.05, *measured[1:])


def kept_samples() -> list[Row]:
    found = []
    for what, times, rounds in (("wireless, 0.15 ms", 0, 5), ("vectorised, 2 ms", 20, 3)):
        source = wireless(lambda sample, times=times: Repeated(sample, times) if times else sample)
        blocks, memory = tasks(source, rounds * 4096), Serial()
        with tempfile.TemporaryDirectory() as place:
            names = itertools.count()

            def kept(place=place, names=names, source=source, blocks=blocks) -> None:
                with Durable(f"{place}/{next(names)}", {}, Serial()) as executor:
                    use(executor, source, blocks)

            measured = ratio(kept, lambda: use(memory, source, blocks), repeats=7)  # noqa: B023
        found.append(Row(f"{what} a block: kept on disk / in memory", measured[0], 1.3, 1.1, *measured[1:]))
    return found


def kept_solve() -> Row:
    """The whole way: sampling, solving and certifying."""
    instance = make("wireless")
    with tempfile.TemporaryDirectory() as place:
        names = itertools.count()

        def kept() -> None:
            with Durable(f"{place}/{next(names)}", {}) as executor:
                solve(instance.problem, instance.simulator, samples=SAMPLES, executor=executor)

        measured = ratio(kept, lambda: solve(instance.problem, instance.simulator, samples=SAMPLES), repeats=5)
    return Row(
        f"wireless, {SAMPLES:.2g} samples, solved and certified: kept on disk / in memory",
        measured[0],
        1.3,
        1.1,
        *measured[1:],
    )


def two_against_two(source: BlockSource, blocks: list[Block]) -> tuple[float, float, float]:
    with Joblib(2) as executor, Bare(source, blocks, 2) as bare:
        return ratio(lambda: use(executor, source, blocks), bare.run, repeats=9)


def wireless(change: Callable[[Any], Any] = lambda sample: sample) -> BlockSource:
    instance = make("wireless")
    model = GenerativeModel(change(instance.simulator._sample), instance.simulator.states)
    return BlockSource(model, instance.problem, *instance.problem.pairs(), 0)


def tasks(source: BlockSource, samples: int) -> list[Block]:
    n = len(source.states)
    return blocks_for(0, np.full(n, samples), np.zeros(n, dtype=np.int64))


def use(executor: Any, source: BlockSource, blocks: list[Block]) -> None:
    for _ in executor.run(source.draw, blocks):
        pass


def bare_calls(source: BlockSource, blocks: Iterable[Block]) -> None:
    """The user's function and nothing else but its random streams."""
    sample: Callable[..., Any] = source.model._sample
    for block in blocks:
        states, actions = (
            np.repeat(source.states[block.pair], block.size),
            np.repeat(source.actions[block.pair], block.size),
        )
        sample(states, actions, generator(*source.key(block)))


class Bare:
    """Processes that wait for a word, make the calls between them, and say when they are done.

    Each takes the next block when it is done with one: with fixed halves the reference would wait for the slower process on a
    machine that others use too, and we would look better than we are.
    """

    def __init__(self, source: BlockSource, blocks: list[Block], number: int):
        context = multiprocessing.get_context("spawn")
        self.ends: list[Connection] = []
        self.processes = []
        self.taken = context.Value("q", 0)
        for _ in range(number):
            end, theirs = context.Pipe()
            self.processes.append(context.Process(target=_wait_and_call, args=(theirs, source, blocks, self.taken)))
            self.processes[-1].start()
            self.ends.append(end)

    def run(self) -> None:
        self.taken.value = 0
        for end in self.ends:
            end.send(True)
        for end in self.ends:
            end.recv()

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        for end, process in zip(self.ends, self.processes, strict=True):
            end.send(False)
            process.join()


def _wait_and_call(end: Connection, source: BlockSource, blocks: list[Block], taken: Any) -> None:
    os.setsid()  # as our workers do: on a busy machine Linux shares the processor between sessions
    while end.recv():
        bare_calls(source, _next_blocks(blocks, taken))
        end.send(True)


def _next_blocks(blocks: list[Block], taken: Any) -> Iterator[Block]:
    while True:
        with taken.get_lock():
            i = taken.value
            taken.value = i + 1
        if i >= len(blocks):
            return
        yield blocks[i]
