"""The lower-bound instance with d = 40: 2^36 actions, reached through the argmax oracle, in little memory."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json
import numpy as np
from saddleback import Method, solve, zoo
instance = zoo.make("hard-instance", dim=40)
chosen = Method(design="full", certificate=0)
s = solve(instance.problem, instance.simulator, samples=1_000_000, feasibility="relaxed", method=chosen)
truth = s.mixture.weights @ np.array([instance.true_values(p) for p in s.mixture.members])
peak = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")][0]
print(json.dumps({"status": s.status.value, "truth": truth.tolist(), "known": instance.known, "megabytes": peak / 1024,
                  "threshold": float(instance.problem.user_thresholds()[0]), "horizon": instance.problem.horizon}))
"""


@pytest.mark.slow
def test_d_40_is_solved_from_samples_in_less_than_500_megabytes():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    print(answer)
    assert answer["status"] == "solved"
    assert answer["megabytes"] < 500
    H = answer["horizon"]
    assert answer["truth"][0] >= answer["known"]["value"] - 0.05 * H
    assert answer["truth"][1] >= answer["threshold"] - 0.05 * H
