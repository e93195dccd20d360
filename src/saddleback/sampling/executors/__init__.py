"""Executors: where blocks of samples are drawn. None of them changes a sample.

``serial`` draws here, ``joblib`` in processes of this machine, ``ray`` on a cluster. All take ``timeout``, ``retries`` and
``progress`` and can be used in a ``with`` block, at whose end they let go of what they have started. joblib and Ray are
imported when the first task is carried out.
"""

from __future__ import annotations

from typing import Any

from saddleback.errors import InputError
from saddleback.sampling.executors.joblib import Joblib
from saddleback.sampling.executors.ray import Ray
from saddleback.sampling.executors.serial import Serial

BY_NAME: dict[str, type[Serial] | type[Joblib] | type[Ray]] = {"serial": Serial, "joblib": Joblib, "ray": Ray}


def make(name: str | None = None, workers: int | None = 1, **options: Any) -> Serial | Joblib | Ray:
    """The named executor; without a name serial for one worker and joblib for more (None: one a core)."""
    name = name or ("serial" if workers == 1 else "joblib")
    if name not in BY_NAME:
        raise InputError("executor", "must be known", repr(name), f"choose one of {', '.join(BY_NAME)}")
    if name == "serial":
        if workers not in (None, 1):
            raise InputError("workers", "must be 1 for the serial executor", workers, "choose joblib or ray")
        return Serial(**options)
    return Ray(workers, **options) if name == "ray" else Joblib(workers, **options)


__all__ = ["BY_NAME", "Joblib", "Ray", "Serial", "make"]
