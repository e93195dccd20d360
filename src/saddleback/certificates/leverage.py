"""The largest leverage seen: how far the states that a certificate meets lie from those its design was made for.

    ℓ = max φ(s,a)ᵀ G⁻¹ φ(s,a)   over the pairs that rollouts visit and the next states of the fresh samples, with all actions

A design over a pool of candidates has ℓ ≤ g there, and nothing is known elsewhere. ℓ well above g says that the bound over all
policies, which rests on the pool, should not be trusted for the states where it was seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleback.certificates.rollouts import Observer, Step
from saddleback.designs.design import EXCESS, Design, leverages
from saddleback.problem.spaces import Features
from saddleback.sampling.buffer import Buffer

_MOST = 1 << 16  # pairs that are looked at


class LeverageMeter:
    """Watches the rollouts; ``then`` is another observer that is called too."""

    def __init__(self, features: Features, design: Design, then: Observer | None = None):
        self._features, self._design, self._then = features, design, then
        self._left = _MOST
        self.largest, self.state, self.action = 0.0, None, 0

    def __call__(self, step: Step) -> None:
        """The pairs of one step."""
        if self._then is not None:
            self._then(step)
        n = min(self._left, len(step.states))
        if n:
            self._left -= n
            self._look(step.states[:n], step.actions[:n])

    def look_at(self, buffer: Buffer) -> None:
        """The next states of a buffer, with all actions."""
        A = self._features.num_actions
        if self._features.direct:
            return
        most = max(1, _MOST // A)
        states = buffer.support[:: max(1, -(-len(buffer.support) // most))]
        piece = max(1, (1 << 22) // (A * self._features.dim))
        for first in range(0, len(states), piece):
            part = states[first : first + piece]
            self._look(np.repeat(part, A, axis=0), np.tile(np.arange(A), len(part)))

    def to_json(self) -> dict[str, Any]:
        """g of the candidates, and what was seen, where."""
        return {
            "candidates": self._design.leverage_bound,
            "seen": self.largest,
            "state": np.asarray(self.state).tolist() if self.state is not None else None,
            "action": int(self.action),
        }

    @property
    def exceeded(self) -> bool:
        """Whether pairs were seen that the candidates do not stand for."""
        return self.largest > EXCESS * self._design.leverage_bound

    def remark(self) -> str:
        """What that means."""
        return (
            f"pairs were seen whose leverage is {self.largest:.3g}, where the candidates of the design have at most "
            f"{self._design.leverage_bound:.3g} (state {np.asarray(self.state).tolist()}, action {self.action}): "
            "a bound over all policies rests on the candidates alone; add such pairs to them"
        )

    def _look(self, states: Any, actions: Any) -> None:
        assert self._design.whitening is not None
        found = leverages(self._features.at(states, actions), self._design.whitening)
        i = int(np.argmax(found))
        if found[i] > self.largest:
            self.largest, self.state, self.action = float(found[i]), states[i], int(actions[i])


def meter_for(features: Features | None, design: Design, then: Observer | None) -> LeverageMeter | None:
    """A meter where the design rests on a pool; None where all pairs are known to it."""
    if design.whitening is None or design.complete or features is None:
        return None
    return LeverageMeter(features, design, then)
