"""A rule that many files have to keep is one test, and its failure lists every file that does not."""

from __future__ import annotations

from collections.abc import Iterable


def expect_none(offenders: Iterable[str]) -> None:
    """Fail with one line for each offender: where it is and what is wrong."""
    found = list(offenders)
    if found:  # an exception, not an assert: pytest would shorten the list
        raise AssertionError(f"{len(found)} found\n" + "\n".join(found))
