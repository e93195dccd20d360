from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from instances.zoo.zoo_checks import fit, most_slack, optimum
from places import DOCS
from repository.offenders import expect_none
from saddleback.errors import InputError
from saddleback.exact import solve_by_columns
from saddleback.instances.zoo import BY_NAME, CONTINUOUS, Instance, describe, make
from saddleback.problem.cmdp import CMDP

# Of the LP only: many states with a dense P keep HiGHS busy for seconds, or minutes.
SMALL = {"random-linear": {"states": 40}, "ward": {"beds": 3, "waiting": 4, "limit": 0.4}}
PAGE = DOCS / "zoo.md"
TABLES = [name for name in BY_NAME if name not in CONTINUOUS]


def small(name: str) -> Instance:
    return make(name, **SMALL.get(name, {}))


@pytest.mark.parametrize("name", TABLES)
def test_instance_is_whole(name: str) -> None:
    instance = make(name)
    problem, table = instance.problem, instance.table
    assert table is not None
    assert instance.name == problem.name == table.name == name
    assert isinstance(problem, CMDP) and instance.summary
    assert problem.num_states == table.num_states == instance.simulator.states.num
    assert problem.num_actions == table.num_actions
    # transition probabilities of at most a few hundred successors: 1e-13 is hundreds of roundings
    np.testing.assert_allclose(np.asarray(table.P.sum(axis=1)).ravel(), 1.0, rtol=0, atol=1e-13)
    np.testing.assert_allclose(problem.user_thresholds(), table.thresholds, rtol=1e-12)
    states, actions = problem.pairs()
    u = problem.utilities(states, actions)
    assert u.shape == (len(states), 1 + problem.num_constraints) and np.all((u >= 0) & (u <= 1))
    if problem.state_names is not None:
        assert len(set(problem.state_names)) == problem.num_states


@pytest.mark.parametrize("name", TABLES)
def test_the_constraint_binds_and_can_be_met(name: str) -> None:
    instance = small(name)
    table, known = instance.table, instance.known
    assert table is not None
    constraint = table.names[0]
    sign = 1.0 if table.senses[0] == ">=" else -1.0
    b, c = table.thresholds[0], table.constraints[0]
    assert sign * (known[f"unconstrained_{constraint}"] - b) < 0 < sign * (known[f"best_{constraint}"] - b)

    constrained, free = optimum(table), optimum(table, constrained=False)
    assert constrained.multipliers[0] > 1e-3
    assert constrained.value < free.value - 1e-3
    # HiGHS drops coefficients below 1e-9: with a thousand pairs, H = 20 and values below 62 that is less than 1e-5
    assert free.value == pytest.approx(known["unconstrained_value"], rel=1e-5)
    best = sign * optimum(table, sign * c, constrained=False).value
    assert best == pytest.approx(known[f"best_{constraint}"], rel=1e-5, abs=1e-6)
    assert most_slack(table) == pytest.approx(known["zeta"], rel=1e-5)


@pytest.mark.parametrize("name", TABLES)
def test_samples_follow_the_table(name: str) -> None:
    """Pearson's test on 8 pairs of 50,000 samples, each at 1e-7: a false-alarm rate below 1e-6."""
    instance = make(name)
    table = instance.table
    assert table is not None
    rng = np.random.default_rng(np.random.SeedSequence(11))
    rows = rng.choice(table.P.shape[0], size=8, replace=False)
    p_values, crossed = [], []
    for i, row in enumerate(rows):
        s, a = divmod(int(row), table.num_actions)
        drawn = instance.simulator.sample(np.full(50_000, s), np.full(50_000, a), rng).next_states
        counts = np.bincount(drawn, minlength=table.num_states)
        p_values.append(fit(counts, table.P[[row]].toarray()[0]))
        other = table.P[[rows[i - 1]]].toarray()[0]
        if np.abs(other - table.P[[row]].toarray()[0]).sum() > 0.05:
            crossed.append(fit(counts, other))
    assert min(p_values) > 1e-7
    assert crossed and max(crossed) < 1e-7  # the control: another pair's row is told apart
    assert instance.simulator.num_queries == 8 * 50_000


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_instance_is_whole(name: str) -> None:
    """Candidates and start lie in the box, signals within their ranges, and the simulator stays inside from all of them."""
    instance = make(name)
    problem = instance.problem
    assert instance.name == problem.name == name and instance.table is None and instance.summary
    states, actions = problem.pairs()
    assert not np.any(problem.states.outside(states)) and set(actions) == set(range(problem.num_actions))
    u = problem.utilities(states, actions)
    assert np.all((u >= 0) & (u <= 1))
    first, again = (
        instance.simulator.sample(states, actions, np.random.default_rng(np.random.SeedSequence(2))).next_states
        for _ in range(2)
    )
    assert np.array_equal(first, again) and not np.any(problem.states.outside(first))
    assert problem.features is not None
    phi = problem.features.at(states, actions)
    assert np.linalg.matrix_rank(phi) == problem.features.dim
    weights = np.linalg.lstsq(phi, np.ones(len(phi)), rcond=None)[0]
    np.testing.assert_allclose(phi @ weights, 1.0, atol=1e-10)  # 1 lies in the span


