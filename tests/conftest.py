import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# A shell that starts a suite in the background lets it ignore Ctrl-C, and with it every program that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The statistical tests come first: the longest of them takes four minutes, in which the other workers would have nothing left to do."""
    items.sort(key=lambda item: "statistical" not in item.path.parts)
