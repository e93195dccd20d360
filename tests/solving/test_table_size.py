"""Tables of middle size: no samples for states that the start does not reach, and a word where a table is too large."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback import InputError, Method, Solution, Start, resume, solve
from saddleback.cli import main
from saddleback.exact.values import mixture_values
from saddleback.problem.numerics import Stream
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.table import Table
from saddleback.solving.prepare import prepare_from

ISLAND = 10


def two_islands(size: int = ISLAND, leak: float = 0.0, gamma: float = 0.9, **more: Any) -> Table:
    """States 0 … n − 1 around the start, n … 2n − 1 where nobody comes from there (or hardly: ``leak``)."""
    rng, S, A = np.random.default_rng(3), 2 * size, 3
    P = np.zeros((S, A, S))
    P[:size, :, :size] = rng.dirichlet(np.full(size, 0.5), (size, A)) * (1 - leak)
    P[:size, :, size] += leak
    P[size:, :, size:] = rng.dirichlet(np.full(size, 0.5), (size, A))
    reward, cost = rng.random((S, A)), rng.random((1, S, A))
    rho = np.eye(S)[0]
    return Table.of(P, reward, cost, [0.45 / (1 - gamma)], gamma=gamma, rho=rho, senses=["<="], names=["cost"], **more)


class Counting:
    """A simulator that notes how often each state is asked about, by the stream of its generator's key."""

    def __init__(self, table: Table) -> None:
        self.inner, self.calls = table.simulator(), np.zeros(table.num_states, dtype=np.int64)

    def model(self) -> GenerativeModel:
        def sample(states: Any, actions: Any, rng: np.random.Generator) -> Any:
            np.add.at(self.calls, states, 1)
            return self.inner._sample(states, actions, rng)

        return GenerativeModel(sample, self.inner.states)


def found(table: Table, samples: int = 60_000, seed: int = 0, **more: Any) -> tuple[Solution, np.ndarray[Any, Any]]:
    counting = Counting(table)
    solution = solve(table.problem(), counting.model(), samples=samples, seed=seed, feasibility="relaxed", **more)
    return solution, counting.calls


def kinds(solution: Solution) -> list[str]:
    return [r.kind for r in solution.remarks]


def test_states_that_are_not_reached_get_no_samples() -> None:
    """None of the samples of solver, evaluator, rollouts and bound; what is left are calls that examine the simulator."""
    solution, calls = found(two_islands())
    parts = solution.prepared
    assert parts is not None and parts.evaluation_buffer.unsampled is not None
    assert np.flatnonzero(parts.evaluation_buffer.unsampled.reshape(-1, 3).any(axis=1)).tolist() == list(range(10, 20))
    assert solution.samples <= 60_000
    _, more = found(two_islands(), 120_000)
    assert calls[ISLAND:].sum() == more[ISLAND:].sum() < 1000 and calls[:ISLAND].min() > 500
    assert "unreached" in kinds(solution) and "10 of 20 states" in " ".join(r.text for r in solution.remarks)


def test_what_is_saved_goes_to_the_others() -> None:
    """Twice the samples of each pair that is reached, and an answer as good as that of a table without the others."""
    both, _ = found(two_islands())
    P = two_islands()
    n = ISLAND
    small = Table.of(
        P.P.toarray().reshape(2 * n, 3, 2 * n)[:n, :, :n], P.reward[:n], P.constraints[:, :n], P.thresholds,
        gamma=0.9, rho=P.rho[:n], senses=["<="], names=["cost"],
        reward_range=(float(P.reward.min()), float(P.reward.max())),
        ranges=((float(P.constraints.min()), float(P.constraints.max())),),
    )  # fmt: skip
    alone, _ = found(small)
    assert both.prepared is not None and alone.prepared is not None
    counts = both.prepared.solver_buffer.counts.reshape(-1, 3)[:n]  # type: ignore[union-attr]
    others = alone.prepared.solver_buffer.counts.reshape(-1, 3)  # type: ignore[union-attr]
    assert counts.min() >= 0.9 * others.min()
    assert both.mixture is not None and alone.mixture is not None
    truth = [mixture_values(P, both.mixture)[0], mixture_values(small, alone.mixture)[0]]
    assert abs(truth[0] - truth[1]) < 0.05


@pytest.mark.slow
def test_where_all_is_reached_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    table = two_islands(leak=0.2)
    with_rule, _ = found(table)
    monkeypatch.setattr("saddleback.solving.prepare.may_skip", lambda *_: False)
    without, _ = found(table)
    assert with_rule.prepared is not None and with_rule.prepared.evaluation_buffer.unsampled is None
    assert with_rule.value == without.value and with_rule.samples == without.samples
    assert with_rule.certificate == without.certificate


