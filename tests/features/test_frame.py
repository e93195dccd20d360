"""Coordinates: boxes, numbers, digits, arrays and functions, scaled to the unit cube."""

import numpy as np
import pytest

from saddleback.errors import InputError
from saddleback.features import Frame
from saddleback.problem.spaces import BoxStates, FiniteStates


def test_a_box_is_scaled_and_clipped():
    frame = Frame.of(BoxStates([-1.0, 0.0], [1.0, 10.0]))
    assert np.array_equal(frame.unit(np.array([[-1.0, 0.0], [0.0, 5.0], [3.0, -1.0]])), [[0, 0], [0.5, 0.5], [1, 0]])


def test_bounds_may_be_narrower_than_the_space_and_must_be_given_where_it_has_none():
    endless = BoxStates([-np.inf], [np.inf])
    assert np.array_equal(Frame.of(endless, low=[-2], high=[2]).unit(np.array([[-9.0], [1.0]])), [[0], [0.75]])
    with pytest.raises(InputError, match=r"`low` must be finite, got -inf at \[0\]; give finite"):
        Frame.of(endless)
    with pytest.raises(InputError, match="low < high"):
        Frame.of(endless, low=[2], high=[2])


def test_numbers_and_digits():
    assert np.array_equal(Frame.of(FiniteStates(5)).unit(np.array([0, 1, 4])), [[0], [0.25], [1]])
    frame = Frame.of(FiniteStates(3 * 5), shape=[3, 5])
    assert np.array_equal(frame.unit(np.array([0, 4, 5, 14])), [[0, 0], [0, 1], [0.5, 0], [1, 1]])
    with pytest.raises(InputError, match="`shape` must multiply to the 15 states"):
        Frame.of(FiniteStates(15), shape=[3, 4])
    with pytest.raises(InputError, match=r"`shape\[1\]` must be a whole number"):
        Frame.of(FiniteStates(15), shape=[3, 5.0])
    with pytest.raises(InputError, match="must come with a finite space"):
        Frame.of(BoxStates([0.0], [1.0]), shape=[3, 5])


def test_coordinates_of_numbered_states():
    table = np.array([[0.0, 10.0], [1.0, 20.0], [4.0, 30.0]])
    by_array = Frame.of(FiniteStates(3), coordinates=table)
    by_function = Frame.of(FiniteStates(3), coordinates=lambda s: table[s], low=[0, 10], high=[4, 30])
    states = np.array([2, 1, 0, 1])
    assert np.array_equal(by_array.unit(states), [[1, 1], [0.25, 0.5], [0, 0], [0.25, 0.5]])
    assert np.array_equal(by_array.unit(states), by_function.unit(states))
    with pytest.raises(InputError, match="`low` must be given"):
        Frame.of(FiniteStates(3), coordinates=lambda s: table[s])
    with pytest.raises(InputError, match="must hold numbers"):
        Frame.of(FiniteStates(3), coordinates="x")
    with pytest.raises(InputError, match="must have 3 coordinates"):
        Frame([0, 0, 0], [1, 1, 1], table)


def test_states_of_the_wrong_kind_are_named():
    frame = Frame.of(BoxStates([0.0, 0.0], [1.0, 1.0]))
    with pytest.raises(InputError, match="must have 2 coordinates"):
        frame.unit(np.zeros((4, 3)))
    with pytest.raises(InputError, match=r"numbers, got .*nan"):
        frame.unit(np.array([[0.1, 0.2], [0.3, np.nan]]))


def test_a_huge_space_takes_no_memory():
    states = np.array([0, 10**15 - 1])
    assert np.array_equal(Frame.of(FiniteStates(10**15), shape=[10**5] * 3).unit(states), [[0, 0, 0], [1, 1, 1]])
