"""How much memory a solve will take, said before anything is drawn.

A solve passes through stages, and its peak is that of the largest. With n samples of c pairs in a buffer of T batches
(B = n/T), s = min(S, n) distinct next states (in R^k every sample is one, s = n), and e = min(n, c·s) entries of P̂, in bytes

    drawn       8(k + σ)n + 8kn      blocks with σ signals, and the sequences they are joined to; 1 kB a block besides
    cut         8kn + 8n + 24B + …   sequences, positions, and the keys by which a batch is counted    (R^k: 16kn)
    held        min(8n, 12Te, 8Tcs)  positions, sparse or dense counts, whichever is smallest          (R^k: 8kn)
    φ           8sAd                 of the distinct next states, kept up to 1 GiB; once more while a policy is evaluated
    P̂           12e, and 56·min(n, Tcs) while it is made
    proof       100 e of the fresh buffer, 8(8(1+m) + 12) a rollout, and the tapes of one chunk

The evaluator's buffer is drawn while the solver's is held, the certificate's while both are. The design comes first, 8nd
for the features of its n candidates, and is given back but for the coreset.

These are upper estimates of what this package allocates, not of what a simulator or a feature function takes for itself:
of the latter one array of the size of its result is assumed. Workers in other processes are not counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.features import FeatureMatrix
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import BoxStates
from saddleback.sampling.batches import COMPILED_PRODUCTS, COMPILED_SAMPLES
from saddleback.sampling.trajectories import CHUNK, steps_per_rollout
from saddleback.simulators.generative_model import BLOCK

CODE_BYTES = 12 << 20
"""Libraries that are loaded when they are first used, and all that is small: what a run takes however few its samples."""

_COMPILED = 160 << 20  # numba and its machine code
_BLOCK_BYTES = 1024  # of Python's objects around a block
_KEPT_FEATURES = 1 << 30  # as in saddleback.sampling.value_functions
_PIECE = 1 << 26
_FACTORED_STATES = 1500  # as in saddleback.method.evaluators.lstd


class Lot(NamedTuple):
    """The samples of one buffer: how many, in how many batches and blocks, and whether a pair has several blocks."""

    samples: int = 0
    batches: int = 1
    blocks: int = 0
    joined: bool = True

    @classmethod
    def of(cls, counts: NDArray[np.int64], batches: int) -> Lot:
        """From the samples of each pair."""
        blocks = int((-(-counts // BLOCK)).sum())
        return cls(int(counts.sum()), batches, blocks, bool(np.any(counts > BLOCK)))


class Prediction(NamedTuple):
    """Bytes at the height of each stage."""

    design: int
    solve: int
    certificate: int

    @property
    def peak(self) -> int:
        """Of the whole run."""
        return max(self)


def predict(
    problem: CMDP,
    pairs: int,
    solver: Lot,
    evaluation: Lot,
    *,
    certificate: int = 0,
    num_signals: int = 0,
    earlier: int = 0,
) -> Prediction:
    """Peak bytes of a solve on ``pairs`` pairs with these buffers, and of a certificate of so many samples.

    ``earlier`` samples of a smaller run are still held.
    """
    size = _Sizes.of(problem, pairs, num_signals)
    before = size.held(Lot(earlier)) + size.kept(Lot(earlier)) + 2 * size.raw(earlier) if earlier else 0
    first = size.held(solver) + size.kept(solver)
    second = size.held(evaluation) + size.kept(evaluation)
    solving = max(
        size.collecting(solver),
        size.cutting(solver),
        size.raw(solver.samples) + size.held(solver) + size.working(solver),
        size.raw(solver.samples) + first + size.collecting(evaluation),
        first + size.cutting(evaluation),
        first + second + max(size.working(solver), size.working(evaluation)),
    )
    proving = 0.0
    if certificate:
        fresh = Lot(certificate, 1, pairs + certificate // BLOCK)
        proving = first + second + max(size.collecting(fresh), size.cutting(fresh), size.proving(fresh, evaluation))
    code = CODE_BYTES + (_COMPILED if size.compiled(solver) or size.compiled(evaluation) else 0)
    return Prediction(design_bytes(problem), int(code + before + solving), int(code + before + proving))


def predict_run(
    problem: CMDP, samples: int, *, certificate: int = 0, num_signals: int = 0, earlier: int = 0
) -> Prediction:
    """The same before the design is known: a solve with the usual parts from ``samples`` simulator calls."""
    pairs = _pairs(problem)
    own = samples // 4
    N = max(1, own // pairs)
    T = max(
        1, N // max(4, math.ceil(N / min(max(20 * problem.horizon, 200), 2000)))
    )  # as in saddleback.sampling.allocation
    lots = [Lot(n, t, pairs + n // BLOCK, n > BLOCK * pairs) for n, t in ((own, T), (samples - own, 1))]
    return predict(problem, pairs, *lots, certificate=certificate, num_signals=num_signals, earlier=earlier)


def design_bytes(problem: CMDP) -> int:
    """Peak bytes of the design: Φ of its candidates, their leverages, and the pieces of a pass."""
    features = problem.features
    listed = features is None or not features.direct  # where an argmax oracle is the way, a coreset is all there is
    every = (problem.num_states or 0) * problem.num_actions if listed else _pairs(problem)
    n = every if problem.candidates is None else len(problem.candidates[1])
    width = 0 if features is None or (features.direct and problem.candidates is None) else features.dim
    pass_bytes = min(n, 1 << 16) * width * 8 * 2
    return 8 * n * (width + 8) + pass_bytes + 8 * 6 * width**2


def _pairs(problem: CMDP) -> int:
    """About as many as a coreset has."""
    every = (problem.num_states or 1) * problem.num_actions
    if problem.features is None:
        return every
    return min(every, 2 * problem.features.dim) if problem.num_states is not None else 2 * problem.features.dim


class _Sizes(NamedTuple):
    """What the bytes depend on: k, σ, m, S (None: R^k), A, d (0: no φ is made), c, whether φ is an array, and γ."""

    k: int
    signals: int
    m: int
    S: int | None
    A: int
    d: int
    c: int
    matrix: bool
    gamma: float

    @classmethod
    def of(cls, problem: CMDP, pairs: int, num_signals: int) -> _Sizes:
        features = problem.features
        d = 0 if features is None or features.direct else features.dim
        k = problem.states.dim if isinstance(problem.states, BoxStates) else 1
        matrix = isinstance(features, FeatureMatrix)
        m, A = problem.num_constraints, problem.num_actions
        if features is not None and features.direct and features.dim < (problem.num_states or 0) * A:
            A = 1  # actions are never listed
        return cls(k, num_signals, m, problem.num_states, A, d, pairs, matrix, problem.gamma)

    def raw(self, n: int) -> float:
        """Sequences of next states."""
        return 8.0 * self.k * n

    def states(self, n: int) -> int:
        """Distinct next states."""
        return n if self.S is None else min(self.S, n)

    def entries(self, n: int) -> int:
        """Entries of P̂."""
        return n if self.S is None else min(n, self.c * self.states(n))

    def compiled(self, lot: Lot) -> bool:
        """Whether compiled loops may be used."""
        s, B = self.states(lot.samples), lot.samples // lot.batches
        products = lot.batches * (s if s <= 4 * B else 2 * B) * self.A * self.d
        return (self.S is not None and lot.samples >= COMPILED_SAMPLES) or products >= COMPILED_PRODUCTS

    def collecting(self, lot: Lot) -> float:
        """Blocks as drawn, then joined."""
        joined = self.raw(lot.samples) if lot.joined else 0.0
        return 8.0 * self.signals * lot.samples + self.raw(lot.samples) + joined + _BLOCK_BYTES * lot.blocks

    def held(self, lot: Lot) -> float:
        """The batches of a buffer, with the pair of each sample of a batch."""
        n, T = lot.samples, lot.batches
        if self.S is None:
            return self.raw(n)
        B, s = n // T, self.states(n)
        counts = min(12.0 * T * (min(B, self.c * s) + self.c), 8.0 * T * self.c * s)
        return min(8.0 * n, counts) + 8 * B + 1000 * T

    def cutting(self, lot: Lot) -> float:
        """From sequences to batches."""
        n, B = lot.samples, lot.samples // lot.batches
        if self.S is None:
            return 2 * self.raw(n)
        table = self.c * self.states(n)
        tally = 8.0 * table + 16 * min(B, table) if table <= 8 * B else 9.0 * B + 24 * min(B, table)
        return self.raw(n) + 8 * n + 24 * B + tally + self.held(lot) - 8 * B + _BLOCK_BYTES * lot.blocks

    def kept(self, lot: Lot) -> float:
        """What a buffer remembers: φ, the last maximum, the last policy's features, P̂."""
        s, phi = self.states(lot.samples), self.phi(lot)
        model = 0 if self.S is None else 12.0 * (self.entries(lot.samples) + self.c)
        return (phi if phi <= _KEPT_FEATURES else 0.0) + 8.0 * s * (self.d + 2 + self.m) + model

    def phi(self, lot: Lot) -> float:
        """φ of every action at every distinct next state."""
        return 8.0 * self.states(lot.samples) * self.A * self.d

    def evaluating(self, lot: Lot, whole: bool) -> float:
        """φ once more, while a policy is evaluated, with what its function makes of it."""
        phi = self.phi(lot)
        pieces = not whole and phi > _KEPT_FEATURES
        once = _PIECE if pieces else phi
        return once * (1.0 if self.matrix else 2.0) + 8.0 * self.states(lot.samples) * (self.d + self.A * (2 + self.m))

    def working(self, lot: Lot) -> float:
        """The work arrays of solver and evaluator."""
        s, model = self.states(lot.samples), 0.0
        if self.S is not None:
            entries = min(lot.samples, lot.batches * self.c * s)
            factor = 12.0 * self.S**2 if self.S <= _FACTORED_STATES and self.d == 0 else 0.0
            chain = 60.0 * min(lot.samples, self.S * s) + 8.0 * self.S * self.A * (6 + self.m) if self.d == 0 else 0.0
            model = max(56.0 * entries, chain + factor)
        return max(model, self.evaluating(lot, False)) + 8.0 * s * 6 * (2 + self.m)

    def proving(self, fresh: Lot, evaluation: Lot) -> float:
        """The certificate's work arrays, its fresh buffer held."""
        entries, n = self.entries(fresh.samples), fresh.samples / steps_per_rollout(self.gamma)
        bound = 100.0 * entries + 8.0 * self.states(fresh.samples) * 6 * (1 + self.m)
        rollouts = 8.0 * (8 * (1 + self.m) + 12) * n
        tape = 8.0 * 6 * (self.k + self.signals + self.d + 2 + self.m) * min(n, CHUNK) * steps_per_rollout(self.gamma)
        again = max(self.evaluating(evaluation, True), self.evaluating(fresh, True))
        return self.held(fresh) + self.kept(fresh) + max(bound, again) + rollouts + tape
