"""Locks on any system: one holder, told by name; what a holder leaves is in nobody's way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from saddleback.errors import InputError
from saddleback.files.disk import Lock, written_whole
from saddleback.problem import alarm
from saddleback.problem.alarm import time_limit
from saddleback.problem.user_code import TimeUp
from saddleback.problem.user_code import calling as user_code

HOLD = """
import sys
from pathlib import Path
from saddleback.files.disk import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_one_holder_who_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=-1, stdout=-1, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=f"process {holder.pid} on .* since 20"):
            Lock(path)
    finally:
        holder.kill()
        holder.communicate()
    lock = Lock(path)  # the killed holder's is taken back by the system
    with pytest.raises(InputError, match="this process has it open already"):
        Lock(path)
    lock.release(remove=path)
    assert not path.exists()


def test_a_file_that_two_write_is_whole(tmp_path: Path) -> None:
    path, texts = tmp_path / "file", [bytes([65 + i]) * 50_000 for i in range(4)]

    def write(text: bytes) -> None:
        with written_whole(path) as file:
            file.write(text)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in texts and os.listdir(tmp_path) == ["file"]


def _busy(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def test_the_alarm_of_a_thread_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on systems without SIGALRM; an alarm that comes too late comes to nothing."""
    monkeypatch.setattr(alarm, "HAS_TIMER", False)
    with time_limit(0.05):
        with pytest.raises(TimeUp), user_code("a loop"):
            _busy(10)
        for _ in range(200):
            with user_code("something quick"):
                pass
    time.sleep(0.1)


TRACED = """
import sys, time

from saddleback.problem import alarm
from saddleback.problem.alarm import time_limit
from saddleback.problem.user_code import TimeUp, calling

alarm.HAS_TIMER = False
with time_limit(0.05):
    try:
        with calling("a loop"):
            while True:
                pass
    except TimeUp:
        print("interrupted")
    with calling("something quick"):
        pass
sys.settrace(lambda frame, event, argument: None)
(lambda: None)()
print("traced")
"""


def test_a_debugger_goes_on_after_an_alarm_of_a_thread() -> None:
    """An exception that is only withdrawn leaves Python 3.11 with a flag at which a traced call waits for ever."""
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.split() == ["interrupted", "traced"], done.stderr
