"""Running a tree of saddleback from outside: its command line, and small scripts of a user, in processes of their own.

An attack is a function of a tree and of an empty folder. It ends with one assertion on what the user would see, which holds if
the attack was repelled. What goes wrong before that is :class:`NotSetUp`, and says nothing about the tree.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 120
SMALL = ["garnet", "--set", "states=4", "--set", "successors=2"]
QUEUE = ["queue", "--set", "capacity=4", "--set", "gamma=0.8"]
ANSWERED = (0, 4)


class NotSetUp(Exception):
    """The attack could not be made."""


class Done(NamedTuple):
    """How a command ended; ``code`` is None where it had to be ended."""

    code: int | None
    out: str
    err: str

    @property
    def words(self) -> str:
        """What it said to the user, without line breaks and colours."""
        return " ".join(self.err.split())


@dataclass(frozen=True)
class Tree:
    """One version of saddleback: the folder that goes on PYTHONPATH, and one for runs that attacks start from."""

    source: Path
    scratch: Path
    made: dict[str, Path] = field(default_factory=dict)

    def begin(
        self, folder: Path, *words: Any, program: list[str] | None = None, **options: Any
    ) -> subprocess.Popen[str]:
        """A command in that folder, which can be ended with all its processes by :func:`end`."""
        environment = {name: x for name, x in os.environ.items() if not name.startswith(("NUMBA_", "SADDLEBACK"))}
        environment |= {"PYTHONPATH": str(self.source), **options.pop("env", {})}
        head = [sys.executable, "-m", "saddleback"] if program is None else program
        channels: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        told = {
            "encoding": "utf-8",
            "errors": "surrogateescape",
            "start_new_session": True,
            "preexec_fn": _usual_signals,
        }
        return subprocess.Popen([*head, *map(_word, words)], cwd=folder, env=environment, **(channels | told | options))

    def run(self, folder: Path, *words: Any, seconds: float = SECONDS, **options: Any) -> Done:
        """A command to its end, or to ours."""
        return ended(self.begin(folder, *words, **options), seconds)

    def must(self, folder: Path, *words: Any, codes: tuple[int, ...] = ANSWERED, **options: Any) -> Done:
        """A command that is no attack yet."""
        done = self.run(folder, *words, **options)
        if done.code not in codes:
            raise NotSetUp(f"{words} ended with {done.code}: {done.err[-2000:]}")
        return done

    def script(self, folder: Path, text: str, *words: Any, **options: Any) -> Done:
        """A user's own program."""
        (folder / "script.py").write_text(text)
        return self.run(folder, *words, program=[sys.executable, "script.py"], **options)

    def copied(self, key: str, make: Callable[[Path], Any], place: Path) -> Path:
        """A copy of a folder that is made once, with everything that ``make`` puts there."""
        if key not in self.made:
            home = self.scratch / str(len(self.made))
            home.mkdir(parents=True)
            make(home)
            self.made[key] = home
        return Path(shutil.copytree(self.made[key], place, dirs_exist_ok=True))

    def kept(self, folder: Path, *words: Any) -> Path:
        """The run that the command with ``--out`` makes, as ``run`` in the folder."""
        return (
            self.copied(" ".join(map(str, words)), lambda home: self.must(home, *words, "--out", "run"), folder) / "run"
        )


Attack = Callable[[Tree, Path], None]


def _usual_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _word(word: Any) -> Any:
    return word if isinstance(word, bytes) else str(word)


def ended(program: subprocess.Popen[str], seconds: float = SECONDS) -> Done:
    """Wait for it, and end it if that takes too long."""
    try:
        out, err = program.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return end(program)
    return Done(program.returncode, out or "", err or "")


def end(program: subprocess.Popen[str]) -> Done:
    """End it and all its processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    out, err = program.communicate()
    return Done(None, out or "", err or "")


@contextlib.contextmanager
def alive(program: subprocess.Popen[str], sign: Path) -> Iterator[subprocess.Popen[str]]:
    """A program that has made the file ``sign``; it is ended whatever happens."""
    try:
        until = time.monotonic() + SECONDS
        while not sign.exists():
            if program.poll() is not None or time.monotonic() > until:
                raise NotSetUp(f"the first program never came so far: {ended(program, 1).err[-2000:]}")
            time.sleep(0.02)
        yield program
    finally:
        if program.poll() is None:
            end(program)


def names(folder: Path) -> list[str]:
    """What is in a folder, but for compiled code."""
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


def everything(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def flip(path: Path, place: int, bit: int = 1) -> None:
    """One bit of a file."""
    data = bytearray(path.read_bytes())
    data[place] ^= bit
    path.write_bytes(bytes(data))
