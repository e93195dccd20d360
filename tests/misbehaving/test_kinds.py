"""Misbehaving but legal code: every kind is refused, or its certificate is true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from misbehaving.kinds import COST, GAMMA, KINDS, REWARD, RHO, P, S, model_of, problem_of, table
from saddleback import InputError, Method, SaddlebackError, Solution, solve
from saddleback.exact import solve_exactly
from saddleback.runs.verdict import Reason

SAMPLES, SEEDS = 20_000, 20
DELTA = 1e-6  # an honest certificate is false once in a million runs
OPTIMUM = solve_exactly(table()).value
HARMLESS = {
    "features write into states",
    "reward writes into states",
    "cost writes into states",
    "features reuse their array",
    "reward reuses its array",
    "simulator writes into states",
    "simulator reuses its array",
    "starts reuse their array",
    "int8 states",
    "uint8 states",
    "int8 starts",
    "the global generator",
    "a generator of its own",
}


def value_of(mixture: Any, signal: Any) -> float:
    """What the mixture is worth, by linear algebra."""
    total, eye = 0.0, np.eye(S)
    for weight, member in zip(mixture.weights, mixture.members, strict=True):
        pi = member.probabilities(np.arange(S))
        values = np.linalg.solve(eye - GAMMA * np.einsum("sa,sat->st", pi, P), (pi * signal).sum(axis=1))
        total += float(weight * (RHO @ values))
    return total


def falsehoods(found: Solution) -> list[str]:
    """What the certificate says that is not so."""
    proof, wrong = found.certificate, list[str]()
    if proof is None or proof.value is None:
        return wrong
    said = {"value": (proof.value, REWARD), "cost": (proof.constraints[0], COST)}
    for name, ((low, high), signal) in said.items():
        true = value_of(found.mixture, signal)
        if not low - 1e-9 <= true <= high + 1e-9:
            wrong.append(f"{name} in [{low:.4f}, {high:.4f}], which is {true:.4f}")
    if proof.upper_bound is not None and proof.upper_bound < OPTIMUM - 1e-9:
        wrong.append(f"nothing better than {proof.upper_bound:.4f}, where {OPTIMUM:.4f} is the best")
    return wrong


def outcome(kind: str, seed: int) -> tuple[str, str]:
    """("refused" or "answered", what was said); fails where what was proved is false."""
    pieces = KINDS[kind]()
    try:
        found = solve(problem_of(pieces), model_of(pieces), samples=SAMPLES, seed=seed, delta=DELTA)
    except SaddlebackError as error:
        return "refused", str(error)
    if found.verdict.reason is Reason.CONTRADICTED:
        return "refused", found.message
    wrong = falsehoods(found)
    assert not wrong, f"{kind}, seed {seed}: proved {'; '.join(wrong)}"
    return "answered", ""


@pytest.mark.slow
def test_there_are_many_kinds_and_the_honest_one_is_believed() -> None:
    assert len(KINDS) >= 25 and set(KINDS) > HARMLESS
    for seed in range(3):
        found = solve(problem_of({}), model_of({}), samples=SAMPLES, seed=seed, delta=DELTA)
        assert found.certificate is not None and not falsehoods(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_kind_is_refused_or_its_certificate_is_true(kind: str) -> None:
    what, said = outcome(kind, 0)
    print(f"{kind}: {what} {said}")
    if kind in HARMLESS:
        assert what == "answered", said


@pytest.mark.study
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_in_twenty_of_twenty_seeds(kind: str) -> None:
    outcomes = [outcome(kind, 100 + seed)[0] for seed in range(SEEDS)]
    print(f"{kind}: {outcomes.count('refused')} refused, {outcomes.count('answered')} answered and true")


class Policies:
    """A solver whose policies toss a coin for each state, or one for all."""

    num_actions = 2

    def __init__(self, sound: bool):
        self.sound = sound

    def solve(self, problem: Any, buffer: Any, mixing: Any) -> list[Any]:
        return [self] * len(mixing)

    def probabilities(self, states: Any) -> Any:
        return np.full((len(states), 2), 0.5)

    def act(self, states: Any, rng: np.random.Generator) -> Any:
        return rng.integers(0, 2, len(states)) if self.sound else np.full(len(states), rng.integers(0, 2))

    def mean_features(self, features: Any, states: Any) -> Any:
        return features.all(states).mean(axis=1)

    def key(self) -> bytes:
        return b"coins"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_policies_of_ones_own_draw_each_action_by_itself(seed: int) -> None:
    def solved(sound: bool) -> Solution:
        method = Method(solver=Policies(sound))
        return solve(problem_of({}), model_of({}), samples=SAMPLES, seed=seed, delta=DELTA, method=method)

    assert not falsehoods(solved(True))
    with pytest.raises(InputError, match="policy Policies` must draw each action by itself"):
        solved(False)


@pytest.mark.slow
def test_without_the_examination_proofs_are_false(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what the examination is for."""
    for module in ("solving.prepare", "certificates.prove"):
        monkeypatch.setattr(f"saddleback.{module}.examine", lambda *_: 0)
    monkeypatch.setattr("saddleback.sampling.collect.examine_blocks", lambda *_: None)
    monkeypatch.setattr("saddleback.certificates.guide.examine_starts", lambda *_: None)
    monkeypatch.setattr("saddleback.certificates.values.rollouts.examine_rollouts", lambda *_: None)
    for kind in ("one number for all rows", "first row only", "one start for all"):
        pieces = KINDS[kind]()
        found = (solve(problem_of(pieces), model_of(pieces), samples=SAMPLES, seed=s) for s in range(5))
        assert any(falsehoods(f) for f in found), kind
