"""Parts of other packages, by real distributions on the path: listed, loaded when asked for, and refused with a reason."""

import sys

import pytest

from saddleback.errors import InputError
from saddleback.problem.registry import Registry


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a distribution with entry points of a group, and the module they name, where an installer would."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def installed(package, points, code="", group="saddleback.toys"):
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]) + "\n")
        (tmp_path / f"{package}.py").write_text(code)
        # Packages are read once a path: a new entry makes it another path, as a new process would be.
        monkeypatch.syspath_prepend(str(info))

    yield installed
    for module in ("spin", "spare", "faulty"):
        sys.modules.pop(module, None)


def toys():
    return Registry("toys", {"ball": dict, "cube": list})


def test_our_own_parts():
    parts = toys()
    assert (list(parts), len(parts)) == (["ball", "cube"], 2)
    assert parts["cube"] is list and "kite" not in parts and parts.get("kite") is None
    with pytest.raises(KeyError, match="kite"):
        parts["kite"]


def test_a_part_of_our_own_may_be_loaded_when_asked_for():
    parts = Registry("toys", {"ball": "colorsys:rgb_to_hsv", "lost": "nowhere_at_all:kite"})
    assert list(parts) == ["ball", "lost"]
    assert parts["ball"] is sys.modules["colorsys"].rgb_to_hsv
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        parts["lost"]


def test_a_part_of_another_package_is_listed_and_loaded_when_asked_for(install):
    parts = toys()
    assert "top" not in parts
    install("spin", {"top": "spin:Top", "disc": "spin:Disc"}, "class Top: ...\nclass Disc: ...")
    install("spare", {"lost": "spare:Lost"}, group="saddleback.tools")
    assert list(parts) == ["ball", "cube", "disc", "top"] and len(parts) == 4
    assert "spin" not in sys.modules
    assert parts["top"] is sys.modules["spin"].Top
    assert {name: part.__name__ for name, part in parts.items()}["disc"] == "Disc"


@pytest.mark.parametrize(
    ("value", "code", "complaint"),
    [
        (
            "faulty:Kite",
            "import nowhere_at_all",
            "ModuleNotFoundError: No module named 'nowhere_at_all' in faulty:Kite",
        ),
        ("faulty:Kite", "1 / 0", "ZeroDivisionError"),
        ("faulty:Kite", "", "AttributeError"),
        ("faulty:Kite", "Kite = 3", "something to call in the package faulty, got 3 as faulty:Kite"),
    ],
)
def test_a_broken_package_is_named_and_in_nobody_elses_way(install, value, code, complaint):
    install("faulty", {"kite": value}, code)
    parts = toys()
    assert list(parts) == ["ball", "cube", "kite"] and parts["ball"] is dict
    with pytest.raises(InputError, match=complaint) as caught:
        parts["kite"]
    assert caught.value.name == "kite" and caught.value.remedy == "mend or uninstall faulty"


def test_a_name_taken_twice_is_refused(install):
    install("spin", {"ball": "spin:Top", "top": "spin:Top"}, "class Top: ...")
    install("spare", {"top": "spare:Top"}, "class Top: ...")
    parts = toys()
    assert list(parts) == ["ball", "cube", "top"] and len(parts) == 3 and parts["cube"] is list
    with pytest.raises(
        InputError, match=r"`ball` must be the name of one part.* one from each of saddleback, spin; uninst"
    ):
        parts["ball"]
    with pytest.raises(InputError, match="one from each of spare, spin;"):
        parts["top"]


def test_parts_can_be_added_and_taken_away():
    parts = toys()
    parts["kite"] = set
    assert list(parts) == ["ball", "cube", "kite"] and parts["kite"] is set
    del parts["kite"]
    assert "kite" not in parts
