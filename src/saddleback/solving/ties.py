"""Ties: where two actions are the same as far as the samples can tell, a rule decides between them, not the noise.

On a table whose every pair was sampled, for a policy π that the solver has found, by the samples of the *evaluation* buffer, which
did not choose π. An action a ties with π(s) if

    it pays the same, in the reward and every constraint    known signals: equal; observed ones: up to 3 standard errors
    it leads to the same next states                        χ² ≤ χ²_{1−α}(k−1),  χ² = Σ_j nn'(p_j−p'_j)²/(np_j+n'p'_j)  over the k seen
    and the samples could have told that it does not        n + n' > χ²_{1−α}(k−1): what χ² is where no next state is shared
    |D_i(s,a)| ≤ 3·e_i(s,a)  for every signal i             D_i = Q_i(s,π(s)) − Q_i(s,a) on the estimated model, e_i its error

Actions that differ in what they do are no ties, however little the values differ: which of those is better is what the samples
were drawn for. Of the tied actions the first in the order of preference is taken: the user's ``preferred`` order, else the
lowest number. What that costs at the start, by the performance difference of the two policies on the estimated model, is

    L_i = Σ_s d'(s) D_i(s, π'(s)),      d' the discounted visits of the settled policy π'

and it is kept within what cannot be told from nothing, 2 standard errors of L_i itself, for every signal and so in the
Lagrangian reward of the policy. Where it is more, the states that cost most keep the solver's action. (To take what loses
nothing by these samples would be to choose by them, and to bias what they say of it.) Which actions tie, and which swaps are kept,
is still for these samples to say: once a policy is settled they have had a small part in its choice, and their estimates of it are
no longer quite independent of it. A certificate is: its samples are fresh.

This is done to every policy as it comes out of the solver, so that the dual mixes settled policies, and estimates and
certificates are about them. Exact ties are settled too. Where nothing ties, the policy is the solver's, bit for bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from saddleback.errors import Remark
from saddleback.method.evaluators.lstd import EmpiricalChain
from saddleback.problem.actions import preference_ranks
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import TIE, falling_order
from saddleback.problem.policies import MixturePolicy, Policy, TabularPolicy
from saddleback.problem.spaces import Array
from saddleback.runs.numbers import number
from saddleback.sampling.buffer import Buffer, Counted

MOST_STATES = 20_000
_ERRORS = 3.0  # of a difference: more of them tell two actions apart
_OF_ITSELF = 2.0  # standard errors of the loss that it may be
_ALPHA = 1e-3  # of actions that lead to the same next states so many are told apart all the same
_MOST_ROUNDS = 30


class Settled(NamedTuple):
    """What settling did to a policy: the states whose action it changed, and L ``(1+m,)`` in utilities."""

    states: NDArray[np.int64]
    loss: Array


class Ties:
    """The rule for one problem and one buffer; it remembers what it did to each policy."""

    def __init__(self, problem: CMDP, buffer: Counted) -> None:
        self._problem, self._buffer = problem, buffer
        S, A = buffer.tabular_shape(problem)
        self._u = buffer.utilities(problem).reshape(S, A, -1)
        noise = buffer.signal_noise(problem).reshape(S, A, -1)
        self._signal_noise, self._counts = noise, buffer.counts.reshape(S, A)
        self._ranks = preference_ranks(problem.preferred, A)
        self._done: dict[bytes, Settled] = {}

    def settle(self, policy: Policy) -> Policy:
        """The policy with its ties settled; itself where there are none."""
        if not (isinstance(policy, TabularPolicy) and policy.is_deterministic):
            return policy
        actions, loss = self._settled(policy.table)
        changed = np.flatnonzero(actions != policy.table)
        if not changed.size:
            return policy
        settled = TabularPolicy.deterministic(actions, policy.num_actions)
        self._done.setdefault(settled.key(), Settled(changed, loss))
        return settled

    def remarks(self, mixture: MixturePolicy) -> list[Remark]:
        """What the rule did to the members of a mixture, in the user's units; nothing where it did nothing."""
        found = [(w, self._done.get(p.key())) for w, p in zip(mixture.weights, mixture.members, strict=True)]
        done = [(w, settled) for w, settled in found if settled is not None]
        if not done:
            return []
        p, S = self._problem, len(self._u)
        states = np.unique(np.concatenate([settled.states for _, settled in done]))
        gain = -sum(w * settled.loss for w, settled in done) * p.scale
        said = zip([p.objective, *(c.name for c in p.constraints)], [p.reward_unit, *p.units], gain, strict=True)
        changes = ", ".join(
            f"{name} by {u.say(float(x), number, both=True)}"
            if u.per_step
            else f"discounted {name} by {u.say(float(x), number)}"
            for name, u, x in said
        )
        rule = "the preferred one" if p.preferred is not None else "the one with the lowest number"
        text = (
            f"in {states.size:,} of {S:,} states actions are the same as far as the samples can tell, and {rule} was taken; by "
            f"the samples' own estimates this changes {changes}"
        )
        return [Remark("ties", text)]

    def _settled(self, actions: NDArray[np.int64]) -> tuple[NDArray[np.int64], Array]:
        problem, every = self._problem, np.arange(len(actions))
        chain = self._chain(actions)
        V = chain.values(self._u.reshape(-1, self._u.shape[2]))
        mean, variance = self._buffer.moments(V[self._buffer.support])
        Q = self._u + problem.gamma * mean.reshape(self._u.shape)
        spread = self._signal_noise + problem.gamma * np.sqrt(variance.reshape(self._u.shape))
        error2 = spread**2 / self._counts[:, :, None]
        D = Q[every, actions][:, None] - Q
        e = np.sqrt(error2 + error2[every, actions][:, None])
        least = TIE * problem.horizon
        tied = np.all(np.abs(D) <= _ERRORS * e + least, axis=2) & self._pay_the_same(actions)
        if problem.allowed is not None:
            tied &= problem.allowed
        tied[tied] = self._lead_to_the_same(actions, *np.nonzero(tied))
        if self._buffer.unsampled is not None:  # nothing was learned there, and nobody comes there
            tied |= self._buffer.unsampled.reshape(tied.shape) & (True if problem.allowed is None else problem.allowed)
        tied[every, actions] = True
        wanted = np.where(tied, self._ranks, len(self._ranks)).argmin(axis=1)
        swapped = np.flatnonzero(wanted != actions)
        for _ in range(_MOST_ROUNDS):
            if not swapped.size:
                break
            new = actions.copy()
            new[swapped] = wanted[swapped]
            d = self._chain(new).visits().reshape(self._counts.shape).sum(axis=1)[swapped, None]
            costs = d * D[swapped, wanted[swapped]]
            limit = _OF_ITSELF * np.sqrt((d**2 * e[swapped, wanted[swapped]] ** 2).sum(axis=0))
            limit += least * problem.horizon
            loss = costs.sum(axis=0)
            if np.all(loss <= limit):
                return new, np.asarray(loss)
            swapped = swapped[self._kept(costs, loss, limit)]
        return actions, np.zeros(self._u.shape[2])

    def _kept(self, costs: Array, loss: Array, limit: Array) -> NDArray[np.int64]:
        """Places of the swaps that stay: the dearest in the signal that misses its limit most go, until it is met."""
        size = np.maximum(limit, TIE * self._problem.horizon)
        worst = int(((loss - limit) / size).argmax())
        order = falling_order(costs[:, worst])
        left = loss[worst] - np.cumsum(costs[order, worst])
        number = int(np.argmax(left <= limit[worst])) + 1 if np.any(left <= limit[worst]) else len(order)
        return np.sort(order[number:])

    def _pay_the_same(self, actions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Where an action pays what the policy's does ``(S, A)``: exactly, or up to three standard errors of what is observed."""
        every = np.arange(len(actions))
        error2 = self._signal_noise**2 / self._counts[:, :, None]
        e = np.sqrt(error2 + error2[every, actions][:, None])
        return np.asarray(np.all(np.abs(self._u - self._u[every, actions][:, None]) <= _ERRORS * e + TIE, axis=2))

    def _lead_to_the_same(
        self, actions: NDArray[np.int64], states: NDArray[np.int64], others: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Whether each pair of ``states`` and ``others`` has the next states of the policy's action, by a test that could say no."""
        A = len(self._ranks)
        own, other = states * A + actions[states], states * A + others
        n, n_other = self._counts.ravel()[own], self._counts.ravel()[other]
        P = self._buffer.empirical_model()
        p, q = P[own], P[other]
        seen = p.multiply(n[:, None]) + q.multiply(n_other[:, None])
        apart = (p - q).power(2).multiply(seen.power(-1.0)).sum(axis=1)
        limit = chdtri(np.maximum(np.diff(seen.tocsr().indptr) - 1, 1), _ALPHA)
        same = np.asarray(apart).ravel() * n * n_other <= limit
        return np.asarray((own == other) | (same & (n + n_other > limit)))

    def _chain(self, actions: NDArray[np.int64]) -> EmpiricalChain:
        policy = TabularPolicy.deterministic(actions, len(self._ranks))
        return EmpiricalChain(self._problem, self._buffer, policy)


def ties_of(problem: CMDP, buffer: Buffer) -> Ties | None:
    """The rule, where there is a table in memory to apply it to; None elsewhere."""
    S, design = problem.num_states, buffer.design
    full = S is not None and design.operator is None and design.size == S * problem.num_actions
    return (
        Ties(problem, buffer) if full and S is not None and S <= MOST_STATES and isinstance(buffer, Counted) else None
    )
