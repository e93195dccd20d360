"""Corollaries thm_main2C and thm_main2CT and the lower bound (§4.5), as written: parameters and sample totals.

                  T           M             samples            range
    linear        O(H²/ε)     Õ(dH²/ε)      Õ(d²H⁴/ε²)         ε ∈ (0, 1]
    tabular       O(H²/ε)     Õ(H/ε)        Õ(SA·H³/ε²)        ε ∈ (0, 1/H²], T ≥ 2 log(T)/γ
    both          U = O(H/ζ),  η = U/(H√K),  K = O(H²/ε²),  b' = b − O(ε), strict b + O(ε)
    strict        samples times H²/ζ² (the proof replaces ε by εζ/H)
    lower bound   Ω(d²H⁵/(ε²ζ²))   δ ∈ (0, .08], γ ∈ [7/12, 1), ε ∈ (0, .002), ζ ∈ (0, 49/2280), b ∈ [H/2, H], d ≥ 6

Every constant that an O hides is set to one, and the logarithm that Õ hides is the one the proofs name: log(2|C|/δ) with
|C| = d for linear, squared log(2SA/δ) for tabular. So these are orders of magnitude, labelled as such: nothing here is a
guarantee. What is proved is in :mod:`~saddleback.theory.meta_theorem` and :mod:`~saddleback.theory.errors`. Two traps of
the text are kept as they are: its K drops the factor U² of its own theorem, and its strict b' = b + ε lies beyond reach
when ε > ζ.

**Side by side** (:func:`comparison`): what an accuracy costs by our plans, the paper's rates and other methods'. Only
our plans are numbers of samples that a proof stands behind (label "rigorous"). Rates are orders of magnitude (label
"heuristic"); beside each other they tell how methods scale, and beside a plan how much its constants weigh. A rate says nothing outside its range: then the row holds the range in place of a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypedDict, Unpack, get_args

from saddleback.errors import InputError, require
from saddleback.theory.errors import Dual
from saddleback.theory.meta_theorem import Feasibility
from saddleback.theory.plan import plan

LABEL: Final = "paper, constants one"
_ORDER = {"relaxed": 0, "strict": 1, "unconstrained": 2}


@dataclass(frozen=True)
class PaperParameters:
    """T, M, K, U, η, b' and the samples T·M·|C|, all of them real numbers; ``log_factor`` is inside M and samples."""

    inner_iterations: float
    samples_per_iteration: float
    dual_iterations: float
    upper: float
    step_size: float
    target: float
    samples: float
    log_factor: float
    label: str = LABEL


@dataclass(frozen=True)
class Rate:
    """A rate from the literature: size^a · H^b / (ε² ζ^c), with neither constants nor logarithms.

    ``size`` is d or SA. ``horizon_power`` is None where the paper does not state it.
    """

    method: str
    setting: str
    size: str
    size_power: int
    horizon_power: int | None
    zeta_power: int

    def samples(self, *, size: float, horizon: float, epsilon: float, zeta: float = 1.0) -> float:
        """The rate's value."""
        b = self.horizon_power
        require(b is not None, "rate", "must state its power of H", self.method, "compare the powers of d and ζ only")
        assert b is not None
        return float(size**self.size_power * horizon**b / (epsilon**2 * zeta**self.zeta_power))


COMPARATORS: Final = (
    Rate("Vaswani et al. 2022, model-based", "relaxed", "SA", 1, 3, 0),
    Rate("Vaswani et al. 2022, model-based", "strict", "SA", 1, 5, 2),
    Rate("Ghosh et al. 2022 by the reduction of Bai et al. 2021", "relaxed", "d", 3, 4, 0),
    Rate("Ghosh et al. 2022 by the reduction of Bai et al. 2021", "strict", "d", 3, 6, 2),
    Rate("Hong et al. 2024, offline, times the concentrability C*", "relaxed", "d", 3, None, 2),
    Rate("Taupin et al. 2023, G-Sampling-and-Stop", "unconstrained", "d", 2, 4, 0),
    Rate("Kitamura et al. 2023, variance-weighted", "unconstrained", "d", 2, 3, 0),
    Rate("Weisz et al. 2022, lower bound", "unconstrained", "d", 2, 3, 0),
    Rate("Li et al. 2020, perturbed model", "unconstrained", "SA", 1, 3, 0),
)


