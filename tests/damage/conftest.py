"""The command line, as in the tests of it."""

from __future__ import annotations

from cli.conftest import run  # noqa: F401
