"""An answer, and what is held in memory to ask further: samples and oracles, and what was asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from saddleback.errors import UnmetError, gone
from saddleback.problem.spaces import Array
from saddleback.runs.answer import Answer
from saddleback.runs.settings import Settings
from saddleback.runs.text import as_html, as_text
from saddleback.runs.verdict import Status
from saddleback.solving.prepared import Prepared


@dataclass(frozen=True)
class Solution(Answer):
    """What :func:`saddleback.solve` returns; ``print(solution)`` shows it as the command line does.

    ``prepared`` holds the samples and oracles, for a later ``solve(..., reuse=solution)`` or a frontier, and ``asked`` what
    the dual was told. ``certificate_seeds`` have been used to prove something of these samples: a second proof needs another.
    """

    prepared: Prepared | None = field(default=None, repr=False)
    asked: Settings | None = field(default=None, repr=False)
    certificate_seeds: tuple[int, ...] = ()
    slater_prices: Array | None = field(default=None, repr=False)

    def require(self, what: str = "proved") -> Solution:
        """This solution if it is what was asked for, else an :class:`UnmetError` that says what is missing.

        ``what`` is "solved" (the status says so) or "proved" (and its certificate shows that every constraint holds).
        """
        if self.status is not Status.SOLVED:
            raise UnmetError(f"the answer is {self.status.value}: {self.message}.", self.status.exit_code)
        proved = self.certificate is not None and self.certificate.feasible == "certified"
        if what == "proved" and not proved:
            found = "there is no certificate" if self.certificate is None else "its limits leave a constraint open"
            raise UnmetError(f"the constraints are not proved to hold: {found}; solve with feasibility='strict'.", 4)
        return self

    def plot(self, *_: object, **__: object) -> NoReturn:
        """Gone: ``saddleback.plot(solution)``."""
        gone("Solution.plot", "saddleback.plot(solution, panel=..., ax=...)")

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)
