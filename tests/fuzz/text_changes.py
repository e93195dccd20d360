"""Problem files and DRN files, and changes of them: values that nobody would choose, lines lost, doubled and exchanged."""

from __future__ import annotations

import json
import re

import numpy as np

from fuzz import byte_changes

Random = np.random.Generator

CODE = """\
import numpy as np
def step(state, action, rng):
    return (state + action + int(rng.random() < 0.5)) % 4
def pay(state, action):
    return float(state == 2)
def move(states, actions, rng):
    return np.clip(states + 0.2 * (actions[:, None] - 0.5) + 0.1 * rng.standard_normal(states.shape), 0, 1)
def near(states, actions):
    return states[:, 0]
def somewhere(number, rng):
    return rng.random((number, 2))
def bad(state, action, rng=None):
    raise ValueError("\\x1b[31mred")
"""
SHOP = """\
name = "shop"
gamma = 0.9
states = 4
actions = ["wait", "serve"]
start = {states = [0, 1], weights = [0.5, 0.5]}
[simulator]
function = "shop:step"
[reward]
values = "shop:pay"
range = [0, 1]
[[constraints]]
name = "idle"
values = [[0, 1], [1, 0], [0.5, 0.5], [0, 0]]
limit = ">= 1.5"
units = "discounted"
"""
CART = """\
gamma = 0.8
states = {low = [0, 0], high = [1, 1]}
actions = 2
start = {sampler = "shop:somewhere", number = 5}
pool = 40
[simulator]
function = "shop:move"
kind = "batch"
[reward]
values = "shop:near"
range = [0, 1]
[[constraints]]
name = "near"
values = "shop:near"
range = [0, 1]
limit = "<= 0.7"
units = "per-step"
[features]
name = "multilinear"
knots = 3
"""
ZOO = """\
name = "mine"
gamma = 0.7
start = 1
[simulator]
zoo = "garnet"
settings = {states = 4, successors = 2, seed = 3}
[[constraints]]
name = "c1"
limit = ">= 1"
units = "discounted"
"""
PROBLEMS = (SHOP, CART, ZOO)
DRN = """\
@type: MDP
@value_type: double
@parameters

@reward_models
gain wear
@nr_states
3
@nr_choices
5
@model
state 0 [0, 1] init rho=0.5 "door open"
\taction 0 [1, 0.5]
\t\t0 : 0.25
\t\t1 : 0.75
\taction 1
\t\t2 : 1
state 1 init rho=0.5 x
\taction 0 [0, 0]
\t\t1 : 1/3
\t\t2 : 2/3
state 2 [1, 0]
\taction a [0.5, 0]
\t\t0 : 1
\taction b [0, 2]
\t\t2 : 1
"""

_TEXTS = (
    "shop", "", "x" * 201, "x" * 100_000, "a\x1b[2Jb", "\u202e", "\x00", "\x7f", "two\nlines", "</script>", "[/]", "shop:bad", "shop:no",
    "no:no", "observed", "os", ">= 1e400", "<= -1", ">= nan", "batch", "step", "discounted", "garnet", "queue", "polynomial", "one-hot",
)  # fmt: skip
_LITERALS = (
    "0", "-1", "1", "2", "4", "4.0", "1e3", "9223372036854775807", "9223372036854775808", "1" + 30 * "0", "1e30", "1e400", "inf", "-inf",
    "nan", "1" + 5000 * "0", "20_000_000", "100_000", "1_000_000_000_000", "0x7fffffffffffffff", "true", "1979-05-27", "07:32:00", "[]",
    "{}", "[[]]", "[1, [2]]", 120 * "[" + 120 * "]", 2000 * "[" + 2000 * "]", 90 * "{a = " + "1" + 90 * "}", "[0, 1, 2, 3]",
    "{a.b.c = 1}", "{" + ".".join(20 * ["a"]) + " = 1}", "1e-400", "-0.0", "0.999999999999999999", "1e-300", "[1e308, -1e308]",
)  # fmt: skip
_LINES = (
    ".".join(3000 * ["a"]) + " = 1", "[" + ".".join(3000 * ["b"]) + "]", "'a'" + 20 * ".'b'" + " = 1", "x" * 100_000 + " = 1",
    '"\\u001b[31m" = 1', "[constraints]", "[[constraints]]", "[features]", "[[features]]", "gamma = 0.5", "= 1", "[", "'''", "# \x07", "pool = 3",
    "features.name = 'one-hot'", 'name = """\na"""', "start.states = 1", "\ufeffa = 1",
)  # fmt: skip
_DRN_WORDS = (
    "0", "1", "2", "-1", "3", "1e400", "nan", "inf", "1/0", "1/3", "0.1", "9223372036854775808", "1" + 30 * "0", "999999999999999999",
    "1000000", "state", "action", "[", "]", ",", ":", '"', "init", "rho=nan", "rho=1e400", "@model", "@nr_states", "\x1b[31m", "x" * 70_000,
    "\u202e", "m " * 1500, "gain", "9" * 500,
)  # fmt: skip
_VALUE = re.compile(r'"[^"\n]*"|\[[^\[\]\n]*\]|-?\d[\d.]*')
_WORD = re.compile(r"[^\s,\[\]]+")


