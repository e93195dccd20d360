"""Items 1 and 7: one owner of a run, nobody else's files, and what a kill leaves behind."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from attacks import shop
from attacks.programs import SMALL, Attack, Done, Tree, alive, ended, everything, names

SOLVE = ["solve", *SMALL, "--samples", "400"]
SAMPLE = ["sample", *SMALL]
TOKEN = "0a1b2c3d"


def _two(tree: Tree, folder: Path, first: list[str], second: list[str], when: str) -> tuple[Done, Done]:
    """Both commands on one run, the second while the first waits in its simulator: how they ended."""
    shop.write(folder, when, states="2")
    with alive(tree.begin(folder, *first), folder / "waiting") as program:
        late = tree.run(folder, *second, env={"SECOND": "1"})
        (folder / "go").touch()
        return ended(program), late


_SOLVE = ["solve", "problem.toml", "--samples", "4000", "--out", "run"]
_SAMPLE = ["sample", "problem.toml", "--out", "run"]


def _second(first: list[str], second: list[str], when: str = shop.DRAWING) -> Attack:
    """The first ends well, and the second is told that it has an owner."""

    def attack(tree: Tree, folder: Path) -> None:
        one, other = _two(tree, folder, first, second, when)
        good = (one.code, other.code) == (0, 2) and (folder / "run" / "samples").is_dir()
        assert good, f"they ended with {one.code} and {other.code}: {one.words[:200]}"

    return attack


def symlinked_work(tree: Tree, folder: Path) -> None:
    """A finished run of a stranger, whose work folder is a link to somewhere else."""
    tree.kept(folder, *SOLVE)
    (folder / "treasure").mkdir()
    (folder / "treasure" / "thesis.tex").write_text("ten years")
    (folder / "run.work").symlink_to("treasure")
    tree.run(folder, "resume", "run")
    assert (folder / "treasure" / "thesis.tex").exists(), "what lies behind the link is gone"


def own_work_folder(tree: Tree, folder: Path) -> None:
    tree.kept(folder, *SOLVE)
    (folder / "run.work").mkdir()
    (folder / "run.work" / "results.csv").write_text("1,2,3")
    tree.run(folder, "resume", "run")
    assert (folder / "run.work" / "results.csv").exists(), "the user's folder is gone"


def _overwriting(words: list[str], victim: str) -> Attack:
    def attack(tree: Tree, folder: Path) -> None:
        tree.kept(folder, *SOLVE)
        shop.write(folder)
        before = (folder / victim).read_bytes()
        tree.run(folder, *words)
        assert (folder / victim).read_bytes() == before, f"{victim} was overwritten"

    return attack


# ---- kills while beginning or ending ----------------------------------------------------------------------------------


def _half_a_request(words: list[Any], code: int) -> Attack:
    """A kill before the request was whole; nothing was begun."""

    def attack(tree: Tree, folder: Path) -> None:
        (folder / "run.work").mkdir()
        (folder / "run.work" / f".request.json.{TOKEN}.partial").write_text('{"format"')
        done = tree.run(folder, *words)
        assert (done.code, names(folder)) == (code, ["run"] if code == 0 else []), (
            f"exit code {done.code}, left {names(folder)}: {done.words[:200]}"
        )

    return attack


def _litter(name: str) -> Attack:
    """A kill while the finished run was written, or replaced another."""

    def attack(tree: Tree, folder: Path) -> None:
        tree.kept(folder, *SOLVE)
        shutil.copytree(folder / "run", folder / name)
        done = tree.run(folder, *SOLVE, "--seed", "1", "--force", "--out", "run")
        assert (done.code, names(folder)) == (0, ["run"]), f"exit code {done.code}, left {names(folder)}"

    return attack


def replaced_run(tree: Tree, folder: Path) -> None:
    """A kill between the two renames of --force: the old run has been put aside, the new one has no place yet."""
    tree.kept(folder, *SOLVE).rename(folder / f".run.{TOKEN}.old")
    before = everything(folder / f".run.{TOKEN}.old")
    tree.run(folder, "resume", "run")
    assert (folder / "run").is_dir() and everything(folder / "run") == before, "the old run is lost"


def sample_after_its_last_block(tree: Tree, folder: Path) -> None:
    """All samples are drawn, the request is gone, the folder of it is not."""
    tree.kept(folder, *SAMPLE)
    (folder / "run.work").mkdir()
    done = tree.run(folder, "resume", "run")
    assert (done.code, names(folder)) == (0, ["run"]), f"exit code {done.code}: {done.words[:200]}"


def long_name(tree: Tree, folder: Path) -> None:
    shop.write(folder, '(HERE / "called").touch()')
    done = tree.run(folder, "solve", "problem.toml", "--samples", "4000", "--out", 243 * "x")
    assert done.code == 2 and names(folder) == ["problem.toml", "shop.py"], (
        f"exit code {done.code}, left {[name[:20] for name in names(folder)]}"
    )


ATTACKS: dict[str, Attack] = {
    "1 a second solve on a live run": _second(_SOLVE, _SOLVE),
    "1 a second solve before the first has drawn": _second(_SOLVE, _SOLVE, shop.BEGUN),
    "1 a second resume on a live run": _second(_SOLVE, ["resume", "run", "--problem", "problem.toml"]),
    "1 a second sample into a live folder": _second(_SAMPLE, _SAMPLE, shop.BEGUN),
    "1 resume of an archive with a linked work folder": symlinked_work,
    "1 a folder of the user beside a finished run": own_work_folder,
    "1 --policy over a source file": _overwriting([*SOLVE, "--policy", "shop.py"], "shop.py"),
    "1 --callback over a source file": _overwriting([*SOLVE, "--callback", "jsonl:shop.py"], "shop.py"),
    "1 --policy over the certificate": _overwriting(
        [*SOLVE, "--policy", "run/certificate.json"], "run/certificate.json"
    ),
    "1 report over a source file": _overwriting(["report", "run", "--out", "shop.py"], "shop.py"),
    "1 report over the certificate": _overwriting(
        ["report", "run", "--out", "run/certificate.json"], "run/certificate.json"
    ),
    "7 half a request, the command again": _half_a_request([*SOLVE, "--out", "run"], 0),
    "7 half a request, sample again": _half_a_request([*SAMPLE, "--out", "run"], 0),
    "7 half a request, resume": _half_a_request(["resume", "run"], 2),
    "7 a run that was half written": _litter(f".run.{TOKEN}.partial"),
    "7 a run that was put aside": _litter(f".run.{TOKEN}.old"),
    "7 a run between two renames": replaced_run,
    "7 a sample after its last block": sample_after_its_last_block,
    "7 a name too long for its own files": long_name,
}
