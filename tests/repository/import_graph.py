"""Who imports whom inside the package, read from the syntax tree: nothing is imported to find out.

An import counts the same at the top of a file, inside a function, as "module:name" in a table of parts that are loaded when
they are asked for, and for the type checker only.
"""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PART = re.compile(r"(saddleback(?:\.\w+)+):(\w+)")

Graph = Mapping[str, set[str]]
"""A module or a station, and those that it imports."""


class Import(NamedTuple):
    """``module`` is dotted and starts below the package; ``name`` is what is taken from it, None for all of it."""

    module: str
    name: str | None
    line: int


def modules_of(source: Path) -> dict[str, str]:
    """Every module's dotted name below the package, and its text; a package is its ``__init__.py``."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)] = path.read_text()
    return found


@cache
def imports_of(text: str, known: frozenset[str]) -> list[Import]:
    """All imports of the package's own modules, wherever they stand; ``known`` tells a module from a name in one."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                found += [Import(a.name, None, node.lineno) for a in names]
            case ast.ImportFrom(level=level, module=module) if level:
                found.append(Import("saddleback." + "." * level + (module or ""), None, node.lineno))
            case ast.ImportFrom(module=str(module), names=names):
                inner = [(f"{module}.{a.name}", a.name) for a in names]
                is_module = [path.removeprefix("saddleback.") in known for path, _ in inner]
                found += [
                    Import(path, None, node.lineno) if whole else Import(module, name, node.lineno)
                    for (path, name), whole in zip(inner, is_module, strict=True)
                ]
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(module)), *_]):
                found.append(Import(module, None, node.lineno))
            case ast.Constant(value=str(text)) if part := _PART.fullmatch(text):
                found.append(Import(part[1], part[2], node.lineno))
    own = [i for i in found if i.module.split(".")[0] == "saddleback"]
    return [i._replace(module=i.module.removeprefix("saddleback").removeprefix(".") or "__init__") for i in own]


def graph_of(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Each module, and the modules that it imports."""
    known = frozenset(modules)
    return {m: {i.module for i in imports_of(text, known) if i.module in known} for m, text in modules.items()}


def between_stations(graph: Graph) -> dict[str, set[str]]:
    """The same graph with a station for each of its modules, without those that stay at home."""
    found: dict[str, set[str]] = {module.split(".")[0]: set() for module in graph}
    for module, targets in graph.items():
        found[module.split(".")[0]] |= {t.split(".")[0] for t in targets} - {module.split(".")[0]}
    return found


def cycle_in(graph: Graph) -> list[str]:
    """A cycle, from a node back to itself; empty where there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as found:
        return list(found.args[1])
    return []


def reached(graph: Graph, start: str) -> set[str]:
    """All modules that one reaches by its imports and theirs, without itself."""
    found, todo = {start}, [start]
    while todo:
        new = graph[todo.pop()] - found
        found |= new
        todo += new
    return found - {start}


def longest_chain(graph: Graph) -> list[str]:
    """The longest way from import to import, in a graph without cycles."""
    chains: dict[str, list[str]] = {}
    for node in graphlib.TopologicalSorter(graph).static_order():
        chains[node] = [node, *max((chains[t] for t in graph[node]), key=len, default=[])]
    return max(chains.values(), key=len)
