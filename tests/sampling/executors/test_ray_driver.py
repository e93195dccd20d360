"""A driver that is killed: its Ray workers end too, in the middle of a call, within a minute."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sampling.executors import faulty_simulators as faulty
from sampling.executors.test_interrupts import start, workers

pytest.importorskip("ray", reason="an extra: pip install 'saddleback[ray]'")
pytestmark = pytest.mark.check

SECONDS = 60.0


@pytest.fixture(autouse=True)
def turn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cluster at a time on this machine, however many processes the tests run in."""
    with (tmp_path_factory.getbasetemp().parent / "ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize("options", ["2", "2, timeout=300.0"], ids=["plain", "children"])
def test_workers_end_with_their_driver(tmp_path: Path, options: str) -> None:
    """With a timeout the simulator runs in a child of the Ray worker, which ends as well."""
    ends_with_its_driver(tmp_path, options)


def test_workers_on_a_cluster_of_others_end_with_their_driver(tmp_path: Path) -> None:
    """The cluster stays; what worked for the driver does not."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        ends_with_its_driver(tmp_path, f"2, address={cluster.address!r}, timeout=300.0")
    finally:
        cluster.shutdown()


def ends_with_its_driver(tmp_path: Path, options: str) -> None:
    driver = start(tmp_path, "Ray", options, 300.0)
    pids = workers(tmp_path, 2)
    assert driver.pid not in pids and all(map(faulty.alive, pids))
    driver.kill()
    driver.wait()
    for pipe in (driver.stdout, driver.stderr):
        assert pipe is not None
        pipe.close()
    began = time.monotonic()
    try:
        assert faulty.gone(pids, SECONDS), "they work on for nobody"
        print(f"workers ended {time.monotonic() - began:.1f} s after their driver")
    finally:
        for pid in filter(faulty.alive, pids):
            os.kill(pid, signal.SIGKILL)
