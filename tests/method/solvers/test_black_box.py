"""Other people's solvers in the solver's seat: the framework's answer is ours, whoever solved the unconstrained problems."""

import sys

import numpy as np
import pytest

from saddleback import testing
from saddleback.errors import BudgetError, InputError, NumericalError
from saddleback.exact import best_policy, mixture_values, policy_values, solve_exactly, state_values
from saddleback.instances.zoo import make
from saddleback.method.duals import ColumnGeneration
from saddleback.method.evaluators.rollouts import Measured, Rollouts
from saddleback.method.framework import Oracle, run
from saddleback.method.oracles import Evaluator, InteractiveEvaluator, InteractiveSolver, Solver
from saddleback.method.solvers import MDPSolver, QuantEcon, StableBaselines
from saddleback.method.solvers.elsewhere import optimal_policy
from saddleback.method.solvers.stable_baselines import NetworkPolicy, scaled
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.policies import TabularPolicy
from saddleback.problem.spaces import BoxStates, FiniteStates
from saddleback.runs.verdict import Status
from saddleback.simulators.generative_model import GenerativeModel, Sampler, Stream
from spelled_out import solve

TABLES = ["wireless", "queue", "gridworld", "routing", "maintenance", "river-swim", "garnet"]
QUICK = ["gridworld", *(pytest.param(name, marks=pytest.mark.slow) for name in TABLES if name != "gridworld")]
TIED = ["streaming", "inventory"]  # actions that are equally good on the solver's samples and not on the evaluator's


@pytest.fixture(params=["quantecon", "mdpsolver"])
def external(request):
    pytest.importorskip(request.param, reason=f"the extra {request.param} is not installed")
    return request.param


def by_name(name):
    return {"quantecon": QuantEcon, "mdpsolver": MDPSolver}[name]()


# ---- tables ------------------------------------------------------------------------------------------------------------


def test_contract(external):
    assert isinstance(by_name(external), Solver)
    testing.check_solver(by_name(external), tabular=True)


def answer(name, solver, buffers):
    instance = make(name)
    found = solve(instance.problem, instance.simulator, samples=20_000, seed=1, solver=solver, buffers=buffers)
    assert found.status is Status.SOLVED
    assert found.settings["solver"] == solver
    return np.array([found.value, *(c.value for c in found.constraints), *found.multipliers])


