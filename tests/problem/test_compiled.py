"""Machine code without a place to keep it: compiled anew, and nothing else is different."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from places import ROOT

CODE = """
import numpy as np, saddleback
from saddleback.sampling.kernels import _gather_one, gather_means
print(saddleback.__file__)
print(type(_gather_one._cache).__name__)
print(gather_means(np.array([0, 2, 1], dtype=np.uint32), np.array([0, 2, 3]), np.array([1.0, 5.0, 9.0])).tolist())
"""


def run(source: Path, home: Path) -> list[str]:
    gone = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    environment = {k: v for k, v in os.environ.items() if k not in gone} | {
        "PYTHONPATH": str(source),
        "HOME": str(home),
    }
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.check
def test_nowhere_to_write_and_damaged_caches(tmp_path: Path) -> None:
    """Plain files stand where the folders of both caches would be: that stops the super-user too."""
    source, home = tmp_path / "src", tmp_path / "home"
    shutil.copytree(ROOT / "src" / "saddleback", source / "saddleback", ignore=shutil.ignore_patterns("__pycache__"))
    home.mkdir()
    (home / ".cache").touch()
    for folder in ("sampling", "exact"):
        (source / "saddleback" / folder / "__pycache__").touch()
    place = str(source / "saddleback" / "__init__.py")
    assert run(source, home) == [place, "NullCache", "[5.0, 5.0]"]
    (source / "saddleback" / "sampling" / "__pycache__").unlink()
    assert run(source, home) == [place, "FunctionCache", "[5.0, 5.0]"]
    kept = [p for p in (source / "saddleback" / "sampling" / "__pycache__").iterdir() if p.suffix in (".nbi", ".nbc")]
    assert len(kept) >= 2, "something is kept where there is a place"
    for path in kept:
        path.write_bytes(path.read_bytes()[:40])
    assert run(source, home) == [place, "FunctionCache", "[5.0, 5.0]"]