class Asked(TypedDict):
    """What both corollaries are asked for: H, ζ, b, and "relaxed" or "strict"."""

    horizon: float
    zeta: float
    threshold: float
    feasibility: Feasibility


def linear_parameters(epsilon: float, delta: float, *, dimension: int, **asked: Unpack[Asked]) -> PaperParameters:
    """Corollary thm_main2C: LS-MDVI and LS-PE, |C| = d."""
    d, where = dimension, "Corollary thm_main2C"
    H, e = _working_accuracy(epsilon, delta, **asked)
    _in_range("epsilon", 0 < epsilon <= 1, "(0, 1]", epsilon, where)
    _in_range("dimension", d >= 1, "[1, ∞)", d, where)
    iota = math.log(2 * d / delta)
    return _assemble(epsilon, H**2 / e, d * H**2 / e * iota, d, iota, **asked)


def tabular_parameters(epsilon: float, delta: float, *, num_pairs: int, **asked: Unpack[Asked]) -> PaperParameters:
    """Corollary thm_main2CT: Tabular-MDVI and Tabular-PE on all S·A pairs."""
    SA, where = num_pairs, "Corollary thm_main2CT"
    H, e = _working_accuracy(epsilon, delta, **asked)
    _in_range("epsilon", 0 < epsilon <= 1 / H**2, f"(0, 1/H²] = (0, {1 / H**2:g}]", epsilon, where)
    _in_range("num_pairs", SA >= 1, "[1, ∞)", SA, where)
    iota, T, gamma = math.log(2 * SA / delta) ** 2, H**2 / e, 1 - 1 / H
    _in_range("epsilon", gamma * T >= 2 * math.log(T), "the range where T ≥ 2 log(T)/γ", epsilon, "Lemma lem_mdvi")
    return _assemble(epsilon, T, H / e * iota, SA, iota, **asked)


def lower_bound(
    epsilon: float, delta: float, *, dimension: int, horizon: float, zeta: float, threshold: float
) -> float:
    """d²H⁵/(ε²ζ²), strict feasibility, linear: no algorithm needs fewer, up to the constant."""
    H, d, where = horizon, dimension, "the lower bound"
    _in_range("delta", 0 < delta <= 0.08, "(0, 0.08]", delta, where)
    _in_range("horizon", 12 / 5 * (1 - 1e-12) <= H < math.inf, "[12/5, ∞), that is γ ∈ [7/12, 1)", H, where)
    _in_range("epsilon", 0 < epsilon < 0.002, "(0, 0.002)", epsilon, where)
    _in_range("zeta", 0 < zeta < 49 / 2280, "(0, 49/2280)", zeta, where)
    _in_range("threshold", H / 2 * (1 - 1e-12) <= threshold <= H, f"[H/2, H] = [{H / 2:g}, {H:g}]", threshold, where)
    _in_range("dimension", d >= 6, "[6, ∞)", d, where)
    return d**2 * H**5 / (epsilon**2 * zeta**2)


def _working_accuracy(epsilon: float, delta: float, **asked: Unpack[Asked]) -> tuple[float, float]:
    """H, and ε, or εζ(1−γ) where the strict proof rescales it; after a look at what both corollaries are asked."""
    H, zeta, b, feasibility = asked["horizon"], asked["zeta"], asked["threshold"], asked["feasibility"]
    where = "the paper"
    rule = "must be 'relaxed' or 'strict'"
    require(feasibility in ("relaxed", "strict"), "feasibility", rule, repr(feasibility), "use one of the two")
    _in_range("delta", 0 < delta < 1, "(0, 1)", delta, where)
    _in_range("horizon", 1 <= H < math.inf, "[1, ∞)", H, where)
    _in_range("threshold", 0 <= b < H, f"[0, H) = [0, {H:g})", b, where)
    _in_range("zeta", 0 < zeta <= H, f"(0, H] = (0, {H:g}]", zeta, where)
    return H, epsilon if feasibility == "relaxed" else epsilon * zeta / H


