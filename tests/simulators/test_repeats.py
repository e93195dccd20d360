"""Two answers to one question: the first row that differs, in states or signals."""

import numpy as np

from saddleback.simulators.generative_model import Draw, first_difference


def test_the_first_row_that_differs_is_named():
    states, points, signals = np.arange(5), np.zeros((5, 2)), np.full((5, 3), 0.25)
    assert first_difference(Draw(states, None), Draw(states.copy(), None)) is None
    assert first_difference(Draw(states, None), Draw(np.array([0, 1, 7, 7, 4]), None)) == 2
    moved, louder = points.copy(), signals.copy()
    moved[4, 1], louder[3, 2] = 1e-300, np.nextafter(0.25, 1)
    assert first_difference(Draw(points, signals), Draw(moved, signals)) == 4
    assert first_difference(Draw(points, signals), Draw(moved, louder)) == 3
