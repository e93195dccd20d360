"""A problem whose code can be told to misbehave, at a place of choice, by two variables of the environment."""

from __future__ import annotations

from pathlib import Path

CODE = """
import os, signal, sys, time, warnings
import numpy as np

PLACE, DEED = os.environ.get("WILD_PLACE", ""), os.environ.get("WILD_DEED", "")


def deed(place):
    if place != PLACE:
        return
    if DEED == "exit":
        sys.exit(0)
    if DEED == "interrupt":
        raise KeyboardInterrupt
    if DEED == "long":
        raise ValueError("\\x1b[2J" + 5_000_000 * "x")
    if DEED == "hang":
        while True:
            time.sleep(1)
    if DEED == "stuck":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        while True:
            time.sleep(1)
    if DEED == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if DEED in ("say", "print"):
        print("NOISE")
    if DEED == "print":
        print("NOISE", file=sys.__stdout__)
        os.write(1, b"NOISE\\n")
        os.system("echo NOISE")
    if DEED == "change":
        os.chdir("/")
        np.seterr(all="raise")
        sys.setrecursionlimit(80)
        warnings.simplefilter("error")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.close()
        sys.stdout = sys.stderr = None
    if DEED == "close":
        for number in (0, 1, 2):
            try:
                os.close(number)
            except OSError:
                pass


deed("import")


def step(s, a, rng):
    if (s, a) == (3, 1):
        deed("simulator")
    return int((s + a + rng.integers(0, 2)) % 5)


def reward(s, a):
    if (s, a) == (3, 1):
        deed("reward")
    return s / 4


def features(s, a):
    if (s, a) == (3, 1):
        deed("features")
    return np.eye(10)[2 * s + a]


def starts(n, rng):
    deed("start")
    return rng.integers(0, 5, n)
"""

PROBLEM = """
gamma = 0.8
states = 5
actions = 2
start = {sampler = "wild:starts", number = 64}
[simulator]
function = "wild:step"
[reward]
values = "wild:reward"
range = [0, 1]
[[constraints]]
name = "low"
values = "wild:reward"
range = [0, 1]
limit = "<= 3"
units = "discounted"
[features]
function = "wild:features"
dim = 10
"""


def write_problem(folder: Path) -> Path:
    """The problem file, with its code beside it."""
    (folder / "wild.py").write_text(CODE)
    path = folder / "problem.toml"
    path.write_text(PROBLEM)
    return path
