"""The code behind a problem file: the modules that it names, each as a short hash.

Sixty-four probes do not see a change at a pair that nobody asked about, so the source is looked at too: of every named module,
and of what it imports from its own folder, wherever in the file; not what is installed, and not saddleback. Comments and blank
lines do not count. Nothing is run for it. Whoever calls from Python hands over objects, which are known by their answers alone.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import os
import sysconfig
import tokenize
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

_THEIRS = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_THEIRS.add(Path(__file__).parents[1])
_INSTALLED = {"site-packages", "dist-packages"}
_MOST_OBJECTS = 10_000
_MOST_IN_A_LIST = 1_000
_ATOMS = (type(None), bool, int, float, complex, str, bytes)


def sources_of(*objects: Any) -> dict[str, str]:
    """Files by their names within the folder of the module that needs them, with what is in them in short."""
    found: dict[str, set[str]] = {}
    for module in _named_modules(objects):
        file = _own_file(module)
        if file is None:
            continue
        depth = module.__name__.count(".") + (file.stem == "__init__")
        home = file.parents[min(depth, len(file.parents) - 1)]
        for needed in _needed(file, home):
            found.setdefault(needed.relative_to(home).as_posix(), set()).add(_text_of(needed)[1])
    return {name: "+".join(sorted(hashes)) for name, hashes in sorted(found.items())}


def changed_sources(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Which files differ, in words; nothing where none does."""
    words = []
    for name in sorted(then.keys() | now.keys()):
        if then.get(name) != now.get(name):
            words.append(f"{name} {'is new' if name not in then else 'is gone' if name not in now else 'has changed'}")
    return ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")


def changed_files(folder: Path, then: Mapping[str, str]) -> str:
    """Which of the files that lie in ``folder`` differ from what they were, in words; nothing where none does."""
    found = {name: _text_of(folder / name)[1] for name in then if (folder / name).is_file()}
    now = {name: then[name] if found.get(name, then[name]) in then[name].split("+") else found[name] for name in then}
    return changed_sources(then, now)


def _named_modules(roots: Any) -> list[ModuleType]:
    """Those of all functions known by an import path that the objects hold, as far as that is seen without running them."""
    waiting, seen, found = deque(roots), dict[int, Any](), dict[str, ModuleType]()
    while waiting and len(seen) < _MOST_OBJECTS:
        x = waiting.popleft()
        if id(x) in seen or isinstance(x, _ATOMS):
            continue
        seen[id(x)] = x  # which keeps it alive: the number of an object may be used again
        if hasattr(type(x), "named_module"):
            found[x.named_module.__name__] = x.named_module
        waiting.extend(_parts_of(x))
    return [found[name] for name in sorted(found)]


def _parts_of(x: Any) -> list[Any]:
    if isinstance(x, FunctionType):
        return [*(x.__closure__ or ()), *(x.__defaults__ or ()), *vars(x).values()]
    if isinstance(x, CellType):
        try:
            return [x.cell_contents]
        except ValueError:  # an empty one
            return []
    if isinstance(x, MethodType):
        return [x.__self__, x.__func__]
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, (list, tuple, set, frozenset, dict)):
        return list(x.values() if isinstance(x, dict) else x)[:_MOST_IN_A_LIST]
    if isinstance(x, type) or not type(x).__dictoffset__:
        return []
    return list(vars(x).values())[:_MOST_IN_A_LIST]


def _own_file(module: ModuleType) -> Path | None:
    """The file of a module that is the user's; None for others."""
    file = Path(os.path.abspath(getattr(module, "__file__", None) or ""))
    theirs = _THEIRS.intersection(file.parents) or _INSTALLED.intersection(file.parts)
    return None if theirs or file.suffix != ".py" or not file.is_file() else file


def _needed(file: Path, home: Path) -> list[Path]:
    """The file, and what it imports from ``home`` or from its own folder below it, and what that imports."""
    found, waiting = dict[Path, None](), [file]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found[one] = None
            waiting += _imports(_text_of(one)[0], one, home)
    return list(found)


def _imports(text: str, file: Path, home: Path) -> list[Path]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    wanted: list[tuple[Path, list[str]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            wanted += [(home, alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = file.parents[node.level - 1] if 0 < node.level <= len(file.parents) else home
            stem = node.module.split(".") if node.module else []
            wanted += [(above, [*stem, alias.name]) for alias in node.names]
    found = []
    for folder, parts in wanted:
        for k in range(1, len(parts) + 1):
            at = folder.joinpath(*parts[:k])
            found += [p for p in (at.with_name(f"{at.name}.py"), at / "__init__.py") if p.is_file()]
    return [p for p in found if home in p.parents]


def _text_of(file: Path) -> tuple[str, str]:
    """A file, and a short hash of it without comments and blank lines."""
    try:
        data = file.read_bytes()
    except OSError:
        return "", "unreadable"
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = io.TextIOWrapper(io.BytesIO(data), encoding).read()
        lines = text.split("\n")
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                lines[token.start[0] - 1] = lines[token.start[0] - 1][: token.start[1]]
    except (SyntaxError, ValueError, tokenize.TokenError):  # nothing that Python would read: all of it counts
        return "", hashlib.sha256(data).hexdigest()[:16]
    code = "\n".join(line.rstrip() for line in lines if line.strip())
    return text, hashlib.sha256(code.encode()).hexdigest()[:16]
