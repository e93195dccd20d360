"""A problem that a function of a Python file makes, ``FILE.py:NAME``, where the user has named both.

The function takes no arguments and returns (problem, simulator), a Table or an Instance. The file is loaded under a name of its own,
as the code of problem files is (:mod:`saddleback.instances.problem_file.code`), so what it does under ``if __name__ ==
"__main__"`` is not done.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from saddleback.errors import InputError, require
from saddleback.files.json_file import plain
from saddleback.instances.instance import Instance
from saddleback.instances.problem_file.code import NoFunctionError, find
from saddleback.problem.cmdp import CMDP
from saddleback.problem.user_code import calling, fail_as_value
from saddleback.simulators.function import as_simulator
from saddleback.simulators.table import Table, table_behind

_REMEDY = "give a function without arguments that returns (problem, simulator)"


def load_python(target: str) -> Instance:
    """The problem of ``FILE.py:NAME``."""
    path, _, name = target.rpartition(":")
    file = Path(os.path.abspath(path))
    require(file.is_file(), "--problem", "must name an existing file", target, _REMEDY)
    made: Any = None
    try:
        with calling(f"{name} of {file.name}"):
            made = find(str(file.parent), f"{file.stem}:{name}")()
    except NoFunctionError as error:
        raise InputError("--problem", "must name a function", plain(str(error), 300), "check the spelling") from None
    except BaseException as error:  # the user's module: anything can happen
        rule = "must name code that can be run"
        fail_as_value(error, "a module", lambda said: InputError("--problem", rule, said, "mend it"))
    if isinstance(made, Table):
        return Instance(target, made.problem(), made.simulator(), made, "a table made in Python", {})
    if isinstance(made, Instance):
        return made
    good = isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], CMDP)
    require(good, "--problem", "must return a CMDP and a simulator", f"{type(made).__name__}", _REMEDY)
    problem, model = made[0], as_simulator(*made)
    return Instance(target, problem, model, table_behind(problem, model), "a problem made in Python", {})
