"""The types that carry a run: no field is of any type, and the published schema of the files is what they say.

Write the schema again with ``python tests/runs/test_types.py``.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from saddleback.certificates import Certificate
from saddleback.runs.answer import Answer, AnswerRecord
from saddleback.runs.certificate_file import CertificateRecord
from saddleback.runs.drawings_file import DesignRecord, DualRecord, FrontierRecord
from saddleback.runs.problem_record import QuestionRecord
from saddleback.runs.run_folder import ManifestRecord, Run
from saddleback.runs.settings import Settings
from saddleback.runs.verdict import Verdict
from saddleback.runs.work_folder import Request, SampleOptions, SolveOptions
from saddleback.solving.solution import Solution

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "docs" / "files.schema.json"
FILES = {
    "run.json": ManifestRecord,
    "solution.json": AnswerRecord,
    "certificate.json": CertificateRecord,
    "frontier.json": FrontierRecord,
    "dual.json": DualRecord,
    "design.json": DesignRecord,
    "problem.json": QuestionRecord,
    "request.json": Request,
    "request.json, options of solve": SolveOptions,
    "request.json, options of sample": SampleOptions,
}


def parts_of(kind: Any) -> Iterator[Any]:
    """A type and what it is made of; an array is one thing, whatever NumPy leaves open about its shape."""
    yield kind
    if typing.get_origin(kind) is not np.ndarray:
        for part in typing.get_args(kind):
            yield from parts_of(part)


def open_types(kind: type) -> set[str]:
    """Names of fields, and of public methods, whose type holds Any."""
    found = dict(typing.get_type_hints(kind))
    for name, method in inspect.getmembers(kind, inspect.isroutine):
        if not name.startswith("_") and inspect.isfunction(method):
            found |= {f"{name}({word})": hint for word, hint in typing.get_type_hints(method).items()}
    return {name for name, hint in found.items() if Any in parts_of(hint)}


@pytest.mark.parametrize("kind", [Answer, Solution, Settings, Verdict, Certificate, Run, *FILES.values()])
def test_no_type_is_left_open(kind: type) -> None:
    allowed = {"options"} if kind is Request else set()  # of one verb or the other: checked when the verb is known
    assert open_types(kind) == allowed


def test_open_types_are_found() -> None:
    class Loose:
        field: dict[str, list[Any]]

        def method(self, word: Any) -> int:
            return 0

    assert open_types(Loose) == {"field", "method(word)"}


def generated() -> str:
    schemas, components = msgspec.json.schema_components(FILES.values(), ref_template="#/$defs/{name}")
    files = dict(zip(FILES, schemas, strict=True))
    head = '"$schema": "https://json-schema.org/draft/2020-12/schema",\n"title": "What the files of a run hold"'
    return f'{{\n{head},\n"properties": {{\n{_rows(files)}\n}},\n"$defs": {{\n{_rows(components)}\n}}\n}}\n'


def _rows(schemas: dict[str, Any]) -> str:
    """One line a definition."""
    return ",\n".join(
        f"{json.dumps(name)}: {json.dumps(schema, ensure_ascii=False)}" for name, schema in schemas.items()
    )


def test_the_published_schema_is_that_of_the_types() -> None:
    made_with = re.search(r"^msgspec==(.+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    if made_with is None or msgspec.__version__ != made_with[1]:
        pytest.skip("another version of msgspec spells the same schema otherwise")
    assert SCHEMA.read_text() == generated()
    assert json.loads(generated())["properties"].keys() == FILES.keys()


if __name__ == "__main__":
    SCHEMA.write_text(generated())
