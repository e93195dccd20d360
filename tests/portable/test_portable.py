"""The main verbs with nothing that Windows does not have: see :mod:`as_on_windows` for what is taken away."""

from __future__ import annotations

import os
import platform
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.first_projects import STEP_CODE, STEP_FILE

WINDOWS = Path(__file__).with_name("as_on_windows.py")


def begin(folder: Path, *arguments: object, stdout: int | None = -1) -> subprocess.Popen[str]:
    strict = {"PYTHONWARNDEFAULTENCODING": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
    command = [sys.executable, str(WINDOWS), *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=folder, stdout=stdout, stderr=-1, text=True, env=os.environ | strict, start_new_session=True
    )


def call(folder: Path, *arguments: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr; a file of ours that was read or written in the encoding of the day is a failure."""
    process = begin(folder, *arguments)
    out, err = process.communicate(timeout=300)
    assert not re.search(r"src/saddleback/\S+: EncodingWarning", err), err
    assert "as on Windows" not in err, err
    return process.returncode, out, err


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a problem file."""
    (tmp_path / "shop.py").write_text(STEP_CODE)
    (tmp_path / "shop.toml").write_text(STEP_FILE)
    return tmp_path


def test_the_deception_works() -> None:
    """A control: code under the same path that calls what is not there fails."""
    code = (
        "import as_on_windows, os; as_on_windows.deceive();"
        "exec(compile('import os; os.fork', '/x/src/saddleback/x.py', 'exec'), {'__file__': '/x/src/saddleback/x.py'})"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=WINDOWS.parent
    )
    assert "as on Windows: no fork" in found.stderr
    code = code.replace("import os; os.fork", "import fcntl")
    found = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=WINDOWS.parent
    )
    assert "as on Windows: no module fcntl" in found.stderr


ONE_AFTER_THE_OTHER = """
import sys
sys.path.append(sys.argv[1])
import as_on_windows
as_on_windows.deceive()
from saddleback import cli
import saddleback.sampling.executors
for words in sys.argv[2:]:
    try:
        cli.main(words.split())
    except SystemExit as ended:
        print("ended", words.split()[0], ended.code or 0, flush=True)
"""


@pytest.mark.slow
def test_solve_and_what_is_done_with_a_run(shop: Path) -> None:
    """In one process, which is quicker; nothing of POSIX is on the way of the imports."""
    verbs = ["solve garnet --samples 4000 --out run", "report run", "act run --state 0", "certify run --recheck"]
    command = [sys.executable, "-c", ONE_AFTER_THE_OTHER, str(WINDOWS.parent), *verbs, "exact garnet", "zoo"]
    found = subprocess.run(command, check=False, capture_output=True, text=True, cwd=shop)
    ended = [line.removeprefix("ended ") for line in found.stdout.splitlines() if line.startswith("ended")]
    assert ended == ["solve 0", "report 0", "act 0", "certify 0", "exact 0", "zoo 0"], found.stderr
    assert (shop / "run" / "solution.json").is_file() and not (shop / "run.work").exists()
    assert (shop / "run.html").is_file()


@pytest.mark.slow
def test_the_other_verbs(shop: Path) -> None:
    for arguments in (
        ["check", "shop.toml"],
        ["plan", "shop.toml", "--epsilon", "1"],
        ["exact", "wireless"],
        ["frontier", "wireless", "--points", "3", "--samples", "20000"],
        ["sample", "wireless", "--rounds", "1", "--out", "drawn"],
        ["zoo"],
    ):
        code, _, err = call(shop, *arguments)
        assert code == 0, (arguments, err)
    for force in ([], ["--force"]):
        code, _, err = call(
            shop, "solve", "shop.toml", "--samples", "20000", "--seed", len(force), *force, "--out", "run"
        )
        assert code in (0, 4), err
    assert call(shop, "certify", "run", "--recheck")[0] == 0
    assert call(shop, "certify", "run", "--problem", "shop.toml", "--seed", "7")[0] in (
        0,
        4,
    )  # strict: 4 where it is open
    assert call(shop, "resume", "run")[0] in (0, 4)


@pytest.mark.slow
def test_workers_draw_the_same(shop: Path) -> None:
    """Processes that call their parent instead of inheriting a descriptor; and they end with it."""
    common = ["solve", "shop.toml", "--samples", "20000", "--json"]
    alone, together = call(shop, *common), call(shop, *common, "--workers", "2")
    assert alone[0] == together[0] and alone[1] == together[1], together[2]
    (shop / "shop.py").write_text(STEP_CODE.replace("    arrives", "    import time; time.sleep(1)\n    arrives"))
    process = begin(shop, "solve", "shop.toml", "--samples", "20000", "--workers", "2")
    workers = _wait_for(lambda: _workers(process.pid) or None)
    process.kill()
    process.communicate()
    _wait_for(lambda: not any(map(_lives, workers)) or None)


@pytest.mark.slow
def test_a_call_that_takes_too_long_is_interrupted(shop: Path) -> None:
    """Without SIGALRM: by a thread."""
    (shop / "shop.py").write_text(STEP_CODE.replace("    arrives", "    while True: pass\n    arrives"))
    code, out, _ = call(shop, "check", "shop.toml", "--timeout", "0.3")
    assert code == 5 and "did not return within the timeout of 0.3 s" in " ".join(out.split())


@pytest.mark.slow
def test_one_owner(shop: Path) -> None:
    """Whoever comes second is told who holds the run; a holder that was killed is in nobody's way."""
    (shop / "shop.py").write_text(STEP_CODE.replace("    arrives", "    import time; time.sleep(.01)\n    arrives"))
    arguments = ["solve", "shop.toml", "--samples", "20000", "--out", "run"]
    first = begin(shop, *arguments)
    lock = shop / "run.work" / "lock"
    _wait_for(lambda: lock.is_file() and lock.stat().st_size)
    code, _, err = call(shop, *arguments)
    err = " ".join(err.split())
    assert code == 2 and f"process {first.pid} on {platform.node()} since 20" in err
    assert lock.is_file() and first.poll() is None
    first.kill()
    first.communicate()
    assert lock.is_file()  # left behind, and in nobody's way
    (shop / "shop.py").write_text(STEP_CODE)
    code, _, err = call(shop, "resume", "run", "--problem", "shop.toml", "--accept-source")
    assert code in (0, 4), err
    assert (shop / "run" / "solution.json").is_file() and not (shop / "run.work").exists()


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_drawn(shop: Path) -> None:
    (shop / "shop.py").write_text(STEP_CODE.replace("    arrives", "    import time; time.sleep(.005)\n    arrives"))
    process = begin(shop, "solve", "shop.toml", "--samples", "20000", "--out", "run")
    _wait_for(lambda: list((shop / "run.work").glob("samples/*/*.npy")) or None)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert "resume" in process.communicate()[1]
    assert not (shop / "run.work" / "lock").exists()


def _wait_for(look):  # type: ignore[no-untyped-def]
    import time

    until = time.monotonic() + 60
    while time.monotonic() < until:
        if (found := look()) is not None and found is not False:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def _workers(parent: int) -> list[int]:
    with open(f"/proc/{parent}/task/{parent}/children") as children:
        return [int(word) for word in children.read().split()]


def _lives(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