def value(text: str, rng: Random) -> str:
    """Another value in the place of one that is there."""
    found = list(_VALUE.finditer(text))
    if not found:
        return text
    at = found[int(rng.integers(len(found)))]
    if at.group()[0] in "123456789.0" and rng.random() < 0.3:
        return text[: at.start()] + f"{float(at.group()) * rng.choice([0.9, 0.99, 1.0, 1.01]):.4g}" + text[at.end() :]
    word = _TEXTS[int(rng.integers(len(_TEXTS)))]
    other = json.dumps(word) if rng.random() < 0.4 else _LITERALS[int(rng.integers(len(_LITERALS)))]
    return text[: at.start()] + other + text[at.end() :]


def word(text: str, rng: Random) -> str:
    """Another word in the place of one that is there."""
    found = list(_WORD.finditer(text))
    if not found:
        return text
    at = found[int(rng.integers(len(found)))]
    return text[: at.start()] + _DRN_WORDS[int(rng.integers(len(_DRN_WORDS)))] + text[at.end() :]


def line(text: str, rng: Random) -> str:
    """A line is lost, doubled, moved, cut, or put in."""
    lines = text.split("\n")
    i, j = (int(k) for k in rng.integers(len(lines), size=2))
    match int(rng.integers(5)):
        case 0:
            del lines[i]
        case 1:
            lines.insert(j, lines[i])
        case 2:
            lines[i], lines[j] = lines[j], lines[i]
        case 3:
            lines[i] = lines[i][: int(rng.integers(len(lines[i]) + 1))]
        case 4:
            lines.insert(i, _LINES[int(rng.integers(len(_LINES)))])
    return "\n".join(lines)


def many(text: str, rng: Random) -> str:
    """One line very often: choices, targets, states, keys."""
    lines = text.split("\n")
    i, times = int(rng.integers(len(lines))), int(rng.choice([50, 2000, 20_000]))
    block = lines[i : i + int(rng.integers(1, 4))]
    return "\n".join([*lines[:i], *(block * (times if len(text) < 5000 else 2)), *lines[i:]])


def raw(text: str, rng: Random) -> str:
    """Bytes, whatever they mean."""
    names = sorted(byte_changes.BY_NAME)
    data = byte_changes.BY_NAME[names[int(rng.integers(len(names)))]](text.encode("utf-8", "surrogateescape"), rng)
    return data.decode("utf-8", "surrogateescape")


BY_NAME = {f.__name__: f for f in (value, word, line, many, raw)}
_SHARES = {"toml": [0.55, 0.1, 0.2, 0.05, 0.1], "drn": [0.1, 0.55, 0.2, 0.05, 0.1]}


def steps(kind: str, rng: Random) -> list[str]:
    """The changes of a mutant, one or two."""
    return [str(name) for name in rng.choice(list(BY_NAME), 1 if rng.random() < 0.7 else 2, p=_SHARES[kind])]


def changed(text: str, given: tuple[tuple[str, int], ...]) -> bytes:
    """What the changes make of a text."""
    for name, seed in given:
        text = BY_NAME[name](text, np.random.default_rng(seed))
    return text.encode("utf-8", "surrogateescape")
