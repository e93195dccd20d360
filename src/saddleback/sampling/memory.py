"""How much memory a solve will take, said before anything is drawn, and the refusal of what would not fit.

A solve passes through stages, and its peak is that of the largest. With n samples of c pairs in a buffer of T batches
(B = n/T), s = min(S, n) distinct next states (in R^k every sample is one, s = n), and e = min(n, c·s) entries of P̂, in bytes

    drawn       8(k + σ)n + 8kn      blocks with σ signals, and the sequences they are joined to; 1 kB a block besides
    cut         8kn + 8n + 24B + …   sequences, positions, and the keys by which a batch is counted    (R^k: 16kn)
    held        min(8n, 12Te, 8Tcs)  positions, sparse or dense counts, whichever is smallest          (R^k: 8kn)
    φ           8sAd                 of the distinct next states, kept up to 1 GiB (maps that hold ψ: 8sd/A); 64 MB pieces besides
    P̂           12e, and 56·min(n, Tcs) while it is made
    proof       100 e of the fresh buffer, 8(8(1+m) + 12) a rollout, and the tapes of one chunk

The evaluator's buffer is drawn while the solver's is held, the certificate's while both are. The design comes first, 8nd
for the features of its n candidates, and is given back but for the coreset. What a stage of sampling takes is stated beside
the code that takes it; here it is added up.

These are upper estimates of what this package allocates, not of what a simulator or a feature function takes for itself:
of the latter one array of the size of its result is assumed. Workers in other processes are not counted.

What there is to take is said by :func:`saddleback.files.memory.limit`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.features import FeatureMatrix
from saddleback.files.memory import Limit, limit, require_room
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import BoxStates
from saddleback.sampling.batches import COMPILED_PRODUCTS, COMPILED_SAMPLES, held_bytes, holding_bytes, model_bytes
from saddleback.sampling.collect import BLOCK_BYTES, collecting_bytes, usual_batches
from saddleback.sampling.counted_buffer import products
from saddleback.sampling.trajectories import steps_per_rollout, tape_bytes
from saddleback.sampling.value_functions import evaluation_bytes, kept_bytes
from saddleback.simulators.generative_model import BLOCK

CODE_BYTES = 12 << 20  # libraries that are loaded when first used, and all that is small: taken by a run of any size
_COMPILED = 160 << 20  # numba and its machine code
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
    policies: bool = False,
) -> Prediction:
    """Peak bytes of a solve on ``pairs`` pairs with these buffers, and of a certificate of so many samples.

    ``earlier`` samples of a smaller run are still held. ``policies`` says that the evaluator asks for the features of a policy
    at all next states again and again, where the usual one, LSTD, reads them once, in pieces.
    """
    first = _buffer(problem, pairs, num_signals, solver)
    second = _buffer(problem, pairs, num_signals, evaluation, policies)
    kept = first.after + second.after
    solving = max(
        first.collecting,
        first.cutting,
        first.raw + first.held + first.working,
        first.raw + first.after + second.collecting,
        first.after + second.cutting,
        kept + max(first.working, second.working),
    )
    proving = 0.0
    if certificate:
        fresh = _buffer(problem, pairs, num_signals, Lot(certificate, 1, pairs + certificate // BLOCK))
        proof = fresh.after + max(fresh.bound, fresh.evaluating, second.evaluating) + fresh.rollouts
        proving = kept + max(fresh.collecting, fresh.cutting, proof)
    base = float(CODE_BYTES + (_COMPILED if first.compiled or second.compiled else 0))
    if earlier:
        before = _buffer(problem, pairs, num_signals, Lot(earlier))
        base += before.after + 2 * before.raw
    return Prediction(_design_bytes(problem), int(base + solving), int(base + proving))


def predict_run(
    problem: CMDP, samples: int, *, certificate: int = 0, num_signals: int = 0, earlier: int = 0
) -> Prediction:
    """The same before the design is known: a solve with the usual parts from ``samples`` simulator calls."""
    pairs = _pairs(problem)
    own = samples // 4
    T = usual_batches(max(1, own // pairs), problem.horizon)
    lots = [Lot(n, t, pairs + n // BLOCK, n > BLOCK * pairs) for n, t in ((own, T), (samples - own, 1))]
    return predict(problem, pairs, *lots, certificate=certificate, num_signals=num_signals, earlier=earlier)


def _design_bytes(problem: CMDP) -> int:
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


class _Buffer(NamedTuple):
    """Bytes of one buffer, and whether compiled loops may read it."""

    raw: float  # the sequences of next states
    collecting: float
    cutting: float
    held: float  # its batches,
    after: float  # with all that it remembers
    working: float  # the work arrays of solver and evaluator,
    evaluating: float  # of a policy that is evaluated once more,
    bound: float  # of a certificate's bound, and
    rollouts: float  # of as many rollouts as it has samples for
    compiled: bool


def _buffer(problem: CMDP, c: int, num_signals: int, lot: Lot, policies: bool = False) -> _Buffer:
    """With k coordinates or S states, A actions, d features (0: no φ is made) and m constraints."""
    features, S, A, m = problem.features, problem.num_states, problem.num_actions, problem.num_constraints
    n, T, (k, d) = lot.samples, lot.batches, (problem.states.dim if isinstance(problem.states, BoxStates) else 1, 0)
    if features is not None and not features.direct:
        d = features.dim
    elif features is not None and features.dim < (S or 0) * A:
        A = 1  # actions are never listed
    s = n if S is None else min(S, n)
    sizes, copies = (s, A, d, 2 + m), 1 if isinstance(features, FeatureMatrix) else 2
    work = evaluating = evaluation_bytes(*sizes, copies=copies, policies=policies)
    raw = 8.0 * k * n
    cutting, held, entries = 2 * raw, raw, n
    after = kept_bytes(*sizes, held=hasattr(features, "held"), policies=policies)
    if S is not None:
        held, (model, making) = held_bytes(n, T, c, s), model_bytes(n, T, c, s)
        cutting = raw + holding_bytes(n, T, c, s) + BLOCK_BYTES * lot.blocks
        after, entries = after + model, min(n, c * s)
        factor = 12.0 * S**2 if S <= _FACTORED_STATES else 0.0
        chain = 0.0 if d else 60.0 * min(n, S * s) + 8.0 * S * A * (6 + m) + factor
        work = max(work, making, chain)
    num = n / steps_per_rollout(problem.gamma)
    tape = tape_bytes(num, problem.gamma, k + num_signals + d + 2 + m)
    return _Buffer(
        raw=raw,
        collecting=collecting_bytes(n, lot.blocks, lot.joined, k, num_signals),
        cutting=cutting,
        held=held,
        after=held + after,
        working=work + 8.0 * s * 6 * (2 + m),
        evaluating=evaluating,
        bound=100.0 * entries + 8.0 * s * 6 * (1 + m),
        rollouts=8.0 * (8 * (1 + m) + 12) * num + tape,
        compiled=(S is not None and n >= COMPILED_SAMPLES) or T * products(A * d, s, n // T) >= COMPILED_PRODUCTS,
    )


def check_size(problem: CMDP) -> None:
    """Refuse a problem that would not fit however few samples were drawn: before its pairs are listed."""
    needed, pairs = predict_run(problem, 0), _pairs(problem)
    _check_design(needed, None)
    require_room(needed.peak, f"{pairs:.3g} pairs of states and actions", "give features, which need few pairs")


def check(needed: Prediction, samples: int, within: Limit | None = None) -> None:
    """Refuse a run of so many samples that would not fit, before the first of them is drawn."""
    found = within or limit()
    _check_design(needed, found)
    if needed.peak <= found.bytes:
        return
    fits = int(0.9 * samples * max(0, found.bytes - CODE_BYTES) / (needed.peak - CODE_BYTES))
    fewer = f"{fits // 10 ** (len(str(fits)) - 1) * 10 ** (len(str(fits)) - 1):,}"  # its first digit
    stored = "`saddleback sample --out` and `saddleback solve --from`, which reads them in pieces"
    require_room(
        needed.peak, f"the run of {samples:,} samples", f"draw fewer, such as {fewer}; or use {stored}", within=found
    )


def _check_design(needed: Prediction, within: Limit | None) -> None:
    require_room(needed.design, "the features of the design's candidates", "pass a pool of candidates", within=within)
