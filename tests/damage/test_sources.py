"""A simulator whose code has changed since its samples were drawn: noticed where its probes see nothing, and named."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cli.command_line import Call, read, words
from cli.first_projects import write
from saddleback.instances.problem_file.code import find
from saddleback.runs.targets import load_target
from saddleback.simulators.sources import changed_sources, sources_of

TIRED = (
    "    arrives = rng.random()",
    "    luck = rng.random()\n    if luck > 0.9998:\n        raise OSError('tired')\n    arrives = luck",
)
"""A fault at a moment that no probe sees, and without which every sample is the same."""


def forget() -> None:
    """Load code anew, as the next process does."""
    find.cache_clear()
    for name in [name for name in sys.modules if "@" in name]:
        del sys.modules[name]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    forget()


def sources(path: Path) -> dict[str, str]:
    forget()
    instance = load_target(str(path))
    return sources_of(instance.problem, instance.simulator)


@pytest.mark.slow
def test_a_changed_simulator_is_refused_until_it_is_accepted(tmp_path: Path, run: Call) -> None:
    """Mended after a fault: one more word, since nobody but its author knows that the samples are the same."""
    path = write(tmp_path, "step", TIRED)
    forget()
    asked = ["solve", path, "--samples", 20_000, "--out", tmp_path / "run"]
    assert run(*asked)[0] == 5
    edit(tmp_path / "shop.py", TIRED[1], TIRED[0])
    for again in (["resume", tmp_path / "run", "--problem", path], asked):
        code, _, err = run(*again)
        said = words(err)
        assert (
            code == 2 and "shop.py has changed" in said and "--accept-source" in said and "answers the probes" in said
        )
    forget()
    code, _, _ = run("resume", tmp_path / "run", "--problem", path, "--accept-source", "--json")
    assert code in (0, 4)
    forget()
    assert run("solve", path, "--samples", 20_000, "--out", tmp_path / "whole")[0] in (0, 4)
    answers = [(tmp_path / name / "solution.json").read_bytes() for name in ("run", "whole")]
    assert answers[0] == answers[1]
    assert read(tmp_path / "run" / "run.json")["problem"]["sources"].keys() == {"shop.py"}


@pytest.mark.slow
def test_certify_and_report_notice_it_too(tmp_path: Path, run: Call) -> None:
    path = write(tmp_path, "step")
    forget()
    assert run("solve", path, "--samples", 20_000, "--out", tmp_path / "run")[0] in (0, 4)
    edit(tmp_path / "shop.py", "0.4", "0.4001")
    for verb, *more in (["report"], ["certify"], ["certify", "--recheck"]):
        code, _, err = run(verb, tmp_path / "run", *more, "--problem", path)
        assert code == 2 and "shop.py has changed" in words(err), verb


@pytest.mark.slow
def test_samples_are_not_solved_from_with_other_code(tmp_path: Path, run: Call) -> None:
    path = write(tmp_path, "step")
    forget()
    assert run("sample", path, "--out", tmp_path / "s")[0] == 0
    edit(tmp_path / "shop.py", "action):\n    return action", "action):\n    return 1 * action")
    code, _, err = run("solve", path, "--from", tmp_path / "s")
    assert code == 2 and "shop.py has changed" in words(err)
    code, out, _ = run("sample", path, "--out", tmp_path / "s", "--accept-source", "--json")
    assert code == 0 and json.loads(out)["drawn_now"] == 0
    assert run("solve", path, "--from", tmp_path / "s", "--certificate-samples", 20_000)[0] in (0, 4)


def test_what_counts_is_code_and_what_it_imports_from_its_folder(tmp_path: Path) -> None:
    path = write(tmp_path, "step", ("def step", "import far\nfrom near import ground as base\n\n\ndef step"))
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "__init__.py").write_text("def later():\n    from . import deep\n")
    (tmp_path / "far" / "deep.py").write_text("import json\n")
    (tmp_path / "near.py").write_text("ground = 1\n")
    (tmp_path / "unrelated.py").write_text("ground = 2\n")
    first = sources(path)
    assert first.keys() == {"shop.py", "near.py", "far/__init__.py", "far/deep.py"}
    edit(tmp_path / "near.py", "ground = 1\n", "# what everything stands on\n\nground = 1  # metres\n")
    edit(tmp_path / "unrelated.py", "2", "3")
    assert sources(path) == first
    edit(tmp_path / "near.py", "ground = 1", "ground = 1.5")
    (tmp_path / "far" / "deep.py").unlink()
    assert changed_sources(first, sources(path)) == "far/deep.py is gone, near.py has changed"
    assert sources_of(load_target("queue").problem, print, [lambda: 1]) == {}


def test_a_folder_may_move(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for home in (first, second):
        home.mkdir()
    assert sources(write(first, "step")) == sources(write(second, "step"))
