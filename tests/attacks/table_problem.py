"""A problem of five states whose table is known, given to saddleback as code of which one piece misbehaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from attacks.programs import Done, NotSetUp, Tree

S, A, GAMMA = 5, 2, 0.8
_RNG = np.random.default_rng(14)
P = 0.3 * _RNG.dirichlet(np.full(S, 0.4), (S, A)) + 0.7 * np.eye(S)[:, None, :]
REWARD = np.linspace(0.0, 0.8, S)[:, None] + np.array([0.0, 0.2])
COST = np.column_stack([np.zeros(S), np.linspace(0.4, 1.0, S)])
RHO = np.array([0.1, 0.2, 0.3, 0.15, 0.25])

SCRIPT = """
import inspect, json
import numpy as np
import saddleback
from saddleback import CMDP, Constraint, FeatureFunction, FiniteStates, GenerativeModel, SaddlebackError, Start, solve

S, A = 5, 2
P, REWARD, COST, RHO = (np.array(x) for x in json.load(open("table.json")))
CUMULATIVE = P.cumsum(axis=2)

def lead(u, states, actions):
    return np.minimum((u[:, None] >= CUMULATIVE[states, actions]).sum(axis=1), S - 1)

def step(states, actions, rng):
    return lead(rng.random(len(states)), states, actions)

def reward(states, actions):
    return REWARD[states, actions]

def cost(states, actions):
    return COST[states, actions]

def phi(states, actions):
    return np.eye(S * A)[states * A + actions]

def starts(number, rng):
    return rng.choice(S, number, p=RHO)

features, start = None, Start.over_all(RHO)
{piece}

half = {{"samples": {samples}, "certificate": {samples}}}
if "certificate" not in inspect.signature(solve).parameters:
    half = {{"samples": 2 * {samples}}}
problem = CMDP(gamma=0.8, start=start, num_actions=A, states=FiniteStates(S), reward=reward, reward_range=(0, 1),
               constraints=[Constraint("cost", cost, "<=", 2.0, range=(0, 1))], features=features)
try:
    found = solve(problem, GenerativeModel(step, FiniteStates(S)), seed={seed}, delta={delta}, **half)
except SaddlebackError as error:
    print(json.dumps({{"refused": str(error)}}))
else:
    proof = found.certificate
    members = [m.probabilities(np.arange(S)).tolist() for m in found.mixture.members]
    answer = {{"weights": found.mixture.weights.tolist(), "members": members, "value": proof.value, "cost": proof.constraints[0]}}
    print(json.dumps(answer))
"""

WRITES = """
def writing(function):
    def spoiling(states, actions):
        found = function(states, actions)
        for x in (states, actions):
            try:
                x[...] = 0
            except ValueError:  # it may only be read
                pass
        return found
    return spoiling
"""


def answer(tree: Tree, folder: Path, piece: str, samples: int = 10_000, seed: int = 0, delta: float = 1e-3) -> Any:
    """What the script says: that it was refused, or a policy with limits of its reward and cost."""
    (folder / "table.json").write_text(json.dumps([x.tolist() for x in (P, REWARD, COST, RHO)]))
    done: Done = tree.script(folder, SCRIPT.format(piece=piece, samples=samples, seed=seed, delta=delta))
    if done.code != 0:
        raise NotSetUp(done.err[-2000:])
    return json.loads(done.out)


def falsehoods(found: dict[str, Any]) -> list[str]:
    """What is proved of a policy and is not so, by linear algebra."""
    wrong = []
    for name, signal in (("value", REWARD), ("cost", COST)):
        if found.get(name) is None:
            continue
        true = 0.0
        for weight, member in zip(found["weights"], map(np.array, found["members"]), strict=True):
            v = np.linalg.solve(np.eye(S) - GAMMA * np.einsum("sa,sat->st", member, P), (member * signal).sum(axis=1))
            true += weight * float(RHO @ v)
        low, high = found[name]
        if not low - 1e-9 <= true <= high + 1e-9:
            wrong.append(f"proved {name} in {low:.3f} to {high:.3f}, which is {true:.3f}")
    return wrong
