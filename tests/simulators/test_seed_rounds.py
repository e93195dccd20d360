"""The numbers with which seeds are derived: no two purposes share one."""

from __future__ import annotations

import itertools

from saddleback import solve
from saddleback.instances.zoo import make
from saddleback.simulators import seed_rounds
from saddleback.simulators.generative_model import derived_seed
from saddleback.simulators.seed_rounds import AGAIN, CERTIFY, EXPORT, QUESTIONS, question_number

TABLE = {name: x for name, x in vars(seed_rounds).items() if isinstance(x, range)}


def test_no_two_purposes_share_a_number() -> None:
    assert len(TABLE) >= 6
    for (a, x), (b, y) in itertools.combinations(TABLE.items(), 2):
        assert x.stop <= y.start or y.stop <= x.start, (a, b)


def test_a_second_certificate_has_not_the_seed_of_another_purpose() -> None:
    """A second certificate in memory had the seed that `certify` gives to a stored run."""
    queue = make("queue", capacity=4, gamma=0.8)
    parts = solve(queue.problem, queue.simulator, samples=4_000, seed=3).prepared
    assert parts is not None and 3 in parts.used_seeds
    assert parts.fresh_seed(3) == derived_seed(3, AGAIN.start)
    assert parts.fresh_seed(3) not in {derived_seed(3, rounds.start) for rounds in (CERTIFY, EXPORT)}


def test_the_number_of_a_question() -> None:
    for told in (
        bytes(32),
        b"\xff" * 32,
        b"\x00\x00\x00\x01" + bytes(28),
        b"\x00\x00\x00\x00\xff\xff\xff\xff" + bytes(24),
    ):
        assert question_number(told) in QUESTIONS
    assert question_number(b"\x01" * 8) == int.from_bytes(b"\x01" * 8)
