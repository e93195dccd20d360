"""True error at a fixed number of samples against d, H = 1/(1 − γ) and ζ, beside the exponents of the paper's rates.

    samples ∝ d²H⁴/ε²  (relaxed)           ⇒   ε ∝ d·H²
    samples ∝ d²H⁶/(ε²ζ²)  (strict)        ⇒   ε ∝ d·H³/ζ
    lower bound d²H⁵/(ε²ζ²)  (strict)      ⇒   ε ∝ d·H^2.5/ζ

Held equal along d: states, actions, discount, the number of samples, and the law of a pair's reward (the Dirichlet law of the
features keeps its total concentration 2.4, so the spread of ⟨φ, ψ⟩ does not change). Along H: the same P and rewards. Along ζ:
the same problem with its threshold moved.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleback import solve
from saddleback.exact import best_policy
from saddleback.method.evaluators import BY_NAME as ALL_EVALUATORS
from saddleback.method.solvers import BY_NAME as ALL_SOLVERS
from saddleback.runs.settings import Feasibility, Method
from saddleback.solving.prepare import prepare
from saddleback.theory.paper_rates import linear_parameters, lower_bound
from studies.measuring import Curve, signed
from studies.panels import Figures, Panel, by_title
from studies.truth import Truth, hard_problem, random_problems

TITLE = "Error against size"
QUESTION = (
    "How does the error at a fixed number of samples grow with the dimension d and the horizon H, and as the room ζ that the "
    "constraint leaves shrinks? The paper's rates imply ε ∝ d·H² (relaxed) and d·H³/ζ (strict); its lower bound d·H^2.5/ζ."
)
EVALUATORS: dict[str, Any] = {name: ALL_EVALUATORS[name] for name in ("lstd", "ls-pe")}
SOLVERS: dict[str, Any] = {name: ALL_SOLVERS[name] for name in ("plug-in", "ls-mdvi")}
WHOLE = "default mode"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """Values of d, H (random and hard problem) and ζ; number of problems; samples of a solve."""

    dims: Sequence[int]
    horizons: Sequence[int]
    hard_horizons: Sequence[int]
    zetas: Sequence[float]
    problems: int
    samples: int


FULL = Size(
    dims=(4, 6, 8, 12, 16, 24, 32),
    horizons=(4, 8, 16, 32, 64),
    hard_horizons=(5, 10, 20, 40, 80),
    zetas=(0.8, 0.4, 0.2, 0.1, 0.05),
    problems=30,
    samples=2**16,
)
QUICK = Size((4, 16), (4, 16), (5, 20), (0.4, 0.1), 2, 2**12)


def implied(variable: str, feasibility: Feasibility) -> float:
    """The power of d, H or ζ in the ε that the paper's samples buy, logarithms left out."""

    def samples(size: dict[str, float]) -> float:
        rate = linear_parameters(
            0.5,
            0.05,
            dimension=int(size["d"]),
            horizon=size["H"],
            zeta=size["zeta"],
            threshold=4.0,
            feasibility=feasibility,
        )
        return rate.samples / rate.log_factor

    return _power(samples, {"d": 8, "H": 10.0, "zeta": 0.5}, variable)


def implied_below(variable: str) -> float:
    """The same for the lower bound."""

    def samples(size: dict[str, float]) -> float:
        H = size["H"]
        return lower_bound(0.001, 0.05, dimension=int(size["d"]), horizon=H, zeta=size["zeta"], threshold=0.6 * H)

    return _power(samples, {"d": 8, "H": 10.0, "zeta": 0.01}, variable)


def _power(samples: Callable[[dict[str, float]], float], size: dict[str, float], variable: str) -> float:
    """q/2 where samples ∝ x^q/ε²: doubling x at a fixed number of samples multiplies ε by 2^(q/2)."""
    larger = {**size, variable: 2 * size[variable]}
    return round(math.log2(samples(larger) / samples(size)) / 2, 6)


