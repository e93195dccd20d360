"""The numbers with which seeds are derived from a user's seed, in one table: no two purposes may share one.

    derived_seed(seed, number)      :mod:`.generative_model`

A proof that was drawn with the stream of an earlier one, from whose answer its question was chosen, would prove nothing.
"""

from __future__ import annotations

from typing import Final

ROUNDS: Final = range(1, 1 << 20)
"""The rounds of a solve to an accuracy, and the attempts of a strict one."""

CERTIFY: Final = range(1 << 20, (1 << 20) + 1)
"""A new certificate for a stored run."""

EXPORT: Final = range((1 << 20) + 1, (1 << 20) + 2)
"""A certificate for a policy when it is exported."""

CANDIDATES: Final = range(1 << 21, (1 << 21) + 1024)
"""The rounds in which candidates of a design are looked for."""

AGAIN: Final = range(1 << 22, 1 << 32)
"""Second and later certificates from the same samples."""

QUESTIONS: Final = range(1 << 32, 1 << 64)
"""Certificates from stored samples, by a hash of what is asked."""


def question_number(told: bytes) -> int:
    """The number of a question, from a hash of it."""
    number = int.from_bytes(told[:8])
    return number if number in QUESTIONS else number + QUESTIONS.start
