"""What is said to people: errors in four parts (name, rule, value, remedy), and remarks beside an answer; and checks.

An error carries the exit code of the command line. Bad input is an :class:`InputError`, a fault of the user's simulator a
:class:`SimulatorError`, a fault of the disk a :class:`StorageError`, a computation that cannot be trusted a
:class:`NumericalError`. Infeasibility is an answer, not an error: see :class:`saddleback.runs.verdict.Status`.

:func:`require` states any rule. The rules that come up everywhere have a check each, which returns what it has checked where
that may have come as something else: :func:`whole` and :func:`whole_number`, :func:`at_least`, :func:`number`, :func:`flag`
and :func:`one_of`.

What strangers wrote, in names, files and exceptions, is shown by way of :func:`plain_text` and :func:`what_happened`: one short
line without control characters, whatever it was.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import math
import operator
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_LONGEST_MESSAGE, _LONGEST_PART = 4000, 600  # a long name or value must not crowd out the rule and the remedy


class SaddlebackError(Exception):
    """Root of every error this package raises on purpose. Its message is one line that may be shown, whatever it quotes."""

    exit_code = 5

    def __init__(self, message: str = "") -> None:
        super().__init__(plain_text(message, _LONGEST_MESSAGE))


class InputError(SaddlebackError):
    """The caller's input breaks a rule: ``InputError("gamma", "must lie in [0, 1)", 1.0, "set a horizon")``."""

    exit_code = 2

    def __init__(self, name: str, rule: str, value: Any, remedy: str):
        self.name, self.rule, self.value, self.remedy = name, rule, value, remedy
        called, found = plain_text(name, _LONGEST_PART), plain_text(str(value), _LONGEST_PART)
        stop = "" if remedy.endswith((".", "?", "!", "…")) else "."
        super().__init__(f"`{called}` {rule}, got {found or 'nothing'}; {remedy}{stop}")


class SimulatorError(SaddlebackError):
    """The simulator failed or returned something impossible; carries the state, action and seed key that show it, what may be
    done about it, and whether a process has come to an end over it."""

    exit_code = 5

    def __init__(
        self,
        problem: str,
        *,
        state: Any,
        action: Any,
        key: tuple[int, ...] | None = None,
        index: int = 0,
        remedy: str = "mend the simulator",
        ended: bool = False,
    ):
        self.problem, self.state, self.action, self.key, self.index = problem, state, action, key, index
        self.remedy, self.ended = remedy, ended
        where = f"state {state}, action {action}, sample {index}"
        seed = "" if key is None else f", seed key (seed, stream, pair, block) = {key}"
        super().__init__(
            f"the simulator {problem} (at {where}{seed}); fix the simulator and run again with the same seed."
        )

    def at(self, **known: Any) -> SimulatorError:
        """The same of a state, an action or a key that is known better."""
        fields = ("state", "action", "key", "index", "remedy", "ended")
        return SimulatorError(self.problem, **{name: getattr(self, name) for name in fields} | known)


class BudgetError(SaddlebackError):
    """An interactive oracle ran out of simulator calls before it had what it was asked for."""

    exit_code = 4


class UnmetError(SaddlebackError):
    """The answer is less than what was asked for with ``must=`` or ``solution.require()``."""

    exit_code = 4

    def __init__(self, message: str, exit_code: int):
        self.exit_code = exit_code
        super().__init__(message)


class StorageError(SaddlebackError):
    """A file could not be read or written."""

    exit_code = 5


class NumericalError(SaddlebackError):
    """A linear program or linear system was solved too inaccurately to be trusted."""

    exit_code = 5


class Remark(NamedTuple):
    """Something a user should know: its kind is for programs, its text for people."""

    kind: str
    text: str

    def __str__(self) -> str:
        return self.text


MOST_HORIZON = 1e8
"""Steps: beyond it a discounted total cannot be told from an endless one, since 1 − γ has lost its digits."""


def require(condition: bool, name: str, rule: str, value: Any, remedy: str) -> None:
    """Raise :class:`InputError` unless ``condition`` holds."""
    if not condition:
        raise InputError(name, rule, value, remedy)


def whole(name: str, value: Any, low: int) -> int:
    """``value`` if it is an integer of ``low`` or more."""
    good = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low
    require(good, name, f"must be a whole number of {low} or more", repr(value), "write it without a decimal point")
    return int(value)


def whole_number(name: str, value: Any, least: int | None = None, remedy: str = "give a whole number") -> int:
    """``value`` as an int: whole numbers of any kind, ``1e6`` included.

    ``name`` is the argument's, ``least`` the smallest value allowed (None: any) and ``remedy`` the end of the message.
    """
    try:
        real = isinstance(value, Real) and not isinstance(value, bool)
        number = int(value) if real else None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    rule = "must be a whole number" + ("" if least is None else f" of at least {least}")
    if number is None or number != value or (least is not None and number < least):
        raise InputError(name, rule, repr(value), remedy)
    return number


def at_least(
    name: str, value: int, low: int, high: int | None = None, remedy: str = "choose a whole number in that range"
) -> None:
    """Refuse unless low ≤ value ≤ high."""
    top = "" if high is None else f" and at most {high}"
    require(low <= value and (high is None or value <= high), name, f"must be at least {low}{top}", value, remedy)


