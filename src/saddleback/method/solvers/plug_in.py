"""Plug-in value iteration on the whole buffer: the fixed point that LS-MDVI's averages approach, without the lag.

    θ⁰ = 0;   repeat:   V = max_a⟨φ, θ^i⟩,   θ^{i+1} = W(□ + γP̂V),   P̂ over all batches
    return π(s) ∈ argmax_a ⟨φ(s,a), θ⟩

On a table this is value iteration on the estimated model. On a coreset the regression may expand (its Lebesgue constant
can exceed 1/γ), so the iteration need not converge; then the rewards for which it does not are handed to LS-MDVI, whose
averaging does not need a contraction. No explicit constants are known for it (V depends on all samples at once), so runs
that ask for an a-priori guarantee use MDVI instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddleback.errors import require
from saddleback.method.solvers.ls_mdvi import LSMDVI, mixed_reward
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import GreedyPolicy, Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, MaxDifference

_FAR, _SHIFT_EVERY = 0.999, 50  # discounts above which sweeps alone would take a horizon of them


@dataclass(frozen=True)
class PlugIn:
    """``tolerance`` is the last change of □ + γP̂V, relative to H, at which a sweep is the last."""

    tolerance: float = 1e-7
    max_sweeps: int = 20_000

    def __post_init__(self) -> None:
        require(self.tolerance > 0, "tolerance", "must be positive", self.tolerance, "use 1e-7")
        require(self.max_sweeps >= 1, "max_sweeps", "must be at least 1", self.max_sweeps, "use 20000")

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """The greedy policy of the fixed point for every row of ``mixing``."""
        features = problem.required_features()
        theta, converged = fixed_point(problem, buffer, mixing, self.tolerance, self.max_sweeps)
        policies: list[Policy] = [GreedyPolicy(features, np.ascontiguousarray(column)) for column in theta.T]
        for i in np.flatnonzero(~converged):
            policies[i] = LSMDVI().solve(problem, buffer, mixing[i : i + 1])[0]
        return policies


def fixed_point(
    problem: CMDP, buffer: Buffer, mixing: Array, tolerance: float, max_sweeps: int
) -> tuple[Array, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """θ ``(d, k)`` of the plug-in optimum for each row of ``mixing``, and which of them converged."""
    features, H = problem.required_features(), problem.horizon
    box = mixed_reward(problem, buffer, mixing).reshape(buffer.design.size, -1)  # □ on C, (c, k)
    origin = np.zeros((features.dim, 1))
    z = box * H  # as if every step paid the same: closer than zero, and any start will do
    theta = np.asarray(buffer.design.fit(z))
    change = np.full(len(mixing), np.inf)
    for sweep in range(max_sweeps):
        previous = z
        z = box + problem.gamma * buffer.average(MaxDifference(theta, origin[:, [0] * len(mixing)]))  # □ + γP̂V
        theta = np.asarray(buffer.design.fit(z))  # W(□ + γP̂V)
        change = np.abs(z - previous).max(axis=0)
        if np.all(change <= tolerance * H) or not np.all(np.abs(z) <= 1e3 * H):
            break
        if problem.gamma > _FAR and sweep % _SHIFT_EVERY == _SHIFT_EVERY - 1:  # what z and z + k share is known at once
            step = z - previous
            z = z + problem.gamma * H * (step.min(axis=0) + step.max(axis=0)) / 2
            theta = np.asarray(buffer.design.fit(z))
    return theta, np.asarray(change <= tolerance * H)