def _assemble(
    epsilon: float, T: float, M: float, coreset_size: int, log_factor: float, **asked: Unpack[Asked]
) -> PaperParameters:
    H, b = asked["horizon"], asked["threshold"]
    K = H**2 / epsilon**2  # K = O(1/(ε²(1−γ)²)), as the corollaries write it
    U = H / asked["zeta"]  # U = O(1/(ζ(1−γ)))
    eta = U / (H * math.sqrt(K))  # η = U(1−γ)/√K
    target = b - epsilon if asked["feasibility"] == "relaxed" else b + epsilon  # b'
    return PaperParameters(T, M, K, U, eta, target, T * M * coreset_size, log_factor)


def _in_range(name: str, holds: bool, interval: str, value: float, where: str) -> None:
    require(holds, name, f"must lie in {interval}", value, f"{where} says nothing outside that range")


class Row(NamedTuple):
    """One line of the comparison; ``samples`` is None where the method's range, in ``remark``, is left."""

    method: str
    setting: str
    samples: float | None
    label: str
    remark: str

    def __str__(self) -> str:
        what = self.remark if self.samples is None else f"{self.samples:.2g}"
        return f"{self.setting:<13}  {self.method:<60}  {self.label:<9}  {what}"


def comparison(
    epsilon: float,
    delta: float,
    *,
    gamma: float,
    zeta: float,
    threshold: float,
    dimension: int | None = None,
    num_pairs: int | None = None,
) -> list[Row]:
    """Rows sorted by setting, then by samples, rows out of range last; d and S·A where they are known."""
    require(0 <= gamma < 1, "gamma", "must lie in [0, 1)", gamma, "for undiscounted problems set a horizon")
    known = dimension is not None or num_pairs is not None
    require(known, "dimension, num_pairs", "must not both be left out", None, "give d, S·A or both")
    H, accuracy = 1 / (1 - gamma), {"epsilon": epsilon, "delta": delta, "zeta": zeta}
    sizes: list[tuple[str, dict[str, int]]] = []
    if dimension is not None:
        sizes.append(("linear", {"dimension": dimension}))
    if num_pairs is not None:
        sizes.append(("tabular", {"num_pairs": num_pairs}))
    rows = []
    for kind, size in sizes:
        corollary = linear_parameters if kind == "linear" else tabular_parameters
        for feasibility in get_args(Feasibility):
            asked = {**accuracy, **size, "feasibility": feasibility}
            for dual in get_args(Dual):
                name = f"plan, {dual}, {kind}"
                rows.append(_row(name, feasibility, "rigorous", plan, kind=kind, gamma=gamma, dual=dual, **asked))
            name = f"the paper's corollary, {kind}"
            rows.append(_row(name, feasibility, "heuristic", corollary, horizon=H, threshold=threshold, **asked))
        if kind == "linear":
            given = {**accuracy, **size, "horizon": H, "threshold": threshold}
            rows.append(_row("the paper's lower bound, linear", "strict", "heuristic", lower_bound, **given))
    for rate in COMPARATORS:
        size_of = dimension if rate.size == "d" else num_pairs
        if size_of is None:
            remark = f"needs {'dimension' if rate.size == 'd' else 'num_pairs'}"
            rows.append(Row(rate.method, rate.setting, None, "heuristic", remark))
        else:
            given = {"size": size_of, "horizon": H, "epsilon": epsilon, "zeta": zeta}
            rows.append(_row(rate.method, rate.setting, "heuristic", rate.samples, **given))
    return sorted(rows, key=lambda row: (_ORDER[row.setting], math.inf if row.samples is None else row.samples))


def _row(method: str, setting: str, label: str, function: Callable[..., Any], **given: Any) -> Row:
    """The row, with the broken rule in place of a number where ``function`` refuses its arguments."""
    try:
        result = function(**given)
    except InputError as error:
        return Row(method, setting, None, label, f"{error.name} {error.rule}")
    return Row(method, setting, float(getattr(result, "samples", result)), label, "")
