"""``--limit``, ``--at``, ``exact`` with a frontier, a run and a policy, and what is said where nothing is feasible."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from cli.command_line import Call, read, words
from saddleback import load_policy, save_table, zoo
from saddleback.exact import policy_values, solve_exactly
from saddleback.problem.policies import TabularPolicy
from saddleback.runs.run_folder import load_run
from saddleback.runs.targets import load_run_target, load_target
from saddleback.simulators.table import Table

PER_STEP = """
gamma = 0.95
[simulator]
zoo = "wireless"
[[constraints]]
name = "energy"
limit = "<= 0.1"
units = "per-step"
"""


@pytest.fixture
def per_step(tmp_path: Path) -> Path:
    path = tmp_path / "p.toml"
    path.write_text(PER_STEP)
    return path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Each order costs one and spares two lost sales; what the states do makes no difference."""
    orders, lost = np.tile([0.0, 1.0], (2, 1)), np.tile([3.0, 1.0], (2, 1))
    P = np.full((2, 2, 2), 0.5)
    table = Table.of(
        P,
        np.tile([0.0, 1.0], (2, 1)),
        np.array([orders, lost, lost]),
        [5.0, 18.0, 0.0],
        gamma=0.9,
        rho=[1.0, 0.0],
        senses=["<=", "<=", ">="],
        names=["orders", "lost sales", "idle"],
    )
    path = tmp_path / "shop.npz"
    save_table(table, path)
    return path


def changed(gamma: float, threshold: float) -> Table:
    table = zoo.make("wireless").table
    assert table is not None
    return dataclasses.replace(table, gamma=gamma, thresholds=np.array([threshold]))


def test_a_limit_stays_in_its_unit(run: Call, per_step: Path) -> None:
    """0.05 a step at γ = .95 is a total of 1, on a problem file that names a problem whose table is known."""
    code, out, _ = run("exact", per_step, "--limit", "energy=0.05", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["value"] == pytest.approx(solve_exactly(changed(0.95, 1.0)).value, abs=1e-6)
    assert answer["constraints"][0]["threshold"] == pytest.approx(1.0)
    code, out, _ = run("exact", per_step, "--json")
    assert json.loads(out)["value"] == pytest.approx(solve_exactly(changed(0.95, 2.0)).value, abs=1e-6)


def test_a_problem_file_keeps_its_changes_in_the_table(tmp_path: Path) -> None:
    """Discount, start, senses and signals of the file are those of the table that `exact` solves."""
    path = tmp_path / "p.toml"
    values = json.dumps([0.5] * 33)
    path.write_text(
        'gamma = 0.8\nstart = {states = [0, 3], weights = [0.25, 0.75]}\n[simulator]\nzoo = "wireless"\n'
        f'[[constraints]]\nname = "own"\nvalues = {values}\nlimit = ">= 1"\nunits = "discounted"\nrange = [0, 1]\n'
    )
    instance = load_target(str(path))
    assert instance.table is not None
    assert (instance.table.gamma, instance.table.names, instance.table.senses) == (0.8, ("own",), (">=",))
    assert instance.table.rho[[0, 3]].tolist() == [0.25, 0.75]
    assert solve_exactly(instance.table).constraint_values[0] == pytest.approx(0.5 * 5)


@pytest.mark.parametrize("verb", ["solve", "exact", "frontier", "plan"])
def test_a_wrong_name_is_said_with_the_nearest(run: Call, verb: str) -> None:
    more = ["--epsilon", "1"] if verb == "plan" else []
    code, _, err = run(verb, "wireless", *more, "--limit", "enrgy=2")
    assert code == 2
    assert "did you mean energy?" in words(err)


def test_a_wrong_parameter_or_problem_is_said_with_the_nearest(run: Call) -> None:
    code, _, err = run("exact", "wireless", "--set", "budgt=3")
    assert code == 2 and "did you mean budget?" in words(err)
    code, _, err = run("exact", "wirless")
    assert code == 2 and "did you mean wireless?" in words(err)
    code, _, err = run("exact", "wireless", "--set", "zzz=3")
    assert code == 2 and "wireless takes capacity=10" in words(err), "where nothing is near, all of them"


@pytest.mark.parametrize("given", ["energy", "energy=", "=3", "energy=nan", "energy=inf", "energy=two"])
def test_limits_that_are_none(run: Call, given: str) -> None:
    code, _, err = run("exact", "wireless", "--limit", given)
    assert code == 2
    assert "--limit" in err and "name=value" in words(err)


def test_a_limit_is_given_once(run: Call) -> None:
    code, _, err = run("exact", "wireless", "--limit", "energy=1", "--limit", "energy=2")
    assert code == 2 and "once" in err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["toml", "npz", "zoo"])
