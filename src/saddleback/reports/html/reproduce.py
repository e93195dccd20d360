"""How to repeat a run: the command, the versions, the seeds, and the hashes of what it drew and wrote."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

from saddleback.files.json_file import plain, read_json, sha256_of
from saddleback.reports.html.markup import Content, Markup, details, join, table, tag
from saddleback.reports.html.view import View
from saddleback.runs.work_folder import SAMPLES

_USUAL: dict[str, Any] = {
    "feasibility": "relaxed",
    "mode": "default",
    "delta": 0.05,
    "seed": 0,
    "buffers": 2,
    "iterations": 1000,
    "resolution": -1,
}
_MOST_HEADER = 1 << 16
_MOST_FOLDERS = 20


def command(view: View) -> str:
    """The command that makes the run again."""
    run, request = view.run, dict(view.run.request)
    words = ["saddleback", "solve", run.target]
    for setting in run.settings:
        words += ["--set", setting]
    spent, proof = request.pop("samples", None), request.pop("certificate", None)
    folder = request.pop("from", None)
    request.pop("from_sha256", None)
    if folder is not None:
        words += ["--from", str(folder)]
        words += [] if proof is None else ["--certificate-samples", str(proof)]
    elif isinstance(spent, int) and isinstance(proof, int):
        words += ["--samples", str(spent + proof)]
        words += [] if proof == (spent + proof) // 2 else ["--certificate-samples", str(proof)]
    for name, value in request.items():
        if value is not None and value != _USUAL.get(name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join([*map(_plain_word, words), "--out", "again"])


def _plain_word(word: str) -> str:
    """A word of a command, on one line."""
    return plain(word, 200)


def reproduce(view: View) -> Markup:
    """Commands, versions, seeds and hashes."""
    run = view.run
    commands = [
        ("Make the same run again", command(view)),
        ("Check its proof without the code that made it", "saddleback certify RUN --recheck"),
        ("Prove it again from new samples", "saddleback certify RUN --seed 7"),
        ("Make this page", "saddleback report RUN"),
    ]
    shown = [join(tag("dt", words), tag("dd", tag("code", text))) for words, text in commands]
    versions = ", ".join(f"{plain(str(k))} {plain(str(v))}" for k, v in run.versions.items())
    seeds = f"Seed of the samples {run.seed}"
    if view.proof is not None:
        seeds += f", of the proof {view.proof['seed']}"
    folders = _folders(run.path)
    return join(
        tag("dl", *shown, class_="commands"),
        tag("p", f"{seeds}. Versions: {versions}. The same seed gives the same samples, on any number of machines."),
        details("Fingerprints and hashes", _hashes(view, folders)),
    )


def _hashes(view: View, folders: list[tuple[str, dict[str, Any], str]]) -> Markup:
    rows: list[list[Content]] = [
        [tag("code", name), tag("code", digest)] for name, digest in sorted(view.run.files.items())
    ]
    rows += [[tag("code", f"{SAMPLES}/{name}/manifest.jsonl"), tag("code", digest)] for name, _, digest in folders]
    parts = [table(["file", "SHA-256"], rows, "What the run wrote and drew", words=(0, 1))]
    for name, fingerprint, _ in folders[:1]:
        fields: list[list[Content]] = [[plain(str(k)), tag("code", plain(str(v), 200))] for k, v in fingerprint.items()]
        parts.append(
            table(["field", "value"], fields, f"Fingerprint of the problem and its simulator ({name})", words=(0, 1))
        )
    return join(*parts)


def _folders(path: Path) -> list[tuple[str, dict[str, Any], str]]:
    """The sample folders of the run: name, fingerprint, and the hash of the manifest, which holds those of all shards."""
    found: list[tuple[str, dict[str, Any], str]] = []
    folder = path / SAMPLES
    names = sorted(os.listdir(folder))[:_MOST_FOLDERS] if folder.is_dir() and not folder.is_symlink() else []
    for name in names:
        manifest, header = folder / name / "manifest.jsonl", folder / name / "store.json"
        if manifest.is_file() and header.is_file():
            data = read_json(header, _MOST_HEADER, "run `saddleback solve ... --out` again")
            fields = data.get("fingerprint") if isinstance(data, dict) else None
            found.append((plain(name), fields if isinstance(fields, dict) else {}, sha256_of(manifest)))
    return found