@pytest.mark.parametrize("name", QUICK)
def test_the_same_samples_give_the_same_constrained_answer(external, name):
    np.testing.assert_allclose(answer(name, external, 2), answer(name, "plug-in", 2), rtol=0, atol=1e-6)
    np.testing.assert_allclose(answer(name, external, 2), answer(name, "perturbed-model", 2), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", [*TABLES, *TIED])
def test_the_optimum_of_one_estimated_table_is_one_number(external, name):
    """With one buffer the answer is the optimum of a single table, however ties are broken."""
    instance = make(name)
    exactly = {"samples": 20_000, "seed": 1, "buffers": 1, "tolerance": 1e-9}
    ours = solve(instance.problem, instance.simulator, solver="plug-in", **exactly)
    theirs = solve(make(name).problem, make(name).simulator, solver=external, **exactly)
    assert theirs.value == pytest.approx(ours.value, abs=1e-6)
    assert [c.value for c in theirs.constraints] == pytest.approx([c.value for c in ours.constraints], abs=1e-6)


@pytest.mark.parametrize("name", [*TABLES, *TIED])
def test_on_the_true_table_the_framework_finds_the_exact_answer(external, name):
    """The loop of Alg. 1 with their solver on the true P against the occupancy linear program."""
    table = make(name).table
    problem, S, A = table.problem(), table.num_states, table.num_actions
    solver, u = by_name(external), table.utilities()

    def solve_rewards(sigmas):
        return [
            optimal_policy(external, solver.optimal_actions, table.P, (u @ s).reshape(S, A), table.gamma)
            for s in sigmas
        ]

    oracle = Oracle(solve_rewards, lambda p: problem.start.weights @ state_values(table, p)[problem.start.states])
    outcome = run(oracle, ColumnGeneration(problem.thresholds, 1e-10))
    exact = solve_exactly(table)
    values = problem.values_of(outcome.values)
    assert values[0] == pytest.approx(exact.value, abs=1e-6)
    assert values[1:] == pytest.approx(exact.constraint_values, abs=1e-6)
    assert mixture_values(table, outcome.mixture) == pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize("algorithm", ["mpi", "pi", "vi"])
def test_each_of_their_algorithms_finds_the_optimum(algorithm):
    pytest.importorskip("mdpsolver", reason="the extra mdpsolver is not installed")
    table = make("garnet").table
    reward = (table.utilities() @ [0.3, 0.7]).reshape(table.num_states, -1)
    found = optimal_policy("mdpsolver", MDPSolver(algorithm).optimal_actions, table.P, reward, table.gamma)
    assert np.array_equal(found.table, best_policy(table, np.array([0.3, 0.7]))[0].table)


def test_no_discount_and_a_single_action(external):
    instance = make("garnet", gamma=0.0)
    table = instance.table
    reward = table.utilities()[:, 0].reshape(table.num_states, -1)
    greedy = optimal_policy(external, by_name(external).optimal_actions, table.P, reward, 0.0)
    assert np.array_equal(greedy.table, reward.argmax(axis=1))
    alone = table.P[:: table.num_actions]
    assert not optimal_policy(external, by_name(external).optimal_actions, alone, reward[:, :1], 0.9).table.any()


def test_an_answer_that_is_not_optimal_is_refused():
    table = make("garnet").table
    reward = table.utilities()[:, 0].reshape(table.num_states, -1)
    with pytest.raises(NumericalError, match=r"the policy that sloth returned may be .* below the optimum"):
        optimal_policy("sloth", lambda P, r, g: r.argmin(axis=1), table.P, reward, table.gamma)
    with pytest.raises(NumericalError, match="one of 4 actions was due in each of 50 states"):
        optimal_policy("sloth", lambda P, r, g: np.full(50, 4), table.P, reward, table.gamma)


def test_ties_go_to_the_lowest_index_whatever_the_package_says():
    table = make("garnet").table
    S, A = table.num_states, table.num_actions
    same = table.P[np.repeat(np.arange(0, S * A, A), A)]  # every action as the first
    found = optimal_policy("x", lambda P, r, g: np.full(S, A - 1), same, np.full((S, A), 0.5), table.gamma)
    assert not found.table.any()


@pytest.mark.parametrize(
    ("module", "name", "extra"),
    [
        ("quantecon.markov", "quantecon", "quantecon"),
        ("mdpsolver", "mdpsolver", "mdpsolver"),
        ("stable_baselines3", "stable-baselines3", "neural"),
    ],
)
def test_a_missing_package_names_its_extra(monkeypatch, module, name, extra):
    monkeypatch.setitem(sys.modules, module, None)
    instance = make("queue")
    with pytest.raises(InputError, match=rf'must be installed for this solver.*pip install "saddleback\[{extra}\]"'):
        solve(instance.problem, instance.simulator, samples=5000, solver=name)


@pytest.mark.parametrize(
    ("make_it", "rule"),
    [
        (lambda: QuantEcon(max_sweeps=0), "max_sweeps"),
        (lambda: MDPSolver("lp"), "algorithm"),
        (lambda: MDPSolver(tolerance=0), "tolerance"),
        (lambda: StableBaselines(steps=10), "steps"),
        (lambda: Rollouts(tail=1.0), "tail"),
    ],
)
def test_settings_are_checked(make_it, rule):
    with pytest.raises(InputError, match=rule):
        make_it()


# ---- rollouts as the evaluator -----------------------------------------------------------------------------------------


def played(policy, limit, seed=0, tail=1e-3):
    table = testing.small_table(True)
    model, problem = table.simulator(), table.problem()
    sampler = Sampler(model, seed, Stream.MEASUREMENT, limit=limit)
    seen = Rollouts(tail).evaluate_interactively(problem, sampler, [policy])
    assert limit - problem.horizon * 40 < model.num_queries == sampler.num_queries <= limit
    truth = problem.start.weights @ state_values(table, policy)[problem.start.states]
    return problem, seen, truth


def test_rollouts_measure_the_truth():
    """Limits at 1 − 1e-7 (two signals): a false alarm has probability 2e-7; another policy's must fail."""
    assert isinstance(Rollouts(), InteractiveEvaluator)
    policy = TabularPolicy.stochastic(np.random.default_rng(1).dirichlet(np.ones(3), 5))
    problem, seen, truth = played(policy, 400_000)
    assert isinstance(seen, Evaluator)
    values, limits = seen.evaluate(problem, None, policy), seen.interval(problem, None, policy, 1 - 1e-7)
    print(f"seed 0: {values} in {limits}, the truth {truth}")
    assert np.all((limits.low <= truth) & (truth <= limits.high))
    assert np.all((limits.low <= values) & (values <= limits.high))
    assert np.all(limits.high - limits.low < 0.05 * problem.horizon)
    less = seen.interval(problem, None, policy, 0.9)
    assert np.all(less.high - less.low < limits.high - limits.low)
    other = TabularPolicy.deterministic(np.zeros(5), 3)
    wrong = Measured({other.key(): seen.played[policy.key()]})
    off = wrong.interval(problem, None, other, 1 - 1e-7)
    actual = problem.start.weights @ state_values(testing.small_table(True), other)[problem.start.states]
    assert np.any((actual < off.low) | (actual > off.high)), "another policy's rollouts must not do"


def test_what_is_cut_off_is_made_good():
    """Four steps where H = 3.3: the cut sum is far too low, the interval holds the truth all the same."""
    policy = TabularPolicy.deterministic(np.zeros(5), 3)
    problem, seen, truth = played(policy, 200_000, tail=0.3)
    (sums,) = seen.played.values()
    assert np.all(sums.mean + 10 * sums.error < truth)
    assert np.all(np.abs(seen.evaluate(problem, None, policy) - truth) < 0.1 * problem.horizon)
    limits = seen.interval(problem, None, policy, 1 - 1e-7)
    assert np.all((limits.low <= truth) & (truth <= limits.high))


def test_rollouts_of_observed_signals_and_points():
    """One step right costs 1 and pays the place, both seen by the simulator alone: closed forms in γ."""

    def step(states, actions, rng):
        reached = np.clip(states + np.where(actions == 1, 0.1, -0.1)[:, None], 0.0, 1.0)
        return reached, np.column_stack([states[:, 0], actions.astype(float)])

    problem = CMDP(
        gamma=0.5,
        start=Start(np.array([[0.0]]), np.array([1.0])),
        num_actions=2,
        states=BoxStates(0.0, 1.0),
        reward=None,
        reward_range=(0.0, 1.0),
        constraints=[Constraint("fuel", None, "<=", 1.0, range=(0.0, 1.0))],
    )
    layers = ((np.array([[0.0], [0.0]]), np.array([0.0, 1.0])),)  # always right
    sampler = Sampler(GenerativeModel(step, problem.states, 2), 0, limit=10_000)
    seen = Rollouts(1e-6).evaluate_interactively(problem, sampler, [NetworkPolicy(problem.states, layers)])
    (sums,) = seen.played.values()
    assert sums.mean == pytest.approx([sum(0.5**t * min(0.1 * t, 1.0) for t in range(20)), 0.0], abs=1e-5)


@pytest.mark.slow
def test_rollouts_in_a_solve_are_counted_and_repeatable():
    found = []
    for _ in range(2):
        instance = make("queue")
        found.append(solve(instance.problem, instance.simulator, samples=300_000, evaluator="rollouts"))
        assert found[-1].samples == instance.simulator.num_queries <= 300_000
        assert found[-1].settings["evaluator"] == "rollouts"
        assert found[-1].settings["solver"] == "plug-in"
    assert found[0].value == found[1].value
    exact = solve_exactly(make("queue").table)
    truth = mixture_values(make("queue").table, found[0].mixture)
    report = found[0].constraints[0]
    assert report.low <= truth[1] <= report.high
    assert abs(found[0].value - exact.value) < 0.1 * exact.value
    with pytest.raises(InputError, match="interactive oracles"):
        solve(make("queue").problem, reuse=found[0])


def test_rollouts_say_what_they_cannot_do():
    instance = make("queue")
    few = solve(instance.problem, instance.simulator, samples=1500, evaluator="rollouts")
    assert few.status is Status.BUDGET_EXHAUSTED
    assert "rollouts of 135 steps" in few.message
    assert few.samples == instance.simulator.num_queries
    with pytest.raises(InputError, match="must not play while samples grow"):
        solve(instance.problem, instance.simulator, epsilon=1.0, max_samples=50_000, evaluator="rollouts")


# ---- a network ---------------------------------------------------------------------------------------------------------

QUICK = {"gradient_steps": 1, "batch_size": 256, "learning_rate": 3e-3}


def needs_torch():
    pytest.importorskip("stable_baselines3", reason="the extra neural is not installed (PyTorch is large)")


def test_a_network_is_plain_arrays():
    rng = np.random.default_rng(0)
    layers = tuple((rng.standard_normal((o, i)), rng.standard_normal(o)) for i, o in [(2, 8), (8, 8), (8, 3)])
    space = BoxStates(np.array([-1.0, 0.0]), np.array([3.0, np.inf]))
    policy = NetworkPolicy(space, layers)
    states = np.column_stack([rng.uniform(-1, 3, 20), rng.uniform(0, 9, 20)])
    assert np.allclose(scaled(space, states), np.column_stack([(states[:, 0] - 1) / 2, states[:, 1]]))
    for i in range(20):
        x = scaled(space, states)[i]
        for W, b in layers[:-1]:
            x = np.maximum(W @ x + b, 0)
        assert policy.actions(states)[i] == np.argmax(layers[-1][0] @ x + layers[-1][1])
    assert np.array_equal(policy.probabilities(states).argmax(axis=1), policy.act(states, rng))
    assert policy.key() == NetworkPolicy(space, layers).key() != NetworkPolicy(space, layers[::-1]).key()
    small = NetworkPolicy(FiniteStates(4), ((rng.standard_normal((8, 4)), np.zeros(8)), layers[2]))
    one_hot = np.maximum(np.eye(4) @ small.layers[0][0].T, 0) @ layers[2][0].T + layers[2][1]
    assert np.allclose(small.scores(np.arange(4)), one_hot)
    assert np.array_equal(small.table(4).table, one_hot.argmax(axis=1))


def test_networks_on_rollouts_solve_the_queue():
    """Five networks of 4,000 steps; seed 0. Random play has reward 6.0 at 15.8 customers, where 30 are allowed."""
    needs_torch()
    instance = make("queue")
    solver = StableBaselines(options=QUICK)
    assert isinstance(solver, InteractiveSolver)
    found = solve(
        instance.problem,
        instance.simulator,
        samples=80_000,
        resolution=4,
        solver=solver,
        evaluator="rollouts",
        feasibility="strict",
    )
    assert found.status is Status.SOLVED, found.message
    assert found.samples == instance.simulator.num_queries <= 80_000
    (report,) = found.constraints
    assert report.high <= report.threshold
    truth = mixture_values(instance.table, found.mixture)
    random = TabularPolicy.stochastic(np.full((instance.table.num_states, 2), 0.5))
    print(f"reward {truth[0]:.3f}, optimum {solve_exactly(instance.table).value:.3f}, number in system {truth[1]:.2f}")
    assert truth[0] > 1.3 * policy_values(instance.table, random)[0]
    assert truth[1] <= report.threshold


def trained(seed):
    instance = make("queue")
    sampler = Sampler(instance.simulator, seed, limit=2000)
    np.random.seed(3)  # noqa: NPY002
    (policy,) = StableBaselines(options=QUICK).solve_interactively(
        instance.problem, None, sampler, np.array([[0.8, 0.2]])
    )
    assert sampler.num_queries == instance.simulator.num_queries == 2000
    return policy, np.random.random()  # noqa: NPY002


def test_networks_are_repeatable_and_leave_no_trace():
    needs_torch()
    np.random.seed(3)  # noqa: NPY002
    untouched = np.random.random()  # noqa: NPY002
    (one, after), (two, _) = trained(0), trained(0)
    assert one.key() == two.key()
    assert after == untouched, "the caller's global generators must be as they were"


def test_networks_keep_to_the_budget():
    needs_torch()
    instance = make("queue")
    sampler = Sampler(instance.simulator, 0, limit=1000)
    with pytest.raises(BudgetError, match="2 networks need 1600 simulator calls"):
        StableBaselines().solve_interactively(instance.problem, None, sampler, np.eye(2))
    assert instance.simulator.num_queries == 0


def test_networks_learn_on_continuous_states():
    """A drift that only the right action stops, reward near the middle: the trained policy beats both constant ones."""
    needs_torch()

    def step(states, actions, rng):
        move = np.where(actions == 1, 0.1, -0.1)[:, None]
        return np.clip(states + move + 0.02 * rng.standard_normal(states.shape), -1.0, 1.0)

    problem = CMDP(
        gamma=0.9,
        start=Start(np.array([[-0.5], [0.5]]), np.array([0.5, 0.5])),
        num_actions=2,
        states=BoxStates(-1.0, 1.0),
        reward=lambda s, a: 1.0 - np.abs(s[:, 0]),
        reward_range=(0.0, 1.0),
        constraints=[Constraint("right", lambda s, a: (a == 1).astype(float), ">=", 0.0, range=(0.0, 1.0))],
    )
    model = GenerativeModel(step, problem.states)
    sampler = Sampler(model, 0, limit=4000)
    (policy,) = StableBaselines(options=QUICK).solve_interactively(problem, None, sampler, np.array([[1.0, 0.0]]))
    assert isinstance(policy, NetworkPolicy)
    ends = [NetworkPolicy(problem.states, ((np.zeros((2, 1)), np.eye(2)[a]),)) for a in (0, 1)]
    sampler = Sampler(model, 0, Stream.MEASUREMENT, limit=60_000)
    seen = Rollouts().evaluate_interactively(problem, sampler, [policy, *ends])
    mine, *constant = (seen.interval(problem, None, p, 1 - 1e-7) for p in [policy, *ends])
    assert mine.low[0] > max(c.high[0] for c in constant)


@pytest.mark.study
@pytest.mark.parametrize("name", ["queue", "wireless"])
def test_networks_come_close_to_the_optimum(name):
    """Eleven networks of 20,000 steps, longer training: within a tenth of the exact answer."""
    needs_torch()
    instance = make(name)
    found = solve(
        instance.problem,
        instance.simulator,
        samples=900_000,
        resolution=10,
        solver=StableBaselines(),
        evaluator="rollouts",
    )
    truth, exact = mixture_values(instance.table, found.mixture), solve_exactly(instance.table)
    print(
        f"{name}: reward {truth[0]:.4g} of {exact.value:.4g}, constraint {truth[1]:.4g} for {exact.constraint_values}"
    )
    assert truth[0] >= 0.9 * exact.value
    assert truth[1] <= 1.1 * instance.problem.user_thresholds()[0]


@pytest.mark.study
def test_networks_on_continuous_states_are_certified():
    """Five networks on the linear-quadratic problem, whose optimum is known; 40,000 calls train, 80,000 play."""
    needs_torch()
    instance = make("linear-quadratic")
    found = solve(
        instance.problem,
        instance.simulator,
        samples=160_000,
        certificate=100_000,
        resolution=4,
        solver=StableBaselines(options=QUICK),
        evaluator="rollouts",
    )
    assert found.samples == instance.simulator.num_queries <= 260_000
    assert all(isinstance(member, NetworkPolicy) for member in found.mixture.members)
    low, high = found.certificate.value
    print(f"reward {found.value:.4f}, proved {low:.4f} to {high:.4f}, optimum {instance.known['value']:.4f}")
    assert low <= found.value <= high
    assert low <= instance.known["value"] <= low + 0.1
