"""Mixtures as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback.errors import InputError
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.policy_file import load_mixture, save_policy
from saddleback.problem.spaces import BoxStates, FiniteStates


def problem(finite: bool = True) -> CMDP:
    signal = lambda states, actions: np.zeros(len(states))  # noqa: E731
    return CMDP(
        gamma=0.9,
        start=Start(np.array([0]) if finite else np.zeros((1, 1)), np.array([1.0])),
        num_actions=2,
        states=FiniteStates(3) if finite else BoxStates(np.array([0.0]), np.array([1.0])),
        reward=signal,
        constraints=[Constraint("cost", signal, "<=", 1.0, (0.0, 1.0))],
        reward_range=(0.0, 1.0),
    )


def test_round_trip(tmp_path: Path) -> None:
    members = [
        TabularPolicy.deterministic(np.array([0, 1, 1]), 2),
        TabularPolicy.stochastic(np.array([[0.1, 0.9], [1 / 3, 2 / 3], [1, 0]])),
    ]
    mixture = MixturePolicy.of(members, np.array([0.3, 0.7]))
    save_policy(mixture, problem(), tmp_path / "p.npz")
    back = load_mixture(tmp_path / "p.npz")
    assert back.weights.tobytes() == mixture.weights.tobytes()
    for one, other in zip(back.members, members, strict=True):
        np.testing.assert_array_equal(one.probabilities(np.arange(3)), other.probabilities(np.arange(3)))
    with np.load(tmp_path / "p.npz", allow_pickle=False) as file:
        assert sorted(file) == ["probabilities", "weights"]
        assert file["weights"].shape == (2,) and file["probabilities"].shape == (2, 3, 2)


def test_only_finite_problems(tmp_path: Path) -> None:
    mixture = MixturePolicy.of([TabularPolicy.deterministic(np.array([0]), 2)], np.array([1.0]))
    with pytest.raises(InputError, match="`policy` must belong to a finite problem"):
        save_policy(mixture, problem(finite=False), tmp_path / "p.npz")


@pytest.mark.parametrize(
    ("weights", "probabilities", "words"),
    [
        ([0.5, 0.4], np.full((2, 3, 2), 0.5), ["weights", "must sum to 1", "0.9"]),
        ([1.5, -0.5], np.full((2, 3, 2), 0.5), ["weights[1]", "-0.5"]),
        ([1.0], np.full((2, 3, 2), 0.5), ["probabilities", "(1, S, A)", "(2, 3, 2)"]),
        ([1.0], np.full((1, 3, 0), 0.5), ["probabilities", "(1, 3, 0)"]),
        ([1.0], np.full((1, 3, 2), 0.4), ["probabilities[0, 0]", "must sum to 1", "0.8"]),
        ([1.0], np.array([[[0.5, 0.5], [1.5, -0.5]]]), ["probabilities[0, 1, 1]", "-0.5"]),
        ([1.0], np.full((1, 3, 2), np.nan), ["probabilities[0, 0, 0]", "finite"]),
        ([1.0], np.full((3, 2), 0.5), ["probabilities", "3 dimensions"]),
        ([1.0], np.full((1, 3, 2), 0.5, np.float32), ["probabilities", "float32"]),
    ],
)
def test_faults_are_named(tmp_path: Path, weights: Any, probabilities: Any, words: list[str]) -> None:
    np.savez(tmp_path / "p.npz", weights=np.array(weights), probabilities=probabilities)
    with pytest.raises(InputError) as caught:
        load_mixture(tmp_path / "p.npz")
    for word in ["p.npz", *words]:
        assert word in str(caught.value)