def test_a_run_keeps_its_limits(run: Call, tmp_path: Path, per_step: Path, kind: str) -> None:
    """What takes the run up again solves, proves and shows the problem with the limit that was given."""
    save_table(changed(0.9, 1.2), tmp_path / "t.npz")
    target, limit = {"toml": (per_step, 0.05), "npz": (tmp_path / "t.npz", 2.0), "zoo": ("wireless", 2.0)}[kind]
    place, total = tmp_path / "run", 1.0 if kind == "toml" else 2.0
    again = ["--problem", per_step] if kind == "toml" else []
    code, out, _ = run(
        "solve", target, "--limit", f"energy={limit}", "--samples", 20_000, "--out", place,
        "--feasibility", "relaxed", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["constraints"][0]["threshold"] == pytest.approx(total)
    stored = load_run_target(load_run(place), per_step if kind == "toml" else None)
    assert stored.problem.user_thresholds()[0] == pytest.approx(total)
    assert stored.table is None or stored.table.thresholds[0] == pytest.approx(total)
    assert run("certify", place, "--samples", 4000, *again, "--json")[0] in (0, 4, 6)
    code, out, _ = run("frontier", place, "--at", f"{limit}", "--json")
    assert code == 0 and json.loads(out)["points"][0]["threshold"] == pytest.approx(total)
    assert run("report", place, *again)[0] == 0
    page = Path(f"{place}.html").read_text()
    assert f"--limit energy={limit}" in page and "--set sha256" not in page


@pytest.mark.slow
def test_resume_goes_on_with_the_limits(run: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was killed after its request was written."""
    from saddleback.cli import solve as verb

    place, killed = tmp_path / "run", KeyboardInterrupt()

    def dies(*_: object, **__: object) -> None:
        raise killed

    with monkeypatch.context() as patch:
        patch.setattr(verb, "carry_out", dies)
        run("solve", "wireless", "--limit", "energy=2", "--samples", 20_000, "--out", place)
    assert read(tmp_path / "run.work" / "request.json")["settings"] == ["limit energy=2"]
    code, out, _ = run("resume", place, "--json")
    assert json.loads(out)["constraints"][0]["threshold"] == 2.0, code


def test_frontier_at_thresholds_of_ones_own(run: Call, per_step: Path) -> None:
    code, out, _ = run("frontier", per_step, "--at", "0.05,0.1", "--samples", 40_000, "--json")
    points = json.loads(out)["points"]
    assert code == 0
    assert [p["threshold"] for p in points] == pytest.approx([1.0, 2.0])
    for point in points:
        assert point["value"] == pytest.approx(solve_exactly(changed(0.95, point["threshold"])).value, abs=1.0)
    code, _, err = run("frontier", per_step, "--at", "0.05,much")
    assert code == 2 and "--at" in err


def test_a_stored_frontier_says_where_its_reach_ends(run: Call, stored_runs: Path) -> None:
    code, _, err = run("frontier", stored_runs / "named", "--at", "-1")
    other, _, of_problem = run("frontier", "queue", "--at", "-1", "--samples", "20000")
    assert code == other == 2
    for text in (err, of_problem):
        assert "`threshold` must be one that some mixture meets (the last is about " in text, text


def test_exact_frontier(run: Call, shop: Path) -> None:
    """F is b for b <= 10 (a reward of one per order): thresholds evenly spread, prices of one, dashes out of reach."""
    limits = ["--limit", "lost sales=30", "--limit", "idle=0"]
    code, out, _ = run("exact", shop, *limits, "--frontier", "--points", "5", "--json")
    points = json.loads(out)["points"]
    assert code == 0
    assert [p["threshold"] for p in points] == pytest.approx([10.0, 7.5, 5.0, 2.5, 0.0], abs=1e-6)
    assert [p["value"] for p in points] == pytest.approx([10.0, 7.5, 5.0, 2.5, 0.0], abs=1e-6)
    code, out, _ = run("exact", shop, *limits, "--frontier", "--at", "3,-1", "--json")
    rows = json.loads(out)["points"]
    assert rows[0]["value"] == pytest.approx(3.0) and rows[0]["multiplier"] == pytest.approx(1.0)
    assert rows[1]["value"] is None
    code, out, _ = run("exact", shop, *limits, "--frontier", "--constraint", "lost sales", "--at", "20,28")
    assert code == 0 and "lost sales <=" in words(out)
    assert run("exact", shop, "--at", "3")[0] == 2


@pytest.mark.parametrize("method", ["lp", "columns"])
def test_exact_gives_its_policy(run: Call, tmp_path: Path, per_step: Path, method: str) -> None:
    place, file = tmp_path / "run", tmp_path / "policy.npz"
    code, out, _ = run(
        "exact", per_step, "--limit", "energy=0.05", "--method", method, "--out", place, "--policy", file, "--json"
    )
    assert code == 0
    value = json.loads(out)["value"]
    for where in (place, file):
        (member,) = load_policy(where).members
        assert isinstance(member, TabularPolicy)
        assert policy_values(changed(0.95, 1.0), member)[0] == pytest.approx(value, abs=1e-4)
    stored = load_run(place)
    assert (stored.solution.status, stored.solution.samples) == ("solved", 0)
    again = ["--problem", per_step]
    assert run("act", place, "--state", "3", "--episode-seed", "1", *again)[0] == 0
    assert run("report", place, *again)[0] == 0
    assert "saddleback exact" in Path(f"{place}.html").read_text()
    code, out, _ = run("certify", place, *again, "--seed", "3", "--samples", 20_000, "--json")
    low, high = json.loads(out)["certificate"]["value"]
    assert low <= value <= high
    assert run("exact", per_step, "--out", place)[0] == 2  # it is there


def test_no_table_no_truth(run: Call, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("def step(state, action, rng):\n    return state\n")
    path = tmp_path / "p.toml"
    path.write_text(
        'gamma = 0.9\nstates = 2\nactions = 2\nstart = 0\n[simulator]\nfunction = "shop:step"\n[reward]\nvalues = [0, 1]\n'
        '[[constraints]]\nname = "c"\nvalues = [1, 0]\nlimit = "<= 5"\nunits = "discounted"\n'
    )
    code, _, err = run("exact", path)
    assert code == 2 and "saddleback solve" in words(err) and "{}" not in err


def test_a_contradiction_is_explained_exactly(run: Call, shop: Path) -> None:
    """orders <= 5 leaves lost sales of 3·10 − 2·5 = 20; lost sales <= 18 take orders of 6. The third constraint is innocent."""
    code, out, _ = run("exact", shop, "--json")
    answer = json.loads(out)
    assert code == 3
    rows = {row["name"]: row for row in answer["conflict"]}
    assert set(rows) == {"orders", "lost sales"}
    assert rows["orders"]["best"] == pytest.approx(6.0) and rows["orders"]["given"] == ["lost sales"]
    assert rows["lost sales"]["best"] == pytest.approx(20.0)
    code, out, _ = run("exact", shop)
    assert "with orders <= 5 the least lost sales are 20 (wanted: <= 18)" in words(out)


@pytest.mark.slow
def test_a_contradiction_is_explained_from_samples(run: Call, shop: Path, tmp_path: Path) -> None:
    code, out, _ = run("solve", shop, "--limit", "lost sales=12", "--samples", 20_000, "--out", tmp_path / "run")
    assert code == 3
    assert "with orders <= 5 the least lost sales are 20 (wanted: <= 12)" in words(out)
    assert "estimates from the samples, not proved" in words(out)
    assert load_run(tmp_path / "run").solution.conflict[0].label == "estimated"
    assert run("report", tmp_path / "run")[0] == 0
    assert "the least lost sales are 20" in (tmp_path / "run.html").read_text()


def test_one_that_cannot_be_met_by_itself(run: Call, shop: Path) -> None:
    """9 is less than the 10 that ordering all the time leaves; under orders <= 5 it is 20."""
    code, out, _ = run("exact", shop, "--limit", "lost sales=9", "--json")
    rows = json.loads(out)["conflict"]
    assert code == 3
    assert [(row["given"], row["best"]) for row in rows] == [
        ([], pytest.approx(10.0)),
        (["orders", "idle"], pytest.approx(20.0)),
    ]
