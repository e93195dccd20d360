"""What the command line can be pointed at: a zoo problem by name, or a problem table in an ``.npz`` file."""

from __future__ import annotations

from collections.abc import Sequence

from saddleback import zoo
from saddleback.errors import InputError
from saddleback.storage.table_file import load_table
from saddleback.zoo.instance import Instance


def load_target(target: str, settings: Sequence[str] = ()) -> Instance:
    """The problem behind ``target``; ``settings`` are "name=value" strings for a zoo problem's parameters."""
    if target.endswith(".npz"):
        if settings:
            raise InputError("--set", "must not be given for a file", list(settings), "change the file instead")
        table = load_table(target)
        return Instance(target, table.problem(), table.simulator(), table, "a problem table from a file", {})
    parameters = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError("--set", "must look like name=value", repr(setting), "for example --set gamma=0.9")
        parameters[name.replace("-", "_")] = value
    if target not in zoo.BY_NAME:
        raise InputError(
            "TARGET",
            f"must be an .npz file or one of the zoo: {', '.join(zoo.BY_NAME)}",
            repr(target),
            "run `saddleback zoo` for the list",
        )
    return zoo.make(target, **parameters)
