"""The limits of the values, computed again from the single rollouts, and the range and the tail that these have."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from saddleback.certificates.certificate import RolloutEvidence
from saddleback.files.json_file import Limits
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy, Policy, TabularPolicy
from saddleback.problem.spaces import Array
from saddleback.runs.certificate_file import CertificateRecord, ConstraintRecord, ProblemRecord, SignalRecord
from saddleback.runs.evidence_file import BoundArrays, RolloutValues
from saddleback.runs.recheck.check import (
    ROUNDING,
    STARTS,
    STARTS_SHARE,
    Check,
    close,
    observed_signals,
    signals_of,
    unchecked,
    words,
)

_BISECTIONS = 60
_MOST_PAIRS = 4_000_000  # of a table that is looked through for limits without samples
_LEAST_ROLLOUTS, _MOST_STARTS = 30, 16  # of a start state that gets limits of its own


def check_rollouts(told: RolloutEvidence, rollouts: RolloutValues) -> Check:
    """The rollouts that are kept are those of the certificate, and within their range."""
    z = rollouts.values
    pairs: list[tuple[ArrayLike, Array]] = [
        (told.mean, z.mean(axis=0)),
        (told.variance, z.var(axis=0)),
        (told.low, rollouts.low),
        (told.high, rollouts.high),
        (told.tail, rollouts.tail),
    ]
    same = len(z) == told.number and all(np.allclose(a, b, rtol=ROUNDING, atol=ROUNDING) for a, b in pairs)
    inside = bool(np.all(z >= rollouts.low - ROUNDING) and np.all(z <= rollouts.high + ROUNDING))
    detail = f"{len(z):,} values; {'they' if inside else 'NOT all of them'} lie within their stated range"
    return Check("rollouts", same and inside, detail if same else f"{detail}; they are not those of the certificate")


def check_range(
    certificate: CertificateRecord, told: RolloutEvidence, rollouts: RolloutValues, problem: CMDP | None
) -> Check:
    """Range and tail of the rollouts, from discount, cap and the limits [l, h] of their baseline V̂."""
    name, gamma, H = "range of the rollouts", certificate.problem.gamma, certificate.problem.horizon
    if rollouts.baseline is None or rollouts.cap is None or rollouts.members is None or rollouts.at_starts is None:
        if certificate.about is not None:
            return Check(name, False, "what it follows from is missing, which this version of a proof keeps")
        signs = bool(np.all(rollouts.tail[0] <= 0) and np.all(rollouts.tail[1] >= 0))
        steps = math.ceil(
            told.steps / max(told.number, 1)
        )  # of a rollout, so that none can have a smaller range than this
        least_span = (1 - math.sqrt(gamma) ** steps) / (1 - math.sqrt(gamma))
        wide = bool(np.all(rollouts.high - rollouts.low >= least_span - ROUNDING * (1 + H)))
        why = "taken as stated: the version that wrote the run did not keep it"
        return Check(name, signs and wide, why if wide else "smaller than that of any rollouts so long", "not checked")
    (low, high, centre), L = rollouts.baseline, rollouts.cap
    near = ROUNDING * (1 + H)
    right = bool(np.all(-near <= low) and np.all(low <= centre + near) and np.all(centre <= high + near))
    right &= bool(np.all(high <= H + near) and np.all(rollouts.at_starts >= low - near))
    right &= bool(np.all(rollouts.at_starts <= high + near))
    ratio, N = math.sqrt(gamma), np.unique([*range(1, min(L, 1000) + 1), L])[:, None].astype(float)
    W = (1 - ratio**N) / (1 - ratio)
    least = (-(1 - gamma) * low * W - (high - low) * (1 + ratio - ratio**N)).min(axis=0)
    most = ((1 - (1 - gamma) * low) * W + gamma * ratio ** (N - 1) * (high - low)).max(axis=0)
    right &= bool(np.allclose(rollouts.low, centre + least, rtol=0, atol=near))
    right &= bool(np.allclose(rollouts.high, centre + most, rtol=0, atol=near))
    left, by_starts = gamma**L, _hidden_by_starts(certificate, told.delta_of_each)
    sampled = None if problem is None else problem.start.sampler is not None  # None: not known here, so either will do
    hidden = [2 * H * rollouts.cut + w for w, so in ((0.0, False), (by_starts, True)) if sampled in (None, so)]
    tails = [np.array([-left * high - w, left * (H - low) + w]) for w in hidden]
    right &= any(np.allclose(rollouts.tail, tail, rtol=ROUNDING, atol=1e-15 * H) for tail in tails)
    members = len(told.by_member)
    right &= bool(rollouts.members.max() < members)  # first, since counting takes as much memory as the largest number
    right = right and np.bincount(rollouts.members, minlength=members).tolist() == list(told.by_member)
    right &= sum(told.by_member) == len(rollouts.values)
    if problem is not None and problem.start.sampler is None:
        same = len(rollouts.at_starts) == len(problem.start.weights)
        right &= same and bool(np.allclose(problem.start.weights @ rollouts.at_starts, centre, rtol=0, atol=near))
    ends = f"{words([float(rollouts.low.min()), float(rollouts.high.max())])} at most, in utilities"
    return Check(name, right, f"{ends}; {L:,} steps a rollout" if right else f"{ends}: that does not follow")


def _hidden_by_starts(certificate: CertificateRecord, delta: float) -> float:
    """How far values may be from those for start states that were drawn: H·√(log(2k/δ_s)/2n), where each of k statements has δ."""
    k = 2 + len(certificate.constraints)
    part = STARTS_SHARE * k * delta / (1 - STARTS_SHARE)
    return certificate.problem.horizon * math.sqrt(math.log(2 * k / part) / (2 * STARTS))


def check_known(
    told: RolloutEvidence,
    record: ProblemRecord,
    policy: MixturePolicy | None,
    problem: CMDP | None,
    bound: BoundArrays | None,
) -> Check:
    """What the values cannot leave: H times the least and the most that the policy earns in any state of a table.

    Only of signals that are known: the problem's, or else those that the bound over all policies was proved with; where neither
    is there, they are taken as stated.
    """
    name, H = "limits without samples", record.horizon
    if told.known is None:
        return Check(name, True, "none: the version that wrote the run had none")
    low, high = np.array(told.known)
    if np.any(low < 0) or np.any(low > high) or np.any(high > H):
        return Check(name, False, "they are not within 0 and the horizon")
    if record.states is None or record.states * record.actions > _MOST_PAIRS:
        trivial = not np.any(low) and bool(np.all(high == H))
        return Check(
            name, trivial, "0 and the horizon" if trivial else "there are others on tables only, and not on the largest"
        )
    if policy is None or (problem is None and bound is None):
        return unchecked(name, "taken as stated, for the signals of the problem are not known here")
    if not _of_problem(record, policy, bound if problem is None else None):
        return Check(name, False, "the policy, or the signals, are not of this problem")
    least, most = np.zeros(len(low)), np.zeros(len(low))
    for weight, member in zip(policy.weights, policy.members, strict=True):
        earned = _earned(record, member, problem, bound)
        least += weight * earned.min(axis=0)
        most += weight * earned.max(axis=0)
    near, open_ = ROUNDING * (1 + H), (low == 0) & (high == H)  # of large tables functions are not asked
    with np.errstate(invalid="ignore"):
        right = bool(np.all(open_ | ((np.abs(low - H * least) <= near) & (np.abs(high - H * most) <= near))))
    return Check(name, right, f"{'follow' if right else 'do not follow'} from what the policy earns in each state")


def _of_problem(record: ProblemRecord, policy: MixturePolicy, bound: BoundArrays | None) -> bool:
    """Whether tables have the right numbers of states, actions and signals."""
    S, A, columns = record.states or 0, record.actions, 1 + len(record.constraints)
    tables = [member for member in policy.members if isinstance(member, TabularPolicy)]
    right = all(len(x.table) == S and x.num_actions == A for x in tables)
    return right and (bound is None or (len(tables) == len(policy.members) and bound.signals.shape == (S * A, columns)))


def _earned(record: ProblemRecord, member: Policy, problem: CMDP | None, bound: BoundArrays | None) -> Array:
    """What a policy earns in each state ``(S, 1+m)``, in utilities; NaN where that is only observed."""
    S, A = record.states or 0, record.actions
    pi, out = member.probabilities(np.arange(S)), np.zeros((S, 1 + len(record.constraints)))
    for a in range(A):
        if problem is not None:
            u = problem.utilities(np.arange(S), np.full(S, a))
        else:
            assert bound is not None
            u = np.where(observed_signals(record, bound), np.nan, bound.signals[a::A])
        out += pi[:, a, None] * u
    return out


def check_interval(
    signal: SignalRecord | ConstraintRecord,
    stated: Limits,
    j: int,
    told: RolloutEvidence,
    rollouts: RolloutValues,
    H: float,
) -> list[Check]:
    """One interval against both ways to compute it, in the user's units."""
    z, low, high = rollouts.values[:, j], float(rollouts.low[j]), float(rollouts.high[j])
    delta, span, n = told.delta_of_each, high - low, len(z)
    y = np.clip((z - low) / span, 0.0, 1.0) if span > 0 else np.zeros(n)
    plain = _maurer_pontil(y, delta)
    mine = plain if told.method != "betting" else (_lower(y, delta / 2), 1 - _lower(1 - y, delta / 2))

    def in_units(ends: tuple[float, float]) -> list[float]:  # with what the cap may hide
        tails = rollouts.tail[:, j].tolist()
        least, most = (0.0, H) if told.known is None else (told.known[0][j], told.known[1][j])
        values = (min(max(low + span * x + tail, least), most) for x, tail in zip(ends, tails, strict=True))
        return sorted(x * signal.scale + signal.base * H for x in values)

    # The certificate's bisection ends with an interval a millionth of a standard error too wide.
    tolerance = span * 3e-6 * (math.sqrt(float(y.var()) * math.log(2 / delta) / n) + math.log(2 / delta) / n)
    tolerance = abs(signal.scale) * (tolerance + ROUNDING * (1 + H))
    found, other = in_units(mine), in_units(plain)
    right = max(abs(a - b) for a, b in zip(found, stated, strict=True)) <= tolerance
    detail = f"{words(stated)} stated, {words(found)} found"
    meets = stated[0] <= other[1] + tolerance and other[0] <= stated[1] + tolerance
    return [Check("", right, detail), Check(", another way", meets, f"{words(other)} by Maurer-Pontil")]