def measure(quick: bool, say: Say) -> Figures:
    """Pictures "size" (d and H on random problems) and "room" (H on the lower-bound instance, ζ)."""
    size = QUICK if quick else FULL
    dims = _sweep("d", size.dims, lambda d: _random(size, dim=int(d), feature_concentration=2.4 / d), size, say)
    horizons = _sweep("H", size.horizons, lambda H: _random(size, gamma=1 - 1 / H), size, say)
    hard = _sweep("H", size.hard_horizons, lambda H: _hard(size, H), size, say)
    y, common = "true error (median; solvers: mean)", f"100 states, 10 actions, {size.samples:,} samples"
    return {
        "size": (
            Panel("dimension", "dimension d", y, f"random-linear, {common}, γ = 0.9", dims, implied("d", "relaxed")),
            Panel("horizon", "horizon H", y, f"random-linear, {common}, d = 8", horizons, implied("H", "relaxed")),
        ),
        "room": (
            Panel(
                "horizon, hard instance",
                "horizon H",
                y,
                f"hard-instance, d = 8, b = 0.4 H, ζ = 0.05 H, {size.samples:,} samples",
                hard,
                implied("H", "relaxed"),
            ),
            _room(size, say),
        ),
    }


def _random(size: Size, **parameters: float) -> list[Truth]:
    return random_problems("random-linear", size.problems, 0.02, states=100, actions=10, **parameters)


def _hard(size: Size, H: float) -> list[Truth]:
    """The lower-bound instance for as many hidden directions."""
    return [hard_problem(seed, gamma=1 - 1 / H, zeta=0.05 * H) for seed in range(size.problems)]


def _sweep(
    variable: str, values: Sequence[float], problems: Callable[[float], list[Truth]], size: Size, say: Say
) -> tuple[Curve, ...]:
    """Errors of two evaluators, two solvers and whole solves at every value of one variable."""
    errors: dict[str, list[list[float]]] = {}
    seeds: list[int] = []
    for value in values:
        truths = problems(value)
        one = [_errors(truth, size.samples) for truth in truths]
        for label in one[0]:
            errors.setdefault(label, []).append([found[label] for found in one])
        seeds = sorted({*seeds, *(truth.seed for truth in truths)})
        say(f"{variable} = {value:g}")
    paper = implied(variable, "relaxed")
    return tuple(
        Curve.of(label, values, rows, seeds, paper, None if label.startswith("solver") else 0.5)
        for label, rows in errors.items()
    )


def _errors(truth: Truth, samples: int) -> dict[str, float]:
    """Evaluators and solvers have half the samples each, with the literal mode's design; the whole solve has all."""
    parts = prepare(truth.problem, truth.simulator, samples, truth.seed, Method(mode="literal", resolution=0))
    found = {}
    for name, evaluator in EVALUATORS.items():
        estimate = evaluator().evaluate(parts.problem, parts.evaluation_buffer, truth.policy)
        found[f"evaluator {name}"] = truth.evaluation_error(estimate)
    for name, solver in SOLVERS.items():
        policy = solver().solve(parts.problem, parts.solver_buffer, truth.mixing[None])[0]
        found[f"solver {name}"] = truth.solver_error(policy)
    found[WHOLE] = truth.constrained_error(
        solve(truth.problem, truth.simulator, samples=samples, seed=truth.seed, method=Method(certificate=0))
    )
    return found


def _room(size: Size, say: Say) -> Panel:
    """The default mode, strict and relaxed, as the threshold nears the best value the constraint can have."""
    # Room ζ of the midway threshold is half the distance from the unconstrained V_c to the best: it binds at every ζ below.
    truths = random_problems("random-linear", size.problems, 0.11 * max(size.zetas) / 2, states=100, actions=10)
    errors: dict[Feasibility, list[list[float]]] = {"strict": [], "relaxed": []}
    for zeta in size.zetas:
        moved = [_moved(truth, zeta) for truth in truths]
        for feasibility, rows in errors.items():
            answers = [
                solve(
                    t.problem,
                    t.simulator,
                    samples=size.samples,
                    seed=t.seed,
                    feasibility=feasibility,
                    method=Method(certificate=0),
                )
                for t in moved
            ]
            rows.append(
                [
                    t.strict_error(answer) if feasibility == "strict" else t.constrained_error(answer)
                    for t, answer in zip(moved, answers, strict=True)
                ]
            )
        say(f"zeta = {zeta:g}")
    seeds = [truth.seed for truth in truths]
    curves = tuple(Curve.of(f, size.zetas, rows, seeds, implied("zeta", f)) for f, rows in errors.items())
    problem = f"random-linear, 100 states, 10 actions, d = 8, γ = 0.9, {size.samples:,} samples, b = max V_c − ζ"
    return Panel(
        "room",
        "room ζ = max V_c − b",
        "true error",
        problem,
        curves,
        implied("zeta", "strict"),
        "the paper's rate, strict",
    )


