"""Values under linearity: the identities behind them, coverage, tightness, and what happens without linearity.

The claim is that all 1+m intervals of a run hold together with probability 1 − δ, so over N seeded runs the runs with a miss
are at most Bin(N, δ); at δ = .05 the alarm is raised at 28 of 200 (or 87 of 1000), which has probability 1e-6 at most if
the claim is true. Controls are held against the same alarm and must raise it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

from helpers import NoiselessBuffer, random_design, random_table, sampled
from saddleback import CMDP, Constraint, zoo
from saddleback.certificates.values.intervals import betting
from saddleback.certificates.values.linear import (
    CoresetReader,
    _coreset_values,
    _from_rollouts,
    _lower_limit,
    _Seen,
    assumption,
    linear_intervals,
    read_coreset,
    under_linearity,
)
from saddleback.certificates.values.linear_plan import plan_values
from saddleback.certificates.values.rollouts import Baseline, Rollouts, fit_baseline, roll_out, steps_per_rollout
from saddleback.designs.design import Design, full_design, weighted_design
from saddleback.exact import mixture_values
from saddleback.features import FeatureFunction
from saddleback.problem.cmdp import Start
from saddleback.problem.policies import GreedyPolicy, MixturePolicy, SoftmaxPolicy, TabularPolicy
from saddleback.problem.spaces import BoxStates
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.trajectories import RolloutPlan
from saddleback.simulators.generative_model import GenerativeModel, Stream
from saddleback.solving.strict import guide_of
from spelled_out import solve

DELTA = 0.05


class Frozen(NamedTuple):
    """Everything that precedes the fresh samples, and the truth in utilities."""

    problem: CMDP
    model: GenerativeModel
    design: Design
    mixture: MixturePolicy
    earlier: Buffer
    baseline: Baseline
    truth: np.ndarray


class Run(NamedTuple):
    low: np.ndarray
    high: np.ndarray
    reader: CoresetReader
    rollouts: Rollouts

    def misses(self, truth: np.ndarray, shrink: float = 1.0) -> bool:
        middle, half = (self.low + self.high) / 2, (self.high - self.low) / 2 * shrink
        return bool(np.any(np.abs(truth - middle) > half))

    def half_widths(self) -> np.ndarray:
        return np.asarray((self.high - self.low) / 2)

    def plain(self) -> np.ndarray:
        """The intervals without the assumption, from the same rollouts at the same level, ``(1+m, 2)``."""
        z, level = self.rollouts, DELTA / len(self.low)
        columns = zip(z.values.T, z.low.tolist(), z.high.tolist(), strict=True)
        return np.array([betting(x, low, high, level) for x, low, high in columns])

    def plain_half_widths(self) -> np.ndarray:
        return np.asarray(np.ptp(self.plain(), axis=1) / 2)

    def plain_misses(self, truth: np.ndarray) -> bool:
        low, high = self.plain().T
        return bool(np.any((truth < low - 1e-4) | (truth > high + 1e-4)))  # the cap hides less

    def misses_if_the_fresh_model_were_exact(self, truth: np.ndarray) -> bool:
        """Three standard errors of the rollouts' sums alone."""
        error = self.reader.sums.std(axis=0) / np.sqrt(len(self.reader.sums))
        return bool(np.any(np.abs(self.reader.at_start() + self.reader.sums.mean(axis=0) - truth) > 3 * error))


