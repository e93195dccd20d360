"""Packages that only some adapters need: imported when they are used, with one message where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from saddleback.errors import InputError


def optional(module: str, extra: str) -> Any:
    """The module, or an :class:`InputError` that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        remedy = f'run: pip install "saddleback[{extra}]"'
        raise InputError(module, "must be installed for this adapter", f"{error}", remedy) from error