def _moved(truth: Truth, zeta: float) -> Truth:
    """The same problem with its threshold at max V_c − ζ."""
    best = best_policy(truth.table, np.array([0.0, 1.0]))[1][
        1
    ]  # rewards lie in [0, 1]: the user's units are the paper's
    return Truth(dataclasses.replace(truth.table, thresholds=np.array([best - zeta])), truth.seed)


def answer(figures: Figures) -> list[str]:
    """What came out, in words, with the measured numbers."""
    panels = by_title(figures)
    d, H, hard, room = (panels[t] for t in ("dimension", "horizon", "horizon, hard instance", "room"))
    return [
        f"""**Dimension**, {signed(implied("d", "relaxed"))} in the paper. `lstd` errs as √d: {d.curve("evaluator lstd").fit()}.
        That is the noise of a regression on an optimal design; the paper's other √d is the most that a regression can make of
        arbitrary errors, and independent noise does not do that. `ls-pe` is at the paper's exponent,
        {d.curve("evaluator ls-pe").fit()}, for another reason: the more pairs share the samples, the fewer batches there are,
        and its bias goes as 1/T. Solvers' mean losses are tiny and noisy, `plug-in` {d.curve("solver plug-in").fit()}. The
        default mode hardly feels d, {d.curve(WHOLE).fit()}: it draws its evaluation samples where the value at ρ comes from,
        whatever the number of features.""",
        f"""**Horizon**, {signed(implied("H", "relaxed"))} in the paper. On random problems, which mix fast, the values of two
        states differ by O(1), not O(H), so noise goes as H: `lstd` {H.curve("evaluator lstd").fit()}. The bias of `ls-pe`,
        γH·V/T, goes as H² all the same: {H.curve("evaluator ls-pe").fit()}. The lower-bound instance is built so that one step
        decides over H more. There `lstd` has {hard.curve("evaluator lstd").fit()}, the H^1.5 of the unconstrained lower bound,
        solvers {hard.curve("solver plug-in").fit()}, whole solves {hard.curve(WHOLE).fit()}; the last are steepest where the
        hidden direction stops being found, which these samples manage up to H = 10. So the H² is real, but belongs to slow
        problems.""",
        f"""**Room**, {signed(implied("zeta", "relaxed"))} (relaxed) and {signed(implied("zeta", "strict"))} (strict) in the
        paper. Relaxed: {room.curve("relaxed").fit()}. Strict: {room.curve("strict").fit()}. On random problems the price λ of the
        constraint grows more slowly than 1/ζ as b nears its maximum, while the proof has to allow for λ = H/ζ. The next study
        has an instance where λ does grow as 1/ζ.""",
        f"""**The lower bound** (strict) has the exponents {signed(implied_below("d"))} for d, {signed(implied_below("H"))} for H
        and {signed(implied_below("zeta"))} for ζ. It speaks of the worst problem of each size at ε below 0.002, which is out of
        reach of a measurement.""",
        """**Not held equal.** Along d the problems are other ones at every d, the coreset grows with d, and ζ varies (its median
        by a factor of 1.3). Along H all values, b and ζ grow with H, so the error relative to the values grows more slowly by one
        power. On the lower-bound instance γ is also about the chance to stay at s₀, and Δ = 0.2/H. Along ζ the optimal policy and
        its noise change with b. Random problems with ζ < 0.02 H are passed over (in the ζ panel those whose unconstrained V_c is
        within 0.88 of the best).""",
    ]
