"""``saddleback check``: its exit codes, what it prints, and every kind of target."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.command_line import Call, words
from cli.first_projects import write


def test_a_zoo_problem_and_a_table(run: Call, table_file: Path) -> None:
    code, out, _ = run("check", "wireless", "--calls", 4000)
    assert code == 0 and "wireless: no mistake found in" in words(out)
    assert "energy <= 1.2 (0.12 per step)" in out and "so a million take" in out and "probability 1e-06" in words(out)
    code, out, _ = run("check", table_file, "--calls", 4000, "--json")
    told = json.loads(out)
    assert code == 0 and told["clean"] and told["findings"] == [] and 0 < told["calls"] <= 4000


@pytest.mark.slow
def test_errors_and_warnings_have_their_exit_codes(run: Call, tmp_path: Path) -> None:
    good = write(tmp_path, "step")
    assert run("check", good, "--seed", 7)[0] == 0
    warned = tmp_path / "warned.toml"
    warned.write_text(good.read_text().replace('"<= 0.3"', '"<= 6"'))
    code, out, _ = run("check", warned)
    assert code == 0 and "warning (threshold of overtime): every policy meets" in words(out)
    assert "warned: 0 errors, 1 warning in" in words(out)
    assert run("check", warned, "--strict")[0] == 5
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(good.read_text().replace("states = 11", "states = 10"))
    code, out, _ = run("check", wrong)
    assert code == 5 and "error (conformance): the simulator returned the next state 10" in words(out)
    unchecked = "not checked: repeatability, agreement and independence, until the answers have the right form."
    assert unchecked in words(out), "a state that is rarely reached is met late"
    wrong.write_text(good.read_text().replace("states = 11", "states = 4"))
    code, out, _ = run("check", wrong)
    assert code == 5 and "returned the next state 4" in words(out) and unchecked in words(out)


def test_bad_requests(run: Call, tmp_path: Path) -> None:
    assert run("check", "wireless", "--calls", 10)[0] == 2
    assert run("check", "wireless", "--seed", -1)[0] == 2
    assert run("check", "nothing")[0] == 2
    code, _, err = run("check", tmp_path / "no.toml")
    assert code == 2 and "must be an existing file" in words(err)
    code, _, err = run("check", write(tmp_path, "step"), "--set", "gamma=0.9")
    assert code == 2 and "must not be given for a file" in words(err)


def test_the_same_seed_gives_the_same_report(run: Call, tmp_path: Path) -> None:
    path = write(tmp_path, "batch", ("return after,", "return np.where(waiting == 7, 99, after),"))
    one, two = (json.loads(run("check", path, "--json")[1]) for _ in range(2))
    assert one["findings"] == two["findings"] and one["findings"][0]["state"] == 7
