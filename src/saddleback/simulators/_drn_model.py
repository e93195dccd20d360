"""The model in a DRN file, line after line, into columns: see :mod:`saddleback.simulators.drn` for the format.

What is declared (numbers of states and choices) is compared with what comes, never believed: all columns grow with the lines
that were really there. The file, its lines and the numbers in them are read with bounds on their size.
"""

from __future__ import annotations

import math
import os
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from saddleback.errors import InputError, StorageError, plain_text, require
from saddleback.problem.names import LONGEST_NAME
from saddleback.problem.spaces import Array

MOST_BYTES = 4 * 10**9
"""The largest file that is read unless the caller says otherwise."""

_MOST_LINE = 1 << 16
_MOST_DIGITS = 400
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_FRACTION = re.compile(r"([+-]?[0-9]+)/([0-9]+)")
_WHOLE = re.compile(r"[0-9]{1,18}")
NAME = re.compile(r"[^\s,\[\]\"@]+")
_MOST_MODELS = 1000
_LABEL = re.compile(r'\s*(?:"([^"]+)"|([^\s"\[\]]+))')
_SUM = 1e-9  # as in a table
_LOOSE_SUM = 1e-4


def plain_name(name: str) -> str:
    """A name of a reward model, refused where the format could not hold it."""
    rule = "must be printable, without blanks, commas, brackets, quotes or @, to be a reward model's name"
    require(bool(NAME.fullmatch(name)) and name.isprintable(), "name", rule, repr(name), "rename it")
    return name


class Lines:
    """The lines that hold something, with their numbers; comments and empty lines are skipped on request."""

    def __init__(self, path: str | os.PathLike[str], most_bytes: int):
        self.path, self.at, self.size = Path(path), 0, 0
        self._lines = self._read(most_bytes)

    def _read(self, most_bytes: int) -> Iterator[str]:
        try:
            found = None if self.path.is_file() else "a directory" if self.path.is_dir() else "no such file"
            require(found is None, str(self.path), "must be an existing DRN file", found, "check the path")
            size = self.size = self.path.stat().st_size
            remedy = "raise most_bytes if you trust the file"
            require(size <= most_bytes, str(self.path), f"must have at most {most_bytes:,} bytes", f"{size:,}", remedy)
            with open(self.path, "rb") as file:
                while line := file.readline(_MOST_LINE + 1):
                    self.at += 1
                    if len(line) > _MOST_LINE:
                        self.refuse(f"must have lines of at most {_MOST_LINE:,} bytes", "a longer one", "break it up")
                    yield self._text(line)
        except OSError as error:
            raise StorageError(f"`{self.path}` could not be read: {error}; check the disk and the rights.") from error

    def _text(self, line: bytes) -> str:
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            text = "\0"
        if not text.replace("\t", " ").isprintable():
            self.refuse("must be plain text", repr(line[:40]), "unpack it if it is compressed, or write it again")
        return text

    def next(self, what: str) -> str:
        """The next line as it is, for the fields of the header that may be empty."""
        text = next(self._lines, None)
        if text is None:
            self.at += 1
            self.refuse(f"must go on with {what}", "the end of the file", "the file is cut short: write it again")
        return text

    def __iter__(self) -> Iterator[str]:
        for text in self._lines:
            stripped = text.strip()
            if stripped and not stripped.startswith("//"):
                yield stripped

    def whole(self, text: str, what: str) -> int:
        """A whole number in digits."""
        if not _WHOLE.fullmatch(text):
            self.refuse(f"must hold {what}, a whole number", quoted(text), "write it in digits")
        return int(text)

    def number(self, text: str) -> float:
        """A finite number, decimal or a fraction of whole ones."""
        value = float("nan")
        if len(text) <= _MOST_DIGITS:
            if _NUMBER.fullmatch(text):
                value = float(text)
            elif (match := _FRACTION.fullmatch(text)) and int(match.group(2)) > 0:
                try:
                    value = int(match.group(1)) / int(match.group(2))
                except OverflowError:
                    value = float("inf")
        if not math.isfinite(value):
            self.refuse("must hold finite numbers such as 0.25, 1e-3 or 1/4", quoted(text), "write plain numbers")
        return value

    def refuse(self, rule: str, value: Any, remedy: str) -> NoReturn:
        """Raise the error that names file and line."""
        raise InputError(f"{self.path}, line {self.at}", rule, value, remedy)