def run(
    frozen: Frozen,
    counts: int | np.ndarray,
    num_rollouts: int,
    seed: int,
    forced: tuple[float, float] | None = None,
) -> Run:
    """Fresh samples, rollouts and limits; with ``forced`` β and g are these."""
    problem, design, mixture = frozen.problem, frozen.design, frozen.mixture
    drawn = collect(frozen.model, problem, design, counts, seed=seed, stream=Stream.CERTIFICATE)
    fresh = cut(drawn, problem, design, 1)
    reader = read_coreset(
        problem,
        mixture,
        frozen.earlier,
        fresh,
        frozen.baseline,
        RolloutPlan.unlimited(problem.gamma, num_rollouts),
        DELTA,
    )
    assert reader is not None
    if forced is not None:
        share, slope = (np.full_like(reader.plan.share, x) for x in forced)
        reader.plan = dataclasses.replace(reader.plan, share=share, slope=slope)
    rollouts = roll_out(
        problem,
        frozen.model,
        mixture,
        frozen.baseline,
        RolloutPlan.unlimited(problem.gamma, num_rollouts),
        seed=seed,
        observers=[reader],
    )
    return Run(*linear_intervals(reader, rollouts), reader, rollouts)


@cache
def solved(samples: int = 60_000, **settings: object) -> Frozen:
    """The mixture that a solve ends with, frozen on its own samples."""
    instance = zoo.make("random-linear", **settings)  # type: ignore[arg-type]
    guide = guide_of(solve(instance.problem, instance.simulator, samples=samples, seed=0))
    assert guide.mixture is not None
    truth = instance.problem.unit_values_of(mixture_values(instance.table, guide.mixture))
    baseline = fit_baseline(guide.problem, guide.earlier[-1], guide.mixture)
    return Frozen(guide.problem, instance.simulator, guide.design, guide.mixture, guide.earlier[-1], baseline, truth)


def random_mixture(S: int, A: int, seed: int) -> MixturePolicy:
    rng = np.random.default_rng(np.random.SeedSequence([50, seed]))
    members = [
        TabularPolicy.deterministic(rng.integers(0, A, S), A),
        TabularPolicy.stochastic(rng.dirichlet(np.ones(A), S)),
    ]
    return MixturePolicy.of(members, np.array([0.3, 0.7]))


@cache
def small(observed: bool = False) -> Frozen:
    """Arbitrary policies, V̂ fitted on twenty samples a pair, all pairs in the coreset; the reward may be observed."""
    table = random_table(51, S=5, A=2, d=4)
    problem, model = table.problem(), table.simulator()
    mixture = random_mixture(5, 2, 51)
    truth = problem.unit_values_of(mixture_values(table, mixture))
    if observed:
        model = with_noise(model, np.array(problem.reward))
        problem = dataclasses.replace(problem, reward=None)
    design = random_design(problem, 52)
    earlier = cut(collect(model, problem, design, 20, seed=53, stream=Stream.EVALUATION), problem, design, 1)
    return Frozen(problem, model, design, mixture, earlier, fit_baseline(problem, earlier, mixture), truth)


