"""Items 8 and 9: user code that hangs, ends, breaks or prints, and what reaches the terminal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from attacks import shop
from attacks.programs import QUEUE, Attack, Done, NotSetUp, Tree, alive, ended, names
from forgery.forging import write

SOLVE = ["solve", "problem.toml", "--samples", "4000"]
KEPT = ["solve", *QUEUE, "--samples", "20000"]
PATIENCE = 40.0  # seconds for what takes three, and ten on a busy machine


def _short(done: Done) -> bool:
    """One message, of bearable length, that a terminal only shows; `check` tells its price in a line before."""
    lines = done.err.strip().splitlines()
    return 0 < len(done.err.strip()) < 1500 and len(lines) <= 2 and all(line.isprintable() for line in lines)


def _deed(deed: str, says: str, verb: list[str] = SOLVE, before: str = "") -> Attack:
    """The simulator does it at state 3, action 1: one short message with those words, and the exit code of a fault."""

    def attack(tree: Tree, folder: Path) -> None:
        shop.write(folder, shop.AT_ONE_PAIR.format(deed), before)
        done = tree.run(folder, *verb, "--json", seconds=PATIENCE)
        good = (done.code, done.out) == (5, "") and _short(done) and says in done.words
        assert good, f"exit code {done.code}: {done.err[:200]!r}"

    return attack


UNSPEAKABLE = """
class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("no words")
"""


def changed_folder(tree: Tree, folder: Path) -> None:
    """Into a folder of its own, in the middle of a run."""
    (folder / "elsewhere").mkdir()
    shop.write(folder, 'os.chdir(HERE / "elsewhere")')
    tree.run(folder, *SOLVE, "--policy", "policy.npz", "--json")
    assert (folder / "policy.npz").exists() and not names(folder / "elsewhere"), "the result went elsewhere"


def closed_stdout(tree: Tree, folder: Path) -> None:
    shop.write(folder, before="sys.stdout.close()")
    done = tree.run(folder, *SOLVE, "--json")
    assert done.code == 0 and json.loads(done.out or "null"), f"exit code {done.code}, and no answer"


BATCH = """
def step(states, actions, rng):
    if ((states == 3) & (actions == 1)).any():
        raise OSError("tired")
    return (states + actions + rng.integers(0, 2, len(states))) % 5
"""


def innocent_pair(tree: Tree, folder: Path) -> None:
    """A batch simulator that cannot take one pair: that one is named, and no other of its batch."""
    shop.write(folder, kind="batch")
    with (folder / "shop.py").open("a") as file:
        file.write(BATCH)
    done = tree.run(folder, *SOLVE)
    assert done.code == 5 and "state 3, action 1" in done.words, f"blamed: {done.words[:300]}"


def _signalled(number: int, *more: str) -> Attack:
    def attack(tree: Tree, folder: Path) -> None:
        shop.write(folder, shop.DRAWING)
        with alive(tree.begin(folder, *SOLVE, "--out", "run", *more), folder / "waiting") as program:
            program.send_signal(number)
            done = ended(program)
        kept = (folder / "run.work" / "request.json").exists()
        assert done.code == 128 + number and kept and "interrupted" in done.words, (
            f"exit code {done.code}, {done.err!r}"
        )

    return attack


# ---- what is printed ------------------------------------------------------------------------------------------------------


def _printing(verb: list[str], deed: str) -> Attack:
    def attack(tree: Tree, folder: Path) -> None:
        shop.write(folder, deed)
        done = tree.run(folder, *verb, "--json")
        assert done.code in (0, 4) and done.out.startswith("{") and "NOISE" not in done.out, (
            f"printed {done.out[:60]!r}"
        )

    return attack


ESC = "\x1b[2J"


def _control_free(done: Done) -> bool:
    return "\x1b" not in done.out + done.err


def in_an_exception(tree: Tree, folder: Path) -> None:
    shop.write(folder, 'raise ValueError("\\x1b[2J\\x1b]0;owned\\x07")')
    done = tree.run(folder, *SOLVE)
    assert done.code == 5 and _control_free(done), "control characters of an exception reach the terminal"


def in_a_name(tree: Tree, folder: Path) -> None:
    shop.write(folder, name="work\\u001b[2J")
    done = tree.run(folder, *SOLVE)
    assert _control_free(done), "control characters of a name reach the terminal"


def in_a_path(tree: Tree, folder: Path) -> None:
    done = tree.run(folder, "resume", f"run{ESC}")
    assert done.code == 2 and _control_free(done), "control characters of a path reach the terminal"


def in_a_certificate(tree: Tree, folder: Path) -> None:
    """Of a stranger; its hashes are in order, and its problem file is not there."""
    shop.write(folder)
    tree.must(folder, *SOLVE, "--out", "run")
    run = folder / "run"
    told = json.loads((run / "certificate.json").read_text())
    told["problem"]["constraints"][0]["name"] += ESC
    write(run, "certificate.json", told)
    assert _control_free(tree.run(folder, "certify", "run", "--recheck")), "control characters reach the terminal"


# ---- terminals and homes ---------------------------------------------------------------------------------------------------


def ascii_terminal(tree: Tree, folder: Path) -> None:
    tree.kept(folder, *KEPT)
    done = tree.run(folder, "certify", "run", "--recheck", env={"PYTHONIOENCODING": "ascii"})
    assert done.code == 0 and done.out, f"exit code {done.code}: {done.words[-200:]}"


def closed_stderr(tree: Tree, folder: Path) -> None:
    done = tree.run(folder, *KEPT, "--json", preexec_fn=lambda: os.close(2))
    assert done.code == 0 and json.loads(done.out or "null"), f"exit code {done.code}, and no answer"


def broken_pipe(tree: Tree, folder: Path) -> None:
    """``saddleback zoo | true``: the code of a failed proof is not for that."""
    program = tree.begin(folder, "zoo")
    assert program.stdout is not None
    program.stdout.close()
    program.stdout = None
    done = ended(program)
    assert (done.code, done.err) == (5, ""), f"exit code {done.code}: {done.words[-200:]}"


def without_docstrings(tree: Tree, folder: Path) -> None:
    done = tree.run(folder, "solve", "--help", program=[sys.executable, "-OO", "-m", "saddleback"])
    assert done.code == 0 and "Find a policy" in done.out, "the help says nothing"


def no_text_name(tree: Tree, folder: Path) -> None:
    tree.kept(folder, *KEPT).rename(os.fsdecode(os.fsencode(folder) + b"/r\xffn"))
    done = tree.run(folder, "certify", b"r\xffn", "--recheck", env={"PYTHONIOENCODING": "utf-8:strict"})
    assert done.code == 0, f"exit code {done.code}: {done.words[-200:]}"


LARGE = """
import numpy as np
from saddleback import Table, save_table

