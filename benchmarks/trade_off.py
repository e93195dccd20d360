"""A frontier of 50 thresholds against one solve, sampling aside: the same buffers, a fresh memory of answers each time."""

from __future__ import annotations

from benchmarks.timing import Row, ratio
from saddleback.instances.zoo import make
from saddleback.method.duals import ColumnGeneration
from saddleback.method.framework import run
from saddleback.method.slater import estimate_slater
from saddleback.runs.settings import Method
from saddleback.solving.frontier import frontier
from saddleback.solving.prepare import prepare

PROBLEMS = (("random-linear", {"states": 500, "dim": 10}), ("garnet", {}))
SAMPLES = 1_000_000


def rows() -> list[Row]:
    out = []
    for name, parameters in PROBLEMS:
        instance = make(name, **parameters)
        parts = prepare(instance.problem, instance.simulator, SAMPLES, 0, Method())
        tolerance = 1e-4 * instance.problem.horizon

        def one_solve(parts=parts, problem=instance.problem, tolerance=tolerance) -> object:
            fresh = parts.on(problem)
            estimate_slater(fresh.problem, fresh.oracle, lambda policy: fresh.interval(policy, 0.95), fresh.optimum)
            return run(fresh.oracle, ColumnGeneration(problem.thresholds, tolerance))

        def whole(parts=parts, problem=instance.problem, tolerance=tolerance) -> object:
            return frontier(parts.on(problem), None, 50, tolerance)

        curve = whole()
        scale = instance.problem.scale[0]
        assert all(p.gap <= tolerance * scale * (1 + 2 * p.multiplier) for p in curve.points)  # type: ignore[attr-defined]
        measured, seconds, reference = ratio(whole, one_solve)
        out.append(Row(f"frontier of 50 thresholds / one solve, {name}", measured, 3.0, 2.0, seconds, reference))
    return out