def with_noise(model: GenerativeModel, reward: np.ndarray) -> GenerativeModel:
    """The same transitions; what is seen of the reward r is 0.9 r and 0.1 times a coin of chance r."""

    def sample(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> object:
        following, r = model.sample(states, actions, rng).next_states, reward[states, actions]
        return following, np.column_stack([0.9 * r + 0.1 * (rng.random(len(r)) < r), np.zeros(len(r))])

    return GenerativeModel(sample, model.states, 2)


# ---- a continuous space --------------------------------------------------------------------------------------------

PSI = np.array([[0.0, 0.8], [1.0, 0.3]])  # ψ_r and ψ_c


def chances(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """φ = (1 − p, p) with p = s, or s² for the second action."""
    p = states[:, 0] ** (1 + actions)
    return np.column_stack([1 - p, p])


@cache
def continuous(observed: bool) -> Frozen:
    """s' is uniform on the right half of [0, 1] with chance p, else on the left; V is exact by quadrature."""

    def sample(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> object:
        right = rng.random(len(states)) < chances(states, actions)[:, 1]
        following = ((rng.random(len(states)) + right) / 2)[:, None]
        means = chances(states, actions) @ PSI
        return (following, 0.9 * means + 0.1 * (rng.random(means.shape) < means)) if observed else following

    def signal(j: int) -> object:
        return None if observed else lambda s, a: chances(s, a) @ PSI[:, j]

    rng, box = np.random.default_rng(61), BoxStates([0.0], [1.0])
    features = FeatureFunction(chances, 2, 2)
    pool = np.concatenate([[[0.0], [1.0]], rng.random((200, 1))]), rng.integers(0, 2, 202)
    problem = CMDP(
        gamma=0.9,
        start=Start(np.array([[0.2], [0.7]]), np.array([0.5, 0.5])),
        num_actions=2,
        states=box,
        reward=signal(0),  # type: ignore[arg-type]
        reward_range=(0, 1),
        constraints=[Constraint("c", signal(1), ">=", 2.0, range=(0, 1))],  # type: ignore[arg-type]
        features=features,
        candidates=pool,
    )
    members = [GreedyPolicy(features, np.array([1.0, 0.0])), SoftmaxPolicy(features, np.array([0.0, 1.0]), 3.0)]
    mixture = MixturePolicy.of(members, np.array([0.4, 0.6]))
    model = GenerativeModel(sample, box, 2 if observed else 0)
    design = weighted_design(
        pool[0][:3], pool[1][:3], chances(pool[0][:3], pool[1][:3]), np.ones(3), chances(*pool), complete=False
    )
    earlier = cut(collect(model, problem, design, 300, seed=62, stream=Stream.EVALUATION), problem, design, 1)
    truth = sum(w * exact_value(problem, p) for w, p in zip(mixture.weights, members, strict=True))
    return Frozen(problem, model, design, mixture, earlier, fit_baseline(problem, earlier, mixture), np.asarray(truth))


def exact_value(problem: CMDP, policy: GreedyPolicy | SoftmaxPolicy) -> np.ndarray:
    """ω = ψ + γ E_μ[πφ] ω by Gauss-Legendre on both halves, where πφ is smooth."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    features, gamma = problem.required_features(), problem.gamma
    E = [weights / 2 @ policy.mean_features(features, ((nodes + 1) / 2 + half)[:, None] / 2) for half in (0, 1)]
    omega = np.linalg.solve(np.eye(2) - gamma * np.array(E), PSI)
    return np.asarray(problem.start.weights @ policy.mean_features(features, problem.start.states) @ omega)


# ---- the identities ------------------------------------------------------------------------------------------------


def watched(exact: bool, rough_fit: bool, num: int = 3000) -> tuple[CoresetReader, np.ndarray]:
    """Rollouts with a fresh model that is exact, or drawn; V̂ from an exact model, or from three samples a pair."""
    table = random_table(54, S=6, A=3, d=4)
    problem, mixture = table.problem(), random_mixture(6, 3, 54)
    design = random_design(problem, 55)
    noiseless = NoiselessBuffer.of(table, problem, design, 2)
    earlier = sampled(table, problem, design, 3, 1, seed=56) if rough_fit else noiseless
    fresh = noiseless if exact else sampled(table, problem, design, 40, 1, seed=57)
    baseline = fit_baseline(problem, earlier, mixture)
    plan = plan_values(
        problem, mixture, earlier, fresh.counts, baseline, RolloutPlan.unlimited(problem.gamma, num), DELTA
    )
    reader = CoresetReader(problem, mixture, fresh, plan)
    roll_out(
        problem,
        table.simulator(),
        mixture,
        baseline,
        RolloutPlan.unlimited(problem.gamma, num),
        seed=58,
        observers=[reader],
    )
    return reader, problem.unit_values_of(mixture_values(table, mixture))


def test_with_an_exact_model_and_fit_nothing_is_left_to_add() -> None:
    reader, truth = watched(exact=True, rough_fit=False)
    np.testing.assert_allclose(reader.at_start(), truth, rtol=1e-12)
    assert np.abs(reader.sums).max() < 1e-11


def test_with_an_exact_model_the_sums_are_unbiased_for_any_fit() -> None:
    """The telescoping, for deterministic and stochastic members: within 5.3 standard errors, 1e-7 for each column."""
    reader, truth = watched(exact=True, rough_fit=True)
    assert np.all(np.abs(reader.at_start() - truth) > 0.004)  # the fit alone is wrong
    error = reader.sums.std(axis=0) / np.sqrt(len(reader.sums))
    score = (reader.at_start() + reader.sums.mean(axis=0) - truth) / error
    print(f"seed 58: scores {score.round(2)}, the fit is off by {(reader.at_start() - truth).round(3)}")
    assert np.all(np.abs(score) < 5.3)


def test_what_the_fresh_model_adds_to_the_sums() -> None:
    """Û_i − U_i = y_iᵀd, so its mean is Σ_kx α_kx d_kx; and no rollout is off by more than its slack says."""
    drawn, _ = watched(exact=False, rough_fit=True)
    exact, _ = watched(exact=True, rough_fit=True)
    np.testing.assert_array_equal(drawn.visits, exact.visits)
    off, n = drawn.sums - exact.sums, len(drawn.sums)
    d = [drawn.problem.gamma * (mean_of(drawn, k) - mean_of(exact, k)) for k in range(2)]
    np.testing.assert_allclose(off.mean(axis=0), np.einsum("kx,kxj->j", drawn.visits / n, np.array(d)), atol=1e-12)
    assert np.all(np.abs(d) <= drawn.q)
    assert np.all(np.abs(off) <= drawn.slack)
    assert np.all(np.abs(off).max(axis=0) > 0.01)


def test_the_least_sum_is_at_the_ends() -> None:
    rng = np.random.default_rng(59)
    z, eps, h = rng.standard_normal(50) * 0.2, rng.random(50) * 0.1, 0.9
    least = _from_rollouts(z, eps, h)
    tried = [eps * rng.uniform(-1, 1, 50) for _ in range(2000)] + [eps * rng.choice([-1, 1], 50) for _ in range(2000)]
    sums = [float((np.log1p(h * (z - e)) + h * e).sum()) for e in tried]
    assert least <= min(sums)
    assert least > min(sums) - 0.1
    assert _from_rollouts(z, eps, 100.0) == -np.inf  # a stake that may lose everything


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "num", "g"), [(20, 2000, 30.0), (1000, 60, 6.0)])
def test_the_limit_is_what_the_bet_leaves(samples: int, num: int, g: float) -> None:
    """With log E_s in the place of L and |d| in that of its limits the limit may not pass V, and must come close.

    The fresh samples make the difference in the first case, the rollouts in the second.
    """
    table, frozen = random_table(51, S=5, A=2, d=4), small()
    problem, mixture = frozen.problem, frozen.mixture
    distances = []
    for seed in range(15):
        fresh = sampled(table, problem, frozen.design, samples, 1, seed=seed, stream=Stream.CERTIFICATE)
        plan = plan_values(
            problem,
            mixture,
            frozen.earlier,
            fresh.counts,
            frozen.baseline,
            RolloutPlan.unlimited(problem.gamma, num),
            DELTA,
        )
        plan = dataclasses.replace(plan, share=np.full((2, 2), 0.8), slope=np.full((2, 2), g))
        drawn = CoresetReader(problem, mixture, fresh, plan)
        exact = CoresetReader(problem, mixture, NoiselessBuffer.of(table, problem, frozen.design, 2), plan)
        drawn.q = np.abs([problem.gamma * (mean_of(drawn, k) - mean_of(exact, k)) for k in range(2)])
        rollouts = roll_out(
            problem,
            frozen.model,
            mixture,
            frozen.baseline,
            RolloutPlan.unlimited(problem.gamma, num),
            seed=seed,
            observers=[drawn, exact],
        )
        seen = _Seen.of(drawn, rollouts)
        for side, s in enumerate((1, -1)):
            for j in range(2):
                bet = log_wealth(drawn, exact, rollouts, frozen.truth[j], s, j)
                if bet <= 0:  # never so in earnest, and the limit is sought below the mean
                    continue
                drawn.plan = dataclasses.replace(plan, levels=plan.levels._replace(bet=bet))
                distances.append(s * frozen.truth[j] - _lower_limit(drawn, seen.column(j, s), j, side))
    print(f"{len(distances)} limits, {min(distances):.5f} to {max(distances):.5f} short of V")
    assert len(distances) >= 15
    assert min(distances) >= -2e-6  # what the cap hides
    assert max(distances) < 0.005


def mean_of(reader: CoresetReader, k: int) -> np.ndarray:
    return reader.fresh.average(reader.at_support(k))


def log_wealth(drawn: CoresetReader, exact: CoresetReader, rollouts: Rollouts, V: float, s: int, j: int) -> float:
    """log E_s from the truth."""
    plan, n, N, gamma = drawn.plan, drawn.plan.num_rollouts, drawn.fresh.counts, drawn.problem.gamma
    beta, g, alpha = plan.share[0, j], plan.slope[0, j], drawn.visits / n
    X = (1 - beta) * rollouts.values[:, j] + beta * (exact.at_start() + exact.sums)[:, j]
    P = drawn.fresh.empirical_model()
    row = np.repeat(np.arange(len(N)), np.diff(P.indptr))
    G = beta * _coreset_values(drawn)[:, j]
    PV = np.array([mean_of(exact, k)[:, j] for k in range(len(alpha))])
    PG = beta * gamma * (alpha * PV).sum(axis=0)
    h = np.minimum(g / N, 0.45 / (beta * gamma * (plan.high - plan.low)[:, j] @ np.abs(alpha)))
    coreset = (N[row] * P.data * np.log1p(s * h[row] * (G - PG[row]))).sum()
    return float(np.log1p(s * g / n * (X - V)).sum() + coreset)


def test_watching_changes_nothing() -> None:
    frozen = small()
    seen = run(frozen, 20, 200, 3).rollouts
    alone = roll_out(
        frozen.problem, frozen.model, frozen.mixture, frozen.baseline, RolloutPlan.unlimited(0.8, 200), seed=3
    )
    np.testing.assert_array_equal(seen.gains, alone.gains)
    assert seen.steps == alone.steps


# ---- coverage ------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """What is frozen, fresh samples of each pair, rollouts, the runs of the short form, and β and g if they are forced."""

    freeze: Callable[[], Frozen]
    counts: int
    rollouts: int
    runs: int
    forced: tuple[float, float] | None = None


CASES = {
    "random-linear": Case(solved, 1500, 100, 100),
    "random-linear, another": Case(
        partial(solved, 20_000, constraints=2, dim=5, states=60, actions=3, gamma=0.8, seed=4), 600, 100, 60
    ),
    "small": Case(small, 2000, 200, 30),
    "observed reward": Case(partial(small, True), 300, 1500, 20, (0.5, 100.0)),
    "continuous": Case(partial(continuous, False), 2000, 100, 12),
}


def check_coverage(name: str, runs: int, first_seed: int) -> None:
    case, frozen = CASES[name], CASES[name].freeze()
    alarm = int(binom.isf(1e-6, runs, DELTA)) + 1
    seeds = range(first_seed, first_seed + runs)
    found = [run(frozen, case.counts, case.rollouts, seed, case.forced) for seed in seeds]
    misses = sum(r.misses(frozen.truth) for r in found)
    short = sum(r.misses(frozen.truth, 0.05) for r in found)
    trusting = sum(r.misses_if_the_fresh_model_were_exact(frozen.truth) for r in found)
    half = np.median([r.half_widths() for r in found], axis=0) / frozen.problem.horizon
    print(
        f"{name}: seeds {first_seed}..{first_seed + runs - 1}, {misses} misses, alarm at {alarm}, median half-widths "
        f"{half.round(4)} H; controls: a twentieth of the width {short}, the fresh model taken for P {trusting}"
    )
    assert misses < alarm
    assert np.all(half < 0.1)
    assert found[0].reader.plan.share.max() > 0  # the assumption is put to use
    assert short >= alarm
    if name.startswith("random-linear"):  # elsewhere V̂ is so rough that the rollouts' own noise is not small
        assert trusting >= alarm


@pytest.mark.check
@pytest.mark.parametrize("name", CASES)
def test_coverage(name: str) -> None:
    check_coverage(name, CASES[name].runs, 60_000)


@pytest.mark.study
@pytest.mark.parametrize("name", CASES)
def test_coverage_at_length(name: str) -> None:
    check_coverage(name, 1000, 70_000)


FROZEN = {"small": small, "observed": partial(small, True)}
FROZEN |= {f"continuous, {o}": partial(continuous, o) for o in (False, True)}


@pytest.mark.parametrize("name", FROZEN)
def test_the_sums_stay_within_their_range(name: str) -> None:
    frozen = FROZEN[name]()
    found = run(frozen, 1000, 1000, 4)
    seen, plan = _Seen.of(found.reader, found.rollouts), found.reader.plan
    for sums, (low, high) in ((seen.free, seen.free_range), (seen.linear, seen.linear_range)):
        assert np.all(sums >= low) and np.all(sums <= high)
        assert np.all(np.ptp(sums, axis=0) > 0.01 * (high - low))  # the range is not absurdly wide
    for k in range(2):
        fitted = found.reader.at_support(k)
        assert np.all(fitted >= plan.low[k]) and np.all(fitted <= plan.high[k])


# ---- tightness -----------------------------------------------------------------------------------------------------


def sizes(frozen: Frozen) -> tuple[int, np.ndarray]:
    """Rollouts of 150,000 steps, and 300,000 samples of the coreset."""
    n = int(150_000 / steps_per_rollout(frozen.problem.gamma))
    return n, (300_000 * frozen.design.weights).astype(np.int64)


def check_tightness(seeds: range, most: tuple[float, float]) -> None:
    """On the mixture of a solve with 300,000 samples, beside the intervals of the same rollouts at the same level."""
    frozen = solved(300_000)
    n, counts = sizes(frozen)
    found = [run(frozen, counts, n, seed) for seed in seeds]
    ratios = np.median([r.half_widths() / r.plain_half_widths() for r in found], axis=0)
    half = np.median([r.half_widths() for r in found], axis=0)
    print(
        f"seeds {seeds}: median half-widths {half.round(4)} of reward and constraint, {ratios.round(3)} of those without "
        f"the assumption; β {found[0].reader.plan.share.round(2).tolist()}"
    )
    assert np.all(ratios <= most)
    assert not any(r.misses(frozen.truth) for r in found[:1])


@pytest.mark.slow
def test_tightness() -> None:
    check_tightness(range(80_000, 80_003), (0.5, 0.85))


@pytest.mark.study
def test_tightness_of_ten() -> None:
    check_tightness(range(80_000, 80_010), (0.5, 0.85))


@pytest.mark.study
def test_coverage_where_the_intervals_are_sharp() -> None:
    """With as many samples the half-widths are three deviations, so that a third of them must miss too often."""
    frozen = solved(300_000)
    n, counts = sizes(frozen)
    found = [run(frozen, counts, n, seed) for seed in range(85_000, 85_200)]
    misses, short = (sum(r.misses(frozen.truth, shrink) for r in found) for shrink in (1.0, 1 / 3))
    print(f"seeds 85000..85199: {misses} misses, alarm at 28; control: a third of the width {short}")
    assert misses < 28 <= short


# ---- what the assumption is worth ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_linearity_the_intervals_are_wrong() -> None:
    """Those without the assumption stay right: 7 of 10 misses at δ = .05 have probability 1e-7 at most."""
    frozen = solved(100_000, misspecification=0.3)
    found = [run(frozen, 5000, 1500, seed) for seed in range(90_000, 90_010)]
    wrong = sum(r.misses(frozen.truth) for r in found)
    plain = sum(r.plain_misses(frozen.truth) for r in found)
    print(f"seeds 90000..90009, three tenths of P not linear: {wrong} of 10 wrong; without the assumption {plain}")
    assert wrong >= 9
    assert plain < 7


def test_the_users_units() -> None:
    """A budget turns the limits round."""
    frozen = small()
    c = frozen.problem.constraints[0]
    flipped = dataclasses.replace(c, sense="<=", range=(-1.0, 3.0))
    problem = dataclasses.replace(frozen.problem, constraints=[flipped])
    found = run(frozen._replace(problem=problem), 500, 200, 5)
    fields = under_linearity(found.reader, found.rollouts)
    assert fields.value == (found.low[0], found.high[0])
    (low, high), H = fields.constraints[0], problem.horizon
    np.testing.assert_allclose([low, high], [3 * H - 4 * found.high[1], 3 * H - 4 * found.low[1]])
    assert low < frozen.truth[1] < high  # the signal itself was in [0, 1]
    assert "linear" in fields.assumes and "declared ranges" in fields.assumes


def test_what_is_assumed() -> None:
    assert assumption(small().problem) == "transition probabilities linear in the features"
    assert "known rewards linear" in assumption(continuous(False).problem)


def test_nothing_is_said_where_nothing_is_known() -> None:
    frozen, table = small(), random_table(51, S=5, A=2, d=4)
    fresh = sampled(table, frozen.problem, frozen.design, 1, 1, seed=1)
    args = frozen.problem, frozen.mixture, frozen.earlier
    assert (
        read_coreset(*args, fresh, frozen.baseline, RolloutPlan.unlimited(0.8, 100), DELTA) is None
    )  # one sample has no variance
    plain = table.problem()
    tabular = sampled(table, plain, full_design(*plain.pairs()), 5, 1, seed=1)
    assert (
        read_coreset(plain, frozen.mixture, tabular, tabular, frozen.baseline, RolloutPlan.unlimited(0.8, 100), DELTA)
        is None
    )
    fresh = sampled(table, frozen.problem, frozen.design, 50, 1, seed=1)
    assert read_coreset(*args, fresh, frozen.baseline, RolloutPlan.unlimited(0.8, 1), DELTA) is None


def test_stakes_that_are_too_high_cost_width_only() -> None:
    """What the range does not allow to be excluded is not: V − min X may not exceed 0.95 n/g."""
    frozen, table = small(), random_table(51, S=5, A=2, d=4)
    fresh = sampled(table, frozen.problem, frozen.design, 500, 1, seed=2)
    plan = plan_values(
        frozen.problem,
        frozen.mixture,
        frozen.earlier,
        fresh.counts,
        frozen.baseline,
        RolloutPlan.unlimited(0.8, 100),
        DELTA,
    )
    slope = np.array([[1e9, 10.0], [10.0, 1e9]])
    plan = dataclasses.replace(plan, share=np.full((2, 2), 0.5), slope=slope)
    reader = CoresetReader(frozen.problem, frozen.mixture, fresh, plan)
    rollouts = roll_out(
        frozen.problem,
        frozen.model,
        frozen.mixture,
        frozen.baseline,
        RolloutPlan.unlimited(0.8, 100),
        seed=2,
        observers=[reader],
    )
    low, high = linear_intervals(reader, rollouts)
    known = rollouts.known
    assert low[0] == known[0, 0] and high[1] == known[1, 1], "no more than is known without samples"
    assert low[1] > known[0, 1] and high[0] < known[1, 0]
    assert np.all(low <= frozen.truth) and np.all(frozen.truth <= high)
    seen = _Seen.of(reader, rollouts).column(0, 1)
    for g in (20.0, 60.0, 200.0):
        reader.plan = dataclasses.replace(plan, slope=np.full((2, 2), g))
        most = (seen.free_range[0] + seen.linear_range[0]) / 2 + 0.95 * 100 / g
        assert _lower_limit(reader, seen, 0, 0) <= most
