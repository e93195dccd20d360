"""Running the command line in this process, and reading what it leaves behind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback import cli
from saddleback.files.json_file import sealed
from saddleback.simulators.table import Table

Call = Callable[..., tuple[int, str, str]]
"""Arguments of the command line to (exit code, stdout, stderr)."""


def quietly(*arguments: Any) -> int:
    """Run the command line for its files only."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(a) for a in arguments])
    return int(ended.value.code or 0)


def arrays(table: Table) -> dict[str, Any]:
    """A table as the arrays of its file."""
    return {
        "P": table.P.toarray().reshape(table.num_states, table.num_actions, -1),
        "reward": table.reward,
        "constraints": table.constraints,
        "thresholds": table.thresholds,
        "gamma": np.float64(table.gamma),
        "rho": table.rho,
    }


def words(text: str) -> str:
    """Without line breaks and padding."""
    return " ".join(text.split())


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def rewrite(run: Path, name: str, data: Any) -> None:
    """Change a JSON file of a run, or give it other bytes, and let the manifest agree: an insider's forgery."""
    content = data if isinstance(data, bytes) else json.dumps(data).encode()
    (run / name).write_bytes(content)
    manifest = read(run / "run.json")
    manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    reseal(run / "run.json", manifest)


def reseal(path: Path, fields: Any) -> None:
    """Write a sealed record with other fields, and the seal that fits them."""
    path.write_text(json.dumps(sealed(fields)))
