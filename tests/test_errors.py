"""The checks everybody needs: what they let through, and the four parts of what they refuse."""

import math

import numpy as np
import pytest

from saddleback.errors import (
    InputError,
    at_least,
    discount,
    flag,
    number,
    one_of,
    optional_package,
    positive,
    whole,
)


def test_what_is_right_passes_and_comes_back_as_a_plain_value():
    assert whole("n", np.int64(3), 3) == 3 and type(whole("n", np.int64(3), 0)) is int
    assert positive("x", np.float32(0.5)) == 0.5 and type(positive("x", 2)) is float
    assert flag("b", False) is False and one_of("w", "lp", {"lp": 1, "columns": 2}) == "lp"
    at_least("n", 3, 3)
    at_least("n", 3, 0, 3)
    for ends in ({}, {"open_low": True}, {"open_high": True}):
        number("x", 0.5, 0, 1, **ends)
    number("x", 0.0, 0, 1)
    number("x", 1.0, 0, 1, open_low=True)
    discount(0.0)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: whole("n", 2, 3), "`n` must be a whole number of 3 or more, got 2; write it without a decimal point."),
        (lambda: whole("n", 3.0, 3), "`n` must be a whole number of 3 or more, got 3.0; write it "),
        (lambda: whole("n", True, 0), "got True"),
        (lambda: at_least("n", 0, 1, remedy="use 8"), "`n` must be at least 1, got 0; use 8."),
        (lambda: at_least("n", 9, 1, 8), "`n` must be at least 1 and at most 8, got 9; choose a whole number in that"),
        (lambda: number("x", -1.0, 0), "`x` must lie in [0, inf), got -1.0; choose a number in that range."),
        (lambda: number("x", math.inf, 0), "must lie in [0, inf), got inf"),
        (lambda: number("x", math.nan, 0, 1), "must lie in [0, 1], got nan"),
        (lambda: number("x", 0, 0, 1, open_low=True), "must lie in (0, 1], got 0"),
        (
            lambda: number("x", 1, 0, 1, open_low=True, open_high=True, remedy="use ½"),
            "must lie in (0, 1), got 1; use ½",
        ),
        (lambda: discount(1.0), "`gamma` must lie in [0, 1), got 1.0; set gamma = 1 - 1/H for a horizon of H steps."),
        (lambda: discount(10**400), "`gamma` must lie in [0, 1), got 1000"),
        (lambda: positive("x", 0), "`x` must be a positive number, got 0; leave it out for the usual."),
        (lambda: positive("x", "1", "use 1"), "got '1'; use 1."),
        (lambda: flag("b", 1), "`b` must be true or false, got 1; leave it out for the usual."),
        (lambda: one_of("w", "a", ("b", "c")), "`w` must be b or c, got 'a'; pick one."),
        (lambda: one_of("w", None, ("b",), "use b"), "got None; use b."),
        (
            lambda: optional_package("no_such_module", "plots", "drawing"),
            "`no_such_module` must be installed for drawing, got No module named 'no_such_module'; "
            'run: pip install "saddleback[plots]".',
        ),
    ],
)
def test_what_is_wrong_is_named(check, message):
    with pytest.raises(InputError) as caught:
        check()
    assert message in str(caught.value)


def test_an_optional_package_that_is_there_is_the_module():
    assert optional_package("math", "plots", "drawing") is math
