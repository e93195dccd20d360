"""Code that a problem file names: ``module:callable``, from the file's own folder or from what is installed.

Code is loaded only for a problem file that the user has named, never because a stored run says so. A module beside the problem
file is loaded from its file under a name of its own: a simulator in ``queue.py`` neither meets nor replaces Python's own
``queue``. Other processes load it again by themselves, so simulators of problem files can be sent to workers.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from saddleback.files.json_file import plain, short
from saddleback.instances.problem_file.sections import Section
from saddleback.problem.user_code import calling, fail_as_value

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class NoFunctionError(Exception):
    """The module is there, the function is not."""


@dataclass(frozen=True)
class Imported:
    """A callable known by where it is; it is looked up in every process that uses it."""

    folder: str
    path: str

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        return find(self.folder, self.path)(*arguments)

    @property
    def named_module(self) -> ModuleType:
        """The module (:mod:`saddleback.simulators.sources`)."""
        return _module(Path(self.folder), self.path.partition(":")[0])


@functools.cache
def find(folder: str, path: str) -> Callable[..., Any]:
    """The callable at ``module:callable``; raises whatever loading raises."""
    module_name, _, names = path.partition(":")
    found: Any = _module(Path(folder), module_name)
    for name in names.split("."):
        if not hasattr(found, name):
            known = ", ".join(n for n, x in vars(found).items() if callable(x) and not n.startswith("_"))
            raise NoFunctionError(
                f"there is no {name} in {module_name}, which has {plain(known, 200) or 'no functions'}"
            )
        found = getattr(found, name)
    if not callable(found):
        raise NoFunctionError(f"{path} is no function but {short(found)}")
    return found


def imported(section: Section, key: str) -> Imported:
    """The callable that a key names, loaded once to see that it is there."""
    path = section.get(key, "text")
    folder = str(section.file.absolute().parent)
    if not _PATH.fullmatch(path):
        example = f'for example {key} = "shop:step" for the function step in shop.py beside this file'
        raise section.fault(key, "must look like module:callable", short(path), example)
    remedy = f"put {path.partition(':')[0]}.py beside this file, or mend it"
    try:
        with calling(f"the module of {path}"):
            find(folder, path)
    except NoFunctionError as error:
        raise section.fault(key, "must name a function", plain(str(error), 300), "check the spelling") from None
    except BaseException as error:  # the user's module: anything can happen
        rule = "must name code that can be imported"
        fail_as_value(error, "a module", lambda found: section.fault(key, rule, found, remedy))
    return Imported(folder, path)


def _module(folder: Path, name: str) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # for what the module itself imports; last, so that it hides nothing
    file = folder / f"{name}.py"
    if not file.is_file():
        importlib.invalidate_caches()
        return importlib.import_module(name)
    alias = f"{name}@{hashlib.sha256(os.fsencode(file)).hexdigest()[:8]}"
    if alias in sys.modules:
        return sys.modules[alias]
    spec = importlib.util.spec_from_file_location(alias, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module  # before it runs: dataclasses look themselves up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[alias]
        raise
    return module
