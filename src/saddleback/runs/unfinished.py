"""What is said of a run that is not there: that it is unfinished, where its work folder says so."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from saddleback.errors import InputError
from saddleback.runs.file_names import REQUEST
from saddleback.runs.work_folder import work_folder


def is_unfinished(place: Path) -> bool:
    """Whether there is no run, but one under way, or one that was interrupted."""
    return not os.path.isdir(place) and os.path.isfile(work_folder(place) / REQUEST)


def absent_run(place: Path) -> InputError:
    """The error for a folder that is none."""
    if is_unfinished(place):
        remedy = f"finish it with: saddleback resume {shlex.quote(str(place))}"
        return InputError("RUN", "must be a finished run", f"{place} (unfinished)", remedy)
    found = "a file" if os.path.isfile(place) else "no such folder"
    return InputError("RUN", "must be a folder that `solve --out` wrote", f"{place} ({found})", "check the path")
