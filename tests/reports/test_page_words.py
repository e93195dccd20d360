"""What the page says in the cases that are easily said wrong: rounding, limits that do not bind, no policy, no news."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from helpers import random_table
from report_runs import Outline, Reported, reported
from saddleback import save_table
from saddleback.reports.html.page import page_of
from saddleback.simulators.table import Table

FEW = {"samples": 5_000, "certificate": 5_000}


def text_of(page: str) -> str:
    return " ".join(" ".join(text for path, text in Outline(page).texts if "script" not in path).split())


@pytest.fixture(scope="module")
def wireless(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    return reported(tmp_path_factory.mktemp("words") / "run", "wireless", ["capacity=4"], **FEW)


def of_table(folder: Path, table: Table) -> Reported:
    save_table(table, folder / "problem.npz")
    return reported(folder / "run", str(folder / "problem.npz"), **FEW)


def test_rounding_is_shown_as_zero_in_the_curve_and_its_table(wireless: Reported) -> None:
    """At the least energy there is, the threshold's rounding buys a little reward and a little of another policy."""
    text = text_of(wireless.page)
    assert " to 0 as the threshold of energy goes from " in text
    assert "0 0 0 to 0" in text, "threshold, best reward and its range"
    assert re.findall(r"\S*\de-0\d.*?(?= )", text) == []


def test_a_limit_that_does_not_bind_is_said_not_to(tmp_path: Path) -> None:
    table = dataclasses.replace(random_table(1), reward=np.zeros_like(random_table(1).reward), reward_range=(0.0, 1.0))
    text = text_of(of_table(tmp_path, table).page)
    assert "does not bind: the best reward is 0 at every threshold shown." in text
    assert "falls from" not in text


def test_without_a_policy_nothing_is_said_of_one(tmp_path: Path) -> None:
    table = random_table(1)
    table.thresholds[:] = 4.9
    made = of_table(tmp_path, table)
    assert made.run.mixture is None
    text = text_of(made.page)
    assert "after the policy was fixed" not in text and "simulator calls, drawn after the solve." in text
    assert "Back to " in text and "Back to 4.9" not in text, "which is out of the slider's reach"


def test_a_bound_that_says_nothing_is_called_so(wireless: Reported) -> None:
    run, problem = wireless.run, wireless.problem
    assert run.certificate is not None
    most = float(problem.values_of(np.full(2, problem.horizon))[0])
    proof = msgspec.structs.replace(run.certificate, upper_bound=most, gap=most)
    text = text_of(page_of(dataclasses.replace(run, certificate=proof), problem))
    assert f"at most {most:.4g} no information: no reward can be larger" in text
    assert "can earn more than" not in text and "no policy earns more than" not in text
    assert "no information" not in text_of(wireless.page)


def test_why_it_is_undecided_comes_first(wireless: Reported) -> None:
    run = wireless.run
    answer = msgspec.structs.replace(run.solution, status="undecided", message="a limit is open; draw more samples")
    page = page_of(dataclasses.replace(run, solution=answer), wireless.problem)
    opening = page[page.index('class="answer"') : page.index('class="keys"')]
    assert "Undecided: a limit is open; draw more samples." in opening
