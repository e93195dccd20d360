"""Ten million samples through a store: writing holds a shard, reading a few mapped ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from saddleback.sampling.store.sample_store import SHARD_BYTES

pytestmark = pytest.mark.check

PROGRAM = """
import json, sys
import numpy as np
from saddleback.sampling.blocks import Block
from saddleback.simulators.generative_model import Draw
from saddleback.problem.spaces import FiniteStates
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.sample_store import SampleStore

def peak():
    lines = open(sys.argv[2]).read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

def blocks(pairs):
    return [Block(0, pair, i, 4096) for pair in range(pairs) for i in range(25)]

def fill(name, pairs):
    states = np.arange(4096) % 1000
    with SampleStore.create(f"{sys.argv[1]}/{name}", {}, Layout.of(FiniteStates(1000))) as store:
        for block in blocks(pairs):
            store.add(block, Draw(states, None))

def read(name):
    total = 0
    with SampleStore.open(f"{sys.argv[1]}/{name}") as store:
        for block, draw in store.read(0):
            total += int(draw.next_states.sum())
        store.content_hash()
        store.verify()
    return total

fill("warm", 1); read("warm")
start = peak(); fill("large", 98); written = peak(); total = read("large"); done = peak()
right = 98 * 25 * int((np.arange(4096) % 1000).sum())
with SampleStore.open(f"{sys.argv[1]}/large", writable=False) as store:
    samples = store.samples(0, 98)
whole = peak()
print(json.dumps({"writing": written - start, "reading": done - written, "whole": whole - done, "right": total == right}))
"""


def test_ten_million_samples_pass_through_a_shard_of_memory(tmp_path: Path) -> None:
    status = Path("/proc") / "self" / "status"
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(status)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    print(report)
    assert report["right"]
    assert report["writing"] <= 3 * SHARD_BYTES  # one, and what the allocator keeps
    assert report["reading"] <= 6 * SHARD_BYTES  # four mapped shards
    assert report["whole"] >= 40 * 10**6  # the measure sees 80 MB where they are asked for
