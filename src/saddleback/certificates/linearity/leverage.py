"""The largest leverage seen: how far the states that a certificate meets lie from those its design was made for.

    ℓ = max φ(s,a)ᵀ G⁻¹ φ(s,a)   over the pairs that rollouts visit and the next states of the fresh samples, with all actions

A design over a pool of candidates has ℓ ≤ g there, and nothing is known elsewhere. ℓ well above g says that the bound over all
policies, which rests on the pool, should not be trusted for the states where it was seen.
"""

from __future__ import annotations

import numpy as np

from saddleback.certificates.certificate import Leverage
from saddleback.certificates.linearity.findings import plain_state
from saddleback.certificates.values.rollouts import Step
from saddleback.designs.design import EXCESS, Design, leverages
from saddleback.errors import Remark
from saddleback.problem.spaces import Actions, Features, States
from saddleback.sampling.buffer import Buffer

_MOST = 1 << 16  # pairs that are looked at


class LeverageMeter:
    """Watches the rollouts, and looks at buffers."""

    def __init__(self, features: Features, design: Design):
        self._features, self._design, self._left = features, design, _MOST
        self.found = Leverage(design.leverage_bound, 0.0, None, 0)

    def __call__(self, step: Step) -> None:
        """The pairs of one step."""
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

    def remark(self) -> Remark | None:
        """A warning where pairs were seen that the candidates do not stand for."""
        found = self.found
        if found.seen <= EXCESS * found.candidates:
            return None
        text = (
            f"a warning: pairs were seen whose leverage is {found.seen:.3g}, where the candidates of the design have at most "
            f"{found.candidates:.3g} (state {found.state}, action {found.action}): "
            "a bound over all policies rests on the candidates alone; add such pairs to them"
        )
        return Remark("leverage", text)

    def _look(self, states: States, actions: Actions) -> None:
        assert self._design.whitening is not None
        seen = leverages(self._features.at(states, actions), self._design.whitening)
        i = int(np.argmax(seen))
        if seen[i] > self.found.seen:
            self.found = Leverage(self.found.candidates, float(seen[i]), plain_state(states[i]), int(actions[i]))


def meter_for(features: Features | None, design: Design) -> LeverageMeter | None:
    """A meter where the design rests on a pool; None where all pairs are known to it."""
    if design.whitening is None or design.complete or features is None:
        return None
    return LeverageMeter(features, design)
