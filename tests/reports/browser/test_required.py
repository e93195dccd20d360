"""Where there is no browser: a skip that says what to install, or a failure where the browser is required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

TEST = f"{Path(__file__).parent / 'test_report.py'}::test_controls"


@pytest.mark.parametrize(
    ("variables", "ends"),
    [({}, "skipped"), ({"CI": "1"}, "error"), ({"SADDLEBACK_BROWSER": "required"}, "error")],
)
def test_a_missing_browser(tmp_path: Path, variables: dict[str, str], ends: str) -> None:
    kept = {k: v for k, v in os.environ.items() if k not in ("CI", "SADDLEBACK_BROWSER")}
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-rsE", TEST]
    done = subprocess.run(
        command,
        check=False,
        env={**kept, **variables, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode == 0) == (ends == "skipped"), done.stdout + done.stderr
    assert f"1 {ends}" in done.stdout
    assert "apt-get install chromium chromium-driver" in " ".join(done.stdout.split())
