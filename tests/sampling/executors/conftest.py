import pytest


def pytest_configure(config: pytest.Config) -> None:
    """xdist knows this mark; without xdist it says nothing."""
    config.addinivalue_line("markers", "xdist_group(name): tests that one process should run")
