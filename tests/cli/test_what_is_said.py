"""What a user reads around an answer: where it is kept, what comes next, what is unfinished, and words of refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.command_line import Call, words
from saddleback.cli import drawing
from saddleback.errors import InputError
from saddleback.problem.spaces import FiniteStates
from saddleback.runs.file_names import REQUEST

FEW = ("--samples", 20_000)


@pytest.mark.slow
def test_where_it_is_kept_and_what_comes_next(run: Call, tmp_path: Path) -> None:
    place, file = tmp_path / "run", tmp_path / "p.npz"
    code, out, err = run("solve", "queue", *FEW, "--out", place, "--policy", file)
    assert code in (0, 4) and place.is_dir() and "Next:" not in out
    assert words(err).endswith(f"The policy is in {file}. Kept in {place}. Next: saddleback report {place}")
    _, _, err = run("exact", "queue", "--out", tmp_path / "truth", "--policy", tmp_path / "best.npz")
    assert f"Kept in {tmp_path / 'truth'}. Next: saddleback report {tmp_path / 'truth'}" in words(err)
    _, _, err = run("solve", "queue", *FEW, "--out", tmp_path / "other", "--json")
    assert "Kept" not in err


@pytest.mark.parametrize(
    "verb", [("act", "--state", "0"), ("report",), ("export", "--to", "csv"), ("certify",), ("frontier",)]
)
def test_an_unfinished_run_is_called_so(run: Call, tmp_path: Path, verb: tuple[str, ...]) -> None:
    (tmp_path / "run.work").mkdir()
    (tmp_path / "run.work" / REQUEST).write_text("{}")
    code, _, err = run(verb[0], tmp_path / "run", *verb[1:])
    assert code == 2 and f"(unfinished); finish it with: saddleback resume {tmp_path / 'run'}" in words(err)


def test_ctrl_c_without_a_place_says_that_nothing_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BaseException) as ended, drawing.resumable(None):
        raise KeyboardInterrupt
    assert getattr(ended.value, "exit_code", None) == 130
    assert capsys.readouterr().err == "interrupted; without --out nothing is kept\n"


def test_refusals_end_as_sentences_do(run: Call, stored_runs: Path) -> None:
    def text(remedy: str, value: Any = 1) -> str:
        return str(InputError("x", "must be so", value, remedy))

    assert text("did you mean gamma?").endswith("gamma?") and text("use 0, 1, 2 …").endswith("2 …")
    assert text("use 2").endswith("use 2.") and ", got nothing; " in text("use 2", "")
    assert ", got nothing; " in words(run("frontier", "queue", "--at", "0.1,,0.2")[2])
    code, _, err = run("frontier", stored_runs / "named", "--limit", "queue=5")
    assert code == 2 and "got queue=5;" in words(err)
    code, _, err = run("check", "queue", "--budget", "5")
    assert code == 2 and "`--budget` must be at least 100" in words(err)
    assert str(FiniteStates(11)) == "states 0 to 10"


def test_the_limit_of_the_constraint_that_moves_is_not_ignored_without_a_word(run: Call) -> None:
    name = "wireless", "energy"
    code, out, err = run("frontier", name[0], "--limit", f"{name[1]}=1.1", "--points", 3, *FEW)
    assert code == 0 and f"--limit {name[1]}=1.1 changes nothing" in words(err)
    assert "Gap bounds what another mixture could add" in words(out)


def test_a_constraint_that_does_not_bind_takes_one_row(run: Call, tmp_path: Path) -> None:
    file = tmp_path / "still.toml"
    (tmp_path / "still.py").write_text("def step(state, action, rng):\n    return state\n")
    file.write_text(
        'gamma = 0.9\nstates = 1\nactions = 2\nstart = 0\n[simulator]\nfunction = "still:step"\n'
        '[reward]\nvalues = [[0.0, 1.0]]\n[[constraints]]\nname = "done"\nvalues = [[0.0, 1.0]]\nlimit = ">= 1"\nunits = "discounted"\n'
    )
    code, out, err = run("frontier", file, "--points", 5, "--samples", 1000)
    assert code == 0, err
    assert "'done' does not bind" in words(out) and len([x for x in out.splitlines() if "1.000" in x]) == 1
