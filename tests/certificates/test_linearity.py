"""Tests of linearity: what they must find, what they must let pass, and the bound behind their false-alarm rate."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from saddleback.certificates.linearity import checks
from saddleback.certificates.linearity.checks import (
    FIRST_PAIR,
    check_linearity,
    constant_finding,
    rollout_finding,
    signal_findings,
)
from saddleback.certificates.linearity.findings import LinearityReport
from saddleback.certificates.linearity.held_out import choose_pairs, choose_probes
from saddleback.certificates.values.intervals import deviation_limit
from saddleback.designs import BY_NAME as DESIGNS
from saddleback.designs.design import Design
from saddleback.errors import InputError, SimulatorError
from saddleback.features import FeatureFunction
from saddleback.instances.zoo import make
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import BoxStates
from saddleback.simulators import Table
from saddleback.simulators.generative_model import Draw, GenerativeModel, Stream

SINGLE, TOGETHER = "held-out pairs, one by one", "held-out pairs, together"


def exchange(problem: CMDP) -> Design:
    return DESIGNS["exchange"]().design(problem)


def linear_table(seed: int = 0, **changes: object) -> Table:
    """A small linear problem as a table, with fields replaced."""
    table = make("random-linear", states=12, actions=3, dim=4, seed=seed).table
    assert table is not None
    return replace(table, **changes)  # type: ignore[arg-type]


def check(problem: CMDP, simulator: GenerativeModel, per_pair: int, seed: int = 0, **more: object) -> LinearityReport:
    design = exchange(problem)
    pairs = int(more.get("num_pairs", 20)) + design.size  # type: ignore[call-overload]
    settings: dict[str, object] = {"delta": 0.05} | more
    return check_linearity(problem, design, simulator, samples=per_pair * pairs, seed=seed, **settings)  # type: ignore[arg-type]


def by_name(report: LinearityReport) -> dict[str, object]:
    return {f.name: f for f in report.findings}


# ---- without a sample ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("signal", "name"), [(0, "known reward"), (1, "known c1")])
def test_a_signal_outside_the_span_is_found_and_named(signal: int, name: str) -> None:
    table = linear_table()
    bent = [table.reward.copy(), table.constraints.copy()]
    bent[signal][(*[0] * signal, 7, 2)] += 0.2 if bent[signal][(*[0] * signal, 7, 2)] < 0.5 else -0.2
    problem = replace(table, reward=bent[0], constraints=bent[1]).problem()
    design = exchange(problem)
    findings = {f.name: f for f in signal_findings(problem, design)}
    bad = findings.pop(name)
    assert not bad.passed and (bad.state, bad.action) == (7, 2)
    assert bad.meaning.startswith("the reward is not" if signal == 0 else "the signal of constraint 'c1' is not")
    assert all(f.passed for f in findings.values()) and len(findings) == 1
    # the residual is that of the design's regression, and at least the distance from the span: .2 less what 36 pairs share
    Phi, u = table.phi.reshape(36, 4), problem.utilities(*problem.pairs())[:, signal]  # type: ignore[union-attr]
    at = design.states * 3 + design.actions
    root = np.sqrt(design.weights)
    theta = np.linalg.lstsq(root[:, None] * Phi[at], root * u[at], rcond=None)[0]
    assert bad.statistic == pytest.approx(np.abs(Phi @ theta - u).max(), rel=1e-9)
    assert constant_finding(problem, design).passed


def test_features_without_a_constant_are_found() -> None:
    table = linear_table()
    scale = np.random.default_rng(1).uniform(0.5, 2.0, (12, 3, 1))
    problem = replace(table, phi=table.phi * scale).problem()
    finding = constant_finding(problem, exchange(problem))
    assert not finding.passed and finding.name == "constant" and "add a constant feature" in finding.meaning
    assert finding.statistic > 0.1
    report = check(problem, table.simulator(), 100)
    assert "constant" in report.to_json()["failures"] and not report.passed


@pytest.mark.parametrize("name", ["random-linear", "hard-instance"])
def test_linear_problems_pass_the_exact_tests(name: str) -> None:
    instance = make(name)
    design = exchange(instance.problem)
    for finding in (*signal_findings(instance.problem, design), constant_finding(instance.problem, design)):
        assert finding.passed and finding.statistic < 1e-10, finding


def test_large_pools_are_read_in_pieces_and_larger_ones_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    table = linear_table()
    reward = table.reward.copy()
    reward[7, 2] = 1 - reward[7, 2]
    problem = replace(table, reward=reward).problem()
    whole = signal_findings(problem, exchange(problem))
    monkeypatch.setattr(checks, "_CHUNK_ENTRIES", 4 * 5)  # five pairs at a time, of 36
    pieces = signal_findings(problem, exchange(problem))
    assert [(f.state, f.action, f.passed) for f in pieces] == [(f.state, f.action, f.passed) for f in whole]
    assert [f.statistic for f in pieces] == pytest.approx([f.statistic for f in whole], rel=1e-12, abs=1e-14)
    monkeypatch.setattr(checks, "_MOST_ENTRIES", 4 * 12)  # every fourth pair: 7·3 + 2 = 23 is not among them
    part = signal_findings(problem, exchange(problem))[0]
    assert (part.state * 3 + part.action) % 4 == 0 and part.statistic <= whole[0].statistic


def test_repeated_features_are_no_harm() -> None:
    table = linear_table()
    problem = replace(table, phi=np.concatenate([table.phi, table.phi @ np.ones((4, 1))], axis=2)).problem()  # type: ignore[list-item,operator]
    report = check(problem, table.simulator(), 2000)
    assert report.passed
    assert report.findings[0].statistic < 1e-10


# ---- misspecified transitions --------------------------------------------------------------------------------------


def detections(seeds: range, per_pair: int, share: float, delta: float = 0.05) -> tuple[int, int, int]:
    """How many default random-linear problems are refuted: at all, one by one, together."""
    found = []
    for seed in seeds:
        instance = make("random-linear", misspecification=share, seed=seed)
        report = check(instance.problem, instance.simulator, per_pair, seed, delta=delta)
        assert all(f.passed for f in report.findings[:-2])  # rewards and constant stay linear
        single, together = report.findings[-2:]
        found.append((not report.passed, not single.passed, not together.passed))
        print(
            f"seed {seed}: one by one {single.statistic:.4f}/{single.limit:.4f} (z {single.z:.1f}), "
            f"together {together.statistic:.4f}/{together.limit:.4f} (z {together.z:.1f})"
        )
    counts = tuple(int(n) for n in np.sum(found, axis=0))
    print(f"share {share}, {per_pair} samples a pair, {len(seeds)} problems: (any, one by one, together) = {counts}")
    return counts  # type: ignore[return-value]


@pytest.mark.slow
def test_five_percent_are_detected() -> None:
    """At δ = 1e-6, so that none of these rejections is luck."""
    assert detections(range(3), 20_000, 0.05, delta=1e-6) == (3, 3, 3)


@pytest.mark.study
def test_five_percent_are_detected_in_full() -> None:
    assert detections(range(20), 20_000, 0.05) == (20, 20, 20)
    any_of, _, together = detections(range(20), 2000, 0.05)
    assert any_of == together == 20  # a tenth of the samples will do when all pairs are looked at together
    assert detections(range(20), 20_000, 0.01)[2] == 20


def false_alarms(seeds: range, per_pair: int, delta: float, **size: int) -> tuple[int, int]:
    """How many linear problems are refuted, and how many a cut at one standard error would refute."""
    alarms, by_z = 0, 0
    for seed in seeds:
        instance = make("random-linear", seed=seed, **size)
        report = check(instance.problem, instance.simulator, per_pair, seed, delta=delta)
        alarms += not report.passed
        by_z += by_name(report)[SINGLE].z > 1  # type: ignore[attr-defined]
    print(f"seeds {seeds}, {per_pair} samples a pair: {alarms} false alarms at level {delta}, {by_z} at z > 1")
    return alarms, by_z


@pytest.mark.slow
def test_linear_problems_are_not_refuted() -> None:
    alarms, by_z = false_alarms(range(20), 400, 0.05, states=40)
    assert alarms <= int(binom.isf(1e-6, 20, 0.05))
    assert by_z >= 19  # the negative control: 160 deviations, one of them above one standard error


@pytest.mark.study
@pytest.mark.parametrize("per_pair", [40, 2000])
def test_linear_problems_are_not_refuted_in_full(per_pair: int) -> None:
    alarms, by_z = false_alarms(range(200), per_pair, 0.05)
    assert alarms <= int(binom.isf(1e-6, 200, 0.05))
    assert by_z >= 199


def test_one_bad_pair_is_found_and_named() -> None:
    """All the other rows are linear: looking at each pair alone finds the one that is not."""
    table = linear_table()
    design = exchange(table.problem())
    bad = next(p for p in range(36) if p not in set(design.states * 3 + design.actions))
    P = table.P.toarray()
    P[bad] = np.roll(P[bad], 1)
    report = check(table.problem(), replace(table, P=type(table.P)(P)).simulator(), 4000, delta=1e-6, num_pairs=36)
    single = report.findings[-2]
    assert not single.passed
    assert (single.state, single.action) == divmod(bad, 3)
    assert "is not linear" in single.meaning and single.z > 10  # type: ignore[operator]
    assert check(table.problem(), table.simulator(), 4000, delta=1e-6, num_pairs=36).passed


def test_a_given_value_function_that_sees_more_is_named() -> None:
    """Outside the coreset .3 of the mass is spread over the last hundred states; a random half hardly tells them apart."""
    table = make("random-linear").table
    assert table is not None
    P = table.P.toarray()
    coreset = exchange(table.problem())
    moved = np.setdiff1d(np.arange(1000), coreset.states * 5 + coreset.actions)
    P[moved] *= 0.7
    P[np.ix_(moved, np.arange(100, 200))] += 0.003
    simulator = replace(table, P=type(table.P)(P)).simulator()
    report = check(table.problem(), simulator, 3000, delta=1e-6, functions=[lambda s: np.where(s < 100, -30.0, 70.0)])
    bad = report.findings[-2]
    assert not bad.passed and "the mean of value function 1 over next states" in bad.meaning
    assert check(table.problem(), table.simulator(), 3000, delta=1e-6, functions=[lambda s: 1.0 * s]).passed


# ---- continuous states and observed signals ------------------------------------------------------------------------


def box_problem(observed: bool = False) -> CMDP:
    """States in [0, 1]², features (1 − s_0, s_0) whatever the action."""

    def phi(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        return np.column_stack([1 - states[:, 0], states[:, 0]])

    rng = np.random.default_rng(3)
    signal = None if observed else (lambda s, a: s[:, 0].copy())
    return CMDP(
        gamma=0.9,
        start=Start(np.array([[0.5, 0.5]]), np.ones(1)),
        num_actions=2,
        states=BoxStates([0.0, 0.0], [1.0, 1.0]),
        reward=signal,
        reward_range=(0, 1),
        constraints=[Constraint("cost", signal, "<=", 5.0, range=(0, 1))],
        features=FeatureFunction(phi, 2, 2),
        candidates=(rng.random((300, 2)), rng.integers(0, 2, 300)),
    )


def box_simulator(power: float, signal_power: float | None = None) -> GenerativeModel:
    """With chance s_0^power a point of the right half, else of the left; signals Bernoulli(s_0^signal_power)."""

    def sample(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> object:
        s = rng.random((len(states), 2))
        s[:, 0] = (s[:, 0] + (rng.random(len(states)) < states[:, 0] ** power)) / 2
        if signal_power is None:
            return s
        chance = np.column_stack([states[:, 0] ** signal_power, states[:, 0]])
        return s, (rng.random(chance.shape) < chance).astype(float)

    return GenerativeModel(sample, BoxStates([0.0, 0.0], [1.0, 1.0]), 0 if signal_power is None else 2)


def test_continuous_states() -> None:
    problem = box_problem()
    assert check(problem, box_simulator(1.0), 2000, delta=1e-6).passed
    bent = check(problem, box_simulator(1.5), 8000, delta=1e-6)
    assert {f.name for f in bent.failures} == {SINGLE, TOGETHER}
    assert isinstance(bent.failures[0].state, list) and len(bent.failures[0].state) == 2


def test_observed_signals_are_tested_by_samples() -> None:
    problem = box_problem(observed=True)
    assert signal_findings(problem, exchange(problem)) == ()
    assert check(problem, box_simulator(1.0, 1.0), 2000, delta=1e-6).passed
    bent = check(problem, box_simulator(1.0, 2.0), 2000, delta=1e-6)
    assert "the mean of observed reward" in bent.failures[0].meaning
    with pytest.raises(SimulatorError, match="no signals"):
        check(problem, GenerativeModel(box_simulator(1.0)._sample, problem.states, 2), 100)


# ---- the bound -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=200)
@given(data=st.data(), n=st.integers(2, 6), Y=st.integers(1, 3))
def test_the_estimated_variance_is_self_bounding(data: st.DataObject, n: int, Y: int) -> None:
    """V̂/β² loses at most 1 when one sample is replaced, and its squared losses sum to at most V̂/β²."""
    R = np.array(data.draw(st.lists(st.floats(0.01, 3.0), min_size=Y, max_size=Y)))
    unit = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0]))
    x = np.array(data.draw(st.lists(unit, min_size=n * Y, max_size=n * Y))).reshape(Y, n) * R[:, None]
    beta = R.max() / (n - 1)

    def Z(x: np.ndarray) -> float:
        return float((x.var(axis=1, ddof=1) / n).sum()) / beta**2

    losses = []
    for y, i in np.ndindex(x.shape):
        best = x.copy()
        best[y, i] = np.delete(x[y], i).mean()  # the replacement of least variance
        losses.append(Z(x) - Z(best))
    assert max(losses) <= 1 + 1e-12
    assert np.square(losses).sum() <= Z(x) + 1e-9


@pytest.mark.parametrize(("chance", "n"), [(0.02, 12), (0.5, 12), (0.9, 40), (0.02, 400)])
def test_the_limit_is_exceeded_no_more_than_it_says(chance: float, n: int) -> None:
    """Unequal weights and skewed laws, where √(2V̂L) alone fails; 2e^{−L} = 2 %."""
    L, runs = math.log(100), 20_000
    A = np.array([1.0, -0.7, -0.5, -0.2, -0.6])
    rng = np.random.default_rng(11)
    k = rng.binomial(n, chance, (runs, 5))  # how many of n Bernoulli variables are one
    mean, V = k / n @ A, (k / n * (1 - k / n) / (n - 1)) @ A**2
    for sign in (1, -1):
        over = sign * (mean - chance * A.sum())
        beyond = int((over > deviation_limit(V, 1.0 / (n - 1), L)).sum())
        assert beyond <= int(binom.isf(1e-6, runs, 2 * math.exp(-L)))
        naive = int((over > np.sqrt(2 * V * L)).sum())
        print(f"chance {chance}, n {n}, sign {sign}: beyond {beyond} of {runs}, without the second term {naive}")
        if (chance, n, sign) == (0.02, 12, 1):  # rare ones among few: the estimated variance is often zero
            assert naive > int(binom.isf(1e-6, runs, 2 * math.exp(-L)))


def test_the_limit_by_hand() -> None:
    assert float(deviation_limit(0.0, 0.3, 2.0)) == pytest.approx(0.3 * 2 * 7 / 3)
    assert float(deviation_limit(4.0, 0.0, 2.0)) == pytest.approx(4.0)
    # √(2·4·2 + (3·2)²) + 4/3·3·2 = √52 + 8
    assert float(deviation_limit(4.0, 3.0, 2.0)) == pytest.approx(math.sqrt(52) + 8)


def test_the_statistic_against_a_direct_computation() -> None:
    """The largest |D| beside its limit, from the samples themselves instead of their moments."""
    table = linear_table()
    problem, design = table.problem(), exchange(table.problem())
    drawn: dict[int, list[np.ndarray]] = {}

    class Recorder(GenerativeModel):
        def sample(self, states, actions, rng, key=None):  # type: ignore[no-untyped-def]
            draw = super().sample(states, actions, rng, key)
            drawn.setdefault(key[2], []).append(draw.next_states)
            return draw

    model = Recorder(table.simulator()._sample, problem.states)
    report = check_linearity(problem, design, model, samples=5000 * (4 + design.size), seed=9, delta=0.05, num_pairs=4)
    assert model.num_queries == report.samples == 5000 * (4 + design.size)
    assert sorted(drawn) == list(range(FIRST_PAIR + 1, FIRST_PAIR + 1 + 4 + design.size))
    rng = np.random.Generator(
        np.random.Philox(np.random.SeedSequence(9, spawn_key=(Stream.CERTIFICATE, FIRST_PAIR, 0)))
    )
    states, actions = choose_pairs(problem, design, 4, rng)
    probes = choose_probes(problem, (), 8, rng)
    x = np.array([probes.evaluate(Draw(np.concatenate(drawn[i]), None)) for i in sorted(drawn)])  # (Y, n, K)
    w = problem.required_features().at(states, actions) @ design.operator
    D = x[:4].mean(axis=1) - w @ x[4:].mean(axis=1)
    V = (x[:4].var(axis=1, ddof=1) + w**2 @ x[4:].var(axis=1, ddof=1)) / 5000
    beta = np.maximum(1.0, np.abs(w).max(axis=1, keepdims=True)) / 4999
    limit = deviation_limit(V, beta, math.log(3 * 32 / 0.025))
    worst = np.unravel_index(np.argmax(np.abs(D) / limit), D.shape)
    single, together = report.findings[-2:]
    assert (single.state, single.action) == (states[worst[0]], actions[worst[0]])
    assert (single.statistic, single.limit) == pytest.approx((abs(D[worst]), limit[worst]), rel=1e-9)
    assert single.z == pytest.approx(abs(D[worst]) / math.sqrt(V[worst]), rel=1e-9)

    both = []  # T on one half of the samples, with weights from the other
    for a in (0, 1):
        half, rest = x[:, a::2], x[:, 1 - a :: 2]
        D_a = half[:4].mean(axis=1) - w @ half[4:].mean(axis=1)
        V_a = (half[:4].var(axis=1, ddof=1) + w**2 @ half[4:].var(axis=1, ddof=1)) / 2500
        v = D_a / (V_a + (beta * 4999 / 2499) ** 2)
        v /= np.abs(v).sum()
        u = np.vstack([v, -w.T @ v])
        g = np.einsum("ynk,yk->yn", rest, u)
        largest = np.abs(u).sum(axis=1).max() / 2499
        limit = deviation_limit(g.var(axis=1, ddof=1).sum() / 2500, largest, math.log(160))
        both.append((float(g.mean(axis=1).sum()), float(limit)))
    assert (together.statistic, together.limit) == pytest.approx(max(both, key=lambda t: t[0] / t[1]), rel=1e-9)


# ---- choice of pairs and functions, streams, reports ---------------------------------------------------------------


def test_held_out_pairs_lie_outside_the_coreset() -> None:
    problem = linear_table().problem()
    design = exchange(problem)
    coreset = set(design.states * 3 + design.actions)
    seen: set[int] = set()
    for seed in range(30):
        states, actions = choose_pairs(problem, design, 10, np.random.default_rng(seed))
        pairs = {int(p) for p in states * 3 + actions}
        assert len(pairs) == 10 and not pairs & coreset
        seen |= pairs
    assert seen == set(range(36)) - coreset
    everything = choose_pairs(problem, design, 100, np.random.default_rng(0))
    assert len(everything[1]) == 36 - design.size


def test_a_coreset_of_all_candidates_is_tested_on_itself() -> None:
    problem = linear_table().problem()
    design = exchange(problem)
    small = replace(problem, candidates=(np.repeat(design.states, 2), np.repeat(design.actions, 2)))
    states, actions = choose_pairs(small, design, 100, np.random.default_rng(0))
    assert sorted(states * 3 + actions) == sorted(design.states * 3 + design.actions)  # each once


def test_random_functions_are_halves() -> None:
    problem = linear_table().problem()
    values = choose_probes(problem, (), 5, np.random.default_rng(0)).evaluate(Draw(np.arange(12), None))
    assert values.shape == (12, 5) and set(np.unique(values)) == {0.0, 1.0}
    np.testing.assert_array_equal(values.sum(axis=0), 6)
    assert len(np.unique(values, axis=1).T) == 5


def test_value_functions_are_mapped_and_cut_to_the_unit_interval() -> None:
    problem = replace(linear_table().problem(), candidates=(np.array([0, 10]), np.array([0, 0])))
    probes = choose_probes(
        problem, [lambda s: 3.0 * s - 5, lambda s: np.full(len(s), 7.0)], 1, np.random.default_rng(0)
    )
    values = probes.evaluate(Draw(np.array([0, 5, 10, 11]), None))
    np.testing.assert_allclose(values[:, 1], [0, 0.5, 1, 1])
    np.testing.assert_array_equal(values[:, 2], 0.0)
    assert probes.names == ("random function 1", "value function 1", "value function 2")


def test_the_same_seed_gives_the_same_report() -> None:
    table = linear_table()
    first, again, other, elsewhere = (
        check(table.problem(), table.simulator(), 300, seed, first_pair=at).to_json()
        for seed, at in ((1, FIRST_PAIR), (1, FIRST_PAIR), (2, FIRST_PAIR), (1, 7))
    )
    assert first == again
    assert first != other and first != elsewhere


def test_tables_assume_nothing() -> None:
    instance = make("garnet")
    design = DESIGNS["full"]().design(instance.problem)
    report = check_linearity(instance.problem, design, instance.simulator, samples=10, seed=0, delta=0.05)
    assert not report.assumed and report.passed and report.findings == () and report.samples == 0
    assert instance.simulator.num_queries == 0


def test_the_report_is_json_and_says_what_passing_shows() -> None:
    table = linear_table()
    report = check(table.problem(), table.simulator(), 500)
    assert report.passed and report.assumed
    joined = report.joined(rollout_finding(table.problem(), [5.0, 1.0], [5.5, 0.5], [6.0, 1.5], 0.1))
    text = json.dumps(joined.to_json(), allow_nan=False)
    assert json.loads(text)["failures"] == ["fitted reward against rollouts"]
    assert joined.passed  # it warns, but refutes nothing
    names = [t["name"] for t in json.loads(text)["tests"]]
    assert names == ["known reward", "known c1", "constant", SINGLE, TOGETHER, "fitted reward against rollouts"]
    # ln(1/.05)/20 = .150
    assert "with confidence 0.95 at least a share 0.85 of the pool would pass too" in report.findings[-2].meaning
    for f in report.findings:
        assert f.passed == (f.statistic <= f.limit)


@pytest.mark.parametrize(
    ("fitted", "half_width", "passed", "name", "statistic"),
    [
        ([5.0, 2.0], None, True, None, 0.0),
        ([6.5, 2.0], None, False, "reward", 0.5),
        ([6.5, 2.0], 0.6, True, None, 0.5),
        ([6.5, 0.2], [0.6, 0.1], False, "c1", 0.8),
        ([3.9, 2.0], 0.2, True, None, 0.1),
        ([3.7, 2.0], 0.2, False, "reward", 0.3),
    ],
)
def test_fitted_values_against_rollouts(
    fitted: list[float], half_width: float | None, passed: bool, name: str | None, statistic: float
) -> None:
    problem = linear_table().problem()
    finding = rollout_finding(problem, fitted, [4.0, 1.0], [6.0, 3.0], half_width)
    assert finding.passed is passed and finding.statistic == pytest.approx(statistic)
    if name is not None:
        assert f"of '{name}' contradicts the rollouts" in finding.meaning


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"samples": 40}, "`samples` must give each"),
        ({"delta": 0.0}, "`delta` must lie"),
        ({"num_pairs": 0}, "`num_pairs` must"),
        ({"num_functions": 0}, "`num_functions` must"),
        ({"functions": [lambda s: np.zeros(3)]}, "`functions` must return"),
        ({"functions": [lambda s: np.full(len(s), np.nan)]}, "`functions` must return"),
    ],
)
def test_bad_input_is_refused(change: dict[str, object], complaint: str) -> None:
    table = linear_table()
    order: dict[str, object] = {"samples": 4000, "seed": 0, "delta": 0.05} | change
    with pytest.raises(InputError, match=complaint):
        check_linearity(table.problem(), exchange(table.problem()), table.simulator(), **order)  # type: ignore[arg-type]
