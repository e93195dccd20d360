"""QuantEcon's arrays: infeasible actions, both forms, and QuantEcon's own answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from saddleback.errors import InputError
from saddleback.exact import best_policy
from saddleback.problem.cmdp import Constraint
from saddleback.simulators import Table, from_quantecon, stand_ins

S, A, BETA = 7, 4, 0.9


def arrays(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """R with −inf at infeasible pairs, Q, and which pairs are feasible."""
    rng = np.random.default_rng(seed)
    feasible = rng.random((S, A)) < 0.6
    feasible[np.arange(S), rng.integers(0, A, S)] = True
    feasible[0, 0] = False  # so that a stand-in comes before what it stands for
    R = np.where(feasible, rng.normal(size=(S, A)), -np.inf)
    return R, rng.dirichlet(np.full(S, 0.4), size=(S, A)), feasible


def cost() -> np.ndarray:
    return np.arange(S * A, dtype=np.float64).reshape(S, A)


def limits(signal: Any) -> list[Constraint]:
    return [Constraint("cost", signal, "<=", 200.0)]


def product() -> Table:
    R, Q, _ = arrays()
    return from_quantecon(R, Q, BETA, rho=np.full(S, 1 / S), constraints=limits(cost()))


def pairs(sparse: bool) -> Table:
    R, Q, feasible = arrays()
    s, a = np.nonzero(feasible)
    rows = scipy.sparse.csc_matrix(Q[s, a]) if sparse else Q[s, a]
    return from_quantecon(R[s, a], rows, BETA, s, a, rho=np.full(S, 1 / S), constraints=limits(cost()[s, a]))


def test_infeasible_actions_stand_for_the_lowest_feasible_one() -> None:
    R, Q, feasible = arrays()
    table = product()
    means = stand_ins(feasible)
    for s, a in np.ndindex(S, A):
        b = a if feasible[s, a] else int(np.flatnonzero(feasible[s])[0])
        assert means[s, a] == b
        assert table.reward[s, a] == R[s, b] and table.constraints[0, s, a] == cost()[s, b]
        np.testing.assert_array_equal(table.P[[s * A + a]].toarray()[0], Q[s, b])


@pytest.mark.parametrize("sparse", [False, True])
def test_both_forms_give_the_same_table(sparse: bool) -> None:
    one, other = product(), pairs(sparse)
    np.testing.assert_array_equal(one.P.toarray(), other.P.toarray())
    np.testing.assert_array_equal(one.reward, other.reward)
    np.testing.assert_array_equal(one.constraints, other.constraints)


@pytest.mark.parametrize("seed", range(3))
def test_quantecon_s_own_answer(seed: int) -> None:
    """The unconstrained optimum by QuantEcon's policy iteration, and ours of the table."""
    markov = pytest.importorskip("quantecon.markov")
    R, Q, feasible = arrays(seed)
    ddp = markov.DiscreteDP(R, Q, BETA).to_sa_pair_form()
    theirs = ddp.solve(method="policy_iteration")
    rho = np.full(S, 1 / S)
    table = from_quantecon(ddp.R, ddp.Q, ddp.beta, ddp.s_indices, ddp.a_indices, rho=rho, constraints=limits(cost()))
    policy, values = best_policy(table, np.array([1.0, 0.0]))
    assert table.problem().values_of(values)[0] == pytest.approx(rho @ theirs.v, abs=1e-9)
    ours = stand_ins(feasible)[np.arange(S), policy.probabilities(np.arange(S)).argmax(axis=1)]
    np.testing.assert_array_equal(ours, theirs.sigma)


R, Q, FEASIBLE = arrays()
s_, a_ = np.nonzero(FEASIBLE)
RS, QS = R[s_, a_], Q[s_, a_]
REFUSED: dict[str, tuple[tuple[Any, ...], list[str]]] = {
    "stuck": ((np.full((S, A), -np.inf), Q, BETA), ["state 0", "feasible", "7 such"]),
    "NaN": ((np.where(R.max() == R, np.nan, R), Q, BETA), ["R[", "infeasible", "nan"]),
    "infinite": ((np.where(R.max() == R, np.inf, R), Q, BETA), ["R[", "infeasible", "inf"]),
    "shape": ((R, Q[:, :, :6], BETA), ["Q", "(7, 4, 7)", "(7, 4, 6)"]),
    "flat": ((R.ravel(), Q, BETA), ["R", "(S, A)", "s_indices"]),
    "one index": ((RS, QS, BETA, s_), ["a_indices", "None"]),
    "length": ((RS, QS, BETA, s_[:-1], a_), ["s_indices", f"{len(RS)} whole"]),
    "floats": ((RS, QS, BETA, s_ * 1.0, a_), ["s_indices", "float64"]),
    "range": ((RS, QS, BETA, s_ + 1, a_), ["s_indices[", "[0, 7)", "7"]),
    "negative": ((RS, QS, BETA, s_, a_ - 1), ["a_indices[", "-1"]),
    "gap": ((RS, QS, BETA, s_, a_ * 1000), ["a_indices", "gaps"]),
    "twice": (
        (np.append(RS, 0), np.vstack([QS, QS[:1]]), BETA, np.append(s_, 0), np.append(a_, a_[0])),
        ["of its own"],
    ),
    "rows": ((RS, QS[:-1], BETA, s_, a_), ["Q", f"({len(RS)}, S)"]),
    "-inf": ((np.where(RS.max() == RS, -np.inf, RS), QS, BETA, s_, a_), ["R[", "finite", "-inf"]),
    "no action": ((RS[s_ > 0], QS[s_ > 0], BETA, s_[s_ > 0], a_[s_ > 0]), ["state 0", "feasible action", "1 such"]),
    "beta": ((R, Q, 1.0), ["gamma", "[0, 1)"]),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_cannot_be_is_refused(fault: str) -> None:
    given, words = REFUSED[fault]
    with pytest.raises(InputError) as caught:
        from_quantecon(*given, rho=np.full(S, 1 / S), constraints=limits(cost()))
    for word in words:
        assert word in str(caught.value)


def test_a_sparse_q_with_foreign_indices_is_refused() -> None:
    rows = scipy.sparse.csr_array(QS)
    rows.indices[5] = 10**6
    with pytest.raises(InputError, match="well-formed"):
        from_quantecon(RS, rows, BETA, s_, a_, rho=np.full(S, 1 / S), constraints=limits(cost()))
