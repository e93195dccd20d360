"""The built wheel, installed in an empty environment, does the main job."""

import json
import os
import subprocess
import sys

import pytest

from places import ROOT

pytestmark = pytest.mark.check


def call(*command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True, **options).stdout


def test_wheel_smoke(tmp_path):
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT)
    wheel = next(tmp_path.glob("*.whl"))
    call(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    quiet = ["--quiet", "--disable-pip-version-check"]
    call(python, "-m", "pip", "install", *quiet, "-c", ROOT / "constraints.txt", wheel)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [python.parent / "saddleback", "solve", "garnet", "--samples", 40_000, "--iterations", 50, "--json"]
    answer = json.loads(call(*command, cwd=tmp_path, env=environment))
    assert answer["status"] == "solved"
    where = call(python, "-c", "import saddleback; print(saddleback.__file__)", cwd=tmp_path, env=environment)
    assert str(tmp_path) in where
