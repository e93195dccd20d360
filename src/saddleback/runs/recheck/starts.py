"""What start states that were drawn may hide, and what rollouts say of it: their limits are wider by as much.

A start distribution ρ that can only be sampled gets n start states for the proof, and |V(ρ) − V(ρ̂)| ≤ H·√(log(2k/δ_s)/2n) for
k = 2 + m fixed functions together: the values of the policy and the best of all. δ_s is a tenth of δ, and what the statements spend is
the rest.
"""

from __future__ import annotations

import math

import numpy as np

from saddleback.problem.cmdp import CMDP
from saddleback.runs.certificate_file import CertificateRecord
from saddleback.runs.evidence_file import RolloutValues
from saddleback.runs.recheck.check import ROUNDING, STARTS, STARTS_SHARE


def hidden_by_starts(certificate: CertificateRecord, rollouts: RolloutValues | None, problem: CMDP | None) -> float:
    """How far values may be from those for the start states that were drawn, in utilities; 0 where ρ is known.

    Where the problem is not here the rollouts tell. A proof without rollouts is then taken to know its start distribution.
    """
    told, bound, H = certificate.evidence.rollouts, certificate.evidence.bound, certificate.problem.horizon
    k = 2 + len(certificate.problem.constraints)
    spent = k * told.delta_of_each if told is not None else 0.0 if bound is None else bound.delta
    if spent == 0:  # nothing was proved from samples
        return 0.0
    w = H * math.sqrt(math.log(2 * k * (1 - STARTS_SHARE) / (STARTS_SHARE * spent)) / (2 * STARTS))
    if problem is not None:
        return w if problem.start.sampler is not None else 0.0
    if rollouts is None or rollouts.baseline is None or rollouts.cap is None:
        return 0.0
    return w if tail_is(certificate, rollouts, w) else 0.0


def tail_is(certificate: CertificateRecord, rollouts: RolloutValues, hidden: float) -> bool:
    """Whether the cap, the want of steps and ``hidden`` by the start states make up the tail of the rollouts."""
    assert rollouts.baseline is not None and rollouts.cap is not None
    low, high, H = *rollouts.baseline[:2], certificate.problem.horizon
    left, w = certificate.problem.gamma**rollouts.cap, 2 * H * rollouts.cut + hidden
    least, most = (np.zeros(len(low)), np.full(len(low), H)) if rollouts.totals is None else rollouts.totals[2:]
    tail = [left * (least - high) - w, left * (most - low) + w]
    return bool(np.allclose(rollouts.tail, tail, rtol=ROUNDING, atol=1e-15 * H))
