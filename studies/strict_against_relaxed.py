"""What strict feasibility costs as the room ζ of the lower-bound instance shrinks.

    from o:  s₀ pays and has V_c = b − ζ,  z pays nothing and has V_c = b + ζ;   V* mixes them half and half

Held equal along ζ: b = 2 + ζ, so that V_c(s₀) = b − ζ = 2, the reward at s₀ and hence all noise are the same for every ζ, and so
is V*. A constraint known to ±w only must be kept with w to spare, which moves the mixture by w/2ζ and costs about V*·w/2ζ.
Finding the hidden direction takes samples of its own, the same for every ζ, before which no rule gets anywhere. The second panel
counts samples, so it switches the direction off (Δ = 0): what is left is what ζ alone costs.

    strict                 b' = b + what the measured limits ask for                     samples for ε ∝ 1/ζ²
    relaxed (b' = b)       as solve does where it has no a-priori guarantee
    relaxed (b' = b − f)   with f the measured half-width: the paper's rule              samples for ε ∝ ζ⁰
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from saddleback import Solution, solve
from saddleback.runs.settings import Method
from studies.error_against_size import implied
from studies.measuring import Array, Curve, exact_zeros, quantile, resamples, slopes, spelled
from studies.panels import Figures, Panel, compact
from studies.truth import Truth, hard_problem

TITLE = "Strict against relaxed feasibility"
QUESTION = (
    "On the instance behind the paper's lower bound: how many samples does strict feasibility need as the room ζ shrinks, and "
    "how many relaxed feasibility? The paper says ∝ 1/ζ² and ∝ 1 (exponents −2 and 0; at a fixed number of samples the "
    "error goes as 1/ζ and as 1)."
)
EPSILON = 0.05
LEVEL = 0.9  # nine runs of ten
STRICT, RELAXED, RELAXED_BY_F = "strict", "relaxed (b' = b)", "relaxed (b' = b − f)"
RULES = (STRICT, RELAXED, RELAXED_BY_F)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """Seeds; ζ and the number of samples of the first panel, ζ (above ε) and the numbers tried for the second."""

    seeds: Sequence[int]
    zetas: Sequence[float]
    fixed: int
    large_zetas: Sequence[float]
    tried: Sequence[int]


FULL = Size(
    seeds=range(40),
    zetas=[2.0**-k for k in range(6)],
    fixed=2**18,
    large_zetas=[2.0**-k for k in range(4)],
    tried=[2**k for k in range(12, 23)],
)
QUICK = Size(range(4), [1.0, 0.25], 2**15, [1.0, 0.5], [2**13, 2**16])


def measure(quick: bool, say: Say) -> Figures:
    """One picture of two panels."""
    size = QUICK if quick else FULL
    at_fixed: dict[str, list[Array]] = {rule: [] for rule in RULES}
    at_tried: dict[str, list[Array]] = {rule: [] for rule in RULES}
    for zeta in size.zetas:
        _append(at_fixed, _problem(zeta), [size.fixed], size.seeds)
        say(f"zeta = {zeta:g}, {size.fixed:,} samples")
    for zeta in size.large_zetas:
        _append(at_tried, _problem(zeta, delta=0.0), size.tried, size.seeds)
        say(f"zeta = {zeta:g}, up to {size.tried[-1]:,} samples")
    paper = {rule: implied("zeta", "strict" if rule == STRICT else "relaxed") for rule in RULES}
    fixed = [Curve.of(r, size.zetas, np.stack(at_fixed[r])[:, 0], size.seeds, paper[r], LEVEL) for r in RULES]
    needed = [_needed(r, size, np.stack(at_tried[r]), 2 * paper[r]) for r in RULES]
    problem, room, guide = "hard-instance, γ = 0.8, d = 8, b = 2 + ζ", "room ζ", "the paper's rate, strict"
    return {
        "room": (
            Panel(
                "error at a fixed number of samples",
                room,
                "error of nine runs in ten",
                f"{problem}, {size.fixed:,} samples",
                tuple(fixed),
                paper[STRICT],
                guide,
            ),
            Panel(
                f"samples for an error of {EPSILON:g}",
                room,
                "samples that suffice nine runs in ten",
                f"{problem}, Δ = 0",
                tuple(needed),
                2 * paper[STRICT],
                guide,
            ),
        )
    }


def _problem(zeta: float, **more: float) -> Truth:
    return hard_problem(0, gamma=0.8, zeta=zeta, threshold=2 + zeta, **more)


def _append(errors: dict[str, list[Array]], truth: Truth, numbers: Sequence[int], seeds: Sequence[int]) -> None:
    """Errors of every rule, ``(numbers, seeds)``, at the end of its list."""
    found = np.array([[_errors(truth.with_seed(seed), samples) for seed in seeds] for samples in numbers])
    for i, rule in enumerate(RULES):
        errors[rule].append(found[:, :, i])


def _errors(truth: Truth, samples: int) -> tuple[float, float, float]:
    """Of the three rules, from the same samples."""
    relaxed = solve(truth.problem, truth.simulator, samples=samples, seed=truth.seed, method=Method(certificate=0))
    strict = solve(truth.problem, reuse=relaxed, feasibility="strict")
    target = truth.problem.thresholds - _half_width(relaxed)
    by_f = solve(truth.problem, reuse=relaxed, method=Method(target=tuple(target)))
    return truth.strict_error(strict), truth.constrained_error(relaxed), truth.constrained_error(by_f)


def _half_width(solution: Solution) -> float:
    """f: half the 95 % interval of V_c, the largest over the policies found."""
    if solution.mixture is None:
        return 0.0
    limits = [solution.prepared.interval(policy, 0.95) for policy in solution.mixture.members]
    return max(float(high[1] - low[1]) / 2 for low, high in limits)


def _needed(label: str, size: Size, errors: Array, paper: float) -> Curve:
    """The samples from which on nine runs in ten err by at most ε, for every ζ, with the same for resampled seeds."""
    numbers, e = np.asarray(size.tried, dtype=np.float64), exact_zeros(errors)
    middle = np.array([crossing(numbers, quantile(rows, LEVEL)) for rows in e])
    drawn = np.stack(
        [[crossing(numbers, quantile(rows[:, c], LEVEL)) for rows in e] for c in resamples(e.shape[2])], axis=1
    )
    low, high = np.quantile(drawn, [0.25, 0.75], axis=1, method="nearest")
    x = np.asarray(size.large_zetas, dtype=np.float64)
    return Curve(label, x, middle, low, high, drawn, spelled(size.seeds), np.isinf(middle) * 1.0, paper, "crossing")


def crossing(numbers: Array, errors: Array) -> float:
    """The number at which errors fall to ε, by the power law through those within a factor of four of ε."""
    if np.all(errors <= EPSILON):
        return float(numbers[0])  # even the smallest is enough
    near = np.isfinite(errors) & (errors >= EPSILON / 4) & (errors <= 4 * EPSILON)
    if near.sum() < 2 or errors[near].min() > EPSILON:
        return np.inf
    p = slopes(numbers[near], errors[near][:, None])[0]
    middle = np.exp(np.log(numbers[near]).mean()), np.exp(np.log(errors[near]).mean())
    return float(middle[0] * (EPSILON / middle[1]) ** (1 / p)) if p < 0 else np.inf


def answer(figures: Figures) -> list[str]:
    """What came out, in words, with the measured numbers."""
    fixed, needed = figures["room"]
    strict, by_f = needed.curve(STRICT), needed.curve(RELAXED_BY_F)
    return [
        f"""**Strict** costs what the paper says. The error goes as {fixed.curve(STRICT).fit()} where the rate says −1, the
        samples for an error of {EPSILON:g} as {strict.fit()} where it says −2: {compact(strict.middle[0])} at
        ζ = {strict.x[0]:g}, {compact(strict.middle[-1])} at ζ = {strict.x[-1]:g}. Both lie a little below: the error because the
        loss, V*·w/(2ζ + w), levels off where the half-width w is no longer small beside ζ; the samples because w is still above
        its 1/√samples where samples are few, that is, where ζ is large. A strict answer counts only where it keeps the constraint
        in truth and says that it does, which {100 * _kept(fixed):.0f} % of the runs of the first panel do; 97.5 % are to be
        expected of two-sided limits of 95 %.""",
        f"""**Relaxed as the paper has it** (b' = b − f) does not feel ζ: exponents {fixed.curve(RELAXED_BY_F).fit()} for the
        error and {by_f.fit()} for the samples, about {compact(float(f"{np.median(by_f.middle):.1e}"))} at every ζ. It pays f, and
        pays it in constraint; where ζ is large, that is more than strictness costs.""",
        f"""**Relaxed with b' = b**, which is what `solve` does when it has no a-priori guarantee, is better than both while ζ is
        large, but it is not free of ζ: exponents {fixed.curve(RELAXED).fit()} for the error and {needed.curve(RELAXED).fit()} for
        the samples. Half of the time V̂_c comes out too low, the mixture is as cautious as a strict one, and reward is lost in
        proportion to 1/ζ; the other half gains reward and misses the constraint by no more than the noise, which is why medians
        do not show it. Who has little room and can live with a violation of f should relax the target:
        `Method(target=(b - f,))`.""",
        """**Not held equal.** c(z) and b change with ζ; V_c at s₀, all noise and V* do not. The bound's own range, ζ below 0.0215
        and ε below 0.002, would by these figures take more than 10¹⁰ samples. For ζ ≤ ε relaxed feasibility asks nothing, so the second panel
        ends above.""",
    ]


def _kept(panel: Panel) -> float:
    """The share of strict runs that met the constraint and said so."""
    return float(1 - panel.curve(STRICT).unanswered.mean())
