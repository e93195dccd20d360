"""Items 2 to 5: code that is legal and does what it must not, and evidence that contradicts itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attacks.programs import Attack, NotSetUp, Tree
from attacks.table_problem import answer, falsehoods


def _misbehaving(piece: str, refused: bool = True, **options: Any) -> Attack:
    """The proof is true, or there is none; ``refused``: there must be none."""

    def attack(tree: Tree, folder: Path) -> None:
        found = answer(tree, folder, piece, **options)
        wrong = falsehoods(found)
        assert not wrong and ("refused" in found) >= refused, "; ".join(wrong) or "accepted without a word"

    return attack


WRITING = """
def writing(function):
    def spoiling(states, actions):
        found = function(states, actions)
        try:
            states[...] = 0
        except ValueError:  # it may only be read
            pass
        return found
    return spoiling
features = FeatureFunction({features}, S * A, A)
reward = {reward}
"""
INT8 = """
def step(states, actions, rng):
    row = (states * np.asarray(40, dtype=states.dtype)) // 40
    return lead(rng.random(len(states)), row % S, actions).astype(np.int8)
"""
ONE_NUMBER = """
def step(states, actions, rng):
    return lead(np.full(len(states), rng.random()), states, actions)
"""
FIRST_ROW = """
def step(states, actions, rng):
    return lead(rng.random(len(states)), np.full_like(states, states[0]), np.full_like(actions, actions[0]))
"""
OF_THE_BATCH = """
def scaled(states, actions):
    return phi(states, actions) * (1.0 if len(states) == 1 else 0.5 + states.max() / (2 * S))
features = FeatureFunction(scaled, S * A, A)
"""
OWN_SEED = "start = Start.sampled(lambda n, rng: starts(n, np.random.default_rng(3)), 64)"
SORTED = "start = Start.sampled(lambda n, rng: np.repeat(np.arange(S), 20_000)[:n], 64)"

# ---- types, after a kill -------------------------------------------------------------------------------------------------

POINTS = """
import os, signal
import numpy as np

calls = 0


def step(states, actions, rng):
    global calls
    calls += 1
    with open("calls", "w") as file:
        file.write(str(calls))
    if calls == int(os.environ.get("LAST", 0)):
        os.kill(os.getpid(), signal.SIGKILL)
    x = 0.7 * states + 0.2 * actions[:, None] + 0.1 * rng.random(states.shape)
    return np.clip(x, 0, 1).astype(np.float32)


def pay(states, actions):
    return (0.3 * states[:, 0]).astype(np.float64)


def phi(states, actions):
    x = 0.1 * states[:, 0]
    return np.column_stack([np.ones(len(x)), x, actions * 1.0, x * actions])


def cost(states, actions):
    return actions * 1.0
"""
POINTS_FILE = """
gamma = 0.6
states = {low = [0], high = [1]}
actions = 2
start = [0.5]
pool = 200
[simulator]
function = "points:step"
kind = "batch"
[reward]
values = "points:pay"
range = [0, 1]
kind = "batch"
[[constraints]]
name = "work"
values = "points:cost"
range = [0, 1]
kind = "batch"
limit = "<= 1"
units = "discounted"
[features]
function = "points:phi"
kind = "batch"
dim = 4
"""


def float32_states(tree: Tree, folder: Path) -> None:
    solve = ["solve", "points.toml", "--samples", "4000", "--seed", "3", "--out", "run"]
    homes = [folder / name for name in ("whole", "killed")]
    for home in homes:
        home.mkdir()
        (home / "points.py").write_text(POINTS)
        (home / "points.toml").write_text(POINTS_FILE)
    tree.must(homes[0], *solve)
    last = int((homes[0] / "calls").read_text())
    if tree.run(homes[1], *solve, env={"LAST": str(last)}).code == 0:
        raise NotSetUp("it was not killed")
    tree.must(homes[1], "resume", "run", "--problem", "points.toml")
    found = [(home / "run" / "certificate.json").read_bytes() for home in homes]
    assert found[0] == found[1], "the bytes are others after a kill"


# ---- a certificate that contradicts itself ---------------------------------------------------------------------------------

TRAP = """
import numpy as np
from saddleback import Table, save_table

n, gamma, stay = 300, 0.9, 0.95
worth, start = np.linspace(0.0, 1.0, n), int(0.95 * (n - 1))
rows = np.full((n, 2, n), 1 / n)
rows[start] = (1 - stay) / n
rows[start, :, start] += stay
phi = np.zeros((n, 2, 4))
for a in range(2):
    phi[:, a, 2 * a], phi[:, a, 2 * a + 1] = 1.0, worth
table = Table.of(rows, np.stack([0.6 * worth, worth], axis=1), np.tile([1.0, 0.0], (n, 1))[None],
                 np.array([0.2 / (1 - gamma)]), gamma=gamma, rho=np.eye(n)[start], phi=phi,
                 reward_range=(0.0, 1.0), ranges=((0.0, 1.0),))
save_table(table, "trap.npz")
"""
"""A narrow trap at the start, which the features cannot see."""


def _trapped(tree: Tree, folder: Path) -> Path:
    """A run of it in the folder, and the table."""

    def make(home: Path) -> None:
        if (done := tree.script(home, TRAP)).code != 0:
            raise NotSetUp(done.err[-2000:])
        told = tree.must(home, "solve", "trap.npz", "--samples", "20000", "--out", "run")
        (home / "said").write_text(f"{told.code}\n{told.out}")

    return tree.copied("trap", make, folder / "home")


def contradiction(tree: Tree, folder: Path) -> None:
    home = _trapped(tree, folder)
    proof = json.loads((home / "run" / "certificate.json").read_text())
    status = json.loads((home / "run" / "run.json").read_text())["status"]
    best, least = proof["upper_bound"], proof["value"][0]
    said = (status, proof["gap"], best is not None and best < least)
    assert said == ("undecided", None, False), f"at least {least}, the best at most {best}, gap {proof['gap']}"


def contradiction_in_words(tree: Tree, folder: Path) -> None:
    code, said = (_trapped(tree, folder) / "said").read_text().split("\n", 1)
    assert code == "4" and "contradict" in said, f"exit code {code}, and not a word"


def contradiction_rechecked(tree: Tree, folder: Path) -> None:
    done = tree.run(_trapped(tree, folder), "certify", "run", "--recheck")
    assert done.code == 0 and "warning" in done.out, f"exit code {done.code}: an honest run is said to be refuted"


ATTACKS: dict[str, Attack] = {
    "2 features that write in place": _misbehaving(WRITING.format(features="writing(phi)", reward="reward"), False),
    "2 a reward that writes in place": _misbehaving(WRITING.format(features="phi", reward="writing(reward)"), False),
    "3 a simulator that returns int8": _misbehaving(INT8, False),
    "3 float32 states and a kill": float32_states,
    "4 one number for all rows": _misbehaving(ONE_NUMBER, seed=1),
    "4 only the first row is looked at": _misbehaving(FIRST_ROW),
    "4 starts that ignore their generator": _misbehaving(OWN_SEED),
    "4 starts from a sorted list": _misbehaving(SORTED),
    "4 features that depend on their batch": _misbehaving(OF_THE_BATCH),
    "5 limits that exclude each other": contradiction,
    "5 nothing of it in the text": contradiction_in_words,
    "5 an honest run is refuted by a recheck": contradiction_rechecked,
}
