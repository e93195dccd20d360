"""Parts of another package, found by entry points: listed by the command line, and really used (each counts its calls).

A distribution is laid out in a folder with its dist-info, as an installer would, and the commands run with that folder on
the path.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = '''
"""Parts that leave a line in a file whenever they are used."""

import os

import numpy as np

from saddleback.designs import Full
from saddleback.features import OneHot
from saddleback.instances.zoo.garnet import garnet
from saddleback.method.duals import ColumnGeneration
from saddleback.method.evaluators import LSTD
from saddleback.method.solvers import PlugIn
from saddleback.sampling.blocks import InOrder


def used(name):
    with open(os.environ["USED"], "a") as file:
        file.write(name + "\\n")


class MySolver(PlugIn):
    def solve(self, problem, buffer, mixing):
        used("solver")
        return super().solve(problem, buffer, mixing)


class MyEvaluator(LSTD):
    def evaluate(self, problem, buffer, policy):
        used("evaluator")
        return super().evaluate(problem, buffer, policy)


class MyDesign(Full):
    def design(self, problem):
        used("design")
        return super().design(problem)


class MyDual(ColumnGeneration):
    def propose(self, steps):
        used("dual")
        return super().propose(steps)


class MyExecutor(InOrder):
    def __init__(self, workers=None, **options):
        super().__init__()

    def run(self, function, tasks):
        used("executor")
        yield from super().run(function, tasks)


class MyFeatures(OneHot):
    def __init__(self, frame=None):
        used("features")
        super().__init__(3, 2)


def my_problem(*, states: int = 6):
    """A small random table.

    states: how many
    """
    used("problem")
    return garnet(states=states)
'''
ENTRY_POINTS = """\
[saddleback.solvers]
my-solver = my_parts:MySolver
[saddleback.evaluators]
my-evaluator = my_parts:MyEvaluator
[saddleback.designs]
my-design = my_parts:MyDesign
[saddleback.duals]
my-dual = my_parts:MyDual
[saddleback.executors]
my-executor = my_parts:MyExecutor
[saddleback.features]
my-features = my_parts:MyFeatures
[saddleback.problems]
my-problem = my_parts:my_problem
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the distribution, as an installer leaves it."""
    folder = tmp_path / "site"
    info = folder / "my_parts-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "my_parts.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def call(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """The command with the folder on its path, and which parts said that they were used."""
    log = folder.parent / "used.txt"
    log.write_text("")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "USED": str(log), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "saddleback", *words], capture_output=True, text=True, env=environment, check=False
    )
    return done, log.read_text().split()


def test_every_kind_of_part_is_listed_and_used(installed: Path) -> None:
    options = ["--solver", "my-solver", "--evaluator", "my-evaluator", "--design", "my-design", "--dual", "my-dual"]
    done, used = call(
        installed, "solve", "my-problem", "--samples", "20000", "--executor", "my-executor", *options, "--json"
    )
    assert done.returncode in (0, 6), done.stderr
    found = json.loads(done.stdout)["settings"]
    assert [found[k] for k in ("solver", "evaluator", "design", "dual")] == [
        "my-solver", "my-evaluator", "my-design", "my-dual",
    ]  # fmt: skip
    assert set(used) >= {"solver", "evaluator", "design", "dual", "executor", "problem"}
    assert used.count("dual") >= 2 and used.count("evaluator") >= 2
    help_page, _ = call(installed, "solve", "--help")
    for name in ("my-solver", "my-evaluator", "my-design", "my-dual", "my-executor"):
        assert name in help_page.stdout, name
    zoo, _ = call(installed, "zoo")
    assert "my-problem" in zoo.stdout


@pytest.mark.slow
def test_a_feature_map_of_another_package(installed: Path) -> None:
    code = (
        "from saddleback.features import BY_NAME; assert 'my-features' in list(BY_NAME); "
        "assert BY_NAME['my-features']().dim == 6"
    )
    log = installed.parent / "used.txt"
    log.write_text("")
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "USED": str(log)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert log.read_text().split() == ["features"]


@pytest.mark.slow
def test_without_the_package_its_names_are_unknown() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "saddleback", "solve", "wireless", "--dual", "my-dual"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "`dual` must be one of" in done.stderr
