"""Where things are in the repository, for tests at any depth."""

from pathlib import Path

TESTS = Path(__file__).parent
ROOT = TESTS.parent
DOCS = ROOT / "docs"
