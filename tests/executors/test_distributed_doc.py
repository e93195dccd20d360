"""The examples of docs/distributed.md run, one after the other, as a reader would type them."""

import fcntl
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is an extra: pip install 'saddleback[ray]'")
pytestmark = pytest.mark.xdist_group("ray")
TEXT = (Path(__file__).parent.parent.parent / "docs" / "distributed.md").read_text()


def test_the_examples_run(tmp_path, tmp_path_factory):
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    assert len(blocks) == 5
    (tmp_path / "script.py").write_text("\n".join(blocks) + "\nprint('the end')\n")
    with (tmp_path_factory.getbasetemp().parent / "ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        run = [sys.executable, "-W", "error", "script.py"]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0 and done.stdout == "the end\n", done.stderr


def test_the_commands_run(tmp_path):
    (commands,) = re.findall(r"```sh\n(.*?)```", TEXT, re.S)
    for line in commands.splitlines():
        run = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 0, done.stderr