rng = np.random.default_rng(0)
P = rng.random((1120, 4, 1120))
P /= P.sum(axis=-1, keepdims=True)
reward, constraints = rng.random((1120, 4)), rng.random((1, 1120, 4))
save_table(Table.of(P, reward, constraints, [0.5], gamma=0.5, rho=np.eye(1120)[0]), "large.npz")
"""
"""Five million entries: from here on loops are compiled."""


def nowhere_for_compiled_code(tree: Tree, folder: Path) -> None:
    """Plain files stand where the folders of both caches would be: that stops the super-user too."""
    package = folder / "src" / "saddleback"
    shutil.copytree(tree.source / "saddleback", package, ignore=shutil.ignore_patterns("__pycache__"))
    for place in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (place / "__pycache__").touch()
    (folder / ".cache").touch()
    if (made := tree.script(folder, LARGE)).code != 0:
        raise NotSetUp(made.err[-2000:])
    env = {"PYTHONPATH": str(folder / "src"), "HOME": str(folder), "XDG_CACHE_HOME": str(folder / ".cache")}
    done = tree.run(folder, "exact", "large.npz", "--method", "columns", "--json", env=env)
    assert done.code == 0, f"exit code {done.code}: {done.words[-200:]}"


_HANG = "time.sleep(3600)"
_CRASH = "os.kill(os.getpid(), 11)"
ATTACKS: dict[str, Attack] = {
    "8 a pair that hangs in a probe": _deed(_HANG, "state 3, action 1", [*SOLVE, "--timeout", "1"]),
    "8 a pair that crashes in a probe": _deed(_CRASH, "SIGSEGV"),
    "8 a pair that crashes check": _deed(_CRASH, "SIGSEGV", ["check", "problem.toml", "--calls", "4000"]),
    "8 a simulator that calls sys.exit(0)": _deed("sys.exit(0)", "state 3, action 1"),
    "8 an exception that is no Exception": _deed("raise KeyboardInterrupt", "state 3, action 1"),
    "8 an exception of five megabytes": _deed("raise ValueError(5_000_000 * 'x')", "ValueError"),
    "8 an exception whose text raises": _deed("raise Unspeakable", "Unspeakable", before=UNSPEAKABLE),
    "8 an innocent pair is blamed": innocent_pair,
    "8 code that changes the working folder": changed_folder,
    "8 code that closes stdout": closed_stdout,
    "8 SIGTERM in the simulator": _signalled(signal.SIGTERM),
    "8 SIGHUP in the simulator": _signalled(signal.SIGHUP),
    "9 a simulator that prints into the answer": _printing(SOLVE, 'print("NOISE")'),
    "9 a program that a simulator starts": _printing(SOLVE, 'os.system("echo NOISE") if (s, a) == (3, 1) else 0'),
    "9 check with a simulator that prints": _printing(["check", "problem.toml", "--calls", "4000"], 'print("NOISE")'),
    "9 control characters in an exception": in_an_exception,
    "9 control characters in a name": in_a_name,
    "9 control characters in a path": in_a_path,
    "9 control characters in a certificate": in_a_certificate,
    "9 an ASCII terminal": ascii_terminal,
    "9 a closed stderr": closed_stderr,
    "9 a reader who has gone": broken_pipe,
    "9 python -OO": without_docstrings,
    "9 a name that is no text": no_text_name,
    "9 nowhere to keep compiled code": nowhere_for_compiled_code,
}
