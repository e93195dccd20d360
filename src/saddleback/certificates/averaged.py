"""A certificate with averages over time beside what it proves: estimates, and a remark where they differ."""

from __future__ import annotations

from dataclasses import replace

from saddleback.certificates.certificate import Certificate
from saddleback.certificates.values.averages import differences, measure_averages
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.sampling.blocks import Executor
from saddleback.simulators.generative_model import GenerativeModel


def with_averages(
    certificate: Certificate,
    problem: CMDP,
    model: GenerativeModel,
    mixture: MixturePolicy,
    samples: int,
    executor: Executor | None = None,
) -> Certificate:
    """The certificate with averages over time of the constraints that were given per step, from at most so many calls more."""
    found = measure_averages(problem, model, mixture, samples, seed=certificate.seed, executor=executor)
    if found is None:
        return certificate
    remarks = differences(problem, found, certificate.constraints) if certificate.constraints else ()
    total = certificate.samples + found.samples
    return replace(certificate, averages=found, samples=total, remarks=(*certificate.remarks, *remarks))
