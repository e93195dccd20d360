"""Solving from a store on disk against the same samples in memory; one thread.

Points of R², 4 actions, d = 36 (Fourier features), 60 pairs, T = 50 batches of 100: 3·10⁵ samples, whose features take
346 MB, which a buffer in memory evaluates at once and keeps, and a streamed one window by window. Both sides start without a
feature evaluated: the buffer in memory from samples that are there, the streamed one from the store's folder. LS-MDVI and LS-PE read every sample once, LSTD all of them
together. The store is in the page cache: what is measured is the way of reading, not the disk.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.timing import Row, ratio
from saddleback.designs.design import Design, weighted_design
from saddleback.features import FeatureFunction
from saddleback.files.disk import Disk
from saddleback.method.evaluators import LSPE, LSTD
from saddleback.method.solvers import LSMDVI
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import BoxStates
from saddleback.sampling.blocks import blocks_for
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import Samples
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.streamed_buffer import StreamedBuffer, streamed_buffer
from saddleback.simulators.generative_model import Draw, generator

A, C, T, M = 4, 60, 50, 100


class QuickDisk(Disk):
    """Without waiting for the disk."""

    def fsync(self, file: int) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


def rows() -> list[Row]:
    problem, design = synthetic()
    with tempfile.TemporaryDirectory() as place:
        samples = fill(Path(place) / "s", problem, design, T * M)
        store = SampleStore.open(Path(place) / "s", writable=False)

        def memory() -> Buffer:
            return cut(samples, problem, design, T)

        def streamed() -> StreamedBuffer:
            return streamed_buffer(store, 0, problem, design, T)

        mixing = np.array([[0.5, 0.5]])
        (policy,) = LSMDVI().solve(problem, memory(), mixing)
        (other,) = LSMDVI().solve(problem, streamed(), mixing)
        np.testing.assert_allclose(policy.theta, other.theta, rtol=0, atol=1e-12 * np.abs(policy.theta).max())
        found = {
            "LS-MDVI": ratio(
                lambda: LSMDVI().solve(problem, streamed(), mixing),
                lambda: LSMDVI().solve(problem, memory(), mixing),
                3,
            ),
            "LS-PE": ratio(
                lambda: LSPE().evaluate(problem, streamed(), policy),
                lambda: LSPE().evaluate(problem, memory(), policy),
                3,
            ),
            "LSTD": ratio(
                lambda: LSTD().interval(problem, streamed(), policy, 0.95),
                lambda: LSTD().interval(problem, memory(), policy, 0.95),
                3,
            ),
        }
        store.close()
    size = f"{C * T * M:.2g} points"
    return [Row(f"{name}, {size}, from the store / in memory", *r[:1], 1.5, 1.1, *r[1:]) for name, r in found.items()]


def synthetic() -> tuple[CMDP, Design]:
    """Fourier features of the unit square for each action; rewards and next states are made up."""
    waves = np.array([[i, j] for i in range(3) for j in range(3)]) * np.pi
    d = A * len(waves)

    def phi(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        out = np.zeros((len(states), A, len(waves)))
        out[np.arange(len(states)), actions] = np.cos(states @ waves.T)
        return out.reshape(len(states), d)

    rng = np.random.default_rng(0)
    features, states, actions = FeatureFunction(phi, d, A), rng.random((C, 2)), np.tile(np.arange(A), C // A)
    problem = CMDP(
        gamma=0.95,
        start=Start(rng.random((3, 2)), np.full(3, 1 / 3)),
        num_actions=A,
        states=BoxStates(np.zeros(2), np.ones(2)),
        reward=lambda s, a: 0.5 + 0.5 * np.cos(np.pi * s[:, 0]),
        reward_range=(0.0, 1.0),
        constraints=[Constraint("c", lambda s, a: a / A, ">=", 5.0, range=(0.0, 1.0))],
        features=features,
        candidates=(states, actions),
    )
    return problem, weighted_design(states, actions, features.at(states, actions), np.full(C, 1 / C))


def fill(folder: Path, problem: CMDP, design: Design, each: int) -> Samples:
    """A store of uniform points, and the same in memory."""
    blocks = blocks_for(0, np.full(design.size, each))
    drawn = [Draw(generator(0, *block[:3]).random((block.size, 2)), None) for block in blocks]
    with SampleStore.create(folder, {}, Layout.of(problem.states), disk=QuickDisk()) as store:
        for block, draw in zip(blocks, drawn, strict=True):
            store.add(block, draw)
    parts: list[list[np.ndarray]] = [[] for _ in range(design.size)]
    for block, draw in zip(blocks, drawn, strict=True):
        parts[block.pair].append(draw.next_states)
    return Samples([np.concatenate(part) for part in parts], None)
