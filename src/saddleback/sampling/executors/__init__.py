"""Executors: where blocks of samples are drawn. None of them changes a sample.

``serial`` draws here, ``joblib`` in processes of this machine, ``ray`` on a cluster; joblib and Ray are imported when the
first task is carried out. Three more stand around another executor: ``Durable`` keeps what is drawn, ``Watched`` says how far
it is, ``Replayed`` checks that it can be drawn again. :func:`open_executor` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from saddleback.errors import require
from saddleback.problem.alarm import time_limit
from saddleback.problem.cmdp import CMDP
from saddleback.problem.registry import Registry
from saddleback.sampling.blocks import Executor, InOrder
from saddleback.sampling.executors.durable import Durable
from saddleback.sampling.executors.joblib import Joblib
from saddleback.sampling.executors.ray import Ray
from saddleback.sampling.executors.serial import Serial
from saddleback.sampling.executors.watched import Replayed, ShowProgress, Watched
from saddleback.sampling.fingerprint import UnrepeatableError, fingerprint_of
from saddleback.simulators.generative_model import GenerativeModel

BY_NAME: Registry[Callable[..., Any]] = Registry("executors", {"serial": Serial, "joblib": Joblib, "ray": Ray})


def make(name: str | None = None, workers: int | None = 1, **options: Any) -> Executor:
    """The named executor; without a name serial for one worker and joblib for more (None: as many as there are cores)."""
    name = name or ("serial" if workers == 1 else "joblib")
    require(name in BY_NAME, "executor", "must be known", repr(name), f"choose one of {', '.join(BY_NAME)}")
    if name == "serial":
        rule = "must be 1 for the serial executor"
        require(workers in (None, 1), "workers", rule, workers, "choose joblib or ray")
        return Serial(**options)
    made: Executor = BY_NAME[name](workers, **options)
    return made


@contextmanager
def open_executor(
    workers: int | None = 1,
    name: str | None = None,
    timeout: float | None = None,
    *,
    problem: CMDP,
    simulator: GenerativeModel,
    folder: Path | None = None,
    progress: ShowProgress | None = None,
    fields: Mapping[str, Any] | None = None,
    counts: bool = False,
) -> Iterator[Replayed]:
    """The executor of one run, closed at the end of the ``with`` block.

    workers, name, timeout: who draws, as for :func:`make`; by default this process, one block after the other.
    problem, simulator:     what the samples are samples of; the simulator is probed once, and must repeat itself if the
                            samples are kept.
    folder:                 where samples are kept, and found again; None: nowhere.
    progress:               told how far it is after every block.
    fields:                 what the samples in ``folder`` depend on besides problem and simulator.
    counts:                 keep them as counts where states are finite.
    """
    watched = None if progress is None else Watched(progress)
    drawing: Executor = InOrder()
    if (workers, name, timeout) != (1, None, None):
        drawing = make(name, workers, timeout=timeout, progress=watched and watched.note_failures)
    with time_limit(timeout):
        kept, finding = None, None
        try:
            fingerprint = fingerprint_of(problem, simulator, getattr(drawing, "in_order", None))
            if folder is not None:
                kept = Durable(folder, {**fingerprint, **(fields or {})}, drawing, counts=counts)
        except BaseException as error:
            if folder is not None or not isinstance(error, UnrepeatableError):
                drawing.close()
                raise
            finding = str(error)
        inner = kept or drawing
        if watched is not None:
            watched.inner, inner = inner, watched
        with closing(Replayed(inner, kept, finding)) as executor:
            yield executor


__all__ = ["BY_NAME", "Durable", "Joblib", "Ray", "Replayed", "Serial", "Watched", "make", "open_executor"]
