"""Certificates: what fresh samples prove about a frozen policy, and what each statement assumes."""

from saddleback.certificates.band import Band, frontier_band
from saddleback.certificates.certificate import Certificate, StartValues
from saddleback.certificates.linearity import Finding, LinearityReport, check_linearity
from saddleback.certificates.plan import Expected, Guide, Request, expect
from saddleback.certificates.prove import certify_guided

__all__ = [
    "Band",
    "Certificate",
    "Expected",
    "Finding",
    "Guide",
    "LinearityReport",
    "Request",
    "StartValues",
    "certify_guided",
    "check_linearity",
    "expect",
    "frontier_band",
]
