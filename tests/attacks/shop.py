"""A problem file whose simulator waits, counts, breaks or prints as the attack wants."""

from __future__ import annotations

from pathlib import Path

CODE = """
import os, sys, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
{before}

def step(s, a, rng):
    {deed}
    return int((s + a + rng.integers(0, 2)) % {states})


def pay(s, a):
    {pay}
    return s / 4


def cost(s, a):
    return a / 1
"""

FILE = """
gamma = {gamma}
states = {states}
actions = 2
start = {start}
{more}
[simulator]
function = "shop:step"
kind = "{kind}"
[reward]
values = "shop:pay"
range = [0, 1]
[[constraints]]
name = "{name}"
values = "shop:cost"
range = {range}
limit = "<= 3"
units = "discounted"
"""

USUAL = {"gamma": "0.8", "states": "5", "start": "0", "more": "", "kind": "step", "name": "work", "range": "[0, 1]"}

AT_ONE_PAIR = "if (s, a) == (3, 1): {}"

_WAITS = """if {condition} and not os.environ.get("SECOND"):
        (HERE / "waiting").touch()
        while not (HERE / "go").exists():
            time.sleep(0.02)"""
BEGUN = _WAITS.format(condition='(HERE / "run.work" / "request.json").exists()')
DRAWING = _WAITS.format(condition='[*HERE.glob("run*/samples/*/lock")]')
"""The simulator waits until it may go on, once the run is begun, or once its samples have an owner; that of a second process
does not."""


def write(folder: Path, deed: str = "pass", before: str = "", pay: str = "pass", **changes: str) -> Path:
    """The problem file, with its code beside it."""
    (folder / "shop.py").write_text(CODE.format(before=before, deed=deed, pay=pay, states=(USUAL | changes)["states"]))
    path = folder / "problem.toml"
    path.write_text(FILE.format(**(USUAL | changes)))
    return path