def number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
    rule: str | None = None,
    remedy: str = "choose a number in that range",
) -> float:
    """``value`` as a float if low ≤ value ≤ high, an open end excluded.

    Truth values, text, NaN and infinity are refused. ``rule`` says in other words than the range what is wanted.
    """
    real = isinstance(value, Real) and not isinstance(value, bool)
    try:
        x = float(value) if real else math.nan
    except OverflowError:
        x = math.inf
    within = (low < x if open_low else low <= x) and (x < high if open_high else x <= high)
    right = ", inf)" if math.isinf(high) else f", {high:g})" if open_high else f", {high:g}]"
    rule = f"must lie in {'(' if open_low else '['}{low:g}{right}" if rule is None else rule
    require(within and math.isfinite(x), name, rule, value if real else repr(value), remedy)
    return x


def discount(gamma: Any, remedy: str = "set gamma = 1 - 1/H for a horizon of H steps") -> None:
    """Refuse unless 0 ≤ γ < 1, with a horizon that arithmetic can tell from endless."""
    number("gamma", gamma, 0, 1, open_high=True, remedy=remedy)
    rule = f"must leave a horizon 1/(1 - gamma) of at most {MOST_HORIZON:g} steps"
    require(1 - gamma >= 1 / MOST_HORIZON * (1 - 1e-6), "gamma", rule, f"{float(gamma):.17g}", remedy)


def positive(name: str, value: Any, remedy: str = "leave it out for the usual") -> float:
    """``value`` if it is a finite number above zero."""
    return number(name, value, 0, open_low=True, rule="must be a positive number", remedy=remedy)


def flag(name: str, value: Any) -> bool:
    """``value`` if it is a truth value."""
    require(isinstance(value, bool), name, "must be true or false", repr(value), "leave it out for the usual")
    return bool(value)


def one_of(name: str, value: Any, choices: Iterable[str], remedy: str = "pick one") -> str:
    """``value`` if it is one of the words to choose from."""
    words = list(choices)
    require(isinstance(value, str) and value in words, name, f"must be {' or '.join(words)}", repr(value), remedy)
    return str(value)


def optional_package(module: str, extra: str, purpose: str) -> Any:
    """A module that only ``purpose`` needs ("this solver"), or an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        remedy = f'run: pip install "saddleback[{extra}]"'
        raise InputError(module, f"must be installed for {purpose}", error, remedy) from error


def gone(name: str, successor: str) -> NoReturn:
    """Say where a public name of earlier versions went."""
    raise InputError(name, "is no longer there", "a call of it", f"use {successor}")


# ---- what strangers wrote, fit to be shown ---------------------------------------------------------------------------------

MOST_SHOWN = 300
"""Characters of a stranger's text in a message."""


def plain_text(text: str, most: int = MOST_SHOWN) -> str:
    """One line of at most ``most`` characters: control characters, marks that turn the direction of writing, lone surrogates
    and whatever else has no picture of its own appear as escapes (``\\x1b``, ``\\u202e``)."""
    long, text = len(text) > most, text[:most]
    if not text.isprintable():
        shown = (c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
        text = "".join(shown)
    return text[: max(0, most - 3)] + "..." if long or len(text) > most else text


def what_happened(error: BaseException) -> str:
    """``raised ValueError: text`` of anybody's exception."""
    return f"raised {named(error)}"


def named(error: BaseException) -> str:
    """``ValueError: text`` of anybody's exception, even of one whose text cannot be had."""
    try:
        text = str(error)
    except BaseException as another:  # its own code runs here
        text = f"(its text cannot be had: {type(another).__name__})"
    name = plain_text(type(error).__name__, 80)
    return f"{name}: {plain_text(text)}" if text else name


# ---- what a user wrote, checked on the way in ------------------------------------------------------------------------------


def checked_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Unknown, missing and surplus arguments of ``function`` as an :class:`InputError` with the nearest known name."""
    parameters = inspect.signature(function).parameters
    name = function.__qualname__.removesuffix(".__init__")
    names = [n for n in parameters if n != "self"]
    needed = [n for n in names if parameters[n].default is inspect.Parameter.empty]
    positional = [n for n in names if parameters[n].kind is not inspect.Parameter.KEYWORD_ONLY]
    first = int("self" in parameters)

    @functools.wraps(function)
    def checked(*given: P.args, **named: P.kwargs) -> T:
        placed = positional[: len(given) - first]
        for word in named:
            if word not in names:
                remedy = nearest(word, names, f"{name} takes {', '.join(names)}")
                raise InputError(word, f"must be an argument of {name}", "an unknown one", remedy)
            require(word not in placed, word, "must be given once", "it twice", "remove one of the two")
        rule = f"must be given at most {len(positional)} arguments without a name"
        require(len(given) - first <= len(positional), name, rule, len(given) - first, "write the others as name=value")
        for word in needed:
            require(word in named or word in placed, word, f"must be given to {name}", "nothing", f"add {word}=...")
        return function(*given, **named)

    return checked


def takes(function: Callable[..., Any], number: int) -> bool:
    """Whether ``function`` can be called with so many arguments without a name, as far as its signature tells."""
    try:
        inspect.signature(function).bind(*[None] * number)
    except TypeError:
        return False
    except ValueError:  # built-in functions without a signature
        return True
    return True


def nearest(word: Any, known: Iterable[Any], otherwise: str) -> str:
    """A question whether something known was meant, or the text ``otherwise`` where nothing known is near."""
    near = difflib.get_close_matches(str(word), [str(k) for k in known], 1, 0.6)
    return f"did you mean {near[0]}?" if near else otherwise
