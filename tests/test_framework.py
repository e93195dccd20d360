"""Alg. 1 as a loop (caches, mixture, dual arithmetic) and its meta-theorem against oracles that do their worst.

An achievable set {(V_r, V_c)} is a convex polygon in [0, H]²; an adversarial solver may return any of its points that is
f_mdp(1+λ)-optimal for r + λc, an adversarial evaluator may err by f_eva. The real loop and the real dual run on them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from saddleback.duals import ProjectedDescent
from saddleback.errors import InputError
from saddleback.framework import Oracle, Outcome, run
from saddleback.oracles import Proposal, Step, round_to_grid, simplex_point
from saddleback.policy import TabularPolicy
from saddleback.theory import DualSettings, Guarantee, dual_settings, guarantee_of

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


# ---- the meta-theorem ------------------------------------------------------------------------------------------------


def test_the_meta_theorem_holds_whatever_the_oracles_do() -> None:
    """200 frontiers, each with the three modes and the six adversaries, against the corrected constants."""
    sweep(20240, num_frontiers=200, num_iterations=(300, 1_200), num_runs_each=6)


def test_the_meta_theorem_holds_in_long_runs() -> None:
    """Smaller errors, so more rounds: each mode with each adversary once."""
    sweep(20241, num_frontiers=18, num_iterations=(5_000, 20_000), num_runs_each=1)


@pytest.mark.study
def test_the_meta_theorem_in_its_full_form() -> None:
    """1,000 frontiers, and a few with K up to 10⁶."""
    sweep(20242, num_frontiers=1_000, num_iterations=(100, 10_000), num_runs_each=6)
    sweep(20243, num_frontiers=9, num_iterations=(200_000, 1_000_000), num_runs_each=1)


def test_the_bounds_for_any_K_hold_whatever_the_oracles_do() -> None:
    """U, η, K, b', f_mdp and f_eva at random: the unsimplified bounds, which must also say something."""
    rng = np.random.default_rng(20244)
    informative, closest = 0, -math.inf
    for _ in range(100):
        frontier = random_frontier(rng)
        H, most = frontier.horizon, frontier.most
        zeta = most * float(rng.uniform(0.2, 1))
        b = max(most - zeta, 0.0)
        U = float(np.exp(rng.uniform(math.log(0.5), math.log(8)))) * H / zeta
        K = int(np.exp(rng.uniform(0, math.log(3_000))))
        eta = U / (H * math.sqrt(K)) * float(np.exp(rng.uniform(-1, 1)))
        f_m, f_e = zeta * rng.uniform(0, 0.15, size=2)
        target = min(b + float(rng.uniform(-0.3, 0.3)) * zeta, H)
        promise = guarantee_of(
            upper=U,
            step_size=eta,
            num_iterations=K,
            target=target,
            solver_error=float(f_m),
            evaluation_error=float(f_e),
            horizon=H,
            zeta=zeta,
            threshold=b,
        )
        informative += promise.reward_loss < H and promise.violation < b
        for choose, sign in adversaries(rng, float(rng.random()) * U).values():
            adversary = Adversary(frontier, float(f_m), float(f_e), choose, sign)
            values = play(adversary, ProjectedDescent(np.array([target]), U, eta, K))
            margins = check(frontier, b, values, promise)
            if 0 < promise.violation < b:
                closest = max(closest, margins.shortfall / promise.violation)
    print(f"\n{informative} of 100 bounds say something; the closest shortfall was {closest:.3f} of its bound")
    assert informative >= 25


CLIFF = Frontier(10.0, ((0.0, 0.0), (10.0, 0.0), (10.0, 2.0), (0.0, 9.0)))
"""F = 10 up to V_c = 2, then falls with slope 10/7 to 0 at V_c = 9."""