def _in_docs(default: object) -> str:
    return "none" if default is None else str(default)


def section(name: str, page: str) -> str:
    """What docs/zoo.md says about one problem."""
    return page.split(f"## {name}\n")[1].split("\n## ")[0]


def undescribed(name: str, text: str) -> list[str]:
    """Parameters of a problem without a sentence, or without a row on its page that gives the default."""
    rows = describe(name)
    wrong = [f"{row.name} has no sentence" for row in rows if not row.doc]
    wrong += ["the parameters are not those of the function"] * (
        [row.name for row in rows] != list(BY_NAME[name].__kwdefaults__) or not rows
    )
    wrong += [
        f"no row `{row.name}` | {_in_docs(row.default)}"
        for row in rows
        if not re.search(rf"`{row.name}` \| {re.escape(_in_docs(row.default))} \|", text)
    ]
    return [f"{name}: {fault}" for fault in wrong]


def unillustrated(name: str, text: str) -> list[str]:
    """What a problem's page lacks of a picture, of at most 60 kB, and a command."""
    picture = DOCS / "zoo" / f"{name}.svg"
    drawn = picture.is_file() and picture.read_text().lstrip().startswith("<?xml")
    wrong = ["the picture is not shown"] * (f"](zoo/{name}.svg)" not in text)
    wrong += ["the picture is no SVG file of less than 60 kB"] * (not drawn or picture.stat().st_size >= 60_000)
    wrong += ["no command"] * (not re.search(rf"^saddleback (solve|exact) {name}\b", text, re.M))
    return [f"{name}: {fault}" for fault in wrong]


def test_parameters_are_described() -> None:
    page = PAGE.read_text()
    expect_none(fault for name in BY_NAME for fault in undescribed(name, section(name, page)))


def test_every_page_has_a_picture_and_a_command() -> None:
    page = PAGE.read_text()
    expect_none(fault for name in BY_NAME for fault in unillustrated(name, section(name, page)))


def test_a_page_that_lacks_something_is_noticed() -> None:
    text = section("queue", PAGE.read_text())
    assert undescribed("queue", text.replace("`arrival` |", "`arrivals` |")) == [
        f"queue: no row `arrival` | {BY_NAME['queue'].__kwdefaults__['arrival']}"
    ]
    assert unillustrated("queue", text.replace("](zoo/", "](zoos/")) == ["queue: the picture is not shown"]
    assert unillustrated("queue", text.replace("saddleback", "saddle")) == ["queue: no command"]
    assert unillustrated("maze", "![a maze](zoo/maze.svg)\nsaddleback solve maze") == [
        "maze: the picture is no SVG file of less than 60 kB"
    ]


@pytest.mark.slow
def test_docs_give_the_optima_of_the_defaults() -> None:
    """The table of answers in docs/zoo.md, to its four decimals."""
    stated = {
        name: (float(value.replace("−", "-")), float(multiplier))
        for name, value, multiplier in re.findall(
            r"^\| `([a-z-]+)` \| .* \| (−?[\d.]+) \| ([\d.]+) \|$", PAGE.read_text(), re.M
        )
    }
    assert list(stated) == [*TABLES, "linear-quadratic"]
    for name, (value, multiplier) in stated.items():
        instance = make(name)
        if instance.table is None:
            answer = instance.known["value"], instance.known["multiplier"]
        else:
            found = solve_by_columns(instance.table) if name in SMALL else optimum(instance.table)
            answer = found.value, found.multipliers[0]
        assert answer == pytest.approx((value, multiplier), abs=6e-5), name