def quoted(text: str) -> str:
    """A stranger's text, escaped and shortened."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


class Rewards:
    """The rewards of lines, one after the other, as many as there are reward models; ``places`` says where each line's begin.

    A line without any stands for zeros, place −1: memory grows with the file, not with lines times models.
    """

    def __init__(self) -> None:
        self.places, self.values = array("q"), array("d")

    def of_model(self, j: int) -> Array:
        """The reward of every line under model ``j``."""
        places, values = np.asarray(self.places), np.append(np.asarray(self.values), 0.0)
        return np.asarray(values[np.where(places < 0, len(values) - 1, places + j)])


class Reading:
    """A file read into columns: one entry a state, a choice or a transition."""

    def __init__(self, lines: Lines, normalise: bool):
        self.lines, self.normalise, self._refuse = lines, normalise, lines.refuse
        self.models: list[str] = []
        self.num_states = 0
        self.num_choices = array("q")
        self.starts, self.targets, self.probabilities = array("q", [0]), array("q"), array("d")
        self.state_rewards, self.choice_rewards = Rewards(), Rewards()
        self.labels: list[tuple[str, ...]] = []
        self.weights: dict[int, float | None] = {}  # of the states labelled init
        self._seen: set[int] = set()
        self._choice_line = 0

    def read(self) -> None:
        """All of the file."""
        declared = self._header()
        S = declared["@nr_states"]
        for text in self.lines:
            if text.startswith("state "):
                self._state(text, S)
            elif text.startswith("action "):
                self._action(text)
            else:
                self._transition(text, S)
        self.lines.at += 1
        self._end_state()
        found = {"@nr_states": self.num_states, "@nr_choices": sum(self.num_choices)}
        for name, number in declared.items():
            if found[name] != number:
                self._refuse(
                    f"must end after {number} of {name}", found[name], f"mend {name}, or the file is cut short"
                )

    # ---- the header ----------------------------------------------------------------------------------------------------

    def _header(self) -> dict[str, int]:
        seen: set[str] = set()
        declared: dict[str, int] = {}
        for text in self.lines:
            field = text.split(":")[0] if text.startswith(("@type:", "@value_type:")) else text
            if field in seen:
                self._refuse(f"must hold {field} once", "it again", "leave one out")
            seen.add(field)
            if field == "@model":
                for needed in ("@type", "@reward_models", "@nr_states"):
                    if needed not in seen:
                        self._refuse(f"must declare {needed} before @model", "none", f"add {needed}")
                return declared
            self._field(field, text, declared)
        self.lines.at += 1
        self._refuse("must hold @model", "the end of the file", "the file is cut short: write it again")

    def _field(self, field: str, text: str, declared: dict[str, int]) -> None:
        value = text.partition(":")[2].strip()
        if field == "@type":
            if value != "MDP":
                self._refuse("must be of @type: MDP", quoted(value), "convert the model to an MDP")
        elif field == "@value_type":
            if value not in ("double", "rational"):
                self._refuse("must have values double or rational", quoted(value), "export it with plain numbers")
        elif field == "@parameters":
            if names := self.lines.next("the parameters").split():
                self._refuse("must have no parameters", quoted(names[0]), "give them values before you export")
        elif field == "@reward_models":
            self._models(self.lines.next("the names of reward models").split())
        elif field in ("@nr_states", "@nr_choices"):
            declared[field] = self.lines.whole(self.lines.next("a number").strip(), field)
            if declared[field] == 0:
                self._refuse(f"must have {field} above 0", 0, "give the model a state")
        else:
            known = "@type, @value_type, @parameters, @reward_models, @nr_states, @nr_choices, @model"
            self._refuse(f"must be one of {known}", quoted(text), "export it without other sections")

    def _models(self, names: list[str]) -> None:
        if len(names) > _MOST_MODELS:
            self._refuse(f"must have at most {_MOST_MODELS} reward models", len(names), "leave some out")
        for name in names:
            if not NAME.fullmatch(name):
                self._refuse("must name reward models without commas, brackets or quotes", quoted(name), "rename it")
        if len(set(names)) < len(names):
            self._refuse("must give reward models distinct names", quoted(" ".join(names)), "rename one")
        self.models = names

    # ---- the model -----------------------------------------------------------------------------------------------------

    def _state(self, text: str, declared: int) -> None:
        self._end_state()
        number, rest = _first(text[6:])
        if self.lines.whole(number, "a state's number") != self.num_states:
            rule = f"must go on with state {self.num_states}"
            self._refuse(rule, quoted(number), "number the states from 0 on, in order, without gaps")
        if self.num_states == declared:
            self._refuse(f"must have {declared} states as declared", "one more", "mend @nr_states")
        self.num_states += 1
        self.num_choices.append(0)
        rest = self._rewards(rest, self.state_rewards)
        labels, position, rest = [], 0, rest.rstrip()
        while position < len(rest):
            match = _LABEL.match(rest, position)
            if match is None:
                self._refuse("must end in labels", quoted(rest[position:]), "quote labels that hold blanks or brackets")
            labels.append(match.group(1) or match.group(2))
            position = match.end()
        self.labels.append(tuple(label for label in labels if label != "init" and not label.startswith("rho=")))
        if "init" in labels:
            given = [label[4:] for label in labels if label.startswith("rho=")]
            self.weights[self.num_states - 1] = self.lines.number(given[0]) if given else None

    def _action(self, text: str) -> None:
        if self.num_states == 0:
            self._refuse("must begin with a state", quoted(text), "put `state 0` before the first action")
        self._end_choice()
        name, rest = _first(text[7:])
        if not NAME.fullmatch(name):
            self._refuse("must name the action before its rewards", quoted(name), "call it 0, 1, …")
        self.num_choices[-1] += 1
        self._choice_line = self.lines.at
        rest = self._rewards(rest, self.choice_rewards)
        if rest.strip():
            self._refuse("must end after the rewards of the action", quoted(rest), "names must not hold blanks")

    def _transition(self, text: str, declared: int) -> None:
        target, colon, probability = text.partition(":")
        if not colon:
            rule = "must be `state …`, `action …` or `target : probability`"
            self._refuse(rule, quoted(text), "write it again, or leave it out")
        if self.num_states == 0 or self.num_choices[-1] == 0:
            self._refuse("must come after an action", quoted(text), "put `action 0` before it")
        t = self.lines.whole(target.strip(), "a target")
        if t >= declared:
            self._refuse(f"must lead to states 0 to {declared - 1}", t, "mend the target, or @nr_states")
        if t in self._seen:
            self._refuse("must give each target of a choice once", f"state {t} again", "add the two probabilities")
        p = self.lines.number(probability.strip())
        if not 0 <= p <= 1 + _LOOSE_SUM:
            self._refuse("must be a probability", p, "mend it")
        self._seen.add(t)
        self.targets.append(t)
        self.probabilities.append(p)

    def _end_choice(self) -> None:
        if self.num_choices and self.num_choices[-1] > 0:
            first = self.starts[-1]
            total = sum(self.probabilities[first:])
            tolerance = _LOOSE_SUM if self.normalise else _SUM
            if len(self.probabilities) == first or abs(total - 1) > tolerance:
                self.lines.at = self._choice_line
                remedy = "mend them" if abs(total - 1) > _LOOSE_SUM else "mend them, or read it with normalise=True"
                self._refuse("must have probabilities of this action that sum to 1", f"{total:.12g}", remedy)
            if self.normalise:
                for i in range(first, len(self.probabilities)):
                    self.probabilities[i] /= total
            self.starts.append(len(self.probabilities))
            self._seen = set()

    def _end_state(self) -> None:
        if self.num_states == 0:
            return
        self._end_choice()
        if self.num_choices[-1] == 0:
            rule = f"must give state {self.num_states - 1} an action"
            self._refuse(rule, "none", "let it stay where it is if nothing can be done there")

    def _rewards(self, text: str, column: Rewards) -> str:
        """Append the rewards in brackets (zeros if there are none) and give what comes after them."""
        k = len(self.models)
        if not text.startswith("["):
            column.places.append(-1)
            return text
        inside, bracket, rest = text[1:].partition("]")
        if not bracket:
            self._refuse("must close the bracket around rewards", quoted(text), "add ]")
        values = [x.strip() for x in inside.split(",")] if inside.strip() else []
        if len(values) != k:
            rule = f"must give {k} rewards in brackets, one a reward model"
            self._refuse(rule, len(values), "name all reward models after @reward_models")
        column.places.append(len(column.values))
        column.values.extend(self.lines.number(x) for x in values)
        return rest

    # ---- what the file says of start and names -------------------------------------------------------------------------

    def start(self) -> Array:
        """ρ over all states."""
        if not self.weights:
            raise InputError(str(self.lines.path), "must label a state `init`", "none", "add the label, or give rho")
        rho = np.zeros(self.num_states)
        weights = list(self.weights.values())
        uniform = all(weight is None for weight in weights)
        rho[list(self.weights)] = 1.0 / len(weights) if uniform else [0.0 if w is None else w for w in weights]
        return rho

    def state_names(self) -> list[str] | None:
        """The other labels of each state as its name, its number where there is none; None if no state has any."""
        names = [plain_text(" ".join(x), LONGEST_NAME) or str(s) for s, x in enumerate(self.labels)]
        return names if any(self.labels) else None


def _first(text: str) -> tuple[str, str]:
    """The first word and what comes after it."""
    word, *rest = text.split(None, 1)
    return word, rest[0] if rest else ""
