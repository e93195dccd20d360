"""JSON from strangers, and files that are whole or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError, StorageError
from saddleback.files.disk import written_whole
from saddleback.files.json_file import Limits, Record, Whole, as_record, in_order, read_json, sha256_of, write_json

numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(derandomize=True, deadline=None, max_examples=50)
@given(json_values)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("json") / "x.json"
    write_json(path, value)
    assert read_json(path, 1 << 20, "mend it") == value
    assert [p.name for p in path.parent.iterdir()] == ["x.json"]


def test_numpy_is_written_as_numbers(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": np.arange(2), "b": np.float64(0.1)})
    assert read_json(tmp_path / "x.json", 100, "") == {"a": [0, 1], "b": 0.1}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_what_is_no_number_is_not_written(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        write_json(tmp_path / "x.json", value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"a": 1', "readable JSON"),
        (b"", "readable JSON"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": -Infinity}', "-Infinity is not a number"),
        (b'{"a": [1e400]}', "inf is too large for a number"),
        (b"[-1" + b"0" * 400 + b"]", "is too large for a number"),
        (b'{"a": 1, "a": 2}', "'a' is given twice"),
        (b"\xff\xfe\x00", "readable JSON"),
        (b"[" * 90_000, "readable JSON"),
        (b" " * 100_001, "at most 100,000 bytes"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_json(tmp_path / "x.json", 100_000, "write it again")
    assert says in str(caught.value) and "x.json" in str(caught.value)
    assert str(caught.value).endswith("write it again.")


def test_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_json(tmp_path / "x.json", 10, "look elsewhere")


class Inner(Record, frozen=True):
    flag: bool
    more: dict[str, int] | None = None


class Example(Record, frozen=True):
    name: str
    sizes: list[Whole]
    limits: Limits | None
    inner: Inner

    def __post_init__(self) -> None:
        in_order(self.limits)


GOOD: dict[str, Any] = {"name": "x", "sizes": [0, 3], "limits": [1, 2.5], "inner": {"flag": True}}


@pytest.mark.parametrize(
    "value", [GOOD, {**GOOD, "limits": None}, {**GOOD, "sizes": []}, {**GOOD, "inner": {"flag": False, "more": {}}}]
)
def test_right_shapes_pass(value: Any) -> None:
    record = as_record(value, Example, "file", "")
    assert record.sizes == value["sizes"] and record.inner.flag is value["inner"]["flag"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "`file` must have the form that this version writes, got another: Expected `object`"),
        ({k: v for k, v in GOOD.items() if k != "name"}, "missing required field `name`"),
        ({**GOOD, "extra": 1}, "unknown field `extra`"),
        ({**GOOD, "x" * 500: 1}, "..."),
        ({**GOOD, "\x1b[2J": 1}, "unknown field"),
        ({**GOOD, "\ud800": 1}, "surrogates not allowed"),
        ({**GOOD, "name": 3}, "`str`, got `int` - at `$.name`"),
        ({**GOOD, "sizes": 3}, "`array`, got `int` - at `$.sizes`"),
        ({**GOOD, "sizes": [1, -1]}, "`int` >= 0 - at `$.sizes[1]`"),
        ({**GOOD, "sizes": [True]}, "`int`, got `bool` - at `$.sizes[0]`"),
        ({**GOOD, "sizes": [1.0]}, "`int`, got `float` - at `$.sizes[0]`"),
        ({**GOOD, "limits": [2, 1]}, "limits must be two numbers [low, high]"),
        ({**GOOD, "limits": [1, 2, 3]}, "at `$.limits`"),
        ({**GOOD, "limits": ["1", 2]}, "at `$.limits[0]`"),
        ({**GOOD, "inner": {}}, "missing required field `flag` - at `$.inner`"),
        ({**GOOD, "inner": {"flag": 1}}, "`bool`, got `int` - at `$.inner.flag`"),
        ({**GOOD, "inner": {"flag": True, "more": []}}, "at `$.inner.more`"),
    ],
)
def test_wrong_shapes_are_named(value: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        as_record(value, Example, "file", "mend it")
    assert says in str(caught.value) and str(caught.value).isprintable() and len(str(caught.value)) < 450


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    with pytest.raises(TypeError), written_whole(path) as file:
        file.write("text where bytes belong")  # type: ignore[arg-type]
    assert path.read_text() == "old"
    with written_whole(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    with pytest.raises(StorageError, match="could not be written"), written_whole(tmp_path / "no" / "x") as file:
        pass


def test_sha256(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256_of(tmp_path / "x") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(StorageError):
        sha256_of(tmp_path / "y")
