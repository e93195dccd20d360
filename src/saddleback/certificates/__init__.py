"""Certificates: what fresh samples prove about a frozen policy, and what each statement assumes.

A new bound over all policies is one file in ``bounds``, a new interval one function in ``values.intervals``; both are known
by name, and the plan chooses between bounds.
"""

from saddleback.certificates.averaged import with_averages
from saddleback.certificates.band import Band, frontier_band
from saddleback.certificates.certificate import Certificate, StartValues
from saddleback.certificates.expected import Expected, expect, expected_fall
from saddleback.certificates.guide import Guide, Request
from saddleback.certificates.linearity.checks import check_linearity
from saddleback.certificates.linearity.findings import Finding, LinearityReport
from saddleback.certificates.prove import certify_guided
from saddleback.certificates.values.averages import Average, Averages, ConstraintAverages

__all__ = [
    "Average",
    "Averages",
    "Band",
    "Certificate",
    "ConstraintAverages",
    "Expected",
    "Finding",
    "Guide",
    "LinearityReport",
    "Request",
    "StartValues",
    "certify_guided",
    "check_linearity",
    "expect",
    "expected_fall",
    "frontier_band",
    "with_averages",
]
