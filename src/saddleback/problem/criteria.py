"""What a value is: how the signals of the steps are added up.

    discounted    V(ρ) = E[ Σ_t γᵗ u(s_t, a_t) ],      γ ∈ [0, 1)

Of this criterion a solver, an evaluator or a proof needs two numbers: what the value of the next state counts (γ), and the
value of a signal that is always one (H = 1/(1 − γ)), so that signals in [0, 1] have values in [0, H].

A constraint may be given as a total or *per step*. A value per step is V/H = (1 − γ) Σ_t γᵗ u_t, the average over the steps in
which step t counts γᵗ: about the first H steps decide it. It is neither the plain average of the first H steps nor the average in
the long run, from which it may lie far away (docs/how_to/budget.md). Inside, all values are totals; :class:`Unit` is the one place
where a total is turned into what a constraint was given in, and into words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from saddleback.errors import discount

UnitName = Literal["discounted", "per-step"]

UNSEEN = 2e-9
"""Of the most that a signal can add up to: what is smaller is rounding, and people are shown 0."""


@dataclass(frozen=True)
class Unit:
    """What the values and the threshold of a constraint were given in, and are shown in.

    name      "discounted", for totals, or "per-step"
    horizon   H, a total of one per step
    rounding  totals up to this are shown as 0
    """

    name: UnitName = "discounted"
    horizon: float = 1.0
    rounding: float = field(default=0.0, compare=False)

    @property
    def per_step(self) -> bool:
        """Whether values are averages per step."""
        return self.name == "per-step"

    @property
    def size(self) -> float:
        """One of this unit as a discounted total."""
        return self.horizon if self.per_step else 1.0

    @property
    def suffix(self) -> str:
        """What follows a number of this unit; totals, the usual unit, go without."""
        return " per step" if self.per_step else ""

    @property
    def words(self) -> str:
        """What a number of this unit is."""
        return "discounted average per step" if self.per_step else "discounted total"

    @property
    def plural(self) -> str:
        """What numbers of this unit are."""
        return "discounted averages per step" if self.per_step else "discounted totals"

    def of(self, total: float) -> float:
        """A discounted total in this unit."""
        return float(total) / self.size

    def shown(self, total: float) -> float:
        """As :meth:`of`, for people: without the noise of rounding, and without a sign of zero."""
        return 0.0 if abs(total) <= self.rounding else self.of(total)

    def limits_of(self, totals: tuple[float, float]) -> tuple[float, float]:
        """Two limits in this unit."""
        return self.of(totals[0]), self.of(totals[1])

    def total(self, value: float) -> float:
        """The inverse of :meth:`of`."""
        return value * self.size

    def price_of(self, multiplier: float) -> float:
        """Reward per unit of a total as reward per one of this unit."""
        return float(multiplier) * self.size

    def say(self, total: float, number: Callable[[float], str] = "{:.6g}".format, *, both: bool = False) -> str:
        """A discounted total as people read it: "0.15 per step", with ``both`` "0.15 per step (7.5 as a discounted total)"."""
        here = number(self.shown(total)) + self.suffix
        if not both:
            return here
        return (
            f"{here} ({number(total)} as a discounted total)"
            if self.per_step
            else f"{here} ({self._also(total, number)})"
        )

    def _also(self, total: float, number: Callable[[float], str]) -> str:
        return f"{number(float(total) / self.horizon)} per step"


TOTAL = Unit()
"""The unit of rewards, and of constraints unless they say otherwise."""


class Criterion(Protocol):
    """What a problem, a table and everything downstream ask about time."""

    @property
    def continuation(self) -> float:
        """What the value of the next state counts, in units of this one's: γ."""
        ...

    @property
    def horizon(self) -> float:
        """The value of a signal that is always one: H."""
        ...

    @property
    def words(self) -> str:
        """What its values are, for people."""
        ...


@dataclass(frozen=True)
class Discounted:
    """Expected discounted totals, the criterion of the paper.

    gamma   the discount, in [0, 1)
    """

    gamma: float

    def __post_init__(self) -> None:
        discount(self.gamma)

    @property
    def continuation(self) -> float:
        """γ."""
        return self.gamma

    @property
    def horizon(self) -> float:
        """H = 1/(1 − γ)."""
        return 1.0 / (1.0 - self.gamma)

    @property
    def words(self) -> str:
        """What its values are, for people."""
        return f"expected discounted totals (discount {self.gamma:g}, effective horizon {self.horizon:.4g} steps)"
