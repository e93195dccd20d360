"""``python -m saddleback`` and the ``saddleback`` command: what comes before anything else is imported.

On Linux the command is two processes: one that does the work, and this one, which waits for it and ends with the exit code that
it has stated. It imports nothing, passes signals on, and takes the worker with it when it is killed. It is there for ends of
which the worker cannot speak any more:

    a crash (segmentation fault, abort) in the user's code, or in ours    a message that says what was being called, exit code 5 or 70
    an end without a stated code (``os._exit`` in the user's code)        the same
    a call beyond its time limit that nothing interrupts                  it is ended, and named: exit code 5
    threads and exit handlers that go on when all is said                 they are ended, after ten seconds or by Ctrl-C
    SIGINT, SIGTERM or SIGHUP before anybody listens                      exit code 128 + n

What is being called stands on a *board*, a page of memory that both share (:mod:`saddleback.problem.user_code`), and in its last
bytes the exit code, once it is known.
"""

import io
import mmap
import os
import signal
import struct
import sys
import time
from contextlib import suppress

CAN_WATCH = sys.platform == "linux" and hasattr(os, "fork")  # elsewhere the command is one process
TOLD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if CAN_WATCH else ()
CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP")
FROM_THE_KERNEL = 0x80  # si_code of Ctrl-C: the terminal has told the worker too
LOOK = 1.0  # seconds between two looks at the board
GRACE = 3.0  # seconds that an interrupted call has to come back
LINGER = 10.0  # seconds that threads and exit handlers have when all is said
STATED = struct.Struct("H")  # 1 + the exit code, in the last bytes of the board; 0 before it is known
FAULT, INTERNAL_ERROR = 5, 70


def main() -> None:
    """Load and run the command line."""
    open_streams()
    works = len(sys.argv) > 1 and {"--help", "--version"}.isdisjoint(sys.argv)
    board = watched() if works and CAN_WATCH else None
    worker = os.getpid()
    try:
        from saddleback.cli import main as command_line

        command_line(own_process=True, board=board)
        code = 0
    except KeyboardInterrupt:  # before anybody listens
        sys.stderr.write("interrupted\n")
        code = 130
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    if board is not None and os.getpid() == worker:
        board[-STATED.size :] = STATED.pack(1 + code)
    sys.exit(code)


def open_streams() -> None:
    """Occupy the standard descriptors that the caller has closed, lest a file of samples becomes "stderr".

    What is said to a closed stderr goes nowhere; what is written to a closed stdout fails, as it did.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR), True)
    sys.stdout = sys.stdout or open(1, "w", encoding="locale", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="locale", closefd=False, errors="backslashreplace")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal may know ASCII only
        sys.stdout.reconfigure(errors="backslashreplace")


def watched() -> mmap.mmap | None:
    """Go on in a child process with a board; this process ends here, as the child has ended. None if there can be no child."""
    board: mmap.mmap | None = mmap.mmap(-1, mmap.PAGESIZE)
    parent = os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*TOLD, signal.SIGCHLD})
    try:
        child = os.fork()
    except OSError:
        child, board = 0, None
    if child:
        os._exit(wait_for(child, board))
    if board is not None:
        die_with(parent)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(
                signal.SIGINT, signal.SIG_DFL
            )  # until somebody listens: no import ends half done, with a word or without
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return board


def die_with(parent: int) -> None:
    """Be killed when the parent is: whoever kills the command means the work."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def wait_for(child: int, board: mmap.mmap | None) -> int:
    """Wait for the end of the child, and return its exit code, or that of its end."""
    late, since = False, 0.0
    while True:
        told = signal.sigtimedwait([*TOLD, signal.SIGCHLD], LOOK)
        code = stated(board)
        if told is not None and told.si_signo != signal.SIGCHLD:
            if code is not None:
                os.kill(child, signal.SIGKILL)
            elif told.si_code != FROM_THE_KERNEL:
                os.kill(child, told.si_signo)
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        deadline, what = read(board)
        if ended:
            return status_of(status, what, late) if code is None else code
        if code is not None:
            since = since or time.monotonic()
            if time.monotonic() > since + LINGER:
                say(
                    f"note: threads or exit handlers of code that was called went on for {LINGER:g} s; they were ended."
                )
                os.kill(child, signal.SIGKILL)
        elif deadline and time.monotonic() > deadline + GRACE:
            late = True
            os.kill(child, signal.SIGKILL)


def stated(board: mmap.mmap | None) -> int | None:
    """The exit code that the child has stated; None so far."""
    number: int = 0 if board is None else STATED.unpack(board[-STATED.size :])[0]
    return number - 1 if number else None


def read(board: mmap.mmap | None) -> tuple[float, str]:
    """The deadline of what is being called, and what it is; empty where it is our own code."""
    if board is None:
        return 0.0, ""
    text = board[8:].partition(b"\0")[0]
    return struct.unpack("d", board[:8])[0], text.decode("utf-8", "backslashreplace")


def status_of(status: int, what: str, late: bool) -> int:
    """The exit code for a child that ended so without stating one; said in a line, since it could not say it."""
    if os.WIFEXITED(status):
        how = f"by exit code {os.WEXITSTATUS(status)}"
        if what:
            say(f"error: {what} ended the process {how}, as os._exit does; mend that code. {KEPT}")
        else:
            say(f"error: the process was ended before its time {how}, in no call of your code. {KEPT}")
        return FAULT if what else INTERNAL_ERROR
    number = signal.Signals(os.WTERMSIG(status))
    if late:
        say(f"error: {what} did not return within the timeout and could not be interrupted, so it was ended. {KEPT}")
        return FAULT
    if number in TOLD:
        say("interrupted")
        return 128 + number
    if number.name in CRASHES and what:
        say(f"error: {what} ended the process by {number.name}; mend that code. {KEPT}")
        return FAULT
    if number.name in CRASHES:
        say(f"error: the process was ended by {number.name}, in none of your code: a fault of saddleback. {KEPT}")
        return INTERNAL_ERROR
    why = " (as when memory runs out)" if number == signal.SIGKILL else ""
    say(f"error: the process was ended by {number.name}{why}{f' in a call of {what}' if what else ''}. {KEPT}")
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number


KEPT = "What was drawn for --out is kept, and `saddleback resume` goes on from there."


def say(text: str) -> None:
    """A line on stderr, and the cursor of a terminal back where a bar was drawn."""
    line = ("\x1b[?25h" if os.isatty(2) else "") + text + "\n"
    with suppress(OSError):
        os.write(2, line.encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
