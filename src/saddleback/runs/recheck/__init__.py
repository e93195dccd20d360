"""Check a stored certificate without the code that made it, and without a new sample.

Every number that a statement depends on is computed again, from the problem where it can be loaded, and from the arrays that
are kept beside the certificate:

    δ's                     each in (0, 1), together no more than 1 − confidence, and than the request allows
    range, tail             from the discount, the cap of the rollouts and the limits of their baseline
    limits, by_start        from the single rollouts (below), each with its own δ, cut with what is known without them
    bound, on tables        from the samples as counts and a function above V*                    :mod:`.bound`
    upper bound, gap        weak duality
    verdicts, status        from the limits, the request and the thresholds                       :mod:`.whole_run`
    policy, files           by SHA-256, and by their weights; where the table is known the truth itself must lie within

The intervals are computed with a player who bets on "the mean is larger than μ" and whose stakes follow from what he has seen
(docs/certificate.md has the rule): μ is excluded once his capital has grown 1/δ-fold. Maurer and Pontil's interval, which needs
no bets, must agree with it.

What is not checked is said: a bound from a coreset and what rests on linearity need new samples, and :data:`NOT_CHECKED` lists
the fields that are for people. Rollouts and counts that were replaced wholesale, with all that follows from them, are beyond
what can be seen here. Nothing is imported from the certificate's own code but the form of its evidence: an error there must not
hide here.
"""

from __future__ import annotations

from typing import Final

from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.runs.certificate_file import CertificateRecord
from saddleback.runs.evidence_file import BoundArrays, RolloutValues
from saddleback.runs.recheck.bound import check_bound
from saddleback.runs.recheck.check import Check, Request, signals_of
from saddleback.runs.recheck.limits import check_interval, check_known, check_range, check_rollouts, check_starts
from saddleback.runs.recheck.statements import (
    check_allowance,
    check_assumptions,
    check_calls,
    check_contradiction,
    check_gap,
    check_levels,
    check_linearity,
    check_room,
    check_upper_bound,
    check_verdict,
    linearity_refuted,
)

NOT_CHECKED: Final = {
    "texts for people": (
        "solution.json message, reason, remarks[], stationary.label",
        "certificate.json remarks[], contradictions[], linearity.tests[].meaning",
    ),
    "versions, and what was chosen without bearing on a proof": (
        "run.json versions{}, target.path, request{} but for samples, certificate, epsilon, max_samples, feasibility, mode, delta, seed, dual",
        "solution.json settings but for mode, feasibility, seed, delta, epsilon, dual",
    ),
    "estimates, which no proof rests on": (
        "solution.json constraints[].low, constraints[].high, constraints[].in_units.low, constraints[].in_units.high, "
        "multipliers[], gap, max_slack, conflict[].best, stationary.value, stationary.constraints[], stationary.npz",
        "certificate.json evidence.bound.estimate, evidence.fitted.values[], evidence.fitted.errors[], "
        "averages.first_steps, averages.first_rollouts, averages.long_run_steps, averages.long_run_rollouts, "
        "averages.constraints[].name, .first.mean, .first.error, .long_run.mean, .long_run.error",
    ),
    "what the tests of linearity and of leverage measured": (
        "certificate.json linearity.delta, linearity.tests[].name, .statistic, .limit, .state, .action, .z, leverage",
    ),
    "which samples were drawn, and how many before the proof": ("certificate.json seed", "solution.json samples"),
}
"""What a recheck does not look at, by kind."""


def recheck(
    certificate: CertificateRecord,
    rollouts: RolloutValues | None,
    *,
    bound: BoundArrays | None = None,
    problem: CMDP | None = None,
    policy: MixturePolicy | None = None,
    request: Request | None = None,
) -> list[Check]:
    """All that can be checked of a certificate, in the order of the file.

    certificate, rollouts, bound   what ``certificate.json``, ``rollouts.npz`` and ``bound.npz`` hold
    problem, policy                the problem and the policy, where they can be loaded
    request                        what the run was asked for, where that is known
    """
    checks = [
        check_levels(certificate, problem, request),
        check_assumptions(certificate),
        check_calls(certificate, rollouts, request),
    ]
    checks += [] if certificate.linearity is None else [check_linearity(certificate.linearity)]
    checks.append(check_bound(certificate, bound, problem))
    if certificate.value is None:
        return [*checks, check_room(certificate)]
    if rollouts is None:
        return [*checks, Check("rollouts", False, "the values of the single rollouts are missing")]
    told, record = certificate.evidence.rollouts, certificate.problem
    assert told is not None  # a record with limits has them
    checks += [check_rollouts(told, rollouts), check_range(certificate, told, rollouts, problem)]
    checks.append(check_known(told, record, policy, problem, bound))
    totals = [" as a total" if c.units == "per-step" else "" for c in record.constraints]
    names = ["reward", *(c.name + words for c, words in zip(record.constraints, totals, strict=True))]
    for j, (signal, limits) in enumerate(
        zip(signals_of(certificate), [certificate.value, *certificate.constraints], strict=True)
    ):
        found = check_interval(signal, limits, j, told, rollouts, record.horizon)
        checks += [check._replace(name=f"limits of {names[j]}{check.name}") for check in found]
    checks += [] if (doubt := check_contradiction(certificate)) is None else [doubt]
    checks += [
        check_verdict(certificate),
        check_allowance(certificate, request),
        check_upper_bound(certificate),
        check_gap(certificate),
    ]
    starts = check_starts(certificate, told, rollouts, problem)
    checks += [starts] if certificate.by_start or not starts.passed else []
    if certificate.averages is not None:
        checks.append(Check("averages over time", True, "estimates, no part of the proof", "not checked"))
    if certificate.linear is not None:
        refuted = linearity_refuted(certificate) or certificate.linearity is None
        why = "needs new samples of the coreset" if not refuted else "linearity is not assumed, or refuted"
        checks.append(Check("limits if linear", not refuted, why, "not checked"))
    return checks
