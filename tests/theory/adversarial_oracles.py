"""Oracles that keep Assumptions asmp_b1 and asmp_b2 and otherwise do their worst, and the check they are put to.

An achievable set {(V_r, V_c)} is a convex polygon in [0, H]²; an adversarial solver may return any of its points that is
f_mdp(1+λ)-optimal for r + λc, an adversarial evaluator may err by f_eva. The real loop and the real dual run on them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import ConvexHull

from saddleback.method.duals import ProjectedDescent
from saddleback.method.framework import run
from saddleback.theory.meta_theorem import DualSettings, Guarantee, dual_settings

Point = tuple[float, float]
"""(V_r, V_c)."""


# ---- achievable sets -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frontier:
    """A convex polygon of achievable (V_r, V_c), corners in order."""

    horizon: float
    corners: tuple[Point, ...]

    @property
    def most(self) -> float:
        """max V_c."""
        return max(c for _, c in self.corners)

    def best_reward(self, b: float) -> float:
        """F(b) = max V_r subject to V_c ≥ b: at a corner, or where an edge crosses V_c = b."""
        candidates = [r for r, c in self.corners if c >= b]
        for (r0, c0), (r1, c1) in self.edges():
            if (c0 - b) * (c1 - b) < 0:
                candidates.append(r0 + (r1 - r0) * (b - c0) / (c1 - c0))
        return max(candidates)

    def edges(self) -> list[tuple[Point, Point]]:
        return list(zip(self.corners, self.corners[1:] + self.corners[:1], strict=True))

    def near_optimal(self, lam: float, slack: float) -> list[Point]:
        """The corners of {p : p_r + λp_c ≥ max − slack}."""
        corners = self.corners
        values = [r + lam * c for r, c in corners]
        level = max(values) - slack
        out = []
        before, v0 = corners[-1], values[-1]
        for point, v1 in zip(corners, values, strict=True):
            if (v0 >= level) != (v1 >= level):
                u = (level - v0) / (v1 - v0)
                out.append((before[0] + u * (point[0] - before[0]), before[1] + u * (point[1] - before[1])))
            if v1 >= level:
                out.append(point)
            before, v0 = point, v1
        return out


def random_frontier(rng: np.random.Generator) -> Frontier:
    """The hull of random points in the square; every third one a cliff, where F falls from near H to 0 at once.

    In four of five the best reward comes with little of the constraint, so that the constraint binds.
    """
    H = float(rng.uniform(1, 20))
    points = rng.random((int(rng.integers(4, 9)), 2)) ** rng.uniform(0.3, 2, size=2)
    if rng.random() < 0.8:
        points = np.vstack([points * [0.9, 1], [1, rng.uniform(0, 0.35)]])
    if rng.random() < 1 / 3:
        knee = rng.uniform(0.1, 0.9)
        points = np.vstack([points * [1, knee], [[1, knee], [0, knee + rng.uniform(0.05, 0.5)]]])
    points *= [H, H * rng.uniform(0.8, 1) / points[:, 1].max()]
    return Frontier(H, tuple((float(r), float(c)) for r, c in points[ConvexHull(points).vertices]))


# ---- adversaries -----------------------------------------------------------------------------------------------------

Choice = Callable[[int, float, list[Point]], Point]
Sign = Callable[[int, float, Point], float]


@dataclass(frozen=True)
class PointPolicy:
    """A policy of which nothing is known but its values."""

    point: Point
    num_actions: int = 1

    def key(self) -> bytes:
        return np.array(self.point).tobytes()


@dataclass
class Adversary:
    """An oracle for :func:`run` that picks the policy (within the solver's promise) and the error (the evaluator's)."""

    frontier: Frontier
    solver_error: float
    evaluation_error: float
    choose: Choice
    sign: Sign
    num_solver_calls: int = field(default=0)

    def __call__(self, sigma: np.ndarray) -> tuple[PointPolicy, np.ndarray]:
        k, H = self.num_solver_calls, self.frontier.horizon
        self.num_solver_calls += 1
        lam = float(sigma[1] / sigma[0])
        region = self.frontier.near_optimal(lam, self.solver_error * (1 + lam))
        point = self.choose(k, lam, region)
        estimate = point[1] + self.sign(k, lam, point) * self.evaluation_error
        return PointPolicy(point), np.array([point[0], min(max(estimate, 0.0), H)])


def adversaries(rng: np.random.Generator, turning_point: float) -> dict[str, tuple[Choice, Sign]]:
    """Six ways to do harm; the last one turns at the multiplier ``turning_point``."""
    u = rng.random(997)

    def least_reward(k: int, lam: float, region: list[Point]) -> Point:
        return min(region)

    def least_constraint(k: int, lam: float, region: list[Point]) -> Point:
        return min(region, key=lambda p: p[1])

    def most_constraint(k: int, lam: float, region: list[Point]) -> Point:
        return max(region, key=lambda p: p[1])

    def anything(k: int, lam: float, region: list[Point]) -> Point:
        (r0, c0), (r1, c1) = region[int(u[k % 997] * len(region))], region[int(u[(7 * k + 1) % 997] * len(region))]
        w = float(u[(3 * k + 2) % 997])
        return w * r0 + (1 - w) * r1, w * c0 + (1 - w) * c1

    def by_turns(k: int, lam: float, region: list[Point]) -> Point:
        return (least_reward if k % 2 else least_constraint)(k, lam, region)

    def by_multiplier(k: int, lam: float, region: list[Point]) -> Point:
        return (least_constraint if lam < turning_point else least_reward)(k, lam, region)

    return {
        "reward low, estimates low": (least_reward, lambda k, lam, p: -1.0),
        "constraint low, estimates high": (least_constraint, lambda k, lam, p: 1.0),
        "constraint high, estimates low": (most_constraint, lambda k, lam, p: -1.0),
        "anything": (anything, lambda k, lam, p: float(2 * u[(5 * k + 3) % 997] - 1)),
        "by turns": (by_turns, lambda k, lam, p: 1.0 if k % 4 < 2 else -1.0),
        "by the multiplier": (by_multiplier, lambda k, lam, p: 1.0 if lam < turning_point else -1.0),
    }


# ---- the check -------------------------------------------------------------------------------------------------------


class BoundBroken(AssertionError):
    pass


@dataclass(frozen=True)
class Margins:
    """Loss V* − V_r and shortfall b − V_c of a mixture."""

    loss: float
    shortfall: float


def play(adversary: Adversary, dual: ProjectedDescent) -> Point:
    """The true values of the mixture Alg. 1 returns."""
    outcome = run(adversary, dual)  # type: ignore[arg-type]
    points = np.array([m.point for m in outcome.mixture.members])  # type: ignore[attr-defined]
    r, c = outcome.mixture.weights @ points
    return float(r), float(c)


def check(frontier: Frontier, b: float, values: Point, promise: Guarantee) -> Margins:
    """Raise :class:`BoundBroken` unless the mixture keeps the promise.

    Averaging at most 10⁶ numbers of size H in float64 errs by less than 10⁶ · 2⁻⁵³ · H < 10⁻⁹ H.
    """
    tolerance = 1e-9 * frontier.horizon
    margins = Margins(frontier.best_reward(b) - values[0], b - values[1])
    if margins.loss > promise.reward_loss + tolerance:
        raise BoundBroken(f"loss {margins.loss} > {promise.reward_loss}")
    if margins.shortfall > promise.violation + tolerance:
        raise BoundBroken(f"shortfall {margins.shortfall} > {promise.violation}")
    return margins


def dual_of(chosen: DualSettings) -> ProjectedDescent:
    return ProjectedDescent(np.array([chosen.target]), chosen.upper, chosen.step_size, chosen.num_iterations)


MODES = {
    "relaxed": ("relaxed", "corrected"),
    "strict, b + 1.5f": ("strict", "corrected"),
    "strict, b + 4f": ("strict", "corrected, paper's target"),
}


def random_task(
    rng: np.random.Generator, frontier: Frontier, mode: str, num_iterations: tuple[float, float]
) -> tuple[float, float, float, DualSettings]:
    """b, a lower bound on ζ, f and the settings, with K about log-uniform in the range given."""
    H, most = frontier.horizon, frontier.most
    feasibility, version = MODES[mode]
    # strict needs f ≤ ζ/6, so √K ≥ 12(H/ζ)²; relaxed says most where neither b nor ζ is small
    shares = (math.sqrt(12 / math.sqrt(num_iterations[1])) * H / most, 1.0) if feasibility == "strict" else (0.3, 0.7)
    zeta = most * min(1.0, float(rng.uniform(*shares)))
    b = most - zeta
    known = zeta * float(rng.choice([1.0, rng.uniform(0.8, 1.0)]))  # the theory is told a lower bound
    K = float(np.exp(rng.uniform(*np.log(num_iterations))))
    f = 2 * H * H / known / math.sqrt(K)
    f = min(f, known / 6) if feasibility == "strict" else f
    chosen = dual_settings(
        f,
        horizon=H,
        zeta=known,
        threshold=b,
        feasibility=feasibility,  # type: ignore[arg-type]
        version=version,  # type: ignore[arg-type]
    )
    return b, known, f, chosen


def sweep(seed: int, num_frontiers: int, num_iterations: tuple[float, float], num_runs_each: int) -> None:
    """Modes and adversaries in rotation on every frontier; prints the worst of everything in units of the promise."""
    rng = np.random.default_rng(seed)
    worst = {mode: [-math.inf, -math.inf] for mode in MODES}
    num_rounds, started = [], time.process_time()
    for i in range(num_frontiers):
        frontier = random_frontier(rng)
        for j in range(num_runs_each):
            mode = list(MODES)[(i + j) % 3]
            b, zeta, f, chosen = random_task(rng, frontier, mode, num_iterations)
            cast = list(adversaries(rng, turning_point=float(rng.random() * chosen.upper / 2)).values())
            choose, sign = cast[(i // 3 + j) % len(cast)]
            values = play(Adversary(frontier, f, f, choose, sign), dual_of(chosen))
            margins = check(frontier, b, values, chosen.guarantee)
            unit = f if mode == "relaxed" else f * frontier.horizon / zeta
            worst[mode][0] = max(worst[mode][0], margins.loss / unit)
            worst[mode][1] = max(worst[mode][1], margins.shortfall / f)
            num_rounds.append(chosen.num_iterations)
    took = time.process_time() - started
    print(f"\n{len(num_rounds)} runs on {num_frontiers} frontiers, K ≤ {max(num_rounds)}, {took:.0f} CPU seconds")
    for mode, (loss, shortfall) in worst.items():
        per = "f" if mode == "relaxed" else "fH/ζ"
        print(f"  {mode:17s} worst loss {loss:6.2f} {per:5s} worst b − V_c {shortfall:6.2f} f")
