import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_configure(config: pytest.Config) -> None:
    """xdist knows this mark; without xdist it says nothing."""
    config.addinivalue_line("markers", "xdist_group(name): tests that one process should run")