def _lower(y: Array, delta: float) -> float:
    """The least mean in [0, 1] at which the player's capital never grows 1/δ-fold."""
    n, need = len(y), math.log(1 / delta)
    stakes, total, squares = np.empty(n), 0.5, 0.01
    for i, x in enumerate(y.tolist()):
        stakes[i] = math.sqrt(2 * need / (n * max(squares / (i + 1), 1e-12)))
        total += x
        squares += (x - total / (i + 2)) ** 2

    def excluded(mean: float) -> bool:
        growth = 1 + np.minimum(stakes, 0.75 / mean) * (y - mean)
        return float(np.cumsum(np.log(growth)).max()) >= need

    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low


def _maurer_pontil(y: Array, delta: float) -> tuple[float, float]:
    n, L = len(y), math.log(4 / delta)
    if n < 2:
        return 0.0, 1.0
    half = math.sqrt(2 * float(y.var(ddof=1)) * L / n) + 7 * L / (3 * (n - 1))
    return max(0.0, float(y.mean()) - half), min(1.0, float(y.mean()) + half)


def check_starts(
    certificate: CertificateRecord, told: RolloutEvidence, rollouts: RolloutValues, problem: CMDP | None
) -> Check:
    """The limits from single start states: which they are, how many rollouts began there, and what these show."""
    name, rows, starts = "limits by start state", certificate.by_start, rollouts.starts
    if rollouts.at_starts is None or rollouts.baseline is None or starts is None or problem is None:
        return unchecked(name, "the problem, or the start of each rollout, is not known" if rows else "there are none")
    if problem.start.sampler is not None:
        return Check(name, not rows, "none, where start states are drawn")
    weights, m = problem.start.weights, len(certificate.constraints)
    heaviest = np.argsort(-weights, kind="stable")[:_MOST_STARTS]
    wanted = [int(s) for s in heaviest if (starts == s).sum() >= _LEAST_ROLLOUTS and len(weights) > 1]
    if len(wanted) != len(rows):
        return Check(
            name, False, f"{len(rows)} states stated, {len(wanted)} have {_LEAST_ROLLOUTS} rollouts of their own"
        )
    delta = (2 + m) * told.delta_of_each / (max(1, len(wanted)) * (1 + m))
    for s, row in zip(wanted, rows, strict=True):
        shift, mine = rollouts.at_starts[s] - rollouts.baseline[2], starts == s
        alone = rollouts._replace(
            values=rollouts.values[mine] + shift, low=rollouts.low + shift, high=rollouts.high + shift
        )
        same = np.array_equal(np.asarray(problem.start.states[s], dtype=float), np.asarray(row.state, dtype=float))
        same &= close(row.weight, float(weights[s])) and row.rollouts == int(mine.sum()) and len(row.constraints) == m
        stated, part = [row.value, *row.constraints], _at_level(told, delta)
        ok = same and all(
            check_interval(signal, stated[j], j, part, alone, certificate.problem.horizon)[0].passed
            for j, signal in enumerate(signals_of(certificate))
        )
        if not ok:
            return Check(name, False, f"those from state {row.state} do not follow from the rollouts")
    return Check(name, True, f"{len(rows)} states")


def _at_level(told: RolloutEvidence, delta: float) -> RolloutEvidence:
    return msgspec.structs.replace(told, delta_of_each=delta)
