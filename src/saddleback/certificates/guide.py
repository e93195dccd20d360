"""What a certificate is to be about, fixed before the first of its samples is drawn.

Start distributions that can only be sampled get fresh start states for the certificate:

    |V(ρ) − V(ρ̂)| ≤ w = H √(ln(2k/δ') / 2n)       for k fixed functions V in [0, H], with probability 1 − δ'

by Hoeffding's inequality, where ρ̂ is a sample of n start states drawn for this certificate alone. The functions are the
1 + m values of the frozen mixture and the best value of □_σ, none of which has seen ρ̂. So everything is proved for ρ̂ at the
confidence 1 − (δ − δ'), and every limit is moved outwards by w.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from saddleback.certificates.values.intervals import BY_NAME as INTERVALS
from saddleback.designs.design import Design
from saddleback.errors import InputError, SimulatorError, one_of, require
from saddleback.problem.cmdp import CMDP, Start
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array, States
from saddleback.problem.start import asked
from saddleback.sampling.blocks import Executor
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.drawn_rows import examine_starts
from saddleback.simulators.generative_model import Stream, generator

NUM_STARTS = 1 << 16
"""Start states that a certificate draws where ρ can only be sampled."""

STARTS_SHARE = 0.1
"""Of δ: what those may cost."""


Purpose = Literal["feasibility", "value", "gap"]
"""What a proof is for: that the constraints hold, what the policy is worth, or how far it is from the best."""

PURPOSES: tuple[str, ...] = get_args(Purpose)


@dataclass(frozen=True)
class Guide:
    """What earlier samples suggest: buffers over one coreset, the mixture (None: nothing feasible), and the prices.

    ``sigma`` is the point of the simplex whose bound will be proved; None where there are no prices.
    """

    problem: CMDP
    design: Design
    earlier: Sequence[Buffer]
    mixture: MixturePolicy | None
    sigma: Array | None


@dataclass(frozen=True)
class Request:
    """How a certificate is to be made; ``allowance`` is the violation that counts as feasible, in utilities.

    ``purpose`` says which limits should be narrow, where samples for one are samples less for another; whatever it is, all
    limits hold. ``any_bound`` draws a bound over all policies though it is expected to say next to nothing. ``executor`` draws
    the samples (None: here, one block after the other).
    """

    samples: int
    seed: int
    delta: float = 0.05
    allowance: float = 0.0
    interval: str = "betting"
    check_linearity: bool = True
    purpose: Purpose = "gap"
    any_bound: bool = False
    executor: Executor | None = None

    def __post_init__(self) -> None:
        one_of("purpose", self.purpose, PURPOSES)
        require(
            self.samples >= 1, "samples", "must be at least 1", self.samples, "give the certificate simulator calls"
        )
        require(self.seed >= 0, "seed", "must not be negative", self.seed, "use 0, 1, 2 …")
        require(0 < self.delta < 1, "delta", "must lie in (0, 1)", self.delta, "0.05 means 95 % confidence")
        if self.interval not in INTERVALS:
            known = ", ".join(INTERVALS)
            raise InputError("interval", f"must be one of {known}", repr(self.interval), "choose one of them")


def with_fresh_start(guide: Guide, request: Request, functions: int | None = None) -> tuple[Guide, Request, float]:
    """A guide and a request for ρ̂, and w in utilities: as given, and 0, where ρ is known; ``functions`` is k, else 2 + m."""
    problem = guide.problem
    if problem.start.sampler is None:
        return guide, request, 0.0
    key = (request.seed, int(Stream.START), 0, 0)
    states = asked(problem.start.sampler, NUM_STARTS, generator(*key))
    _check(problem, states, key)

    def draw(number: int, purpose: int) -> States:
        assert problem.start.sampler is not None
        return asked(problem.start.sampler, number, generator(*key[:2], 1, purpose))

    examine_starts(draw, states, problem.states)
    start, part = Start.equally(states, problem.start.sampler), STARTS_SHARE * request.delta
    w = hidden_by_starts(problem, request.delta, functions)
    fresh = dataclasses.replace(guide, problem=dataclasses.replace(problem, start=start))
    return fresh, dataclasses.replace(request, delta=request.delta - part), w


def hidden_by_starts(problem: CMDP, delta: float, functions: int | None = None) -> float:
    """w: how far V(ρ̂) may be from V(ρ) for k functions in [0, H], in utilities; 0 where ρ is known."""
    if problem.start.sampler is None:
        return 0.0
    k, part = functions or 2 + problem.num_constraints, STARTS_SHARE * delta
    return problem.horizon * math.sqrt(math.log(2 * k / part) / (2 * NUM_STARTS))


def _check(problem: CMDP, states: States, key: tuple[int, ...]) -> None:
    wrong = problem.states.well_formed(states)
    if wrong is None and len(states) != NUM_STARTS:
        wrong = f"must be {NUM_STARTS} states, not {len(states)}"
    if wrong is not None:
        raise SimulatorError(f"has a start sampler whose states {wrong}", state="-", action="-", key=key)
    outside = np.flatnonzero(problem.states.outside(states))
    if outside.size:
        i = int(outside[0])
        wrong = f"has a start sampler that gave {states[i]}, outside the state space"
        raise SimulatorError(wrong, state=states[i], action="-", key=key, index=i)
