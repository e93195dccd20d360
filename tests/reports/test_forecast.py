"""Plans as tables: units that suit the size, and labels that say what is proved."""

from __future__ import annotations

import dataclasses

import pytest

from helpers import random_table
from reports.printing import printed, words
from saddleback.reports.forecast_text import print_forecast
from saddleback.runs.numbers import duration, roughly, size
from saddleback.solving.forecast import forecast

TABLE = random_table(1)
FOUND = forecast(TABLE.problem(), TABLE.simulator(), epsilon=0.5, samples=4_000)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2e-7, "0.2 µs"), (0.0123, "12.3 ms"), (59, "59 s"), (90, "1.5 min"), (5400, "1.5 h"), (1e6, "11.57 days")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
    assert duration(1e12).endswith(" years")


@pytest.mark.parametrize(("count", "text"), [(2e3, "2 kB"), (3.4e6, "3.4 MB"), (1e10, "10 GB"), (1e13, "10 TB")])
def test_sizes(count: float, text: str) -> None:
    assert size(count) == text
    assert size(2e16) == "20 PB"


def test_counts() -> None:
    assert roughly(861_077) == "860,000" and roughly(2_784_931_116) == "2.8e+09" and roughly(7) == "7"


def test_a_plan() -> None:
    text = printed(print_forecast, FOUND, "saddleback solve x --epsilon 0.5")
    for said in ("worst case", "rigorous", "adaptive run", "heuristic", "18 state-action pairs", "ζ", "Recommended"):
        assert said in text
    assert "    saddleback solve x --epsilon 0.5\n" in text
    assert "with 95 % confidence" in words(text)


def test_other_recommendations() -> None:
    assert FOUND.worst is not None
    cheap = dataclasses.replace(FOUND.worst, samples=1000)
    text = printed(print_forecast, dataclasses.replace(FOUND, likely=None, why_no_likely="no idea", worst=cheap), "x")
    assert "Recommended: the worst-case plan" in text and "Adaptive run: no idea." in text
    dear = dataclasses.replace(FOUND, likely=10**12, worst=None, why_no_worst="why", pilot_error=None)
    text = words(printed(print_forecast, dear, "x"))
    assert "ask for less accuracy" in text and "by itself proves no accuracy" in text
    strict = dataclasses.replace(FOUND, feasibility="strict")
    assert "if ζ is not below its range" in words(printed(print_forecast, strict, "x"))


def test_a_plan_beyond_the_memory_there_is_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "more memory than there is" not in words(printed(print_forecast, FOUND, "x"))
    monkeypatch.setenv("SADDLEBACK_MEMORY", "13MB")
    text = words(printed(print_forecast, FOUND, "x"))
    assert "It takes more memory than there is" in text and "13 MB (SADDLEBACK_MEMORY)" in text
