"""Contracts: what every oracle must do, checked on small problems. For our own parts and for other people's.

    from saddleback.testing import check_solver
    check_solver(MySolver())

Each check raises ``AssertionError`` with a sentence that names the broken rule. They need no pytest. A simulator is looked at
more closely, and may have several faults: :func:`check_simulator` lists them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from saddleback.designs.design import Design, full_design, weighted_design
from saddleback.exact import best_policy, state_values
from saddleback.features import OneHot
from saddleback.method.oracles import Dual, Evaluator, InteractiveSolver, Solver, Step, simplex_point
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy, TabularPolicy, as_table
from saddleback.problem.spaces import Array, Features
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.simulators.checks import Finding, run_checks
from saddleback.simulators.generative_model import GenerativeModel, SampleFunction, Sampler, Stream
from saddleback.simulators.table import Table

_MIXING = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])


def small_table(tabular: bool, seed: int = 0) -> Table:
    """Five states, three actions, γ = .7, one constraint; linear in four simplex features unless ``tabular``."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(4, 0.3), (5, 3))
    P = phi @ rng.dirichlet(np.full(5, 0.3), 4)
    P /= P.sum(axis=-1, keepdims=True)
    reward, cost = phi @ rng.random(4), phi @ rng.random(4)
    options: dict[str, Any] = {"reward_range": (0.0, 1.0), "ranges": ((0.0, 1.0),), "phi": None if tabular else phi}
    return Table.of(P, reward, cost[None], [1.0], gamma=0.7, rho=np.full(5, 0.2), **options)


def check_solver(
    solver: Solver, *, tabular: bool = False, samples_per_pair: int = 4000, tolerance: float = 0.1
) -> None:
    """A policy per reward, repeatable, and within ``tolerance``·H of the optimum on an easy problem."""
    table, problem, buffer = _buffer(tabular, samples_per_pair, Stream.SOLVER)
    policies = solver.solve(problem, buffer, _MIXING)
    again = solver.solve(problem, buffer, _MIXING)
    _check_policies(table, problem, policies, tolerance)
    for one, two in zip(policies, again, strict=True):
        assert one.key() == two.key(), "a buffer oracle must be a pure function of (problem, buffer, mixing)"
    alone = solver.solve(problem, buffer, _MIXING[1:2])[0]
    states = np.arange(table.num_states)
    same = np.allclose(alone.probabilities(states), policies[1].probabilities(states), atol=1e-8)
    assert same, "solving several rewards at once must give what solving them one by one gives"


def check_interactive_solver(solver: InteractiveSolver, tolerance: float = 0.5) -> None:
    """As :func:`check_solver`, for a solver that samples by itself: every call it makes is metered."""
    table, problem, buffer = _buffer(False, 4, Stream.SOLVER)
    model = table.simulator()
    sampler = Sampler(model, 0)
    policies = solver.solve_interactively(problem, buffer.design, sampler, _MIXING)
    assert sampler.num_queries == model.num_queries > 0, "every simulator call must go through the sampler"
    _check_policies(table, problem, policies, tolerance)


def check_evaluator(evaluator: Evaluator, *, tabular: bool = False, tolerance: float = 0.05) -> None:
    """Values ``(1+m,)`` in [0, H], close to the truth with many samples, inside an ordered interval of sensible width."""
    table, problem, buffer = _buffer(tabular, 4000, Stream.EVALUATION)
    for policy in _two_policies():
        _check_values(table, problem, buffer, evaluator, policy, tolerance)


def check_interactive_evaluator(evaluator: Any, *, samples: int = 200_000, tolerance: float = 0.05) -> None:
    """As :func:`check_evaluator`, for an evaluator that plays the policies itself: every call it makes is metered."""
    table, problem, buffer = _buffer(False, 4, Stream.EVALUATION)
    model, policies = table.simulator(), _two_policies()
    sampler = Sampler(model, 0, limit=samples)
    measured = evaluator.evaluate_interactively(problem, sampler, policies)
    assert 0 < sampler.num_queries == model.num_queries <= samples, "every simulator call must go through the sampler"
    for policy in policies:
        _check_values(table, problem, buffer, measured, policy, tolerance)
    assert sampler.num_queries == model.num_queries, "what was measured must draw nothing more"


def check_design(designer: Any, *, tabular: bool = False) -> None:
    """Weights of a distribution over distinct pairs; W recovers linear functions; g is the largest leverage."""
    problem = _with_features(small_table(tabular).problem())
    design: Design = designer.design(problem)
    assert np.all(design.weights > 0) and abs(design.weights.sum() - 1) < 1e-12, "weights must be a distribution"
    pairs = set(zip(design.states.tolist(), design.actions.tolist(), strict=True))
    assert len(pairs) == design.size, "the pairs of a coreset must be distinct"
    features = problem.required_features()
    theta = np.random.default_rng(0).random(features.dim)
    states, actions = problem.pairs()
    phi = features.at(states, actions)
    targets = features.at(design.states, design.actions) @ theta
    assert np.allclose(phi @ design.fit(targets), phi @ theta, atol=1e-8), "W must recover what is linear in φ"
    assert design.leverage_bound >= design.rank - 1e-9, "g is at least the rank of the features"
    if design.whitening is not None:
        assert np.isclose(design.leverage(phi).max(), design.leverage_bound), "g must be the largest leverage"


