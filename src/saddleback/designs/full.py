"""The full design C = S × A, every pair weighted alike: the tabular case (Algs. 6 and 7), and a yardstick for the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddleback.designs.candidates import candidate_features
from saddleback.designs.design import Design, full_design, weighted_design
from saddleback.errors import require
from saddleback.features import OneHot
from saddleback.problem.cmdp import CMDP


@dataclass(frozen=True)
class Full:
    """All pairs. Without features, or with one-hot ones, W is the identity; with others a regression on all candidates."""

    def design(self, problem: CMDP) -> Design:
        """C = S × A, or all candidate pairs."""
        if problem.features is None or isinstance(problem.features, OneHot):
            good = problem.candidates is None and problem.num_states is not None
            found = "a continuous state space" if problem.candidates is None else "a pool of candidates"
            rule = "must be all pairs of a finite state space for a table of values"
            remedy = "leave them out, or give features that carry over from one pair to another"
            require(good, "candidates", rule, found, remedy)
            states, actions = problem.pairs()
            good = problem.features is None or problem.features.dim == len(states)
            rule = f"must have one entry for each of the {len(states)} pairs"
            remedy = "make OneHot and the problem agree on the number of states"
            require(good, "features", rule, problem.features and problem.features.dim, remedy)
            return full_design(states, actions)
        states, actions, Phi = candidate_features(problem)
        equal = np.full(len(states), 1.0 / len(states))
        return weighted_design(states, actions, Phi, equal, complete=problem.lists_all_pairs)
