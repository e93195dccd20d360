"""What is known of a mixture's values without a sample: on a table whose signals are known functions,

    H·Σ_k w_k min_s u(s, π_k(s))  ≤  V_u(ρ)  ≤  H·Σ_k w_k max_s u(s, π_k(s)),        u(s, π) = Σ_a π(a|s) u(s, a),

from whatever start and whatever the transition probabilities are: every step of member k earns no less than the least and no
more than the most that it earns in any state. A policy that never pays costs nothing, a signal that is always 1 has the value
H, and no number of rollouts would show either.
"""

from __future__ import annotations

import numpy as np

from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Actions, Array, States

_MOST_PAIRS = 4_000_000
_MOST_CALLS = 50_000  # pairs at which a function of the user's is asked
_PIECE = 1 << 18  # pairs at a time


def known_limits(problem: CMDP, mixture: MixturePolicy) -> Array:
    """Lower and upper limits ``(2, 1+m)`` of the mixture's values, in utilities; 0 and H where nothing is known."""
    S, A, H = problem.num_states, problem.num_actions, problem.horizon
    limits = np.array([np.zeros(len(problem.signals)), np.full(len(problem.signals), H)])
    if S is None or S * A > _MOST_PAIRS:
        return limits
    # A function is asked about the pairs of a design only, which are all pairs unless candidates were given.
    asked = problem.lists_all_pairs and S * A <= _MOST_CALLS
    known = [j for j, s in enumerate(problem.signals) if s.values is not None and (asked or not callable(s.values))]
    least, most = np.full((2, len(mixture.weights), len(known)), [[[np.inf]], [[-np.inf]]])
    step = max(1, _PIECE // A)
    for first in range(0, S, step) if known else ():
        states = np.arange(first, min(first + step, S))
        u = _utilities(problem, known, np.repeat(states, A), np.tile(np.arange(A), len(states)))
        for k, member in enumerate(mixture.members):
            played = np.einsum("sa,saj->sj", member.probabilities(states), u.reshape(len(states), A, -1))
            least[k], most[k] = np.minimum(least[k], played.min(axis=0)), np.maximum(most[k], played.max(axis=0))
    ends = np.array([H * (mixture.weights @ least), H * (mixture.weights @ most)])
    limits[:, known] = np.clip(ends, 0.0, H)
    return limits


def _utilities(problem: CMDP, columns: list[int], states: States, actions: Actions) -> Array:
    """Some of the known signals at pairs, ``(n, columns)``, as :meth:`CMDP.utilities` has them."""
    if problem.stand_ins is not None:
        actions = problem.stand_ins[states, actions]
    x = np.column_stack([problem.signals[j].at(states, actions) for j in columns])
    return np.clip((x - problem.base[columns]) / problem.scale[columns], 0.0, 1.0)
