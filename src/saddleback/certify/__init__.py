"""Certificates: what fresh samples prove about a frozen policy, and what each statement assumes."""

from saddleback.certify.band import Band, frontier_band
from saddleback.certify.certificate import Certificate, StartValues
from saddleback.certify.certifying import certify_guided
from saddleback.certify.guide import Expected, Guide, Request, expect
from saddleback.certify.linearity import Finding, LinearityReport, check_linearity

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
