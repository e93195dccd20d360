"""§2, Assumption asm_32, drawn at random: a linear CMDP with simplex features.

    φ(s,a) ~ Dirichlet(feature_concentration) on d corners,     μ_j ~ Dirichlet(measure_concentration) on S states
    P(·|s,a) = Σ_j φ_j(s,a) μ_j,     r = ⟨φ, ψ_r⟩,     c_i = ⟨φ, ψ_{c_i}⟩,     ψ ~ uniform on [0, 1]^d

Every pair is a mixture of d hidden "pure" pairs. The features sum to one, so 1 ∈ span φ. The start is uniform, and the
thresholds lie midway between V_c of the unconstrained optimum and max V_c (several constraints:
:func:`saddleback.instances.instance.midway`). Where one policy happens to be best for both the constraint is met with nothing
to spare and does not bind; ``known["zeta"]`` is then zero.

With ``misspecification`` = ε > 0 the features no longer carry the transitions, while r and c stay linear:

    P(·|s,a) = (1−ε) Σ_j φ_j(s,a) μ_j + ε·1{s' = x(s,a)},     x(s,a) uniform on the states, independent of all else

so that every row lies within ε of the linear one in total variation. The same seed gives the same φ, μ and ψ for every ε.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import scipy.sparse

from saddleback.instances.instance import Instance, midway
from saddleback.instances.zoo._building import Count, Discount, Range, Seed, Share, memory
from saddleback.problem.spaces import Array
from saddleback.simulators.table import Table

Concentration = Annotated[float, Range(0.0, 1e6, open_low=True)]


def random_linear(
    *,
    states: Count = 200,
    actions: Count = 5,
    dim: Count = 8,
    gamma: Discount = 0.9,
    constraints: Count = 1,
    feature_concentration: Concentration = 0.3,
    measure_concentration: Concentration = 0.05,
    misspecification: Share = 0.0,
    seed: Seed = 0,
) -> Instance:
    """A random linear CMDP with simplex features.

    states: number of states S; P is dense, S * A * S numbers
    actions: number of actions A
    dim: dimension d of the features
    gamma: discount factor
    constraints: number of constraints m, each ">=" and named c1, c2, ...
    feature_concentration: of the Dirichlet law of the features; small means near the corners
    measure_concentration: of the Dirichlet law of the d measures; small means few likely next states
    misspecification: share of each pair's transitions that goes to a random state, outside the span of the features
    seed: of the random problem
    """
    S, A, d, m = states, actions, dim, constraints
    memory("states", S * A * (S + d + m + 2), "use fewer states or actions, or a garnet, whose table is sparse")
    sequence = np.random.SeedSequence(seed)
    rng = np.random.default_rng(sequence)
    phi = rng.dirichlet(np.full(d, feature_concentration), size=S * A)  # φ, (S·A, d)
    mu = rng.dirichlet(np.full(S, measure_concentration), size=d)  # μ, (d, S)
    psi = rng.random((d, 1 + m))  # ψ_r, ψ_c1..ψ_cm
    P = _transitions(phi, mu, misspecification, sequence.spawn(1)[0])
    signals = (phi @ psi).T.reshape(1 + m, S, A)
    table = Table.of(
        P,
        signals[0],
        signals[1:],
        np.zeros(m),  # until midway
        gamma=gamma,
        rho=np.full(S, 1 / S),
        names=[f"c{i + 1}" for i in range(m)],
        phi=phi.reshape(S, A, d),
        reward_range=(0.0, 1.0),
        ranges=((0.0, 1.0),) * m,
        name="random-linear",
    )
    summary = f"a random linear problem: {S} states, {A} actions, dimension {d}, {m} constraint(s), seed {seed}"
    if misspecification > 0:
        summary += f"; a share {misspecification:g} of the transitions is not linear"
    return Instance.of_table(midway(table), summary)


def _transitions(
    phi: Array, mu: Array, misspecification: float, sequence: np.random.SeedSequence
) -> scipy.sparse.csr_array:
    """P ``(S·A, S)``; the dense product lives no longer than this call."""
    P = phi @ mu
    if misspecification > 0:
        elsewhere = np.random.default_rng(sequence).integers(P.shape[1], size=len(P))  # x(s,a)
        P *= 1 - misspecification
        P[np.arange(len(P)), elsewhere] += misspecification
    return scipy.sparse.csr_array(P)
