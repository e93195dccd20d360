"""Items 11, 12 and 14: limits that are kept, sizes that are refused, and faults of our own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from attacks import shop
from attacks.programs import SECONDS, Attack, NotSetUp, Tree, names

PATIENCE = 25.0  # seconds for what takes three


def _spent(gamma: str, samples: int, seconds: float) -> Attack:
    def attack(tree: Tree, folder: Path) -> None:
        words = ["solve", "queue", "--set", f"gamma={gamma}", "--samples", samples, "--json"]
        done = tree.run(folder, *words, seconds=seconds)
        if done.code not in (0, 4, None):
            raise NotSetUp(done.err[-2000:])
        spent = json.loads(done.out)["samples"] if done.out else None
        assert spent is not None and spent <= samples, f"{spent} calls where {samples} were asked for"

    return attack


def plan_near_one(tree: Tree, folder: Path) -> None:
    done = tree.run(folder, "plan", "queue", "--set", "gamma=0.9999", "--epsilon", "1000", "--json", seconds=PATIENCE)
    assert done.code == 0, f"exit code {done.code} within {PATIENCE} seconds: {done.words[-300:]}"


def discount_of_one(tree: Tree, folder: Path) -> None:
    done = tree.run(folder, "solve", "queue", "--set", "gamma=0.9999999999999999", "--samples", "4000")
    assert done.code == 2 and "gamma" in done.words and "Traceback" not in done.err, f"{done.code}: {done.words[-200:]}"


# ---- sizes -----------------------------------------------------------------------------------------------------------------


def _refused(*more: str, **changes: str) -> Attack:
    """One message and exit code 2, before the simulator is called."""

    def attack(tree: Tree, folder: Path) -> None:
        shop.write(folder, '(HERE / "called").touch()', **changes)
        done = tree.run(folder, "solve", "problem.toml", *(more or ["--samples", "4000"]))
        good = done.code == 2 and "Traceback" not in done.err and len(done.err) < 1500
        assert good and not (folder / "called").exists(), f"exit code {done.code}: {done.words[-300:]}"

    return attack


PEAK = """
import resource, subprocess, sys
code = subprocess.call([sys.executable, "-m", "saddleback", *sys.argv[1:]])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


def twenty_million_states(tree: Tree, folder: Path) -> None:
    """Refused in 400 MB, numpy and all; a list of the pairs alone takes 640."""
    shop.write(folder, states="20_000_000")
    words = ["solve", "problem.toml", "--samples", "4000"]
    done = tree.run(folder, *words, program=[sys.executable, "-c", PEAK], env={"SADDLEBACK_MEMORY": "8GB"})
    if "error:" not in done.err:
        raise NotSetUp(done.err[-2000:])
    assert int(done.out) < 400, f"{done.out.strip()} MB before it was refused"


DRN = """
import resource
from pathlib import Path
from saddleback import Constraint, InputError
from saddleback.simulators.drn import read_drn

rest = "".join(f"state {s}{' init' * (s == 0)}\\n" + "action 0\\n0 : 1\\n" * (3000 if s == 0 else 1) for s in range(2500))
Path("m.drn").write_text("@type: MDP\\n@reward_models\\ngain wear\\n@nr_states\\n2500\\n@model\\n" + rest)
try:
    limits = [Constraint("wear", None, "<=", 1.0, (0, 1))]
    read_drn("m.drn", limits, gamma=0.9, reward="gain", reward_range=(0, 1))
except InputError:
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def small_drn_file(tree: Tree, folder: Path) -> None:
    """A fifth of a megabyte; the table of all choices in all states takes much more."""
    done = tree.script(folder, DRN)
    if done.code != 0:
        raise NotSetUp(done.err[-2000:])
    assert int(done.out) < 400, f"{done.out.strip()} MB for a file of {(folder / 'm.drn').stat().st_size} bytes"


# ---- faults of our own --------------------------------------------------------------------------------------------------------

BROKEN = """
import json

def broken(*given, **named):
    raise KeyError("no such thing")

json.dumps = broken
"""
"""Code of the user that breaks the library under us: what follows is no fault that we foresaw."""


def unexpected(tree: Tree, folder: Path) -> None:
    shop.write(folder, before=BROKEN)
    done = tree.run(folder, "solve", "problem.toml", "--samples", "4000", "--json", env={"TMPDIR": str(folder)})
    reports = [name for name in names(folder) if name.endswith(".txt")]
    good = done.code == 70 and "Traceback" not in done.err and len(reports) == 1 and reports[0] in done.words
    assert good, f"exit code {done.code}: {done.words[:100]}"


ATTACKS: dict[str, Attack] = {
    "11 more calls than were asked for": _spent("0.9995", 4000, SECONDS),
    "11 a solve that does not end": _spent("0.999999", 4000, PATIENCE),
    "11 a discount that is almost one": discount_of_one,
    "11 a plan that does not end": plan_near_one,
    "12 2^63 states": _refused(states=str(2**63)),
    "12 10^30 states": _refused(states="1" + 30 * "0"),
    "12 twenty million states": twenty_million_states,
    "12 a small DRN file": small_drn_file,
    "12 a key of 3,000 parts": _refused(more=".".join(["a"] * 3000) + " = 1"),
    "12 a name of a megabyte": _refused(name=1_000_000 * "x"),
    "12 an infinite epsilon": _refused("--epsilon", "inf"),
    "14 a fault of our own": unexpected,
}
