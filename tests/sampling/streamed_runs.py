"""A problem on the unit square and stores of its samples, for the tests of buffers that stay on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from saddleback.designs.design import Design, weighted_design
from saddleback.features import FeatureFunction
from saddleback.files.disk import Disk
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import BoxStates
from saddleback.sampling.blocks import BlockSource, blocks_for
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import GenerativeModel

A, CORNERS = 3, np.array([[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]])
SEED = 11


class QuickDisk(Disk):
    """Without waiting for the disk: no test here cuts the power."""

    def fsync(self, file: int) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


@dataclass(frozen=True)
class Hats:
    """φ(s, a): for each action three bumps that sum to one, so that P, linear in them, mixes three places a row."""

    num_actions: int = A

    def __call__(self, states: Any, actions: Any) -> Any:
        """Rows ``(n, 3A)``."""
        n = len(states)
        weights = np.empty((n, 3))
        weights[:, 0] = states[:, 0] * (1 - 0.5 * states[:, 1])
        weights[:, 1] = (1 - states[:, 0]) * (1 - 0.5 * states[:, 1])
        weights[:, 2] = 0.5 * states[:, 1]
        phi = np.zeros((n, self.num_actions, 3))
        phi[np.arange(n), actions] = weights
        return phi.reshape(n, -1)


def step(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    """To one of the four corners, with the features' probabilities, and a little to the side."""
    u = rng.random(len(states))
    w = np.column_stack([states[:, 0] * (1 - 0.5 * states[:, 1]), (1 - states[:, 0]) * (1 - 0.5 * states[:, 1])])
    place = (u[:, None] > np.cumsum(w, axis=1)).sum(axis=1)
    return np.clip(CORNERS[(place + actions) % 4] + rng.normal(scale=0.05, size=states.shape), 0.0, 1.0)


def noisy_step(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    """The same with an observed reward and an observed constraint."""
    after = step(states, actions, rng)
    noise = rng.random((len(states), 2)) * 0.2
    return after, np.clip(np.column_stack([0.8 * states[:, 0], 0.8 * care(states, actions)]) + noise, 0.0, 1.0)


def care(states: Any, actions: Any) -> Any:
    """Nowhere constant: the variance of a constant is rounding alone."""
    return actions / 2 * (0.3 + 0.6 * states[:, 1])


def square(observed: bool = False) -> tuple[CMDP, GenerativeModel, Design]:
    """The problem, its simulator, and a design of nine pairs an action with unequal weights."""
    grid = np.array([[x, y] for x in (0.0, 0.5, 1.0) for y in (0.0, 0.5, 1.0)])
    states, actions = np.repeat(grid, A, axis=0), np.tile(np.arange(A), len(grid))
    features = FeatureFunction(Hats(), 3 * A, A)
    box = BoxStates(np.zeros(2), np.ones(2))
    problem = CMDP(
        gamma=0.8,
        start=Start(np.array([[0.5, 0.5], [0.2, 0.9]]), np.array([0.7, 0.3])),
        num_actions=A,
        states=box,
        reward=None if observed else (lambda s, a: 0.9 * s[:, 0] * (1 - 0.5 * s[:, 1])),
        reward_range=(0.0, 1.0),
        constraints=[
            Constraint("care", None if observed else care, ">=", 1.2, range=(0.0, 1.0)),
        ],
        features=features,
        candidates=(states, actions),
    )
    model = GenerativeModel(noisy_step if observed else step, box, 2 if observed else 0)
    weights = np.random.default_rng(3).dirichlet(np.full(len(states), 4.0)) + 0.01
    return problem, model, weighted_design(states, actions, features.at(states, actions), weights / weights.sum())


def fill(
    folder: Path, problem: CMDP, model: GenerativeModel, design: Design, counts: Any, streams: tuple[int, ...] = (0,)
) -> SampleStore:
    """A store of so many samples a pair, its blocks in no good order, open for reading."""
    source = BlockSource(model, problem, design.states, design.actions, SEED)
    layout = Layout.of(model.states, model.num_signals)
    with SampleStore.create(folder, {"seed": SEED}, layout, disk=QuickDisk(), shard_bytes=1 << 18) as store:
        for stream in streams:
            blocks = blocks_for(stream, np.broadcast_to(np.asarray(counts), (design.size,)))
            for i in np.random.default_rng(stream).permutation(len(blocks)):
                store.add(blocks[i], source.draw(blocks[i]))
    return SampleStore.open(folder, writable=False)


def in_memory(problem: CMDP, model: GenerativeModel, design: Design, counts: Any, T: int, stream: int = 0) -> Buffer:
    """The same samples, never on disk."""
    return cut(collect(model, problem, design, counts, seed=SEED, stream=stream), problem, design, T)
