"""What simulator calls are worth without a certificate, beside textbook methods with as many calls and with the same samples.

Seeds and counts are those of the rows in :mod:`statistical.yardsticks`; everything is a function of them. ``yardsticks.json`` holds what
the method reached when the yardstick was made. Its figures are the control: targets that they miss are missed by the same check.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from saddleback.exact import solve_exactly
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from statistical.yardsticks import (
    LARGE_ROW,
    QUICK_ROWS,
    SLACK_ROWS,
    ZOO_ROWS,
    Outcome,
    Row,
    Summary,
    equal_table,
    free_policy,
    lp_policy,
    measured,
    slack_garnet,
    truth_of,
)

THEN: dict[str, Any] = json.loads((Path(__file__).parent / "yardsticks.json").read_text())
HALVED_ROWS = [row for row in ZOO_ROWS if row.problem not in ("ward", "two-products")]
EXACT = 1e-6  # of H: what exact answers may be wrong by, so what is less is nothing
FALSE_ALARM = 1e-6


def then(row: Row) -> dict[str, Summary]:
    """What was reached when the yardstick was made."""
    return {name: Summary(**figures) for name, figures in THEN[row.key]["figures"].items()}


def said(row: Row, found: dict[str, Summary], idle: float) -> str:
    """One line a competitor."""
    lines = [f"{row.key}: {100 * idle:.2g} % of the calls idle; median loss, mean violation, mean regret in utilities"]
    lines += [f"  {name:10s} {f.loss:10.3g} {f.violation:10.3g} {f.regret:10.3g}" for name, f in found.items()]
    return "\n".join(lines)


def measured_and_said(row: Row) -> tuple[list[Outcome], dict[str, Summary]]:
    outcomes, found = measured(row)
    print(said(row, found, float(np.mean([o.idle for o in outcomes])) / row.calls))
    if row.key in THEN:
        print("then,", said(row, then(row), THEN[row.key]["idle"]))
    return outcomes, found


# ---- targets: what a row misses, in words -----------------------------------------------------------------------------------


def beside_plug_in(found: dict[str, Summary]) -> list[str]:
    """1.1 times the plug-in solver's mean regret, on the samples that we drew."""
    ours, rival = found["ours"].regret, found["same-free"].regret
    return [] if ours <= 1.1 * rival else [f"{ours / rival:.2f} times the regret on the same samples"]


def beside_lp(found: dict[str, Summary], horizon: float) -> list[str]:
    """1.2 times the LP's median loss and .002·H, half of its mean violation, on the samples that we drew.

    A negative loss is bought with violations, and not asked for.
    """
    if "ours" not in found:
        return ["the budget is refused"]
    ours, rival = found["ours"], found["same-lp"]
    wrong = []
    if ours.loss > 1.2 * max(rival.loss, 0.0) + 0.002 * horizon:
        wrong.append(f"a loss of {ours.loss:.3g} beside {rival.loss:.3g}")
    if ours.violation > max(0.5 * rival.violation, EXACT * horizon):
        wrong.append(f"a violation of {ours.violation:.3g} beside {rival.violation:.3g}")
    return wrong


def beside_then(now: Summary, before: Summary, horizon: float, share: float) -> list[str]:
    """At most ``share`` of the mean regret of then, and no larger mean violation."""
    wrong = []
    if now.regret > max(share * before.regret, EXACT * horizon):
        wrong.append(f"a regret of {now.regret:.4g}, it was {before.regret:.4g}")
    if now.violation > max(max(share, 1.001) * before.violation, EXACT * horizon):  # kept to four digits
        wrong.append(f"a violation of {now.violation:.4g}, it was {before.violation:.4g}")
    return wrong


def horizon_of(row: Row) -> float:
    return float(THEN[row.key]["horizon"])


def not_halved(row: Row) -> list[str]:
    """The target of half the regret, asked of the figures of then themselves."""
    return beside_then(then(row)["ours"], then(row)["ours"], horizon_of(row), 0.5)


NOT_YET = {("two-products", 100_000): "89,100 pairs want two calls each", ("ward", 100_000): "forty calls a pair"}


def pending(row: Row) -> Any:
    """A row of the comparison with the LP; the mark of one that is missed goes when it is reached, which the test then says."""
    reason = NOT_YET.get((row.problem, row.calls))
    marks = [] if reason is None else [pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True)]
    return pytest.param(row, marks=marks, id=_id(row))


def _id(row: Row) -> str:
    return row.key.replace(" ", "-")


# ---- the full form ------------------------------------------------------------------------------------------------------------


@pytest.mark.study
@pytest.mark.parametrize("row", SLACK_ROWS, ids=_id)
def test_no_worse_than_the_plug_in_solver(row: Row) -> None:
    """On the same samples by their means; on as many others, equally spread, no worse beyond chance (Student's t)."""
    outcomes, found = measured_and_said(row)
    assert not beside_plug_in(found)
    excess = np.array([o.by_name["ours"].regret - 1.1 * o.by_name["equal-free"].regret for o in outcomes])
    error = excess.std(ddof=1) / np.sqrt(len(excess))
    assert excess.mean() <= student.isf(FALSE_ALARM, len(excess) - 1) * error


