"""Start distributions that can only be sampled: fresh start states for a certificate, and what they may hide.

    |V(ρ) − V(ρ̂)| ≤ w = H √(ln(2k/δ') / 2n)       for k fixed functions V in [0, H], with probability 1 − δ'

by Hoeffding's inequality, where ρ̂ is a sample of n start states drawn for this certificate alone. The functions are the
1 + m values of the frozen mixture and the best value of □_σ, none of which has seen ρ̂. So everything is proved for ρ̂ at the
confidence 1 − (δ − δ'), and every limit is moved outwards by w.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from saddleback.certificates.bound import NUM_STARTS as NUMBER
from saddleback.certificates.bound import STARTS_SHARE, hidden_by_starts
from saddleback.certificates.plan import Guide, Request
from saddleback.errors import SimulatorError
from saddleback.problem.cmdp import CMDP, Start
from saddleback.simulators.generative_model import Stream, generator


class FreshStart(NamedTuple):
    """A guide and a request for ρ̂, and the half-width w, in utilities."""

    guide: Guide
    request: Request
    half_width: float


def with_fresh_start(guide: Guide, request: Request, functions: int | None = None) -> FreshStart:
    """As given, and w = 0, where the start distribution is known; ``functions`` is k, by default 2 + m."""
    problem = guide.problem
    if problem.start.sampler is None:
        return FreshStart(guide, request, 0.0)
    key = (request.seed, int(Stream.START), 0, 0)
    states = np.array(problem.start.sampler(NUMBER, generator(*key)))
    _check(problem, states, key)
    start, part = Start.equally(states, problem.start.sampler), STARTS_SHARE * request.delta
    w = hidden_by_starts(problem, request.delta, functions)
    fresh = dataclasses.replace(guide, problem=dataclasses.replace(problem, start=start))
    return FreshStart(fresh, dataclasses.replace(request, delta=request.delta - part), w)


def _check(problem: CMDP, states: np.ndarray, key: tuple[int, ...]) -> None:
    wrong = problem.states.well_formed(states)
    if wrong is None and len(states) != NUMBER:
        wrong = f"must be {NUMBER} states, not {len(states)}"
    if wrong is not None:
        raise SimulatorError(f"has a start sampler whose states {wrong}", state="-", action="-", key=key)
    outside = np.flatnonzero(problem.states.outside(states))
    if outside.size:
        i = int(outside[0])
        raise SimulatorError(
            f"has a start sampler that gave {states[i]}, outside the state space",
            state=states[i],
            action="-",
            key=key,
            index=i,
        )
