"""A first problem of one's own: a simulator and a problem file that run as they are, with comments that say what to change."""

from __future__ import annotations

import keyword
import os
import re
from pathlib import Path

from saddleback.errors import InputError, StorageError, require
from saddleback.files.disk import written_whole

_MOST_LETTERS = 60

SIMULATOR = '''\
"""A simulator of your own. As it stands: a shelf of up to 20 items, refilled overnight.

    state    what one step has to know: here the number of items on the shelf, 0 to 20
    action   what can be decided: here 0, 1 or 2, to order nothing, 5 or 10 items

Replace the bodies of the functions by your own system; {name}.toml says which function is used for what.
"""

CAPACITY = 20
ORDERS = [0, 5, 10]  # items, by action


def step(items, action, rng):
    """One step: the state after it. All randomness must come from `rng`, a numpy.random.Generator."""
    sold = min(items, rng.poisson(4))
    return min(items - sold + ORDERS[action], CAPACITY)


def profit(items, action):
    """What a step earns, to be made as large as possible: here sales are worth 2 an item, a full shelf costs 0.1 an item."""
    expected_sales = min(items, 4)
    return 2.0 * expected_sales - 0.1 * items - 1.0 * (action > 0)  # and each delivery costs 1


def empty(items, action):
    """What is limited: 1 in a step that finds the shelf nearly empty, else 0."""
    return float(items < 4)
'''

PROBLEM = """\
# A problem file: what is wanted of the simulator in {name}.py, in your own units.
#
#     saddleback check {name}.toml                       look for mistakes in the simulator
#     saddleback plan {name}.toml --epsilon 10           what an accuracy of 10 costs in simulator calls
#     saddleback solve {name}.toml --out run             find a policy and prove how good it is
#     saddleback report run                              the answer as a page
#
# docs/problem_files.md lists all keys.

gamma = 0.95                    # the discount a step: 1 - 1/H where about H steps matter (here 20)
states = 21                     # the states 0 to 20
actions = ["order nothing", "order 5", "order 10"]
start = 10                      # the state in which an episode begins

[simulator]
function = "{name}:step"        # the function `step` of {name}.py

[reward]
values = "{name}:profit"
range = [-3, 8]                 # the least and the most a step can earn: every proof rests on it

[[constraints]]                 # one such table for each constraint
name = "nearly empty"
values = "{name}:empty"
range = [0, 1]
limit = "<= 0.02"               # at most this much ...
units = "per-step"              # ... on average a step (discounted); or "discounted", as a total
"""


def write_starter(name: str, folder: Path) -> tuple[Path, Path]:
    """Write NAME.py and NAME.toml into ``folder``; nothing that is there is replaced."""
    remedy = "use letters, digits and underscores, as in `saddleback new shop`"
    fits = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and not keyword.iskeyword(name)
    rule = "must be a name that Python can import"
    require(fits and len(name) <= _MOST_LETTERS, "NAME", rule, repr(name), remedy)
    paths = folder / f"{name}.py", folder / f"{name}.toml"
    for path in paths:
        if os.path.lexists(path):
            raise InputError("NAME", "must be new: nothing is overwritten", f"{path}, which exists", "choose another")
    if not folder.is_dir():
        raise StorageError(f"`{folder}` could not be written to: it is no folder; make it first.")
    for path, text in zip(paths, (SIMULATOR, PROBLEM), strict=True):
        with written_whole(path) as file:
            file.write(text.replace("{name}", name).encode())
    return paths
