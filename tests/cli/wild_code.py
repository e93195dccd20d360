"""A problem whose code can be told to misbehave, at a place of choice, by two variables of the environment."""

from __future__ import annotations

from pathlib import Path

CODE = """
import atexit, os, signal, sys, threading, time, warnings
import numpy as np

PLACE, DEED = os.environ.get("WILD_PLACE", ""), os.environ.get("WILD_DEED", "")
DONE = []


def ring(*_):
    raise RuntimeError("an alarm")


def deed(place):
    if place != PLACE:
        return
    if DEED == "exit":
        sys.exit(0)
    if DEED == "leave":
        os._exit(0)
    if DEED == "leave elsewhere":
        threading.Thread(target=os._exit, args=(0,)).start()
        time.sleep(10)
    if DEED == "hush":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        raise ValueError("heard all the same")
    if DEED == "shut" and not DONE:
        os.closerange(3, 256)
        DONE.extend(open(f"theirs-{i}", "w") for i in range(16))
    if DEED == "fork" and not DONE:
        DONE.append(os.fork())
    if DEED == "fork and fail" and not DONE:
        DONE.append(os.fork())
        if DONE == [0]:
            raise ValueError
    if DEED == "linger" and not DONE:
        DONE.append(threading.Thread(target=time.sleep, args=(1000,)))
        DONE[0].start()
    if DEED == "last word" and not DONE:
        DONE.append(atexit.register(os._exit, 3))
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
            try:  # another thread of the process may get the signal, and Python tells this one
                time.sleep(1)
            except BaseException:
                pass
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
        signal.signal(signal.SIGALRM, ring)
        if not DONE:  # to ring when somebody else is at work
            DONE.append(signal.setitimer(signal.ITIMER_REAL, 0.3))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
        os.umask(0o777)
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
