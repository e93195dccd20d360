"""``plan``: what an accuracy would cost, told before it is paid for."""

from __future__ import annotations

import json
import shlex

import pytest

from cli.command_line import Call, words

SMALL = ["random-linear", "--set", "states=30", "--set", "dim=3"]


@pytest.mark.parametrize("feasibility", ["relaxed", "strict"])
def test_plan_json(run: Call, feasibility: str) -> None:
    code, out, _ = run("plan", *SMALL, "--epsilon", 1, "--feasibility", feasibility, "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["coreset"] == 3
    zeta = answer["zeta"]
    assert zeta["low"] <= zeta["estimate"] <= zeta["high"]
    assert 18_000 < answer["pilot"]["samples"] <= 20_000 + 4_096
    assert answer["simulator"]["seconds_per_call"] > 0
    worst, adaptive = answer["worst_case"], answer["adaptive"]
    assert worst["label"] == "rigorous" and adaptive["label"] == "heuristic"
    assert worst["samples"] > 1000 * adaptive["samples"] > 0
    assert worst["seconds"] == pytest.approx(worst["samples"] * answer["simulator"]["seconds_per_call"])
    assert answer["recommended"] == "adaptive"
    assert worst["bytes"] > answer["recommended_bytes"] == adaptive["bytes"] > 12_000_000
    assert worst["stored_bytes"] > 0


@pytest.mark.slow
def test_the_command_it_recommends_runs(run: Call) -> None:
    _, out, _ = run("plan", *SMALL, "--epsilon", 1.5, "--delta", 0.1, "--json")
    answer = json.loads(out)
    words_of_it = shlex.split(answer["command"])
    assert words_of_it[:2] == ["saddleback", "solve"]
    code, out, _ = run(*words_of_it[1:], "--json")
    done = json.loads(out)
    assert code == 0
    assert done["certificate"]["confidence"] == 0.9
    assert answer["adaptive"]["samples"] / 5 < done["samples"] < 5 * answer["adaptive"]["samples"]


def test_plan_text_reads_well(run: Call) -> None:
    code, out, _ = run("plan", *SMALL, "--epsilon", 1)
    text = words(out)
    assert code == 0
    for said in (
        "within 1 of the optimum",
        "rigorous",
        "heuristic",
        "measured, not proved",
        "Recommended: the adaptive",
    ):
        assert said in text
    assert "saddleback solve random-linear --set states=30 --set dim=3 --epsilon 1" in out
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.slow
def test_what_nobody_can_afford(run: Call) -> None:
    code, out, _ = run("plan", "queue", "--epsilon", "1e-4")
    assert code == 4
    assert "ask for less accuracy" in words(out)
    code, out, _ = run("plan", "queue", "--epsilon", "1e-9", "--json")
    answer = json.loads(out)
    assert code == 4
    assert answer["recommended"] == "neither" and answer["command"] is None
    assert answer["worst_case"]["samples"] is None and "utilities" in answer["worst_case"]["reason"]


def test_an_infeasible_problem_has_no_plan(run: Call, stored_runs: object) -> None:
    code, out, _ = run("plan", f"{stored_runs}/bad.npz", "--epsilon", 1)
    assert code == 3
    assert "no policy meets 'constraint-0'" in words(out)
    code, out, _ = run("plan", f"{stored_runs}/bad.npz", "--epsilon", 1, "--json")
    assert code == 3
    assert json.loads(out)["adaptive"]["samples"] is None
