"""A writer that is killed again and again, as a program of its own: ``python kill_runs.py SEED KILLS FOLDER [early]``.

A child opens the store (which is recovery), adds what is missing and reports over a pipe what was acknowledged; the parent
kills it after a random time and looks at the folder. When a run is complete its hash is compared and a new one is begun.
With ``early`` the child reports blocks before they are flushed, and the parent stops as soon as it has found that out. The
report is one line of JSON. It forks, and so must run in a process without threads.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from saddleback.sampling.store.manifest import HEADER
from saddleback.sampling.store.sample_store import SampleStore
from sampling.store.store_runs import FINGERPRINT, LAYOUTS, add_all, draw, expected_hash, some_blocks, unlike

LAYOUT = LAYOUTS["samples"]
BLOCKS = some_blocks(num_pairs=24, per_pair=5, size=400)
PER_FLUSH = 3
NUMBER = {block: i for i, block in enumerate(BLOCKS)}


def write(folder: Path, pipe: int, early: bool) -> None:
    """The child: every line it sends is ``opened`` or the numbers of acknowledged blocks."""
    with SampleStore.resume(folder, FINGERPRINT, LAYOUT) as store:
        os.write(pipe, _line(store.blocks(0)) + b"opened\n")
        missing = store.missing(BLOCKS)
        random.Random(len(missing)).shuffle(missing)  # as blocks arrive from several workers
        for i in range(0, len(missing), PER_FLUSH):
            some = missing[i : i + PER_FLUSH]
            if early:
                os.write(pipe, _line(some))
            add_all(store, some)
            store.flush()
            os.write(pipe, _line(some))


def _line(blocks: list) -> bytes:
    return " ".join(str(NUMBER[block]) for block in blocks).encode() + b"\n"


def killed_after(folder: Path, seconds: float, early: bool) -> tuple[set[int], bool, bool]:
    """Run a child and kill it: what it acknowledged, whether it had opened the store, whether it was killed in time."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            write(folder, writer, early)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writer)
    received, end = b"", time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([reader], [], [], left)[0]:
            piece = os.read(reader, 1 << 16)
            if not piece:
                break
            received += piece
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    while piece := os.read(reader, 1 << 16):
        received += piece
    os.close(reader)
    words = received.decode().rpartition("\n")[0].split()
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child failed"
    return {int(word) for word in words if word != "opened"}, "opened" in words, os.WIFSIGNALED(status)


def main(seed: int, kills: int, folder: Path, early: bool) -> dict[str, object]:
    rng, report = random.Random(seed), {"seed": seed, "kills": 0, "recovering": 0, "swept": 0, "runs": 0}
    lost, damaged, hashes = 0, 0, set()
    run, acknowledged = folder / "0", set()
    for block in BLOCKS:
        draw(block, LAYOUT)  # so that children need not
    while report["kills"] < kills and not (early and lost):
        # A third of the kills aim at the first moments, which are recovery.
        seconds = rng.uniform(0, 0.02 if rng.random() < 1 / 3 else 0.3)
        told, opened, killed = killed_after(run, seconds, early)
        acknowledged |= told
        report["kills"] += killed
        report["recovering"] += killed and not opened
        if not (run / HEADER).exists():
            lost += bool(acknowledged)
            continue
        with SampleStore.open(run, FINGERPRINT, writable=False) as store:  # looks, and sweeps nothing up
            lost += bool(store.missing([BLOCKS[i] for i in sorted(acknowledged)]))
            damaged += len(unlike(store))
            complete = not store.missing(BLOCKS)
            report["swept"] += len(list(run.glob("*.npy*"))) > store.verify().num_shards
            if complete:
                hashes.add(store.content_hash())
        if complete:
            report["runs"] += 1
            run, acknowledged = folder / str(report["runs"]), set()
    right = hashes <= {expected_hash(BLOCKS, LAYOUT)}
    return {**report, "lost": lost, "damaged": damaged, "right_hashes": right}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:] == ["early"])))