@pytest.mark.study
@pytest.mark.parametrize("row", [pending(row) for row in ZOO_ROWS])
def test_as_good_as_the_linear_program_and_more_honest(row: Row) -> None:
    _, found = measured_and_said(row)
    assert not beside_lp(found, horizon_of(row))


@pytest.mark.study
@pytest.mark.parametrize("row", HALVED_ROWS, ids=_id)
def test_the_regret_is_halved(row: Row) -> None:
    _, found = measured_and_said(row)
    assert not beside_then(found["ours"], then(row)["ours"], horizon_of(row), 0.5)


@pytest.mark.study
def test_limits_hold_on_a_table_of_middle_size() -> None:
    """Both missed by at most 2 % of their ranges in 18 of 20 seeds."""
    outcomes, _ = measured_and_said(LARGE_ROW)
    missed = [o.by_name["ours"].violation for o in outcomes]
    assert sum(v <= 0.02 * truth_of(LARGE_ROW.problem).horizon for v in missed) >= 18


# ---- the reduced form, and the yardstick itself ---------------------------------------------------------------------------


@pytest.mark.check
@pytest.mark.parametrize("row", QUICK_ROWS, ids=lambda row: row.problem)
def test_no_worse_than_it_was(row: Row) -> None:
    """No more regret than then, and no more violation, or no more than the LP's: of three seeds then may have been lucky ones.

    A twentieth is for near ties that another processor settles otherwise.
    """
    _, found = measured_and_said(row)
    ours, before = found["ours"], then(row)["ours"]
    excused = found["same-lp"].violation if "same-lp" in found else 0.0
    before = dataclasses.replace(before, violation=max(before.violation, excused))
    assert not beside_then(ours, before, horizon_of(row), 1.05)
    worse = dataclasses.replace(before, regret=1.1 * before.regret), dataclasses.replace(before, violation=0.1)
    assert all(beside_then(control, before, horizon_of(row), 1.05) for control in worse)


def test_figures_of_then_miss_their_targets() -> None:
    """The control of the full form: the same checks on what was recorded before the method was made better."""
    assert all(beside_plug_in(then(row)) for row in SLACK_ROWS)
    for row in ZOO_ROWS:
        found = then(row)
        assert set(found) == ({"ours", "equal-lp", "same-lp"} if "ours" in found else {"equal-lp"})
    assert [row.key for row in HALVED_ROWS if not not_halved(row)] == [
        "queue, 1000000 calls, seeds 0 to 19"
    ]  # no regret left


def test_figures_by_hand() -> None:
    """The optimum has no loss and no regret; giving up reward to spare has one; missing a limit is charged at its price."""
    truth = truth_of("wireless")
    exact = solve_exactly(truth.table)
    assert exact.policy is not None
    np.testing.assert_allclose(truth.figures(exact.policy), 0.0, atol=EXACT * truth.horizon)
    idle = TabularPolicy.deterministic(np.zeros(truth.table.num_states, dtype=np.int64), truth.table.num_actions)
    found = truth.figures(idle)
    assert found.loss > 1 and found.violation == 0
    greedy = truth.figures(free_policy(truth.table))
    assert greedy.loss < 0 < greedy.violation
    assert (
        greedy.regret == pytest.approx(greedy.loss + truth.prices[0] * greedy.violation, rel=1e-9) and greedy.regret > 0
    )
    both = truth.figures(MixturePolicy.of([idle, free_policy(truth.table)], [0.5, 0.5]))
    assert both.loss == pytest.approx((found.loss + greedy.loss) / 2, rel=1e-9)


def test_rivals_are_what_they_are_called() -> None:
    """P̂ of many equal samples is near P (Hoeffding on its 1,000 entries, at 1e-6); a limit that cannot be met is moved to where it can."""
    truth = slack_garnet(0)
    each = 2000
    near = np.sqrt(np.log(2 * 1000 / FALSE_ALARM) / (2 * each))
    assert np.abs(equal_table(truth, 200 * each, 0).P - truth.table.P).max() <= near
    assert np.abs(equal_table(truth, 200 * each // 400, 0).P - truth.table.P).max() > near  # the control
    np.testing.assert_allclose(equal_table(truth, 150, 1).P.sum(axis=1), 1)  # a quarter of the pairs has no sample
    beyond = dataclasses.replace(truth.table, thresholds=np.array([0.95 * truth.horizon]))
    policy, met = lp_policy(beyond)
    assert not met and lp_policy(truth.table)[1]
    assert truth.values(policy)[1] == pytest.approx(solve_exactly(beyond).reachable[0], abs=EXACT * truth.horizon)
