"""A policy as one Python file that needs numpy only: the numbers, and the few lines that play them as `saddleback act` does."""

from __future__ import annotations

import pprint
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saddleback.files.disk import written_whole
from saddleback.files.json_file import plain
from saddleback.problem.numerics import TIE
from saddleback.reports.exports.policy import ExportedPolicy, Points
from saddleback.reports.exports.tables import choices

START = b'"""A policy exported by saddleback '
_WIDTH = 110

_HEAD = '''"""A policy exported by saddleback {version}: problem {problem}, run {run}.

{says}

    from {module} import ACTIONS, act, probabilities

    act(state, episode_seed=7, step=0)     the number of an action; ACTIONS has the names
    probabilities(state, member=0)         of all actions

`state` is {state}; an array of them gives an array of actions. The same
episode seed gives the same member of a mixture, and the same action at the same step, as `saddleback act` does.
As a program: python {module}.py STATE [STATE ...] [--seed N] [--step N]
"""

import numpy as np

'''

_PLAY = '''

def _generator(seed, number):
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(1000, number))))


def member_of(episode_seed=0):
    """The number of the policy that plays an episode."""
    return int(_generator(episode_seed, 0).choice(len(WEIGHTS), p=WEIGHTS))


def act(state, episode_seed=0, step=0):
    """The number of the action in a state, or an array of them for an array of states, at a step of an episode."""
    states, single = _states(state)
    p = _probabilities(states, member_of(episode_seed))
    cumulative = p.cumsum(axis=1)
    u = _generator(episode_seed, 1 + step).random((len(p), 1)) * cumulative[:, -1:]
    actions = (u >= cumulative).sum(axis=1)
    return int(actions[0]) if single else actions


def probabilities(state, member=0):
    """The probability of every action, (A,), or (n, A) for an array of states."""
    states, single = _states(state)
    p = _probabilities(states, member)
    return p[0] if single else p
'''

_OF_TABLES = """

def _states(state):
    if isinstance(state, str):
        named, whole = STATES and state in STATES, state.strip().isdecimal()
        state = STATES.index(state) if named else int(state) if whole else state
    states = np.atleast_1d(np.asarray(state))
    if states.dtype.kind not in "iu" or not states.size or states.min() < 0 or states.max() >= NUM_STATES:
        raise ValueError(f"a state must be a whole number, 0 to {NUM_STATES - 1}, or a name; got {state!r}")
    return states, np.ndim(state) == 0


def _probabilities(states, member):
    action, randomised = POLICIES[member]
    p = np.zeros((len(states), NUM_ACTIONS))
    p[np.arange(len(states)), action[states]] = 1.0
    for i, s in enumerate(states.tolist()):
        if s in randomised:
            p[i] = randomised[s]
    return p
"""

_OF_FEATURES = """

def _states(state):
    if isinstance(state, str):
        try:
            state = [float(part) for part in state.split(",")]
        except ValueError:
            raise ValueError(f"a state must be {NUM_COORDINATES} numbers with commas between, got {state!r}") from None
    states = np.atleast_2d(np.asarray(state, dtype=np.float64))
    if states.ndim != 2 or states.shape[1] != NUM_COORDINATES:
        raise ValueError(f"a state must be {NUM_COORDINATES} numbers, got {state!r}")
    return states, np.ndim(state) == 1


def _probabilities(states, member):
    weights, beta = WEIGHTS_OF_FEATURES[member], BETA[member]
    values = features(states) @ weights
    top = values.max(axis=1, keepdims=True)
    if beta > 0:
        logits = beta * values
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)
    size = np.maximum(np.abs(top), np.abs(values.min(axis=1, keepdims=True)))
    best = (values >= top - TIE * size).argmax(axis=1)  # the first action within rounding of the best
    p = np.zeros(values.shape)
    p[np.arange(len(p)), best] = 1.0
    return p
"""

_MAIN = """

if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("state", nargs="+", help="states of consecutive steps")
    parser.add_argument("--seed", type=int, default=0, help="of the episode")
    parser.add_argument("--step", type=int, default=0, help="number of the first state in its episode")
    given = parser.parse_args()
    for number, text in enumerate(given.state, start=given.step):
        try:
            chosen = act(text, given.seed, number)
        except ValueError as error:
            parser.exit(2, f"error: {error}\\n")
        print(f"step {number}, state {text}: action {chosen} ({ACTIONS[chosen]})")
"""

