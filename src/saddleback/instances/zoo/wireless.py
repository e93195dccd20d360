"""A wireless sensor that must not empty its battery: the example of the paper's introduction.

The sensor holds a queue of at most ``capacity`` packets and sees the gain of a fading channel. Every slot it chooses a
transmit power p; the Shannon capacity of the slot says how many whole packets get through, the rest waits:

    k(p, g) = ⌊ W τ log₂(1 + p g L / N) / packet ⌋        delivered = min(queue, k)
    queue'  = min(capacity, queue − delivered + Poisson(arrivals)),      g' ~ a Markov chain on deep fade, fair, good

Reward: packets delivered. Constraint: transmit energy p τ in mJ, "≤" a budget. Constants, all in the code below: W the
bandwidth, τ the slot, N the noise power in W, L the path gain at the distance of the receiver.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Count, Discount, Range, limited, memory
from saddleback.problem.cmdp import Constraint
from saddleback.problem.spaces import Array

BANDWIDTH = 100e3  # Hz
SLOT = 0.1  # s
PACKET = 8000  # bits
NOISE_DBM = -174.0 + 10 * math.log10(BANDWIDTH) + 10.0  # thermal noise at 290 K over the band, noise figure 10 dB
LOSS_AT_1M = 31.2  # dB, free space at 868 MHz
LOSS_EXPONENT = 3.3  # near the ground
POWERS = (0.0, 1.0, 4.0, 10.0)  # mW
CHANNELS = ("deep fade", "fair", "good")
GAINS = (0.2, 1.0, 3.0)  # of the power, relative to the path gain
CHANNEL_STEP = np.array([[0.7, 0.3, 0.0], [0.15, 0.7, 0.15], [0.0, 0.3, 0.7]])
CHANNEL_START = np.array([0.25, 0.5, 0.25])  # the chain's stationary distribution


def wireless(
    *,
    capacity: Count = 10,
    arrivals: Amount = 1.5,
    budget: Amount = 0.12,
    distance: Annotated[float, Range(1.0)] = 320.0,
    gamma: Discount = 0.9,
) -> Instance:
    """Transmit as many packets as the energy budget allows.

    capacity: packets the queue can hold; arrivals that find it full are lost
    arrivals: mean number of new packets a slot (Poisson)
    budget: energy a slot in mJ, discounted average; the threshold of the constraint is budget * H
    distance: to the receiver in m, which sets the path gain
    gamma: discount factor a slot
    """
    S, A, channels = (capacity + 1) * len(GAINS), len(POWERS), len(GAINS)
    memory("capacity", S * A * S, "hold fewer packets")
    queue, channel = np.divmod(np.arange(S), channels)
    delivered = np.minimum(queue[:, None], packets_per_slot(distance)[channel])  # (S, A)
    waiting = queue[:, None] - delivered  # packets left before the arrivals
    after = _queue_after(capacity, arrivals)
    P = np.einsum("saq,sc->saqc", after[waiting], CHANNEL_STEP[channel]).reshape(S, A, S)
    H = 1 / (1 - gamma)
    return limited(
        "wireless",
        f"a sensor delivers packets over a fading channel; energy <= {budget:g} mJ a slot ({budget * H:g} mJ in all)",
        P,
        delivered.astype(np.float64),
        Constraint("energy", np.array(POWERS) * SLOT, "<=", budget * H),  # mW · s = mJ
        gamma=gamma,
        rho=np.where(queue == 0, CHANNEL_START[channel], 0.0),
        state_names=[f"queue {q}, channel {CHANNELS[c]}" for q, c in zip(queue, channel, strict=True)],
    )


def packets_per_slot(distance: float) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """k(p, g), whole packets a slot, ``(channels, powers)``."""
    gain_db = -(LOSS_AT_1M + 10 * LOSS_EXPONENT * math.log10(distance))  # L
    noise = 10 ** (NOISE_DBM / 10)  # N in mW
    snr = np.outer(GAINS, POWERS) * 10 ** (gain_db / 10) / noise
    return np.floor(BANDWIDTH * SLOT * np.log2(1 + snr) / PACKET).astype(np.int64)


def _queue_after(capacity: int, arrivals: float) -> Array:
    """Row w: the distribution of min(capacity, w + Poisson(arrivals))."""
    n = np.arange(capacity + 1)
    factorials = np.array([math.log(math.factorial(k)) for k in range(capacity + 1)])  # scipy.special is slow to import
    chance = np.exp(n * math.log(arrivals) - arrivals - factorials) if arrivals else np.eye(1, capacity + 1)[0]
    rows = np.zeros((capacity + 1, capacity + 1))
    for w in n:
        rows[w, w:] = chance[: capacity + 1 - w]
        rows[w, capacity] = max(0.0, 1.0 - rows[w, :capacity].sum())  # the queue is full, whatever the excess
    return rows