def check_dual(dual: Dual, num_constraints: int, most_steps: int = 100_000) -> None:
    """Against a solver whose constraint value grows with λ, the dual ends, with λ ≥ 0 and weights of a distribution."""
    steps: list[Step] = []
    policy: Policy = TabularPolicy.deterministic(np.zeros(1), 1)
    proposal = dual.propose(steps)
    while not proposal.done:
        assert len(steps) < most_steps, "a dual must end"
        assert len(proposal.multipliers) == num_constraints, "one multiplier a constraint"
        assert min(proposal.multipliers) >= 0, "multipliers are non-negative"
        values = simplex_point(proposal.multipliers) if proposal.point is None else proposal.point
        steps.append(Step(proposal.multipliers, policy, values))
        proposal = dual.propose(steps)
    assert proposal.weights is not None and len(proposal.weights) == len(steps), "one weight a step"
    assert np.all(proposal.weights >= 0) and abs(proposal.weights.sum() - 1) < 1e-9, "weights must be a distribution"


def check_features(features: Features, states: Any) -> None:
    """Shapes and agreement of ``at``, ``all``, ``values``, ``maximum`` and ``argmax``."""
    n, A, d = len(states), features.num_actions, features.dim
    rng = np.random.default_rng(0)
    theta = rng.random((d, 2))
    if A <= 4096:
        phi = features.all(states)
        assert phi.shape == (n, A, d) and phi.dtype == np.float64, f"all must be float64 {(n, A, d)}"
        Q = features.values(states, theta)
        assert np.allclose(Q, phi @ theta), "values must be ⟨φ, θ⟩"
        assert np.allclose(features.maximum(states, theta), Q.max(axis=1)), "maximum must be the largest value"
        for a in range(min(A, 3)):
            assert np.array_equal(features.at(states, np.full(n, a)), phi[:, a]), "at must be a row of all"
    chosen = features.argmax(states, theta[:, 0])
    best = np.einsum("nd,d->n", features.at(states, chosen), theta[:, 0])
    assert np.allclose(best, features.maximum(states, theta[:, 0])), "argmax must attain the maximum"
    assert np.all(features.argmax(states, np.zeros(d)) == 0), "ties must go to the lowest index"


def check_simulator(
    problem: CMDP, simulator: GenerativeModel | SampleFunction, *, calls: int = 20_000, seed: int = 0
) -> list[Finding]:
    """What is wrong with a simulator (:mod:`saddleback.simulators.checks`), errors first; an empty list where nothing was found."""
    findings = run_checks(problem, simulator, calls=calls, seed=seed).findings
    return sorted(findings, key=lambda f: f.severity != "error")


def _two_policies() -> list[Policy]:
    rng = np.random.default_rng(1)
    deterministic = TabularPolicy.deterministic(rng.integers(0, 3, 5), 3)
    return [deterministic, TabularPolicy.stochastic(rng.dirichlet(np.ones(3), 5))]


def _check_values(
    table: Table, problem: CMDP, buffer: Buffer, evaluator: Evaluator, policy: Policy, tolerance: float
) -> None:
    H, m = problem.horizon, problem.num_constraints
    values = evaluator.evaluate(problem, buffer, policy)
    truth = problem.start.weights @ state_values(table, as_table(policy, table.num_states))[problem.start.states]
    assert values.shape == (1 + m,), f"values must have shape {(1 + m,)}, got {values.shape}"
    assert np.all((values >= 0) & (values <= H)), f"values must lie in [0, {H:g}], got {values}"
    assert np.abs(values - truth).max() <= tolerance * H, f"values {values} are too far from the truth {truth}"
    low, high = evaluator.interval(problem, buffer, policy, 0.999)
    assert np.all(low <= high), "an interval must be ordered"
    assert np.all((low <= truth) & (truth <= high)), f"the 99.9 % interval [{low}, {high}] misses the truth {truth}"
    assert np.all(high - low < 0.5 * H), "an interval must say something"
    wider = evaluator.interval(problem, buffer, policy, 0.99999)
    assert np.all(wider.high - wider.low >= high - low), "more confidence must not give a narrower interval"


def _with_features(problem: CMDP) -> CMDP:
    S = problem.num_states
    assert S is not None
    return problem if problem.features else dataclasses.replace(problem, features=OneHot(S, problem.num_actions))


def _buffer(tabular: bool, N: int, stream: int) -> tuple[Table, CMDP, Buffer]:
    table = small_table(tabular)
    problem = _with_features(table.problem())
    states, actions = problem.pairs()
    if tabular:
        design = full_design(states, actions)
    else:
        phi = problem.required_features().at(states, actions)
        design = weighted_design(states, actions, phi, np.full(len(states), 1 / len(states)), phi)
    samples = collect(table.simulator(), problem, design, N, seed=0, stream=stream)
    return table, problem, cut(samples, problem, design, max(1, N // 4))


def _check_policies(table: Table, problem: CMDP, policies: list[Policy], tolerance: float) -> None:
    assert len(policies) == len(_MIXING), "one policy per row of mixing"
    states = np.arange(table.num_states)
    for policy, sigma in zip(policies, _MIXING, strict=True):
        p: Array = policy.probabilities(states)
        assert p.shape == (table.num_states, table.num_actions), "probabilities must be (n, A)"
        assert np.all(p >= 0) and np.allclose(p.sum(axis=1), 1), "probabilities must be distributions"
        values = state_values(table, as_table(policy, table.num_states)) @ sigma
        gap = best_policy(table, sigma)[1] @ sigma - problem.start.weights @ values[problem.start.states]
        assert gap <= tolerance * problem.horizon, f"the policy for {sigma} is {gap:.3g} below the optimum"
