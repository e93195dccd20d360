"""Feature maps from names and plain settings."""

import numpy as np
import pytest

from saddleback.errors import InputError
from saddleback.features import OneHot, Stacked, Tiles, make, make_stacked, settings_of
from saddleback.problem.spaces import BoxStates, FiniteStates

BOX, TEN = BoxStates([0.0, 0.0], [1.0, 1.0]), FiniteStates(10)


@pytest.mark.parametrize(
    ("name", "settings", "dim"),
    [
        ("cells", {"cells": [3, 4]}, 2 * 12),
        ("tiles", {"tiles": 3, "tilings": 2}, 2 * (9 + 16)),
        ("multilinear", {"knots": [3, 5]}, 2 * 15),
        ("multilinear", {"knots": [[0, 0.2, 1], [0, 1]]}, 2 * 6),
        ("radial-basis", {"grid": [3, 5]}, 2 * 15),
        ("radial-basis", {"grid": 3, "normalised": False}, 2 * 10),
        ("radial-basis", {"centres": [[0, 0], [1, 1], [0.5, 0.5]], "bandwidth": 0.4}, 2 * 3),
        ("fourier", {"order": 3}, 2 * 16),
        ("fourier", {"order": 3, "degree": 3}, 2 * 10),
        ("polynomial", {"degree": 4}, 2 * 15),
        ("polynomial", {"degree": 4, "basis": "power"}, 2 * 15),
        ("random-fourier", {"num": 30, "seed": 5}, 2 * 31),
    ],
)
def test_dimensions(name, settings, dim):
    features = make(name, BOX, 2, **settings)
    assert features.dim == dim
    assert features.at(np.full((1, 2), 0.3), np.array([1])).shape == (1, dim)


def test_places():
    assert isinstance(make("one-hot", TEN, 3), OneHot)
    assert make("cells", TEN, 1, cells=[2, 5], shape=[2, 5]).dim == 10
    aggregated = make("aggregation", TEN, 1, groups=[0] * 5 + [1] * 5)
    halves = make("cells", TEN, 1, cells=2, low=-0.5, high=9.5)
    assert np.array_equal(aggregated.all(np.arange(10)), halves.all(np.arange(10)))
    narrow = make("tiles", BOX, 1, low=[0.4, 0.4], high=[0.6, 0.6])
    assert not np.array_equal(narrow.all(np.full((1, 2), 0.45)), make("tiles", BOX, 1).all(np.full((1, 2), 0.45)))
    assert make("tiles", BOX, 1, direct=True).direct and not narrow.direct
    table = np.random.default_rng(0).random((10, 3))
    assert np.array_equal(
        make("polynomial", TEN, 1, coordinates=table.tolist()).all(np.arange(10)),
        make("polynomial", BoxStates(table.min(axis=0), table.max(axis=0)), 1).all(table),
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: make("tile", BOX, 2),
            "`features` must name a feature map, got 'tile'; known are one-hot, aggregation, ",
        ),
        (lambda: make(3, BOX, 2), "`features` must name a feature map, got 3"),
        (lambda: make("matrix", TEN, 2), "`features` must be made of settings, got matrix; build it in Python"),
        (
            lambda: make("tiles", BOX, 2, tile=4),
            "`tile` must be a setting of tiles, got 4; tiles takes tiles, tilings, low, high, coordinates, shape, ",
        ),
        (lambda: make("one-hot", TEN, 2, cells=4), "one-hot takes no settings"),
        (lambda: make("one-hot", BOX, 2), "must suit a box of states, got one-hot; use cells"),
        (lambda: make("aggregation", BOX, 2, groups=[0]), "must suit a box of states"),
        (lambda: make("aggregation", TEN, 2), "`groups` must be given"),
        (lambda: make("aggregation", TEN, 2, groups=[0, 1]), "one group for each of the 10 states, got 2 groups"),
        (lambda: make("tiles", BOX, 0), "`num_actions` must be a whole number of 1 or more"),
        (lambda: make("tiles", BOX, 2, constant="yes"), "`constant` must be true or false, got 'yes'"),
        (lambda: make("tiles", BOX, 2, tiles=[4, 4.5]), r"`tiles\[1\]` must be a whole number"),
        (lambda: make("tiles", BOX, 2, low=["a", 0]), "`low` must hold numbers"),
        (lambda: make("tiles", BOX, 1000, tiles=8), "must be at most 20000 in number, got 307000"),
        (
            lambda: make("fourier", BoxStates(np.zeros(8), np.ones(8)), 2),
            "got 1679616; lower the order, or give a degree",
        ),
        (lambda: make("tiles", BoxStates([0.0], [np.inf]), 2), "`high` must be finite"),
        (lambda: make_stacked([], BOX, 2), "must name a map at least"),
        (lambda: make_stacked([{"tiles": 4}], BOX, 2), r"`features\[0\]` must have a name"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_a_map_of_another_package_is_made_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "hats-1.0.dist-info").mkdir()
    (tmp_path / "hats-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: hats\nVersion: 1.0\n")
    (tmp_path / "hats-1.0.dist-info" / "entry_points.txt").write_text(
        "[saddleback.features]\nhats = hats:Hats\ntorn = hats:Torn\n"
    )
    (tmp_path / "hats.py").write_text(HATS)
    monkeypatch.syspath_prepend(str(tmp_path))
    features = make("hats", BOX, 2, height=3.0)
    assert settings_of("hats")[:2] == ("height", "low") and features.dim == 2 * 3  # a constant is added
    assert np.array_equal(features.at(np.array([[0.5, 1.0]]), np.array([1])), [[0, 0, 0, 1.5, 3, 1]])
    with pytest.raises(InputError, match=r"`hat` must be a setting of hats, got 1; hats takes height, low"):
        make("hats", BOX, 2, hat=1)
    with pytest.raises(InputError, match="`torn` must load from the package hats, got AttributeError"):
        make("torn", BOX, 2)
    assert make("tiles", BOX, 2).dim > 0


HATS = """
from saddleback.features import StateMap

class Hats(StateMap):
    dim, constant = 2, False
    def __init__(self, box, height=1.0):
        self.box, self.height = box, height
    def at(self, states):
        return self.height * self.box.unit(states)
"""


def test_stacks():
    parts = [{"name": "tiles", "tiles": 2, "tilings": 1}, {"name": "polynomial", "degree": 1}]
    both = make_stacked(parts, BOX, 2)
    assert isinstance(both, Stacked) and both.dim == 2 * (4 + 3)
    assert isinstance(make_stacked(parts[:1], BOX, 2).state_features, Tiles)
    assert parts[0] == {"name": "tiles", "tiles": 2, "tilings": 1}  # the caller's settings are left alone


def test_settings_are_listed():
    assert settings_of("fourier") == ("order", "degree", "low", "high", "coordinates", "shape", "constant", "direct")
    assert settings_of("one-hot") == ()
