"""Simulators that go wrong, in a module of its own so that worker processes can import it.

All draw uniform next states of a random table's space; each has one fault, at one pair (state 2, action 1) where that makes
sense. What happens in other processes is written to files in ``folder``.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from helpers import random_table
from saddleback.designs.design import full_design
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import BoxStates, FiniteStates
from saddleback.sampling.blocks import BlockSource, blocks_for
from saddleback.sampling.collect import Samples, collect
from saddleback.simulators.generative_model import GenerativeModel

S, A = 6, 3
STATE, ACTION = 2, 1
PAIR = STATE * A + ACTION


def problem() -> CMDP:
    return random_table(0, S, A).problem()


def source(simulator: Any, seed: int = 5, space: Any = None, num_signals: int = 0) -> BlockSource:
    model = simulator
    if not isinstance(simulator, GenerativeModel):
        model = GenerativeModel(simulator, space or FiniteStates(S), num_signals)
    return BlockSource(model, problem(), *problem().pairs(), seed)


def blocks(size: int = 20, pairs: int = S * A, stream: int = 0) -> list:
    return blocks_for(stream, np.full(pairs, size), np.zeros(pairs, dtype=np.int64))


def fingerprint(samples: Samples) -> str:
    digest = hashlib.sha256()
    for sequence in samples.next_states:
        digest.update(f"{sequence.dtype} {sequence.shape}".encode() + sequence.tobytes())
    if samples.signal_means is not None:
        digest.update(samples.signal_means.tobytes() + samples.signal_variances.tobytes())
    return digest.hexdigest()


def collected(simulator: Any, executor: Any, counts: Any = 37, num_signals: int = 0) -> str:
    """The sha256 of what ``collect`` assembles; with a few blocks a pair where ``counts`` exceeds 4,096."""
    model = GenerativeModel(simulator, FiniteStates(S), num_signals)
    found = collect(model, problem(), full_design(*problem().pairs()), counts, seed=11, stream=0, executor=executor)
    assert model.num_queries == found.total, "the parent's meter is right"
    return fingerprint(found)


def drawn(executor: Any, function: Any, tasks: Any) -> tuple[dict, Exception | None]:
    """All results a run gives, and the error it ends with."""
    results: dict = {}
    try:
        for task, result in executor.run(function, tasks):
            results[task] = result
    except Exception as error:
        return results, error
    return results, None


def at_fault(states: Any, actions: Any) -> bool:
    """In blocks of samples, and not in the short calls of the examination: it shows in the middle of a run."""
    return bool(states[0] == STATE and actions[0] == ACTION and len(states) > 16)


def note(folder: Path, name: str, text: str) -> None:
    """One line, appended in one piece."""
    with (Path(folder) / name).open("a") as file:
        file.write(f"{text}\n")


def lines(folder: Path, name: str) -> list[str]:
    path = Path(folder) / name
    return path.read_text().splitlines() if path.exists() else []


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return "(zombie)" not in (Path("/proc") / str(pid) / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids: list[int], seconds: float = 10.0) -> bool:
    """Whether all of them end within some seconds."""
    end = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    return not any(map(alive, pids))


def uniform(states, actions, rng):
    return rng.integers(0, S, len(states))


def with_signals(states, actions, rng):
    return rng.integers(0, S, len(states)), rng.random((len(states), 2))


def jittery(states, actions, rng):
    """Takes a time of its own, so that blocks are finished in another order every time."""
    time.sleep(int.from_bytes(os.urandom(1)) / 255 * 0.01)
    return uniform(states, actions, rng)


@functools.cache
def own_stream() -> np.random.Generator:
    return np.random.default_rng(os.getpid())


def per_worker(states, actions, rng):
    """What must not be done: one stream a process."""
    return uniform(states, actions, own_stream())


def ignores_its_seed(states, actions, rng):
    return uniform(states, actions, np.random.default_rng())


def always_raises(states, actions, rng):
    raise ZeroDivisionError


class Remembers:
    """The number of calls so far goes into the samples; the seed is obeyed."""

    calls = 0

    def __call__(self, states, actions, rng):
        self.calls += 1
        return (uniform(states, actions, rng) + self.calls // 3) % S


class RemembersLast:
    """The last state goes into the samples: a block drawn twice in a row looks right."""

    def __init__(self, last=0):
        self.last = last

    def __call__(self, states, actions, rng):
        result = (uniform(states, actions, rng) + (self.last != states[0])) % S
        self.last = states[0]
        return result


class Aliased:
    """Returns the same array every time."""

    def __init__(self):
        self.out = np.empty(4096, dtype=np.int64)

    def __call__(self, states, actions, rng):
        self.out[: len(states)] = uniform(states, actions, rng)
        return self.out[: len(states)]


@dataclasses.dataclass
class Wrong:
    """Returns something impossible at one pair."""

    kind: str

    def __call__(self, states, actions, rng):
        x = uniform(states, actions, rng)
        if not at_fault(states, actions):
            return x
        match self.kind:
            case "raises":
                raise ZeroDivisionError("no packets")
            case "exits":
                sys.exit(3)
            case "outside":
                x[7] = S
                return x
            case "short":
                return x[1:]
            case "square":
                return x[:, None]
            case "float":
                return x.astype(float)
        raise AssertionError(self.kind)


@dataclasses.dataclass
class WrongBox:
    """Points of [0, 1]², with NaN or infinity at one pair."""

    value: float

    def __call__(self, states, actions, rng):
        x = rng.random((len(states), 2))
        if at_fault(states, actions):
            x[3, 1] = self.value
        return x


BOX = BoxStates(np.zeros(2), np.ones(2))


@dataclasses.dataclass
class WrongSignal:
    value: float

    def __call__(self, states, actions, rng):
        x, signals = with_signals(states, actions, rng)
        if at_fault(states, actions):
            signals[4, 1] = self.value
        return x, signals


@dataclasses.dataclass
class Deadly:
    """Ends its process at one pair: always, or only the first ``times``. Every call there is noted, with its
    random stream."""

    how: str
    folder: Path
    times: int = 1000

    def __call__(self, states, actions, rng):
        if at_fault(states, actions):
            note(self.folder, "keys", str(rng.bit_generator.state["state"]["key"].tolist()))
            if len(lines(self.folder, "keys")) <= self.times:
                self.die()
        return uniform(states, actions, rng)

    def die(self):
        match self.how:
            case "segfault":
                ctypes.string_at(0)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(3)
            case "hang":
                note(self.folder, "pids", str(os.getpid()))
                child = subprocess.Popen(["sleep", "300"])
                note(self.folder, "pids", str(child.pid))
                time.sleep(300)


@dataclasses.dataclass
class RaisesWhileAnotherWorks:
    """State 0 raises once state 1 has begun; state 1 takes half a second."""

    folder: Path

    def __call__(self, states, actions, rng):
        if states[0] == 0:
            end = time.monotonic() + 20
            while not lines(self.folder, "begun") and time.monotonic() < end:
                time.sleep(0.01)
            raise ValueError("after the other has begun")
        note(self.folder, "begun", "1")
        time.sleep(0.5)
        return uniform(states, actions, rng)


@dataclasses.dataclass
class CountsLoads:
    """Notes every process it is loaded into."""

    folder: Path

    def __setstate__(self, state):
        self.__dict__.update(state)
        note(self.folder, "loads", str(os.getpid()))

    def __call__(self, states, actions, rng):
        note(self.folder, "used", str(os.getpid()))
        return jittery(states, actions, rng)


class Unsendable:
    """Holds what no other process can have."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, states, actions, rng):
        with self.lock:
            return jittery(states, actions, rng)


@dataclasses.dataclass
class Makes:
    """A factory that notes where it was called."""

    folder: Path
    wrong: bool = False

    def __call__(self):
        if self.wrong:
            raise RuntimeError("no licence")
        note(self.folder, "made", str(os.getpid()))
        return Unsendable()


@dataclasses.dataclass
class Slow:
    seconds: float
    folder: Path

    def __call__(self, states, actions, rng):
        note(self.folder, "pids", str(os.getpid()))
        time.sleep(self.seconds)
        return uniform(states, actions, rng)


def threads(_task):
    return os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"]


def make_unsendable(_task):
    return Unsendable()


@dataclasses.dataclass
class StaysOnANode:
    """On one Ray node it never returns; on others it waits until that has happened."""

    folder: Path
    node: str

    def __call__(self, states, actions, rng):
        import ray

        if ray.get_runtime_context().get_node_id() == self.node:
            note(self.folder, "doomed", str(os.getpid()))
            time.sleep(300)
        end = time.monotonic() + 60
        while not lines(self.folder, "doomed") and time.monotonic() < end:
            time.sleep(0.02)
        return uniform(states, actions, rng)
