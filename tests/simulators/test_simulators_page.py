"""The page on simulators shows all of them."""

from __future__ import annotations

import re

from places import DOCS
from saddleback import simulators

PAGE = DOCS / "simulators.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


def test_every_adapter_is_on_the_page() -> None:
    page = "\n".join(BLOCKS)
    for name in set(simulators.__all__) - {"BY_NAME", "Table"}:
        assert f"{name}(" in page, name
