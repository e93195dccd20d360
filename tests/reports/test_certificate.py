"""Proofs in words: each verdict, each gap in what is known, and what they rest on."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest

from helpers import random_table
from reports.printing import printed, words
from saddleback.certificates import Certificate, Finding, LinearityReport
from saddleback.certificates.assumptions import Assumptions
from saddleback.errors import Remark
from saddleback.runs.text import print_certificate

TABLE = random_table(1)  # values in [0, 5], constraint-0 >= 2
PROBLEM = TABLE.problem()
BUDGET = dataclasses.replace(TABLE, senses=("<=",)).problem()
BOUNDED = "signals within their ranges"


def proof(low: float = 1.9, high: float = 2.2, **more: Any) -> Certificate:
    given: dict[str, Any] = {
        "value": (2.0, 3.0),
        "constraints": ((low, high),),
        "upper_bound": 3.5,
        "gap": 1.5,
        "allowance": (0.0,),
        "assumes": {"value": BOUNDED, "upper_bound": BOUNDED},
    }
    return Certificate(0.9, 1_234, 0, **(given | more))


def text_of(certificate: Certificate, problem: Any = PROBLEM, **options: Any) -> str:
    return words(printed(print_certificate, problem, certificate, **options))


def test_what_is_proved() -> None:
    text = text_of(proof(), total=5_678)
    for said in (
        "What is proved, with 90 % confidence",
        "reward of this policy 2 to 3",
        "constraint-0 >= 2 1.9 to 2.2 open: missed by at most 0.1",
        "reward of the best policy at most 3.5",
        "what this policy loses to it at most 1.5",
        "Feasibility is open",
        "a strict solve leaves room for a proof",
        "1,234 of the 5,678 simulator calls went into this proof. It assumes signals within their ranges.",
    ):
        assert said in text
    assert "a strict solve" not in text_of(proof(), strict=True)


@pytest.mark.parametrize(
    ("problem", "low", "high", "verdict", "says"),
    [
        (PROBLEM, 2.0, 2.2, "certified", ["2 to 2.2 holds", "Feasible: the constraint is proved to hold."]),
        (
            PROBLEM,
            1.5,
            1.9,
            "refuted",
            ["1.5 to 1.9 fails, by 0.1 to 0.5", "Not feasible: this policy is proved to miss"],
        ),
        (BUDGET, 1.5, 1.9, "certified", ["constraint-0 <= 2 1.5 to 1.9 holds"]),
        (BUDGET, 2.5, 2.9, "refuted", ["2.5 to 2.9 fails, by 0.5 to 0.9"]),
        (BUDGET, 1.5, 2.1, "undecided", ["1.5 to 2.1 open: missed by at most 0.1"]),
    ],
)
def test_verdicts(problem: Any, low: float, high: float, verdict: Any, says: list[str]) -> None:
    text = text_of(proof(low, high, feasible=verdict), problem)
    for said in says:
        assert said in text


def test_a_miss_that_was_allowed() -> None:
    text = text_of(proof(feasible="certified", allowance=(0.2,)))
    assert "allowed: missed by at most 0.1" in text and "proved to hold up to what was allowed" in text
    assert "by more than was allowed" in text_of(proof(1.0, 1.2, feasible="refuted", allowance=(0.2,)))


def test_vacuous_limits_are_called_so() -> None:
    text = text_of(proof(0.0, 5.0, value=(0.0, 5.0), upper_bound=5.0, gap=5.0))
    assert "0 to 5 no information: the whole range" in text
    assert "at most 5 no information: no reward can be larger" in text
    assert "no information" not in text_of(proof())


def test_no_bound() -> None:
    text = text_of(
        proof(upper_bound=None, gap=None, remarks=(Remark("no-bound", "no bound on the optimum: too few [samples]"),))
    )
    assert text.count("no bound") == 3 and "Note: no bound on the optimum: too few [samples]." in text


def findings(passed: bool) -> LinearityReport:
    meaning = "P is not linear in the features: at state 3 [sic] the mean is off the fit; add features"
    return LinearityReport(True, (Finding("held-out", passed, 1.0, 0.5, meaning),), 100, 0.05)


def test_linearity() -> None:
    needs = Remark("linear", "transition probabilities linear in the features")
    linear = {"value": BOUNDED, "upper_bound": copy.deepcopy(Assumptions(Remark("bounded", BOUNDED), needs))}
    assert linear["upper_bound"] == f"{BOUNDED}; {needs.text}"
    text = text_of(proof(linearity=findings(True), assumes=linear))
    assert "also needs transition probabilities linear in the features (tested, not refuted)." in text
    assert "not linear" not in text
    warned = proof(linearity=findings(True), assumes=linear, remarks=(Remark("warning-linearity", "a warning: bent"),))
    assert "Note: a warning: bent." in text_of(warned)
    failed = findings(False)
    text = f"no bound on the optimum: the problem is not linear ({failed.findings[0].meaning})"
    remarks = Remark("not-linear", text), Remark("leverage", "other")
    text = text_of(proof(linearity=failed, assumes=linear, upper_bound=None, gap=None, remarks=remarks))
    assert "The problem is not linear in its features." in text and "What failed:" in text
    assert text.count("at state 3 [sic] the mean is off the fit") == 1  # the remark repeats it
    assert "Note: other." in text and "not refuted" not in text


def nothing(**more: Any) -> Certificate:
    return Certificate(0.9, 50, 0, assumes={"upper_bound": BOUNDED}, **more)


def test_infeasibility() -> None:
    text = text_of(nothing(slack_bound=-0.25))
    assert (
        "Proved with 90 % confidence: no policy meets the constraints; every policy misses 'constraint-0' by 0.25"
        in text
    )
    assert "Not proved" in text_of(nothing(slack_bound=0.25))
    assert "Nothing is proved" in text_of(nothing())
    cents = dataclasses.replace(TABLE, constraints=100 * TABLE.constraints, ranges=((0.0, 100.0),)).problem()
    assert "misses 'constraint-0' by 25 or more" in text_of(nothing(slack_bound=-0.25), cents)
    two = random_table(1, m=2).problem()
    assert "together; every policy misses one of them by 5 % or more of the range" in text_of(
        nothing(slack_bound=-0.25), two
    )
    free = dataclasses.replace(nothing(slack_bound=-35.0), samples=0)
    text = text_of(free)
    assert text.startswith("Proved: no policy meets") and "needed no simulator call" in text


def test_names_are_not_markup() -> None:
    table = dataclasses.replace(TABLE, names=("wait[/3]",), thresholds=np.array([2.0]))
    assert "wait[/3] >= 2" in text_of(proof(), table.problem())
    assert "'wait[/3]'" in text_of(nothing(slack_bound=-1.0), table.problem())
