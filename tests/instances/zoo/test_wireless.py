from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from instances.zoo.zoo_checks import optimum
from saddleback.instances.zoo import make
from saddleback.instances.zoo.wireless import CHANNEL_START, CHANNEL_STEP, packets_per_slot


def test_packets_by_hand() -> None:
    """At 320 m: loss 31.2 + 33·lg 320 = 113.87 dB, noise −174 + 50 + 10 = −114 dBm, so 1 mW arrives at 0.13 dB SNR."""
    assert packets_per_slot(320.0).tolist() == [[0, 0, 1, 2], [0, 1, 2, 4], [0, 2, 4, 6]]
    snr = 10 ** ((114 - 31.2 - 33 * math.log10(320)) / 10)
    assert packets_per_slot(320.0)[2, 3] == math.floor(100e3 * 0.1 * math.log2(1 + 3 * 10 * snr) / 8000)
    assert np.all(packets_per_slot(1e6) == 0)


def test_channel_starts_in_its_stationary_law() -> None:
    np.testing.assert_allclose(CHANNEL_START @ CHANNEL_STEP, CHANNEL_START, atol=1e-15)


def test_units_and_names() -> None:
    instance = make("wireless", budget=0.2, gamma=0.9)
    problem, table = instance.problem, instance.table
    assert table is not None
    assert problem.state_names is not None
    assert problem.state_names[3 * 3 + 2] == "queue 3, channel good"
    np.testing.assert_allclose(table.constraints[0, 0], [0, 0.1, 0.4, 1.0])  # mJ: 10 mW for 0.1 s
    assert problem.constraints[0].name == "energy" and problem.constraints[0].sense == "<="
    assert problem.user_thresholds()[0] == pytest.approx(2.0)  # 0.2 mJ a slot, H = 10 slots


def test_packets_are_conserved() -> None:
    """Far from full, E[queue'] = queue − delivered + arrivals, and the channel moves on its own."""
    table = make("wireless", capacity=60, arrivals=1.5).table
    assert table is not None
    queue, channel = np.divmod(np.arange(table.num_states), 3)
    mean = (table.P @ queue).reshape(-1, 4)
    calm = queue <= 30  # P(Poisson(1.5) > 29) < 1e-25
    np.testing.assert_allclose(mean[calm], (queue[:, None] - table.reward + 1.5)[calm], rtol=1e-12)
    for c in range(3):
        np.testing.assert_allclose(
            (table.P @ (channel == c).astype(float)).reshape(-1, 4)[:, 0], CHANNEL_STEP[channel, c], rtol=1e-12
        )


def test_a_larger_budget_buys_less_and_less() -> None:
    answers = [optimum(make("wireless", budget=b).table) for b in (0.005, 0.05, 0.12, 0.25, 0.6)]  # type: ignore[arg-type]
    assert all(x.value < y.value for x, y in pairwise(answers[:-1]))
    prices = [x.multipliers[0] for x in answers]
    assert all(x > y for x, y in pairwise(prices))
    assert prices[-1] == pytest.approx(0, abs=1e-9)  # 0.6 mJ a slot is more than the unconstrained optimum takes
    # the first 0.005 mJ a slot buy the best packets there are: 2 for 0.1 mJ in a good channel, 20 a mJ, wherever it is met
    assert prices[0] == pytest.approx(20, rel=1e-6)


def test_no_arrivals_no_throughput() -> None:
    assert make("wireless", arrivals=0.0).known["unconstrained_value"] == pytest.approx(0, abs=1e-12)
