"""A hospital ward: admit patients from the waiting list, and keep beds for emergencies.

Of ``beds`` beds e hold emergencies and l patients who were called in from a list of w, at most ``waiting`` long. Every morning up to
three of those waiting are called in, as far as there are any and beds are free. During the day every patient leaves with a
probability of their kind's own; then emergencies come, none, one or two, who are sent to another hospital where no bed is free; and
up to two patients are put on the list, as far as it is not full.

Reward: a fee for each patient called in, less the cost of each who is still waiting. Constraint: emergencies sent away a day,
discounted average, "≤" a limit. More beds in use today are fewer for tomorrow's emergencies, so the list waits for the evening peak
to pass: the policy depends on all three numbers.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Discount, Range, Share, limited, memory
from saddleback.problem.cmdp import Constraint
from saddleback.problem.spaces import Array

EMERGENCIES = np.array([0.45, 0.4, 0.15])  # the chances of none, one, two a day
REFERRALS = np.array([0.4, 0.4, 0.2])
MOST_CALLED = 3


def ward(
    *,
    beds: Annotated[int, Range(1, 15)] = 8,
    waiting: Annotated[int, Range(1, 40)] = 13,
    emergency_leaves: Share = 0.12,
    called_leaves: Share = 0.2,
    fee: Amount = 12.0,
    delay: Amount = 0.5,
    limit: Amount = 0.15,
    gamma: Discount = 0.98,
) -> Instance:
    """Call in patients who wait, with a limit on the emergencies that find no bed.

    beds: of the ward
    waiting: patients the list can hold; the states are (waiting + 1) * (beds + 1) * (beds + 2) / 2
    emergency_leaves: probability that an emergency goes home in a day
    called_leaves: probability that a patient who was called in goes home in a day
    fee: money for each patient called in
    delay: money that a day costs for each patient who still waits
    limit: emergencies sent away a day, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a day
    """
    beds_in_use = [(e, called) for e in range(beds + 1) for called in range(beds + 1 - e)]
    S, A, W = len(beds_in_use) * (waiting + 1), MOST_CALLED + 1, waiting + 1
    memory("beds", S * A * S, "use fewer beds, or a shorter list")
    number = {pair: i for i, pair in enumerate(beds_in_use)}
    following, turned_away = _days(beds, beds_in_use, number, emergency_leaves, called_leaves)
    longer = _longer_lists(waiting)
    P, reward, sent = np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A))
    for i, (e, called) in enumerate(beds_in_use):
        for w in range(W):
            for a in range(A):
                admitted = min(a, w, beds - e - called)
                j = number[e, called + admitted]
                P[i * W + w, a] = np.outer(following[j], longer[w - admitted]).ravel()
                reward[i * W + w, a] = fee * admitted - delay * (w - admitted)
                sent[i * W + w, a] = turned_away[j]
    summary = f"call patients into a ward of {beds} beds; emergencies sent away a day <= {limit:g}"
    constraint = Constraint("sent-away", sent, "<=", limit / (1 - gamma), (0.0, 2.0))
    names = [f"{e} emergencies, {called} called in, {w} waiting" for e, called in beds_in_use for w in range(W)]
    return limited("ward", summary, P, reward, constraint, gamma=gamma, state_names=names)


def _days(
    beds: int, beds_in_use: list[tuple[int, int]], number: dict[tuple[int, int], int], leave_e: float, leave_c: float
) -> tuple[Array, Array]:
    """From the beds in use after the morning to those of the next: chances, and the emergencies that are sent away."""
    following, turned_away = np.zeros((len(beds_in_use), len(beds_in_use))), np.zeros(len(beds_in_use))
    stay_e, stay_c = _binomials(beds, 1 - leave_e), _binomials(beds, 1 - leave_c)
    for j, (e, called) in enumerate(beds_in_use):
        for e_left in range(e + 1):
            for c_left in range(called + 1):
                chance = stay_e[e, e_left] * stay_c[called, c_left]
                for come, comes in enumerate(EMERGENCIES):
                    taken = min(come, beds - e_left - c_left)
                    following[j, number[e_left + taken, c_left]] += chance * comes
                    turned_away[j] += chance * comes * (come - taken)
    return following, turned_away


def _binomials(most: int, chance: float) -> Array:
    """The law of how many of n stay, row by row for n = 0..most."""
    law = np.zeros((most + 1, most + 1))
    law[0, 0] = 1.0
    for n in range(1, most + 1):
        law[n] = (1 - chance) * law[n - 1]
        law[n, 1:] += chance * law[n - 1, :-1]
    return law


def _longer_lists(waiting: int) -> Array:
    """The law of tomorrow's list, row by row for those who are left today."""
    law = np.zeros((waiting + 1, waiting + 1))
    for w in range(waiting + 1):
        for come, chance in enumerate(REFERRALS):
            law[w, min(waiting, w + come)] += chance
    return law
