"""Is a simulator what its problem says, and can samples of it be trusted? Each group of checks is one small file.

    declarations     thresholds, rewards and constraints, features: what is wrong before a single call
    running          every answer: shapes, dtypes, states outside the space, NaN, signals outside their ranges, changed inputs
    repeatability    the same seed gives the same answer, in whatever order it is asked
    agreement        a batch of n is n calls of one; samples of one call, and of different calls, do not hang together

Where chance is involved the tests are exact: a sound simulator is accused of anything with probability at most 10⁻⁶.
"""

from saddleback.simulators.checks.probe import Finding, Report
from saddleback.simulators.checks.running import run_checks

__all__ = ["Finding", "Report", "run_checks"]
