"""Problem tables as files: the round trip, and a named refusal for everything that can be wrong with one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError
from saddleback.exact import solve_exactly
from saddleback.instances.table_file import load_table, save_table
from saddleback.simulators.table import Table


def arrays(seed: int = 0, S: int = 5, A: int = 2, m: int = 2) -> dict[str, Any]:
    """A good file, P dense."""
    rng = np.random.default_rng(seed)
    return {
        "P": rng.dirichlet(np.full(S, 0.5), size=(S, A)),
        "reward": 10 * rng.normal(size=(S, A)),
        "constraints": rng.normal(size=(m, S, A)),
        "thresholds": np.zeros(m),
        "senses": np.array([">=", "<=", ">="])[:m],
        "names": np.array(["yield", "énergie", "third"])[:m],
        "gamma": np.array(0.9),
        "rho": rng.dirichlet(np.ones(S)),
        "phi": rng.random((S, A, 3)),
    }


def sparse(seed: int = 0) -> dict[str, Any]:
    """A good file, P as CSR parts with four entries in each of ten rows."""
    parts = arrays(seed)
    rng = np.random.default_rng(seed)
    del parts["P"]
    parts["P_data"] = rng.dirichlet(np.ones(4), size=10).ravel()
    parts["P_indices"] = np.concatenate([np.sort(rng.choice(5, 4, replace=False)) for _ in range(10)])
    parts["P_indptr"] = np.arange(0, 41, 4)
    return parts


def same(one: Table, other: Table) -> None:
    for name in ("reward", "constraints", "thresholds", "rho"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(one.P, name), getattr(other.P, name))
    assert (one.phi is None) == (other.phi is None)
    assert one.phi is None or one.phi.tobytes() == other.phi.tobytes()
    assert (one.gamma, one.senses, one.names) == (other.gamma, other.senses, other.names)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), S=st.integers(1, 6), A=st.integers(1, 3), m=st.integers(1, 3))
def test_round_trip_is_exact(tmp_path_factory: pytest.TempPathFactory, seed: int, S: int, A: int, m: int) -> None:
    path = tmp_path_factory.mktemp("tables") / "t.npz"
    table = Table.of(**arrays(seed, S, A, m))
    save_table(table, path)
    same(load_table(path), table)


@pytest.mark.parametrize("make", [arrays, sparse])
def test_what_numpy_saved_is_the_table(tmp_path: Path, make: Any) -> None:
    parts = make()
    np.savez(tmp_path / "mill.npz", **parts)
    table = load_table(tmp_path / "mill.npz")
    assert table.name == "mill"
    np.testing.assert_array_equal(table.reward, parts["reward"])
    assert table.names == ("yield", "énergie") and table.senses == (">=", "<=")
    if "P" in parts:
        np.testing.assert_array_equal(table.P.toarray().reshape(5, 2, 5), parts["P"])
    else:
        np.testing.assert_array_equal(table.P.data, parts["P_data"])


def test_optional_arrays_may_be_left_out(tmp_path: Path) -> None:
    parts = arrays()
    for name in ("senses", "names", "phi"):
        del parts[name]
    parts["gamma"] = np.array([0.9])
    np.savez(tmp_path / "t.npz", **parts)
    table = load_table(tmp_path / "t.npz")
    assert table.senses == (">=", ">=") and table.phi is None and table.gamma == 0.9


def test_integers_are_numbers(tmp_path: Path) -> None:
    P = np.zeros((2, 1, 2), dtype=int)
    P[:, 0, 1] = 1
    np.savez(
        tmp_path / "t.npz",
        P=P,
        reward=np.array([[1], [2]]),
        constraints=np.zeros((1, 2, 1), dtype=int),
        thresholds=np.array([0]),
        gamma=0,
        rho=np.array([1, 0]),
        phi=np.ones((2, 1, 1), dtype=int),
    )
    assert solve_exactly(load_table(tmp_path / "t.npz")).value == 1.0


def test_declared_ranges_and_state_names_are_kept(tmp_path: Path) -> None:
    table = Table.of(
        **arrays(), reward_range=(-100.0, 100.0), ranges=((-9.0, 9.0), None), state_names=["a", "b", "c", "d", "e"]
    )
    save_table(table, tmp_path / "t.npz")
    back = load_table(tmp_path / "t.npz")
    same(back, table)
    assert back.state_names == ("a", "b", "c", "d", "e")
    np.testing.assert_array_equal(back.problem().scale, table.problem().scale)
    np.testing.assert_array_equal(back.problem().base, table.problem().base)


def changed(parts: dict[str, Any], name: str, index: Any, value: Any) -> dict[str, Any]:
    parts[name] = parts[name].copy()
    parts[name][index] = value
    return parts


def scaled_row() -> dict[str, Any]:
    parts = arrays()
    parts["P"][3, 1] *= 0.98
    return parts


FAULTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "row sum": (scaled_row(), ["P[state 3, action 1]", "must sum to 1", "0.98"]),
    "negative probability": (changed(arrays(), "P", (0, 0, 0), -0.5), ["P[state 0, action 0]", "-0.5"]),
    "NaN probability": (changed(arrays(), "P", (1, 0, 2), np.nan), ["P[1, 0, 2]", "finite", "nan"]),
    "NaN reward": (changed(arrays(), "reward", (4, 1), np.nan), ["reward[4, 1]", "finite", "nan"]),
    "infinite constraint": (changed(arrays(), "constraints", (1, 2, 0), np.inf), ["constraints[1, 2, 0]", "inf"]),
    "NaN threshold": (changed(arrays(), "thresholds", 1, np.nan), ["thresholds[1]", "nan"]),
    "gamma": ({**arrays(), "gamma": np.array(1.0)}, ["gamma", "must lie in [0, 1)", "1.0"]),
    "two gammas": ({**arrays(), "gamma": np.array([0.9, 0.9])}, ["gamma", "must have shape (1,)", "(2,)"]),
    "rho": (changed(arrays(), "rho", 0, 0.9), ["rho", "must sum to 1"]),
    "negative rho": (changed(arrays(), "rho", 2, -0.1), ["rho[2]", "-0.1"]),
    "shape of P": ({**arrays(), "P": np.ones((5, 2, 4))}, ["P", "(5, 2, 5)", "(5, 2, 4)"]),
    "flat reward": ({**arrays(), "reward": np.zeros(10)}, ["reward", "2 dimensions", "(10,)"]),
    "no states": ({**arrays(), "reward": np.zeros((0, 2))}, ["constraints", "(2, 0, 2)"]),
    "shape of constraints": ({**arrays(), "constraints": np.zeros((2, 2, 5))}, ["constraints", "(2, 5, 2)"]),
    "no constraints": (
        {
            **arrays(),
            "constraints": np.zeros((0, 5, 2)),
            "thresholds": np.zeros(0),
            "senses": np.zeros(0, "<U2"),
            "names": np.zeros(0, "<U2"),
        },
        ["constraints", "at least one"],
    ),
    "shape of phi": ({**arrays(), "phi": np.ones((2, 5, 3))}, ["phi", "(5, 2, d)", "(2, 5, 3)"]),
    "float32 phi": ({**arrays(), "phi": np.ones((5, 2, 3), np.float32)}, ["phi", "float64", "float32"]),
    "float32 P": ({**arrays(), "P": arrays()["P"].astype(np.float32)}, ["P", "float64", "float32"]),
    "object reward": ({**arrays(), "reward": np.full((5, 2), None)}, ["reward", "Python objects"]),
    "sense": ({**arrays(), "senses": np.array([">=", "<"])}, ["senses[1]", "'<'"]),
    "too few senses": ({**arrays(), "senses": np.array([">="])}, ["senses", "must have shape (2,)"]),
    "equal names": ({**arrays(), "names": np.array(["x", "x"])}, ["distinct names", "x"]),
    "narrow range": ({**arrays(), "reward_range": np.array([0.0, 0.1])}, ["reward", "declared range", "state"]),
    "reversed range": ({**arrays(), "ranges": np.array([[9.0, -9.0], [-9, 9]])}, ["yield", "low < high"]),
    "no transitions": ({k: v for k, v in arrays().items() if k != "P"}, ["P", "either", "neither"]),
    "P twice": ({**arrays(), **sparse()}, ["P", "either", "both"]),
    "no indptr": ({k: v for k, v in sparse().items() if k != "P_indptr"}, ["P_indptr", "other CSR parts"]),
    "index too large": (changed(sparse(), "P_indices", 17, 99), ["P_indices[17]", "state 2, action 0", "99"]),
    "index negative": (changed(sparse(), "P_indices", 0, -1), ["P_indices[0]", "0 to 4", "-1"]),
    "indptr negative": (changed(sparse(), "P_indptr", 1, -4), ["P_indptr[1]", "entry before", "-4"]),
    "indptr falls": (changed(sparse(), "P_indptr", 2, 2), ["P_indptr[2]", "entry before it (4)", "2"]),
    "indptr wraps": (changed(sparse(), "P_indptr", slice(5, 7), [2**63 - 1, -(2**63)]), ["P_indptr[6]"]),
    "indptr starts late": (changed(sparse(), "P_indptr", 0, 1), ["P_indptr[0]", "must be 0"]),
    "indptr ends late": (changed(sparse(), "P_indptr", 10, 44), ["P_indptr[10]", "length of P_data, 40", "44"]),
    "indptr short": ({**sparse(), "P_indptr": np.arange(0, 37, 4)}, ["P_indptr", "(11,)", "(10,)"]),
    "indices short": ({**sparse(), "P_indices": np.zeros(39, int)}, ["P_indices", "(40,)", "(39,)"]),
    "float indices": ({**sparse(), "P_indices": np.zeros(40)}, ["P_indices", "integers"]),
    "sparse NaN": (changed(sparse(), "P_data", 9, np.nan), ["P_data[9]", "finite"]),
    "sparse row sum": (changed(sparse(), "P_data", 5, 3.0), ["P[state 0, action 1]", "must sum to 1"]),
    "huge": (changed(arrays(), "reward", (0, 0), -1e308), ["float64", "finite"]),
    "unknown array": ({**arrays(), "costs": np.zeros(2)}, ["costs.npy", "known array"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_names_its_culprit(tmp_path: Path, fault: str) -> None:
    parts, words = FAULTS[fault]
    np.savez(tmp_path / "bad.npz", **parts)
    with pytest.raises(InputError) as caught:
        load_table(tmp_path / "bad.npz")
    message = str(caught.value)
    assert "\n" not in message
    for word in ["bad.npz", "; ", *words]:
        assert word in message
    assert caught.value.exit_code == 2


@pytest.mark.slow
def test_damaged_numbers_are_refused_or_make_a_table(tmp_path: Path) -> None:
    """Random changes of entries, shapes and types, repacked so that the archive itself is sound."""
    rng = np.random.default_rng(1)
    odd = [np.nan, -1.0, 1e308, 5e-324, 2.0, -np.inf, 7, -(2**63)]
    accepted = 0
    for trial in range(300):
        parts = sparse(trial) if trial % 2 else arrays(trial)
        name = str(rng.choice([k for k in parts if k not in ("senses", "names")]))
        x = np.atleast_1d(parts[name]).copy()
        match rng.integers(4):
            case 0:
                value = odd[rng.integers(len(odd))]
                x.flat[rng.integers(x.size)] = value if x.dtype.kind == "f" or abs(value) < 2**62 else -7
            case 1:
                x = x[:-1]
            case 2:
                x.flat[rng.integers(x.size)] *= 1 + 10.0 ** -rng.integers(1, 16) if x.dtype.kind == "f" else 3
            case 3:
                x = np.moveaxis(x, 0, -1)
        np.savez(tmp_path / "t.npz", **{**parts, name: x})
        try:
            table = load_table(tmp_path / "t.npz")
        except InputError:
            continue
        accepted += 1
        dense = table.P.toarray()
        assert np.isfinite(dense).all() and dense.min() >= 0 and abs(dense.sum(axis=1) - 1).max() <= 1e-9
        assert np.isfinite(table.reward).all() and np.isfinite(table.constraints).all() and 0 <= table.gamma < 1
    assert 30 < accepted < 270


def test_names_that_could_not_be_read_back_are_refused() -> None:
    with pytest.raises(InputError, match=r"`constraints\[1\].name` must be text to be shown"):
        Table.of(**{**arrays(), "names": ["fine", "two\nlines"]})
