"""The page on features: its table is that of the code."""

import re

from places import DOCS
from saddleback.features import BY_NAME, make, settings_of
from saddleback.problem.spaces import BoxStates

PAGE = (DOCS / "features.md").read_text()


def test_the_table_names_every_map_and_setting():
    rows = {name: text for name, text in re.findall(r"^\| `([\w-]+)` \|(.*)\|$", PAGE, re.MULTILINE) if name in BY_NAME}
    assert set(rows) == set(BY_NAME) - {"matrix", "function"}
    for name, text in rows.items():
        own = set(settings_of(name)) - {"low", "high", "coordinates", "shape", "constant", "direct"}
        assert own <= set(re.findall(r"`(\w+)`", text)), name


def test_the_table_says_whether_a_constant_is_in_the_span():
    box = BoxStates([0.0], [1.0])
    for name in ("cells", "tiles", "multilinear", "fourier", "polynomial", "radial-basis"):
        assert make(name, box, 1, constant=False).constant
    assert not make("random-fourier", box, 1, constant=False).constant
    assert not make("radial-basis", box, 1, constant=False, normalised=False).constant
