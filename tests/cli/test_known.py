"""``zoo``, ``exact`` and ``frontier``, and what is there without a verb."""

import json
import subprocess
import sys

import numpy as np
import pytest

from helpers import random_table
from saddleback import __version__, zoo
from saddleback.exact import mixture_values, solve_exactly
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.runs.truth import truth_of


def test_zoo_lists_every_problem(run):
    code, out, _ = run("zoo")
    assert code == 0
    for name in zoo.BY_NAME:
        assert name in out
    _, out, _ = run("zoo", "--json")
    assert [p["name"] for p in json.loads(out)["problems"]] == list(zoo.BY_NAME)


def test_exact_json(run, table_file):
    code, out, _ = run("exact", table_file, "--json")
    answer = json.loads(out)
    truth = solve_exactly(random_table(1))
    assert code == 0
    assert answer["value"] == pytest.approx(truth.value)
    assert answer["constraints"][0]["slack"] >= -1e-9
    assert answer["multipliers"][0] >= 0
    assert answer["slater"] == pytest.approx(truth.slater)


@pytest.mark.parametrize("method", ["columns", "lp"])
def test_exact_by_either_method(run, method):
    code, out, _ = run("exact", "garnet", "--method", method, "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["method"] == method
    assert {"value", "constraints", "multipliers", "slater", "gap", "seconds"} <= set(answer)
    assert answer["value"] == pytest.approx(7.69697529672, abs=1e-5)
    assert answer["gap"] <= 1e-5


def test_exact_text(run):
    code, out, _ = run("exact", "garnet")
    assert code == 0
    assert "optimal value" in out


def test_the_truth_about_a_policy():
    instance = zoo.make("garnet")
    lazy = TabularPolicy.deterministic(np.zeros(instance.table.num_states, dtype=int), instance.table.num_actions)
    mixture = MixturePolicy((lazy,), np.ones(1))
    found = truth_of(instance, mixture)
    assert [found["value"], *found["constraints"]] == mixture_values(instance.table, mixture).tolist()
    assert found["optimum"]["value"] == pytest.approx(7.69697529672, abs=1e-5)
    assert found["optimum"]["constraints"] == solve_exactly(instance.table).constraint_values.tolist()
    assert set(truth_of(instance, None)) == {"optimum"}
    assert truth_of(zoo.make("hard-instance", dim=40), mixture) is None


@pytest.mark.slow
def test_installed_command_and_module():
    for command in ([sys.executable, "-m", "saddleback"],):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == __version__


@pytest.mark.slow
def test_the_frontier_gets_a_band_on_request(run):
    calls = ["--points", "4", "--samples", "40000", "--certificate-samples", "200000"]
    code, out, _ = run("frontier", "garnet", *calls, "--json")
    data = json.loads(out)
    assert code == 0
    assert data["band"]["samples"] <= 200_000 and data["band"]["confidence"] == 0.95
    for point in data["points"]:
        assert point["low"] is None or point["low"] <= point["high"]
    truth = float(solve_exactly(zoo.make("garnet").table).value)
    assert max(point["high"] for point in data["points"]) >= truth
    code, out, _ = run("frontier", "garnet", *calls)
    assert code == 0 and "proved limits" in out
    assert run("frontier", "garnet", "--certificate-samples", "-1")[0] == 2
