"""Parts by name, our own and those of other packages: what a ``BY_NAME`` is.

A package adds a part of some kind by an entry point, here a feature map that is then known as ``wavelets``:

    [project.entry-points."saddleback.features"]
    wavelets = "my_package.maps:Wavelets"

Listing the names imports nothing. A package is imported when its part is asked for, so one that is broken is in nobody
else's way. So are modules of our own where a table gives their parts in the same way, as "saddleback.module:name".
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import TypeVar

from saddleback.errors import InputError, require
from saddleback.problem.user_code import calling, fail_as_value

Part = TypeVar("Part")


class Registry(MutableMapping[str, Part]):
    """The parts of a ``kind`` by name: those given, then those of the entry points in the group ``saddleback.<kind>``."""

    def __init__(self, kind: str, parts: Mapping[str, Part | str]) -> None:
        self.kind, self._own = kind, dict(parts)

    def __getitem__(self, name: str) -> Part:
        others = [point for point in self._others() if point.name == name]
        owners = ["saddleback"] * (name in self._own) + sorted(_package(point) for point in others)
        if len(owners) > 1:
            rule = f"must be the name of one part in the group saddleback.{self.kind}"
            raise InputError(name, rule, f"one from each of {', '.join(owners)}", "uninstall or rename all but one")
        if others:
            return self._load(others[0])
        own = self._own[name]
        return EntryPoint(name, own, self.kind).load() if isinstance(own, str) else own

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._others().names

    def __iter__(self) -> Iterator[str]:
        return iter([*self._own, *sorted(self._others().names - self._own.keys())])

    def __len__(self) -> int:
        return len(self._own.keys() | self._others().names)

    def __setitem__(self, name: str, part: Part) -> None:
        self._own[name] = part

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def _others(self) -> EntryPoints:
        return _installed(f"saddleback.{self.kind}", tuple(sys.path))

    def _load(self, point: EntryPoint) -> Part:
        remedy = f"mend or uninstall {_package(point)}"

        rule = f"must load from the package {_package(point)}"
        try:
            with calling(f"the module of {point.value}"):
                part: Part = point.load()
        except BaseException as error:  # somebody's module: anything can happen
            fail_as_value(
                error, "a module", lambda found: InputError(point.name, rule, f"{found} in {point.value}", remedy)
            )
        rule = f"must be something to call in the package {_package(point)}"
        require(callable(part), point.name, rule, f"{part!r} as {point.value}", remedy)
        return part


@cache
def _installed(group: str, _path: tuple[str, ...]) -> EntryPoints:
    """The group's entry points of all packages on the path, read once."""
    return entry_points(group=group)


def _package(point: EntryPoint) -> str:
    return "an unknown package" if point.dist is None else point.dist.name
