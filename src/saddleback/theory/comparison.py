"""What an accuracy costs by whose account: our plans, the paper's rates, other methods' rates, side by side.

Only our plans are numbers of samples that a proof stands behind (label "rigorous"). Rates have their hidden constants set to
one, so they are orders of magnitude (label "heuristic"); beside each other they tell how methods scale, and beside a plan
how much its constants weigh. A rate says nothing outside its range: then the row holds the range in place of a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

from saddleback.errors import InputError, require
from saddleback.theory.inversion import Dual
from saddleback.theory.meta_theorem import Feasibility
from saddleback.theory.paper_rates import COMPARATORS, linear_parameters, lower_bound, tabular_parameters
from saddleback.theory.plan import plan

_ORDER = {"relaxed": 0, "strict": 1, "unconstrained": 2}


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