def _on_the_cliff(feasibility: str, f: float, evaluation_error: float, solver_error: float, U_factor: float) -> Margins:
    """b = 4, ζ = 5, λ* = 10/7, U = 4, against the adversary that does the constraint most harm."""
    b, zeta, H = 4.0, 5.0, CLIFF.horizon
    chosen = dual_settings(f, horizon=H, zeta=zeta, threshold=b, feasibility=feasibility)  # type: ignore[arg-type]
    dual = ProjectedDescent(
        np.array([chosen.target]), chosen.upper * U_factor, chosen.step_size * U_factor, chosen.num_iterations
    )
    choose, sign = adversaries(np.random.default_rng(0), 0.0)["constraint low, estimates high"]
    values = play(Adversary(CLIFF, solver_error, evaluation_error, choose, sign), dual)
    return check(CLIFF, b, values, chosen.guarantee)


@pytest.mark.parametrize("feasibility", ["relaxed", "strict"])
def test_an_oracle_that_breaks_an_assumption_breaks_the_bound(feasibility: str) -> None:
    """The negative control: the same check sees an evaluator three times worse than it says, and a U below λ*."""
    f = 0.8
    _on_the_cliff(feasibility, f, evaluation_error=f, solver_error=f, U_factor=1.0)
    with pytest.raises(BoundBroken, match="shortfall"):
        _on_the_cliff(feasibility, f, evaluation_error=3 * f, solver_error=f, U_factor=1.0)
    with pytest.raises(BoundBroken, match="shortfall"):
        _on_the_cliff(feasibility, f, evaluation_error=f, solver_error=f, U_factor=0.2)  # U = 0.8


def test_the_bounds_for_any_K_are_broken_by_an_evaluator_worse_than_it_says() -> None:
    b, zeta, H, U, K = 4.0, 5.0, CLIFF.horizon, 4.0, 10_000
    dual = ProjectedDescent(np.array([b]), U, U / (H * math.sqrt(K)), K)
    choose, sign = adversaries(np.random.default_rng(0), 0.0)["constraint low, estimates high"]
    values = play(Adversary(CLIFF, 0.1, 0.4, choose, sign), dual)

    def promise(f_e: float) -> Guarantee:
        return guarantee_of(
            upper=U,
            step_size=dual.step_size,
            num_iterations=K,
            target=b,
            solver_error=0.1,
            evaluation_error=f_e,
            horizon=H,
            zeta=zeta,
            threshold=b,
        )

    check(CLIFF, b, values, promise(0.4))
    with pytest.raises(BoundBroken, match="shortfall"):
        check(CLIFF, b, values, promise(0.1))


def test_a_solver_worse_than_it_says_breaks_the_bound() -> None:
    """On the reward's side: slack constraint, so nothing but the solver's own error can cost reward."""
    chosen = dual_settings(0.4, horizon=10.0, zeta=8.9, threshold=0.1, feasibility="relaxed")
    choose, sign = adversaries(np.random.default_rng(0), 0.0)["reward low, estimates low"]
    check(CLIFF, 0.1, play(Adversary(CLIFF, 0.4, 0.4, choose, sign), dual_of(chosen)), chosen.guarantee)
    with pytest.raises(BoundBroken, match="loss"):
        check(CLIFF, 0.1, play(Adversary(CLIFF, 1.2, 0.4, choose, sign), dual_of(chosen)), chosen.guarantee)


# ---- the oracle ------------------------------------------------------------------------------------------------------


@dataclass
class Counting:
    """A solver of two policies (which one depends on whether σ_0 > ½) and its evaluator, counting calls."""

    solved: list[bytes] = field(default_factory=list)
    evaluated: int = 0

    def solve(self, sigma: np.ndarray) -> TabularPolicy:
        self.solved.append(sigma.tobytes())
        return TabularPolicy.deterministic(np.array([int(sigma[0] > 0.5)]), 2)

    def evaluate(self, policy: TabularPolicy) -> np.ndarray:
        self.evaluated += 1
        return np.array([1.0, 0.0]) if policy.table[0] else np.array([0.0, 1.0])


def test_the_oracle_solves_each_reward_and_evaluates_each_policy_once() -> None:
    counting = Counting()
    oracle = Oracle(counting.solve, counting.evaluate)  # type: ignore[arg-type]
    for first in (0.9, 0.7, 0.9, 0.1, 0.2, 0.1):
        oracle(np.array([first, 1 - first]))
    assert len(counting.solved) == oracle.num_solver_calls == 4
    assert counting.evaluated == 2
    assert oracle(np.array([0.9, 0.1]))[0] is oracle(np.array([0.7, 0.3]))[0]  # equal policies are one object


