"""What a value is: how the signals of the steps are added up.

    discounted    V(ρ) = E[ Σ_t γᵗ u(s_t, a_t) ],      γ ∈ [0, 1)

Of this criterion a solver, an evaluator or a proof needs two numbers: what the value of the next state counts (γ), and the
value of a signal that is always one (H = 1/(1 − γ)), so that signals in [0, 1] have values in [0, H]. A limit per step is
the same limit on the value, times H.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from saddleback.errors import discount


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