@pytest.mark.slow
def test_a_problem_is_imported_when_it_is_asked_for() -> None:
    code = """if True:
        import sys
        from saddleback.instances import zoo
        def files():
            return sorted(m.rpartition(".")[2] for m in sys.modules if m.startswith("saddleback.instances.zoo."))
        assert "wireless" in zoo.BY_NAME and len(list(zoo.BY_NAME)) >= 19 and files() == ["_building"], files()
        zoo.make("wireless")
        assert files() == ["_building", "wireless"], files()
        assert "scipy.special" not in sys.modules and "gymnasium" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_strings_are_converted() -> None:
    instance = make("wireless", budget="0.2", capacity="4", gamma=np.float64(0.9))
    assert instance.problem.num_states == 15
    assert instance.problem.user_thresholds()[0] == pytest.approx(2.0)
    assert make("hard-instance", threshold=None).problem.user_thresholds()[0] == pytest.approx(4.0)
    assert make("hard-instance", threshold="3.5", dim=np.int64(6)).problem.user_thresholds()[0] == 3.5


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        (
            "maze",
            {},
            ["`problem`", "'maze'", "wireless, gridworld, queue, garnet, random-linear, hard-instance", "pendulum"],
        ),
        ("wireless", {"power": 3}, ["`power`", "must be a parameter of wireless", "capacity=10", "budget=0.12"]),
        ("wireless", {"capacity": "many"}, ["`capacity`", "a whole number", "'many'", "capacity=10"]),
        ("wireless", {"capacity": "4.5"}, ["`capacity`", "a whole number"]),
        ("wireless", {"capacity": 4.0}, ["`capacity`", "a whole number", "4.0"]),
        ("wireless", {"capacity": True}, ["`capacity`", "a whole number", "True"]),
        ("wireless", {"budget": [1]}, ["`budget`", "must be a number", "[1]"]),
        ("wireless", {"budget": "nan"}, ["`budget`", "must be a number", "'nan'"]),
        ("wireless", {"budget": None}, ["`budget`", "must be a number", "None"]),
        ("wireless", {"budget": -1}, ["`budget`", "[0, inf)", "-1", "budget=0.12"]),
        ("wireless", {"gamma": 1.0}, ["`gamma`", "[0, 1)", "1.0"]),
        ("wireless", {"capacity": 10**6}, ["`capacity`", "4 GiB", "fewer packets"]),
        ("wireless", {"distance": 0.5}, ["`distance`", "[1, inf)"]),
        ("gridworld", {"slip": 1.5}, ["`slip`", "[0, 1]", "1.5"]),
        ("gridworld", {"width": 2}, ["`width`", "at least 3"]),
        ("queue", {"arrival": -0.1}, ["`arrival`", "[0, 1]"]),
        ("queue", {"capacity": 0}, ["`capacity`", "at least 1"]),
        ("garnet", {"successors": 60}, ["`successors`", "at most 50", "60"]),
        ("garnet", {"seed": -1}, ["`seed`", "at least 0"]),
        ("garnet", {"constraints": 0}, ["`constraints`", "at least 1"]),
        ("garnet", {"states": 10**9}, ["`states`", "GiB", "fewer"]),
        ("random-linear", {"states": 10**5}, ["`states`", "GiB", "5e+10"]),
        ("random-linear", {"feature_concentration": 0}, ["`feature_concentration`", "(0, 1e+06]"]),
        ("random-linear", {"dim": "0"}, ["`dim`", "at least 1"]),
        ("routing", {"waiting": -1.0}, ["`waiting`", "[0, inf)"]),
        ("inventory", {"limit": 1.5}, ["`limit`", "[0, 1]"]),
        ("inventory", {"capacity": 10**4}, ["`capacity`", "GiB", "fewer items"]),
        ("maintenance", {"grades": 1}, ["`grades`", "at least 2"]),
        ("maintenance", {"floor": 1.1}, ["`floor`", "[0, 1]"]),
        ("streaming", {"price": 0.0}, ["`price`", "(0, inf)"]),
        ("river-swim", {"up": 0.8, "down": 0.5}, ["`down`", "at most 1 - up = 0.2", "0.5"]),
        ("queue-network", {"knots": 17}, ["`knots`", "at most 16"]),
        ("queue-network", {"capacity": 10**5}, ["`capacity`", "at most 10000"]),
        ("warehouse", {"capacity": 3}, ["`capacity`", "at least 4"]),
        ("frozen-lake", {"size": 5}, ["`size`", "4 or 8", "5"]),
        ("taxi", {"rainy": "maybe"}, ["`rainy`", "true or false", "'maybe'"]),
        ("cliff-walking", {"limit": -0.5}, ["`limit`", "[0, inf)"]),
        ("linear-quadratic", {"gain": 1.9}, ["`gain`", "(0, 1.8]"]),
        ("linear-quadratic", {"gain": 1.8}, ["`gain`", "below 1 + drift"]),
        ("linear-quadratic", {"start": 2.0}, ["`start`", "within 1 of zero", "2.0"]),
        ("mountain-car", {"start": 0.5}, ["`start`", "[-1.2, 0.4]"]),
        ("pendulum", {"hold": 0}, ["`hold`", "at least 1"]),
        ("hard-instance", {"dim": 5}, ["`dim`", "at least 6 and at most 66"]),
        ("hard-instance", {"gamma": 0.0}, ["`gamma`", "(0, 1)"]),
        ("hard-instance", {"zeta": 0.0}, ["`zeta`", "(0, 4.5]"]),
        ("hard-instance", {"delta": 0.2}, ["`delta`", "[0, 0.1]", "min(γ, 1−γ)"]),
        ("hard-instance", {"threshold": 0.4}, ["`threshold`", "[0.5, 5.73256]", "min(γH−ζ, ζ+γ/(1−γ²−γΔ))"]),
        ("hard-instance", {"threshold": 6.0}, ["`threshold`", "[0.5, 5.73256]"]),
    ],
)
def test_bad_parameters_are_named(name: str, parameters: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make(name, **parameters)
    for word in words:
        assert word in str(caught.value)
    assert caught.value.exit_code == 2
