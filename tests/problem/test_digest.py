"""Short hashes: bits but for the sign of zero, and problems but for their last digits."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
import pytest

from helpers import random_table
from saddleback.instances import zoo
from saddleback.problem.cmdp import CMDP
from saddleback.problem.digest import digest, problem_digest, same_digest


def test_a_digest_is_of_the_bits_but_not_of_the_sign_of_zero() -> None:
    x = np.array([[0.5, -1.0], [3.0, 1e-300]])
    assert digest(x) == hashlib.sha256(x.tobytes()).hexdigest()[:16]  # what earlier versions wrote
    assert digest(np.array([0.0, 1.0]), None) == digest(np.array([-0.0, 1.0]), None)
    assert digest(np.array([0.0, 1.0])) != digest(np.array([0.0, np.nextafter(1.0, 2.0)]))
    assert digest(np.array([3, 4])) != digest(np.array([3, 5]))


def test_what_earlier_versions_wrote_of_the_same_arrays_is_the_same() -> None:
    signed, plain = np.array([-0.0, 1.25]), np.array([0.0, 1.25])
    before = hashlib.sha256(signed.tobytes()).hexdigest()[:16]
    assert before != digest(signed) == digest(plain)
    assert same_digest(before, digest(signed)) and same_digest(digest(plain), digest(signed))
    assert not same_digest(before, digest(np.array([1.25, 0.0]))) and not same_digest(digest(signed), before)


def changed(problem: CMDP, **fields: Any) -> CMDP:
    known = {f.name: getattr(problem, f.name) for f in dataclasses.fields(problem) if f.init}
    return CMDP(**{**known, **fields})


def test_a_problem_is_known_by_what_it_asks() -> None:
    problem = random_table(1).problem()
    limit = problem.constraints[0]
    told = problem_digest(problem)
    reward = np.array(problem.reward)
    other = reward.copy()
    other[2, 1] += 1e-3
    for change in (
        {"gamma": 0.8999},
        {"reward": other},
        {"start": 0},
        {"constraints": [dataclasses.replace(limit, threshold=limit.threshold * (1 + 1e-6))]},
        {"constraints": [dataclasses.replace(limit, name="other")]},
        {"minimise": True},
    ):
        assert problem_digest(changed(problem, **change)) != told, change
    for same in ({"name": "other"}, {"reward": reward * (1 + 1e-14), "reward_range": (0.0, 1.0)}):
        base = problem_digest(changed(problem, reward_range=(0.0, 1.0)))
        assert problem_digest(changed(problem, **{"reward_range": (0.0, 1.0), **same})) == base


@pytest.mark.parametrize("name", ["queue", "linear-quadratic"])
def test_it_is_the_same_every_time(name: str) -> None:
    assert problem_digest(zoo.make(name).problem) == problem_digest(zoo.make(name).problem)
    assert problem_digest(zoo.make(name).problem) != problem_digest(zoo.make(name, gamma=0.77).problem)
