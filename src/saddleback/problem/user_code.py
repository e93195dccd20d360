"""Calls of the user's code: simulators, rewards, features, predicates, samplers, callbacks. Anything can happen in them.

    with calling("the reward", len(states)):      # every call, in the process that makes it
        ...
    except BaseException as error:                # whatever comes out of it
        fail(error, lambda said: InputError(...))

*What comes out.* SystemExit, GeneratorExit and exceptions without a legible text are faults of that code like any other: one
short message. So is a KeyboardInterrupt that no signal has caused. Errors of ours, a lack of memory and real interrupts pass.
A process that such code has forked, and that comes back as if it were this one, ends there.

*How long it takes.* Within a time limit (:mod:`saddleback.problem.alarm`) a call that takes longer is interrupted, in the main
thread: the limit is for up to 4,096 rows, and larger calls have their share more.

*What stays of it.* The command line adds ``surroundings``, which puts back what such a call has changed for everybody (the
working folder, the standard streams, handlers of signals, …), and a ``board``, memory shared with the process that watches this
one: what is being called, and until when, so that a crash or a call that nothing can interrupt is named (:mod:`saddleback.cli`).

*What it holds.* Nobody holds an array of the other:

    lent(x)       what their code is handed: a copy that it may write into
    frozen(x)     what they gave us to keep: a copy that nobody can write into any more
    guarded(x)    an object of theirs (a feature map, a map of states, a policy): lent arrays in, copies out

What a function of theirs returns is copied where it is received, since the next call may write into the same memory. A copy
costs little beside a call of Python code. Objects of this package need no guard: they write into nothing that they are given.
"""

from __future__ import annotations

import os
import signal
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TextIO, TypeVar

from saddleback.errors import InputError, SaddlebackError, named, plain_text, what_happened

if TYPE_CHECKING:  # the front page of the command line, which needs no arrays, comes without NumPy
    from numpy.typing import NDArray

ROWS = 4096  # for which the limit is meant
_AGAIN = 1.0  # seconds after which a call that has caught its interruption is interrupted again
BOARD = struct.Struct("d")  # the deadline by time.monotonic (0: none), and then the text up to a zero byte


class Surroundings(Protocol):
    """What user code must not change for others."""

    def theirs(self) -> None:
        """Their turn begins."""

    def ours(self) -> None:
        """It is over: everything is put back."""


class Alarm(Protocol):
    """What interrupts a call that takes too long."""

    def set(self, seconds: float, again: float) -> None:
        """Ring in so many seconds, and ``again`` so many seconds after each ring."""

    def clear(self) -> None:
        """It does not ring any more."""


class TimeUp(BaseException):
    """The time of a call is over; no ``except Exception`` in user code catches it."""


class _State:
    """Of this process, which may be the command line's own; ``answers`` then is where they go. ``caught`` is the signal that
    ends the run; ``watching`` says whether signals are told to us."""

    def __init__(self) -> None:
        self.own_process = False
        self.surroundings: Surroundings | None = None
        self.answers: TextIO | None = None
        self.board: Any = None
        self.limit: float | None = None
        self.alarm: Alarm | None = None
        self.watching, self.caught = False, 0
        self.depth, self.armed = 0, False


state = _State()
_MAIN = threading.main_thread().ident


class calling:
    """Around a call for so many ``rows``. ``what`` is text or makes it, None for code of our own, which needs no watching; with
    ``make`` all that comes out goes to :func:`fail`."""

    __slots__ = ("_make", "_outer", "_process", "_rows", "_what")

    def __init__(
        self, what: str | Callable[[], str] | None, rows: int = 1, make: Callable[[str], SaddlebackError] | None = None
    ) -> None:
        self._what, self._rows, self._make, self._outer = what, rows, make, False

    def __enter__(self) -> None:
        self._process = os.getpid()
        if threading.get_ident() != _MAIN:
            return
        if state.caught:
            raise KeyboardInterrupt  # one that came where nobody could take notice
        self._outer = state.depth <= 0 and self._what is not None
        state.depth += 1
        if self._outer:
            if state.board is not None and self._what is not None:
                _post(self._what if isinstance(self._what, str) else self._what(), self._rows)
            if state.surroundings is not None:
                state.surroundings.theirs()
            if state.limit is not None and state.alarm is not None:
                state.armed = True
                state.alarm.set(_seconds(state.limit, self._rows), _AGAIN)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if os.getpid() != self._process:
            os._exit(1)  # the work is the other's, and so are the files, the locks and the answer
        if threading.get_ident() == _MAIN:
            self._leave()
        if error is not None and self._make is not None:
            fail(error, self._make)

    def _leave(self) -> None:
        with suppress(TimeUp):  # it has come back by now
            state.depth -= 1
            if self._outer and state.armed:
                state.armed = False
                if state.alarm is not None:
                    state.alarm.clear()
        if self._outer:
            if state.surroundings is not None:
                state.surroundings.ours()
            if state.board is not None:
                state.board[: BOARD.size + 1] = bytes(BOARD.size + 1)


def fail(error: BaseException, make: Callable[[str], SaddlebackError]) -> NoReturn:
    """Raise ``make(what has happened)``; what is ours, a lack of memory and interrupts pass as they are."""
    if isinstance(error, (SaddlebackError, MemoryError)) or is_interrupt(error):
        raise error
    if isinstance(error, TimeUp):
        said = f"did not return within the timeout of {state.limit or 0:g} s"
    else:
        said = what_happened(error)
    raise make(said) from error


def fail_as_value(error: BaseException, who: str, make: Callable[[str], SaddlebackError]) -> NoReturn:
    """The same with what a message has got: ``ValueError: text``, or ``a module that did not return …``."""
    late = isinstance(error, TimeUp)
    fail(error, lambda said: make(f"{who} that {said}" if late else named(error)))


