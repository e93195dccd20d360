"""Two small projects as a first-time user would write them: a repair shop, one state at a time and in batches."""

from __future__ import annotations

from pathlib import Path

STEP_CODE = '''\
"""A repair shop: broken machines wait (0 to 10); send one repairer, or two and pay overtime."""


def step(waiting, action, rng):
    arrives = rng.random() < 0.4
    repaired = rng.random() < (0.3, 0.7)[action]
    return min(max(waiting - repaired, 0) + arrives, 10)


def running(waiting, action):
    return 1 - waiting / 10


def overtime(waiting, action):
    return action
'''

STEP_FILE = """\
gamma = 0.95
states = 11
actions = ["one repairer", "two repairers"]
start = 0

[simulator]
function = "shop:step"

[reward]
values = "shop:running"
range = [0, 1]

[[constraints]]
name = "overtime"
values = "shop:overtime"
range = [0, 1]
limit = "<= 0.3"
units = "per-step"
"""

BATCH_CODE = '''\
"""The same shop for arrays; reward and overtime are observed, and features put three lengths together."""
import numpy as np


def sample(waiting, action, rng):
    arrives = rng.random(len(waiting)) < 0.4
    repaired = rng.random(len(waiting)) < np.array([0.3, 0.7])[action]
    after = np.minimum(np.maximum(waiting - repaired, 0) + arrives, 10)
    return after, 1 - waiting / 10, action


def bands(waiting, action):
    rows = np.eye(4)[waiting // 3]
    return np.hstack([rows * (action == 0)[:, None], rows * (action == 1)[:, None]])
'''

BATCH_FILE = """\
gamma = 0.95
states = 11
actions = 2
start = {states = [0, 1], weights = [0.5, 0.5]}

[simulator]
function = "shop:sample"
kind = "batch"

[reward]
values = "observed"
range = [0, 1]

[[constraints]]
name = "overtime"
values = "observed"
range = [0, 1]
limit = "<= 0.3"
units = "per-step"

[features]
function = "shop:bands"
dim = 8
"""

PROJECTS = {"step": (STEP_CODE, STEP_FILE), "batch": (BATCH_CODE, BATCH_FILE)}


def write(folder: Path, project: str, *changes: tuple[str, str]) -> Path:
    """Write ``shop.py`` and ``shop.toml`` with each change made exactly once; the problem file's path."""
    texts = list(PROJECTS[project])
    for old, new in changes:
        assert sum(text.count(old) for text in texts) == 1, f"{old!r} must stand in one place"
        texts = [text.replace(old, new) for text in texts]
    (folder / "shop.py").write_text(texts[0])
    (folder / "shop.toml").write_text(texts[1])
    return folder / "shop.toml"
