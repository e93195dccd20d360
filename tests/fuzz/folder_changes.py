"""Changes of folders: files that are missing, empty, exchanged, or no files at all."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from saddleback.files.json_file import sealed

Random = np.random.Generator

LINK, FOLDER, PIPE = "link", "folder", "pipe"
Files = dict[str, bytes | tuple[str, str]]
"""Contents by name; (LINK, to), (FOLDER, "") and (PIPE, "") are no plain files."""


def write(folder: Path, files: Files) -> None:
    """Make the folder."""
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content[0] == LINK:
            path.symlink_to(content[1])
        elif content[0] == FOLDER:
            path.mkdir()
        else:
            os.mkfifo(path)


def read(folder: Path) -> Files:
    """What a folder of plain files holds."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def place(files: Files, rng: Random) -> Files:
    """One file is missing, empty, a link, a folder or a pipe, exchanged with another, or one too many."""
    names = sorted(files)
    one, other = (str(name) for name in rng.choice(names, 2))
    out = dict(files)
    match int(rng.integers(9)):
        case 0:
            del out[one]
        case 1:
            out[one] = b""
        case 2:
            targets = (other, one, "nowhere", "../outside", ".", "..")
            out[one] = (LINK, targets[int(rng.integers(len(targets)))])
        case 3:
            out[one] = (FOLDER, "")
        case 4:
            out[one] = (PIPE, "")
        case 5:
            out[one], out[other] = out[other], out[one]
        case 6:
            out[str(rng.choice(["more", "000009.npy", f"{one}.partial", ".x", "000000.npy.partial"]))] = b"more"
        case 7:
            out[one] = out[other]
        case 8:
            out["original"], out[one] = out[one], (LINK, "original")
    return out


def signed_request(files: Files) -> Files:
    """The request with a seal that fits it again, if it can still be read."""
    try:
        return {**files, "request.json": json.dumps(sealed(json.loads(files["request.json"]))).encode()}  # type: ignore[arg-type]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return files


def signed_run(files: Files) -> Files:
    """The run with sizes and hashes that fit its files again, if its manifest can still be read."""
    try:
        manifest = json.loads(files["run.json"])  # type: ignore[arg-type]
        for name, entry in manifest["files"].items():
            content = files.get(name)
            if isinstance(content, bytes):
                entry["bytes"], entry["sha256"] = len(content), hashlib.sha256(content).hexdigest()
        return {**files, "run.json": json.dumps(sealed(manifest)).encode()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return files