@pytest.mark.parametrize("seed", range(3))
def test_states_that_are_seen_late(seed: int) -> None:
    """A leak of one in two thousand: whatever was seen of the other island has samples, within the budget."""
    solution, _ = found(two_islands(leak=0.0005), 60_000, seed)
    parts = solution.prepared
    assert parts is not None and solution.samples <= 60_000
    buffer = parts.evaluation_buffer
    unsampled = np.zeros(20, dtype=bool) if buffer.unsampled is None else buffer.unsampled.reshape(-1, 3).any(axis=1)
    P = buffer.empirical_model().toarray()  # type: ignore[attr-defined]
    wide = np.zeros((60, 20))
    wide[:, buffer.support] = P
    sampled_rows = np.repeat(~unsampled, 3)
    assert not np.any(wide[sampled_rows][:, unsampled])


@pytest.mark.slow
def test_the_certificate_holds_and_can_be_checked_again(tmp_path: Path) -> None:
    """The truth lies within what is proved, and the stored bound follows from its samples."""
    table = two_islands()
    solution = solve(table.problem(), table.simulator(), samples=200_000, seed=0, out=tmp_path / "run")
    proof = solution.certificate
    assert proof is not None and solution.mixture is not None and proof.upper_bound is not None
    truth = mixture_values(table, solution.mixture)
    assert proof.value[0] <= truth[0] <= proof.value[1]
    assert proof.upper_bound >= truth[0] - 1e-9
    with pytest.raises(SystemExit) as ended:
        main(["certify", str(tmp_path / "run"), "--recheck"])
    assert not ended.value.code


@pytest.mark.slow
def test_more_rounds_reuse_and_resumption(tmp_path: Path) -> None:
    table = two_islands()
    problem, model = table.problem(), table.simulator()
    solution = solve(problem, model, samples=60_000, seed=0, out=tmp_path / "run", method=Method(certificate=0))
    again = resume(tmp_path / "run")
    assert again.solution.value == solution.value
    growing = solve(problem, model, epsilon=3.0, seed=0)
    assert growing.prepared is not None and growing.prepared.evaluation_buffer.unsampled is not None


def test_what_a_store_lacks_was_not_reached(tmp_path: Path) -> None:
    """The samples of a run, read from its folder, are the same buffers; a state that they lead to must have some."""
    table = two_islands()
    problem, model = table.problem(), table.simulator()
    solution = solve(problem, model, samples=60_000, seed=0, out=tmp_path / "run", method=Method(certificate=0))
    assert solution.prepared is not None
    with SampleStore.open(next((tmp_path / "run" / "samples").glob("samples-*")), writable=False) as store:
        parts = prepare_from(problem, store, Method())
        buffer, ours = parts.evaluation_buffer, solution.prepared.evaluation_buffer
        assert buffer.unsampled is not None and ours.unsampled is not None
        assert np.array_equal(buffer.unsampled, ours.unsampled) and buffer.num_samples == ours.num_samples
        V = np.random.default_rng(0).random(20)
        assert np.allclose(buffer.average(V[buffer.support]), ours.average(V[ours.support]), rtol=0, atol=1e-12)
        elsewhere = dataclasses.replace(problem, start=Start.over_all(np.eye(2 * ISLAND)[ISLAND]))
        with pytest.raises(InputError, match="every pair whose state is reached"):
            prepare_from(elsewhere, store, Method())


def test_another_start_needs_its_own_samples() -> None:
    table = two_islands()
    solution, _ = found(table, method=Method(certificate=0))
    problem = table.problem()
    elsewhere = dataclasses.replace(problem, start=Start.over_all(np.eye(2 * ISLAND)[ISLAND]))
    with pytest.raises(InputError, match="must begin in states that were sampled"):
        solve(elsewhere, reuse=solution, method=Method(certificate=0))


def test_actions_that_are_not_allowed_get_none_either() -> None:
    allowed = np.ones((2 * ISLAND, 3), dtype=bool)
    allowed[::2, 0] = False
    solution, calls = found(two_islands(actions_allowed=allowed))
    parts = solution.prepared
    assert parts is not None and parts.evaluation_buffer.unsampled is not None
    assert calls[ISLAND:].sum() < 1000 and solution.samples <= 60_000


@pytest.mark.slow
def test_a_table_that_is_too_large_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    table = two_islands(100, leak=0.1)  # 600 pairs
    solution, _ = found(table, 12_000, method=Method(certificate=0))
    (remark,) = [r for r in solution.remarks if r.kind == "too-large"]
    assert (
        "too large for this budget" in remark.text and "--samples 240,000" in remark.text and "features" in remark.text
    )
    assert "too-large" not in kinds(found(table, 40_000, method=Method(certificate=0))[0])
    assert Stream.SOLVER == 0  # whose samples decide what is reached