def test_the_oracle_solves_grid_points_only() -> None:
    counting = Counting()
    oracle = Oracle(counting.solve, counting.evaluate, resolution=4)  # type: ignore[arg-type]
    for first in np.linspace(0, 1, 41):
        oracle(np.array([first, 1 - first]))
    assert counting.solved == [np.array([i / 4, 1 - i / 4]).tobytes() for i in range(5)]


# ---- the loop --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recited:
    """A dual that recites multipliers and then final weights."""

    multipliers: Sequence[tuple[float, ...]]
    weights: Sequence[float]

    def propose(self, steps: Sequence[Step]) -> Proposal:
        if len(steps) < len(self.multipliers):
            return Proposal(self.multipliers[len(steps)], None, False)
        return Proposal(self.multipliers[-1], np.array(self.weights), True)


def _run_recited(multipliers: Sequence[float], weights: Sequence[float]) -> Outcome:
    counting = Counting()
    oracle = Oracle(counting.solve, counting.evaluate)  # type: ignore[arg-type]
    return run(oracle, Recited([(m,) for m in multipliers], weights))


def test_the_mixture_has_the_duals_weights_with_equal_policies_merged() -> None:
    outcome = _run_recited([0.0, 3.0, 0.5, 4.0], [0.1, 0.2, 0.3, 0.4])  # σ_0 = 1, ¼, ⅔, ⅕
    assert [int(m.table[0]) for m in outcome.mixture.members] == [1, 0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(outcome.mixture.weights, [0.4, 0.6], atol=1e-15)
    np.testing.assert_array_equal(outcome.member_values, [[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(outcome.values, [0.4, 0.6], atol=1e-15)
    assert outcome.num_solver_calls == 4
    assert [s.multipliers for s in outcome.steps] == [(0.0,), (3.0,), (0.5,), (4.0,)]


def test_members_of_weight_zero_are_dropped() -> None:
    outcome = _run_recited([0.0, 3.0], [0.0, 1.0])
    assert len(outcome.mixture.members) == 1
    np.testing.assert_array_equal(outcome.values, [0.0, 1.0])


def test_the_watcher_sees_every_step() -> None:
    counting, seen = Counting(), []
    oracle = Oracle(counting.solve, counting.evaluate)  # type: ignore[arg-type]
    outcome = run(oracle, Recited([(0.0,), (1.0,)], [0.5, 0.5]), watch=lambda k, step: seen.append((k, step)))
    assert seen == [(1, outcome.steps[0]), (2, outcome.steps[1])]


# ---- the paper's dual ------------------------------------------------------------------------------------------------


def _step(multipliers: tuple[float, ...], values: Sequence[float]) -> Step:
    return Step(multipliers, TabularPolicy.deterministic(np.array([0]), 1), np.array(values))


def test_projected_descent_by_hand() -> None:
    """λ ← Proj_[0,2][λ − ¼(V̂_c − 3)]: up, cut at U, down, cut at 0."""
    dual = ProjectedDescent(np.array([3.0]), upper=2.0, step_size=0.25, num_iterations=5)
    assert dual.propose([]) == ((0.0,), None, False)
    for lam, estimate, following in [(0.0, 1.0, 0.5), (1.75, 1.0, 2.0), (2.0, 5.0, 1.5), (0.5, 9.0, 0.0)]:
        assert dual.propose([_step((lam,), [7.0, estimate])]).multipliers == (following,)
    final = dual.propose([_step((0.0,), [0.0, 0.0])] * 5)
    assert final.done
    np.testing.assert_array_equal(final.weights, np.full(5, 0.2))


def test_projected_descent_moves_two_multipliers_apart() -> None:
    dual = ProjectedDescent(np.array([3.0, 1.0]), upper=2.0, step_size=0.5, num_iterations=9)
    assert dual.propose([]).multipliers == (0.0, 0.0)
    assert dual.propose([_step((1.0, 1.0), [0.0, 2.0, 2.0])]).multipliers == (1.5, 0.5)


def test_two_constraints_through_the_loop() -> None:
    """Three policies worth (1,0,0), (0,1,0), (0,0,1): asking ¼ of both constraints must give about (½, ¼, ¼)."""
    values = np.eye(3)
    oracle = Oracle(
        lambda sigma: TabularPolicy.deterministic(np.array([int(np.argmax(sigma))]), 3),
        lambda policy: values[policy.table[0]],  # type: ignore[attr-defined]
    )
    U, K = 4.0, 40_000
    outcome = run(oracle, ProjectedDescent(np.array([0.25, 0.25]), U, U / math.sqrt(K), K))
    # from step 3 of the proof in theory.meta_theorem, coordinate by coordinate: nothing is cut at U, as λ stays near 1
    assert max(max(s.multipliers) for s in outcome.steps) < 2
    assert np.all(outcome.values[1:] >= 0.25 - 1 / math.sqrt(K))
    # step 2 with m = 2: F = ½ at the target, and the regret costs at most 2·ηH²/2
    assert outcome.values[0] >= 0.5 - U / math.sqrt(K)
    assert outcome.values.sum() == pytest.approx(1.0, abs=1e-9)


def test_saturation_is_seen_and_only_then() -> None:
    dual = ProjectedDescent(np.array([1.0]), upper=2.0, step_size=0.5, num_iterations=4)
    low, top = _step((1.9,), [0.0, 1.0]), _step((2.0,), [0.0, 0.0])
    assert dual.saturated([low, low, top, top])
    assert not dual.saturated([top, top, low, low])  # left the cap in time
    assert not dual.saturated([low, low, top, low])  # half of the second half is not most of it


def test_a_run_that_cannot_reach_its_target_saturates() -> None:
    counting = Counting()
    oracle = Oracle(counting.solve, counting.evaluate)  # type: ignore[arg-type]
    hopeless = ProjectedDescent(np.array([1.5]), upper=2.0, step_size=0.1, num_iterations=200)
    assert hopeless.saturated(run(oracle, hopeless).steps)
    reachable = ProjectedDescent(np.array([0.5]), upper=2.0, step_size=0.1, num_iterations=200)
    assert not reachable.saturated(run(oracle, reachable).steps)


@pytest.mark.parametrize(
    ("upper", "step_size", "num_iterations", "name"),
    [(0.0, 1.0, 1, "upper"), (1.0, -1.0, 1, "step_size"), (1.0, 1.0, 0, "iterations")],
)
def test_projected_descent_refuses_nonsense(upper: float, step_size: float, num_iterations: int, name: str) -> None:
    with pytest.raises(InputError, match=f"`{name}`"):
        ProjectedDescent(np.array([0.0]), upper, step_size, num_iterations)


# ---- the grid --------------------------------------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6)), min_size=1, max_size=5),
    st.integers(1, 5_000),
)
def test_rounding_to_the_grid(multipliers: list[float], n: int) -> None:
    """Sums to one, multiples of 1/n, within 1/n per coordinate and (m+1)/(2n) in the 1-norm, identity on the grid."""
    sigma = simplex_point(multipliers)
    assert sigma.sum() == pytest.approx(1.0, abs=1e-14)
    rounded = round_to_grid(sigma, n)
    counts = rounded * n
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    assert np.all(rounded >= 0)
    assert rounded.sum() == pytest.approx(1.0, abs=1e-14)
    # the rounding treats what is within 1e-9 of a whole number as whole, hence the small change
    assert np.max(np.abs(rounded - sigma)) <= (1 + 1e-8) / n
    assert np.abs(rounded - sigma).sum() <= (len(sigma) / 2 + 1e-7) / n
    np.testing.assert_array_equal(round_to_grid(rounded, n), rounded)


def test_no_grid_leaves_the_point_alone() -> None:
    sigma = simplex_point([0.3, 0.0])
    assert round_to_grid(sigma, None) is sigma
    np.testing.assert_allclose(sigma, np.array([1, 0.3, 0]) / 1.3, atol=1e-16)