_CALLS = {  # of a step of a program, with the names of its operands
    "Equal": "({} == {}).astype(np.float64)",
    "AtLeast": "({} >= {}).astype(np.float64)",
    "Columns": "{}[:, {}[0].astype(np.int64)]",
    "Sum": "np.ascontiguousarray({}).sum(axis=1, keepdims=True)",
    "Least": "{}.min(axis=1, keepdims=True)",
}
_UFUNCS = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Min": "minimum", "Max": "maximum",
    "Exp": "exp", "Cos": "cos", "Sin": "sin", "Floor": "floor",
}  # fmt: skip


def write_python(policy: ExportedPolicy, place: Path, points: Points) -> None:
    """The whole file."""
    said = policy.to_json()
    words = {
        "version": said["made_by"].partition(" ")[2],
        "problem": _quoted(policy.problem.name),
        "run": _quoted(policy.run),
        "says": "\n".join(_lines(_quoted(policy.sentence()).split(" "))),
        "module": place.stem if place.stem.isidentifier() else "this_file",
        "state": "a whole number, or a name of STATES" if policy.tabular else "a list of numbers, its coordinates",
    }
    parts = [_HEAD.format(**words), *(_tables(policy) if policy.tabular else _features(policy)), _PLAY]
    with written_whole(place) as file:
        file.write("".join([*parts, _MAIN]).encode())


def _tables(policy: ExportedPolicy) -> Iterator[str]:
    yield from _names(policy)
    yield f"NUM_STATES = {policy.problem.num_states}\n"
    yield "# Of each policy: the action of every state, and the probabilities in states where it draws.\nPOLICIES = [\n"
    for table in policy.tables:
        found = choices(table)
        rows = {int(s): p for s, p in found["probabilities"].items()}
        yield f"    (np.array({_listed(found['action'])}), {_listed(rows)}),\n"
    yield "]\n"
    yield _OF_TABLES


def _features(policy: ExportedPolicy) -> Iterator[str]:
    program, (theta, beta) = policy.program, policy.thetas
    yield from _names(policy)
    yield f"NUM_COORDINATES = {policy.problem.start.states.shape[1]}\nTIE = {TIE!r}\nBETA = {beta.tolist()!r}\n"
    yield "# Of each policy: what each feature of a state adds to the value of each action.\n"
    weights = [program.weights(t).tolist() for t in theta]
    yield f"WEIGHTS_OF_FEATURES = np.array({_listed(weights)})\n"
    yield '\n\ndef features(x):\n    """The features of states (n, k)."""\n'
    used = {name for _, *names in program.steps for name in names} | {program.result}
    for name, value in program.constants.items():
        if name in used:
            yield f"    {name} = np.array({_listed(value.tolist())})\n"
    for i, (operation, *names) in enumerate(program.steps):
        if operation == "Concat":
            call = f"np.concatenate([{', '.join(names)}], axis=1)"
        elif operation in _UFUNCS:
            call = f"np.{_UFUNCS[operation]}({', '.join(names)})"
        else:
            call = _CALLS[operation].format(*names)
        yield f"    t{i} = {call}\n"
    yield f"    return {program.result}\n"
    yield _OF_FEATURES


def _names(policy: ExportedPolicy) -> Iterator[str]:
    said = policy.to_json()
    yield f"WORTH = {pprint.pformat(said['worth'], width=118, sort_dicts=False)}\n"
    yield f"ACTIONS = {_listed(policy.action_names)}\n"
    yield f"NUM_ACTIONS = {policy.problem.num_actions}\n"
    yield f"STATES = {_listed(policy.problem.state_names)}\n"
    yield f"WEIGHTS = np.array({policy.mixture.weights.tolist()!r})\n"


def _listed(value: Any) -> str:
    """Lists as Python writes them, on lines of bearable length."""
    if isinstance(value, dict):
        return "{" + ",\n".join(f"{key!r}: {_listed(x)}" for key, x in value.items()) + "}"
    if not isinstance(value, list):
        return repr(value)
    if value and isinstance(value[0], list):
        return "[" + ",\n".join(map(_listed, value)) + "]"
    return "[" + "\n".join(_lines([f"{x!r}," for x in value])).removesuffix(",") + "]"


def _lines(words: list[str]) -> Iterator[str]:
    """Words on lines of bearable length."""
    line = ""
    for word in words:
        if line and len(line) + len(word) > _WIDTH:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    yield line


def _quoted(text: str) -> str:
    """A stranger's text within a docstring: no quotes of three, no escapes."""
    return plain(text, 2000).replace("\\", "/").replace('"', "'")