def is_interrupt(error: BaseException) -> bool:
    """Whether somebody has asked this process to end; where signals are not told to us, all are believed."""
    return isinstance(error, KeyboardInterrupt) and (not state.watching or bool(state.caught))


def interrupted_code() -> int:
    """The exit code of an interrupted command: 128 + the signal's number, 130 for Ctrl-C."""
    return 128 + (state.caught or signal.SIGINT)


def culprit(fails: Callable[[slice], object], number: int) -> int | None:
    """The row of so many that fails by itself, found by halving a batch that failed; None if none does.

    ``fails(rows)`` makes the call again for some rows; whatever it raises counts, but for an interrupt.
    """
    first, last = 0, number
    while last - first > 1:
        middle = (first + last) // 2
        if _raises(fails, slice(first, middle)):
            last = middle
        elif _raises(fails, slice(middle, last)):
            first = middle
        else:
            return None
    return first


def _raises(fails: Callable[[slice], object], rows: slice) -> bool:
    try:
        fails(rows)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return True
    return False


def _seconds(limit: float, rows: int) -> float:
    return limit * max(1.0, rows / ROWS)


def _post(what: str, rows: int) -> None:
    deadline = 0.0 if state.limit is None else time.monotonic() + _seconds(state.limit, rows)
    text = plain_text(what, 1000).encode("utf-8", "backslashreplace")  # which leaves the board's last bytes alone
    state.board[: BOARD.size + len(text) + 1] = BOARD.pack(deadline) + text + b"\0"


# ---- arrays ------------------------------------------------------------------------------------------------------------

Given = TypeVar("Given")


def lent(array: NDArray[Any]) -> NDArray[Any]:
    """A copy for a user's function."""
    import numpy as np

    return np.array(array)


def received(given: Any) -> NDArray[Any]:
    """A copy of what a user's function has returned; masked entries are no values, whatever lies under the mask."""
    import numpy as np

    masked = any(x is np.ma.masked for x in given) if isinstance(given, (list, tuple)) else np.ma.is_masked(given)
    if masked:
        raise ValueError("an array with masked entries was returned")
    return np.array(given)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in memory of their own, which not even its owner can make writeable; itself where it is that."""
    import numpy as np

    if type(array) is np.ndarray and isinstance(array.base, bytes):
        return array
    return np.ndarray(array.shape, array.dtype, np.ascontiguousarray(array).tobytes())


def frozen_if_array(given: Any) -> Any:
    """What a user gave, with its numbers kept where it is an array or a list, and itself where it is a function or None."""
    import numpy as np

    if np.ma.is_masked(given):  # refused with a message where it is read
        return given
    listed = isinstance(given, (np.ndarray, Sequence)) and not isinstance(given, (str, bytes))
    array = np.asarray(given) if isinstance(given, np.ndarray) or (listed and _even(given)) else None
    return given if array is None or array.dtype.hasobject else frozen(array)


def _even(given: Any) -> bool:
    import numpy as np

    try:
        np.asarray(given)
    except ValueError:  # ragged: refused with a message where it is read
        return False
    return True


class Guarded:
    """An object of a user's, asked through :meth:`_ask`; what this package does not know of it is the object's own."""

    def __init__(self, inner: Any):
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":  # while it is being unpickled there is none yet
            raise AttributeError(name)
        found = getattr(self.inner, name)
        return (lambda *given: self._ask(name, *given)) if callable(found) else found

    def _ask(self, name: str, *given: Any) -> Any:
        import numpy as np

        rows = max((len(x) for x in given if isinstance(x, np.ndarray) and x.ndim), default=1)
        with calling(f"{name} of {type(self.inner).__name__}", rows, lambda said: self._failed(name, said)):
            found = getattr(self.inner, name)(*(lent(x) if isinstance(x, np.ndarray) else x for x in given))
            if isinstance(found, np.ndarray):
                return received(found)
        return guarded(found, type(self)) if name in ("held", "restricted") else found  # another map of theirs

    def _failed(self, name: str, said: str) -> InputError:
        rule, found = "must not fail for a state of the problem", f"a method `{name}` that {said}"
        return InputError(type(self.inner).__name__, rule, found, "mend it")


class GuardedFeatures(Guarded):
    """A user's :class:`saddleback.problem.spaces.Features`."""

    @property
    def dim(self) -> int:
        """d."""
        return int(self.inner.dim)

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.inner.num_actions)

    @property
    def direct(self) -> bool:
        """As the map itself."""
        return bool(self.inner.direct)

    def at(self, states: Any, actions: Any) -> Any:
        """φ(s, a), ``(n, d)``."""
        return self._ask("at", states, actions)

    def all(self, states: Any) -> Any:
        """φ(s, ·), ``(n, A, d)``."""
        return self._ask("all", states)

    def values(self, states: Any, theta: Any) -> Any:
        """⟨φ(s, ·), θ⟩."""
        return self._ask("values", states, theta)

    def maximum(self, states: Any, theta: Any) -> Any:
        """max_a ⟨φ(s, a), θ⟩."""
        return self._ask("maximum", states, theta)

    def argmax(self, states: Any, theta: Any) -> Any:
        """The maximising action."""
        return self._ask("argmax", states, theta)


def guarded(given: Given, guard: type[Guarded]) -> Given:
    """What a user gave behind its guard; objects of this package, and what is guarded already, as they are."""
    ours = type(given).__module__.partition(".")[0] == __name__.partition(".")[0]
    return given if ours else guard(given)  # type: ignore[return-value]
