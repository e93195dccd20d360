"""Problem files: what they say becomes the problem, and what they should not say is refused with file, line and remedy."""

from __future__ import annotations

import dataclasses
import random
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback import InputError, zoo
from saddleback.designs.design import full_design
from saddleback.files.json_file import sha256_of
from saddleback.instances.problem_file import load_problem
from saddleback.instances.problem_file.sections import line_of, read_toml
from saddleback.problem.spaces import BoxStates
from saddleback.runs.problem_place import Remembered, named_again
from saddleback.runs.run_folder import load_run, save_run
from saddleback.runs.targets import load_run_target, load_target, origin_of
from saddleback.sampling.collect import collect
from saddleback.sampling.executors import make as make_executor
from saddleback.simulators.generative_model import generator
from spelled_out import solve

QUEUE = """\
# admission to a queue
name = "gate"
gamma = 0.9
states = 4
actions = ["shut", "open"]
start = [0, 2]

[simulator]
function = "queue:step"   # the name of a module of Python's own

[reward]
values = [[0, 1], [0, 1], [0, 1], [0, 0]]

[[constraints]]
name = "length"
values = [0, 1, 2, 3]
limit = "<= 1.5"
units = "per-step"

[[constraints]]
name = "idle"
values = "queue:idle"
range = [0, 1]
limit = ">= 1e-1"
units = "discounted"
"""
CODE = """\
def step(length, gate, rng):
    return min(max(length + gate * (rng.random() < 0.6) - (rng.random() < 0.5), 0), 3)


def idle(length, gate):
    return length == 0
"""
CART = """\
gamma = 0.9
states = {low = [-1, -2], high = [1, 2]}
actions = 3
start = {sampler = "cart:somewhere", number = 7}
pool = 50

[simulator]
function = "cart:move"
kind = "batch"

[reward]
values = "cart:near"
range = [0, 1]

[[constraints]]
name = "push"
values = "observed"
range = [0, 1]
limit = "<= 0.5"
units = "per-step"

[features]
name = "radial-basis"
grid = 4
"""
CART_CODE = """\
import numpy as np

def move(x, a, rng):
    v = np.clip(x[:, 1] + 0.2 * (a - 1) + 0.1 * rng.standard_normal(len(x)), -2, 2)
    return np.column_stack([np.clip(x[:, 0] + 0.1 * v, -1, 1), v]), np.abs(a - 1.0)

def near(x, a):
    return 1 - np.abs(x[:, 0])

def somewhere(n, rng):
    return rng.uniform([-1, -2], [1, 2], (n, 2))
"""


def project(folder: Path, text: str, code: str, module: str) -> Path:
    (folder / f"{module}.py").write_text(code)
    (folder / "problem.toml").write_text(text)
    return folder / "problem.toml"


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    return project(tmp_path, QUEUE, CODE, "queue")


def refused(path: Path, old: str, new: str) -> str:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_problem(path)
    path.write_text(text)
    return str(caught.value).replace(str(path), "FILE")


def test_what_a_file_says_becomes_the_problem(queue: Path) -> None:
    instance = load_problem(queue)
    problem = instance.problem
    assert (problem.name, problem.gamma, problem.num_states, problem.num_actions) == ("gate", 0.9, 4, 2)
    np.testing.assert_array_equal(problem.start.states, [0, 2])
    np.testing.assert_array_equal(problem.start.weights, [0.5, 0.5])
    np.testing.assert_allclose(problem.user_thresholds(), [15.0, 0.1])
    assert [c.sense for c in problem.constraints] == ["<=", ">="]
    states, actions = problem.pairs()
    user = problem.utilities(states, actions) * problem.scale + problem.base
    np.testing.assert_allclose(user[:, 0], np.array([[0, 1], [0, 1], [0, 1], [0, 0]]).ravel())
    np.testing.assert_allclose(user[:, 1], states)
    np.testing.assert_allclose(user[:, 2], states == 0)
    draws = instance.simulator.sample(states, actions, generator(1, 0, 0, 0))
    assert draws.signals is None and set(draws.next_states.tolist()) <= {0, 1, 2, 3}
    assert instance.table is None, "a file's problem has no truth"
    solution = solve(problem, instance.simulator, samples=4_000, seed=0)
    assert solution.mixture is not None


def test_a_kind_for_the_whole_file(tmp_path: Path) -> None:
    whole = CART.replace('kind = "batch"\n', "").replace("gamma = 0.9\n", 'gamma = 0.9\nkind = "batch"\n')
    problems = []
    for name, text in (("own", CART), ("whole", whole)):
        (tmp_path / name).mkdir()
        problems.append(load_problem(project(tmp_path / name, text, CART_CODE, "cart")))
    states, actions = problems[0].problem.pairs()
    for instance in problems:
        drawn = instance.simulator.sample(states[:9], actions[:9], generator(1, 2, 3, 4))
        np.testing.assert_array_equal(instance.problem.utilities(states, actions)[:, 0], 1 - np.abs(states[:, 0]))
        assert drawn.next_states.shape == (9, 2)
    refusal = refused(tmp_path / "whole" / "problem.toml", 'kind = "batch"', 'kind = "many"')
    assert "FILE:2: kind` must be one of step, batch" in refusal


def test_pythons_own_module_of_that_name_is_left_alone(queue: Path) -> None:
    import queue as own

    load_problem(queue)
    assert sys.modules["queue"] is own and hasattr(own, "SimpleQueue")


def test_a_box_with_sampled_start_and_features_by_name(tmp_path: Path) -> None:
    path = project(tmp_path, CART, CART_CODE, "cart")
    first, again = load_problem(path).problem, load_problem(path).problem
    assert isinstance(first.states, BoxStates) and first.states.dim == 2
    assert first.candidates is not None and len(first.candidates[0]) == 150
    np.testing.assert_array_equal(first.start.states, again.start.states)
    np.testing.assert_array_equal(first.candidates[0], again.candidates[0])
    assert first.start.states.shape == (7, 2)
    assert first.features is not None and first.features.num_actions == 3
    np.testing.assert_array_equal(first.observed, [False, True])
    model = load_problem(path).simulator
    draw = model.sample(first.start.states, np.arange(7) % 3, generator(0, 0, 0, 0))
    assert draw.signals is not None
    np.testing.assert_array_equal(draw.signals, np.column_stack([np.zeros(7), np.abs(np.arange(7) % 3 - 1.0)]))
    for old, new, says in [
        ("pool = 50\n", "pool = 0\n", "FILE:5: pool` must be a number of states"),
        ("high = [1, 2]", "high = [1, inf]", "pool` must have a sampler where the box is not bounded"),
        ('name = "radial-basis"', 'name = "radial"', "FILE:23: features.name` must be one of"),
        ("grid = 4", "gird = 4", "FILE:24: features.gird` must be a setting of radial-basis"),
        ("grid = 4", "grid = -4", "FILE:24: features.grid`"),
        ('"cart:somewhere"', '"cart:near"', "FILE:4: start.sampler` must give states, got"),
        ("low = [-1, -2]", "low = [-1, 3]", "FILE:2: states` must have low < high"),
        ("[features]", "[other]", "FILE:22: other` must be a known key"),
    ]:
        assert says in refused(path, old, new), (old, new)
    stacked = CART.replace("[features]", "[[features]]") + '[[features]]\nname = "polynomial"\ndegree = 1\n'
    path.write_text(stacked)
    both = load_problem(path).problem.features
    assert both is not None and both.dim > first.features.dim


FAULTS = [
    ("gamma = 0.9", 'gamma = "0.9"', "FILE:3: gamma` must be a number, got '0.9'; write gamma = 0.95"),
    ("gamma = 0.9", "gamma = nan", "FILE:3: gamma` must be a number"),
    ("gamma = 0.9\n", "", "FILE:1: gamma` must be given, got nothing"),
    ("gamma = 0.9", "gamma = 0.9.1", "FILE:3` must be TOML"),
    ("states = 4", "states = true", "FILE:4: states` must be how many there are, or a box"),
    ('["shut", "open"]', '["shut", "shut"]', "FILE:5: actions` must have distinct names"),
    ("start = [0, 2]", "start = [0.5]", "FILE:6: start` must be whole numbers"),
    ("start = [0, 2]", "start = [0, 4]", "FILE:6: start` must lie in the state space, got 4"),
    (
        "start = [0, 2]",
        "[start]\nstates = [0, 1]\nweights = [0.5, 0.6]",
        "FILE:8: start.weights` must be 2 numbers, none negative, that sum to 1",
    ),
    ("[reward]", "[rewards]", "FILE:11: rewards` must be a known key, got an unknown one; did you mean reward?"),
    ("[0, 1], [0, 1], [0, 1]", "[0, 1], [0, 1]", "FILE:12: reward.values` must be a number a state, or 2 a state"),
    ("[0, 1], [0, 1], [0, 1]", "[0, 1], [0, 1], [0]", "FILE:12: reward.values` must have rows of one length"),
    ("[0, 1, 2, 3]", '[0, 1, 2, "3"]', "FILE:16: constraints[0].values` must hold numbers only"),
    ('"<= 1.5"', '"< 1.5"', "FILE:17: constraints[0].limit` must be <= or >= and a number, got '< 1.5'; write limit"),
    ('units = "discounted"', 'units = "total"', "FILE:25: constraints[1].units` must be one of per-step, discounted"),
    ('units = "per-step"', 'units = "per_step"', "got 'per_step'; did you mean per-step?"),
    ("range = [0, 1]\n", "", "FILE:20: constraints[1].range` must be given for functions and what is observed"),
    ("range = [0, 1]", "range = [1, 0]", "FILE:23: constraints[1].range` must be [low, high] with low < high"),
    ('name = "idle"', 'name = "length"', "FILE:21: constraints[1].name` must differ from the names of the constraints"),
    ('name = "idle"\n', "", "FILE:20: constraints[1].name` must be given"),
    ('"queue:idle"', '"queue.idle"', "FILE:22: constraints[1].values` must look like module:callable"),
    ('"queue:idle"', '"nowhere:idle"', "must name code that can be imported, got ModuleNotFoundError"),
    ("function =", 'kind = "bach"\nfunction =', "FILE:9: simulator.kind` must be one of step, batch"),
    ("function =", "func =", "FILE:9: simulator.func` must be a known key, got an unknown one; did you mean function?"),
    ("[simulator]", "[simulator]\nzoo = 3", "FILE:10: simulator.function` must be a known key"),
    ("states = 4", "states = 4\npool = 3", "FILE:5: pool` must be left out for finite states"),
]


@pytest.mark.parametrize(("old", "new", "says"), FAULTS, ids=[new[:30] or old[:30] for old, new, _ in FAULTS])
def test_faults_are_named_with_file_line_and_remedy(old: str, new: str, says: str, queue: Path) -> None:
    message = refused(queue, old, new)
    assert says in message
    assert re.search(r"`FILE:\d+", message) and "; " in message


def test_lines_are_found_through_anything_toml_allows(tmp_path: Path) -> None:
    text = textwrap.dedent('''\
        a = """
        gamma = 1   # not this one ] }
        """  # "
        b = [   # [[
          {x = 1, y = "]"},
          {x = '{'},
        ]
        "quoted key" = 1
        [t.u]
        k.l = 2
        [[v]]
        [[v]]
        w = 3
          [v.z]
          q = 4

        [last]
        gamma = 0.5''')
    (tmp_path / "x.toml").write_text(text)
    assert read_toml(tmp_path / "x.toml").text == text
    places: dict[Any, int] = {
        ("a",): 1,
        ("b",): 4,
        ("b", 1, "x"): 4,
        ("quoted key",): 8,
        ("t", "u", "k", "l"): 10,
        ("v", 0): 11,
        ("v", 1, "w"): 13,
        ("v", 1, "z", "q"): 15,
        ("last", "gamma"): 18,
        ("last", "not there"): 17,
        ("nowhere",): 1,
    }
    assert {place: line_of(text, place) for place in places} == places


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a = 1\nb = \xff\n", "x.toml:2` must be UTF-8, got byte 0xff"),
        (b"a = 1\nb = \n", "x.toml:2` must be TOML"),
        (b"a = " + b"[" * 5000, "must be TOML"),
        (b"a" * ((1 << 22) + 1), "must have at most"),
        (None, "must be an existing file"),
    ],
)
def test_what_is_no_toml(data: bytes | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_problem(path)
    assert says in str(caught.value)


def test_a_zoo_problem_with_changes(tmp_path: Path) -> None:
    path = tmp_path / "busy.toml"
    path.write_text(
        'gamma = 0.9\nstart = 3\n[simulator]\nzoo = "queue"\nsettings = {capacity = 6}\n'
        '[[constraints]]\nname = "number-in-system"\nlimit = "<= 2"\nunits = "per-step"\n'
    )
    instance, plain = load_problem(path), zoo.make("queue", capacity=6)
    problem = instance.problem
    assert (problem.name, problem.gamma, problem.num_states) == ("busy", 0.9, 7)
    np.testing.assert_allclose(problem.user_thresholds(), [20.0])
    np.testing.assert_array_equal(problem.start.states, [3])
    assert instance.known == {}, "the zoo's truth is not that of the changed problem"
    table = instance.table
    assert table is not None and plain.table is not None, "which is that of the table with the same changes"
    assert (table.gamma, table.names, table.thresholds.tolist()) == (0.9, ("number-in-system",), [pytest.approx(20.0)])
    np.testing.assert_array_equal(table.rho, np.eye(7)[3])
    np.testing.assert_array_equal(table.P.toarray(), plain.table.P.toarray())
    np.testing.assert_array_equal(table.reward, plain.table.reward)
    np.testing.assert_array_equal(table.constraints, plain.table.constraints)
    s, a = plain.problem.pairs()
    one = instance.simulator.sample(s, a, generator(1, 2, 3, 4)).next_states
    np.testing.assert_array_equal(one, plain.simulator.sample(s, a, generator(1, 2, 3, 4)).next_states)
    assert "FILE:5: simulator.settings.size` must be a parameter of queue" in refused(path, "capacity", "size")
    assert "FILE:4: simulator.zoo` must be one of" in refused(path, '"queue"', '"quay"')
    assert "did you mean queue?" in refused(path, '"queue"', '"queu"')
    assert "FILE:7: constraints[0].name` must be one of number-in-system" in refused(path, "number-in", "number-of-in")
    assert "FILE:2: states` must be left out" in refused(path, "start = 3", "states = 3")


@pytest.mark.slow
def test_samples_do_not_depend_on_who_draws_them(queue: Path) -> None:
    """Workers load the user's module by themselves."""
    instance = load_problem(queue)
    design = full_design(*instance.problem.pairs())
    found = []
    for executor in (None, make_executor("joblib", 2)):
        samples = collect(instance.simulator, instance.problem, design, 50, seed=3, stream=0, executor=executor)
        found.append(np.concatenate(samples.next_states).tolist())
        if executor is not None:
            executor.close()
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_module_may_import_its_neighbours_but_hides_nothing(tmp_path: Path) -> None:
    """In a process of its own: the folder stays on the path, behind all that is installed."""
    (tmp_path / "chances.py").write_text("COMES = 0.6\n")
    (tmp_path / "json.py").write_text("raise SystemExit('hidden')\n")
    project(tmp_path, QUEUE, CODE.replace("def step", "from chances import COMES\n\n\ndef step", 1), "queue")
    code = "from saddleback.instances.problem_file import load_problem; load_problem('problem.toml'); import json; json.dumps(1)"
    subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, check=True, timeout=60)


def test_gymnasium_by_name(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    path = tmp_path / "car.toml"
    path.write_text(
        'gamma = 0.99\nstart = [-0.5, 0.0, 0.0]\npool = 100\n[simulator]\ngymnasium = "MountainCar-v0"\n'
        '[reward]\nvalues = "observed"\nrange = [-1, 0]\n'
        '[[constraints]]\nname = "push"\nvalues = "push:push"\nrange = [0, 1]\nlimit = "<= 0.6"\nunits = "per-step"\n'
        '[features]\nname = "tiles"\n'
    )
    (tmp_path / "push.py").write_text("def push(states, actions):\n    return 1.0 * (actions != 1)\n")
    instance = load_problem(path)
    problem = instance.problem
    assert problem.num_actions == 3 and problem.candidates is not None
    assert set(problem.candidates[0][:, 2].tolist()) == {0.0, 1.0}
    draw = instance.simulator.sample(problem.start.states, np.array([2]), generator(0, 0, 0, 0))
    assert draw.signals is not None and draw.signals[0].tolist() == [-1.0, 0.0]
    assert "FILE:5: simulator.gymnasium`" in refused(path, "MountainCar-v0", "NoSuchThing-v0")
    assert "FILE:2: states` must be left out" in refused(path, "start = [-0.5, 0.0, 0.0]", "states = 3")


VALUES = [
    "\n1 ",
    " -1 ",
    " 0 ",
    " 1.5 ",
    " true ",
    ' "x" ',
    ' "<= 5" ',
    " [] ",
    " [1] ",
    " [[1]] ",
    " {} ",
    " {a=1} ",
    " inf ",
    " nan ",
    ' "" ',
    ' "shop:step" ',
    " [0,1] ",
    ' ["a"] ',
    "\n1979-05-27 ",
    " [[0,1],[1]] ",
    " {low=[0],high=[1]} ",
    " {low=0,high=1} ",
    " 1e400 ",
    " 99999999999999999999 ",
    ' "observed" ',
    ' "a:b" ',
    '\n{sampler="cart:near"} ',
    ' {zoo="queue"} ',
    " [{}] ",
    ' [{name="a"}] ',
    ' "batch"\n',
]


def mutant(text: str, rng: random.Random) -> str:
    """The file with a few values, lines or characters changed."""
    lines = text.splitlines()
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        i, kind = rng.randrange(len(lines)), rng.random()
        if kind < 0.6 and "=" in lines[i]:
            lines[i] = f"{lines[i].partition('=')[0]}= {rng.choice(VALUES).strip()}"
        elif kind < 0.75 and len(lines) > 1:
            del lines[i]
        elif kind < 0.85:
            lines.insert(i, rng.choice(lines))
        else:
            at = rng.randrange(len(lines[i]) + 1)
            lines[i] = (
                lines[i][:at] + chr(rng.choice([0, 9, 34, 39, 91, 93, 61, 46, 35, 123, 125, 200])) + lines[i][at + 1 :]
            )
    return "\n".join(lines)


def check_mutants(folder: Path, number: int) -> None:
    """Each is a problem, or is refused with its line; nothing else ever comes out."""
    rng = random.Random(0)
    for text, code, module in ((QUEUE, CODE, "queue"), (CART, CART_CODE, "cart")):
        (folder / f"{module}.py").write_text(code)
        path, loaded = folder / f"{module}.toml", 0
        for _ in range(number):
            path.write_text(mutant(text, rng))
            message = f"{path}:"
            try:
                load_problem(path)
                loaded += 1
            except InputError as error:
                message = str(error)
            assert f"{path}:" in message
        print(f"{module}: {number} mutants with seed 0, {loaded} of them problems")
        assert 0 < loaded < number


def test_mutants_are_refused_or_understood(tmp_path: Path) -> None:
    check_mutants(tmp_path, 150)


@pytest.mark.study
def test_many_mutants_are_refused_or_understood(tmp_path: Path) -> None:
    check_mutants(tmp_path, 20_000)


# ---- stored runs ---------------------------------------------------------------------------------------------------------


def test_a_stored_run_finds_its_file_or_has_it_named(queue: Path, tmp_path: Path) -> None:
    instance = load_target(str(queue))
    origin = origin_of(str(queue), [], instance)
    solution = solve(instance.problem, instance.simulator, samples=4_000, certificate=4_000, seed=0)
    save_run(tmp_path / "run", solution, origin, {}, 0)
    stored = load_run(tmp_path / "run")
    assert load_run_target(stored).problem.name == "gate"
    with pytest.raises(InputError, match="--problem` must be given"):
        load_run_target(dataclasses.replace(stored, file=None))
    assert load_run_target(stored, queue).problem.name == "gate"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = project(elsewhere, QUEUE, CODE, "queue")
    assert load_run_target(stored, moved).problem.name == "gate", "the same file, wherever it is now"
    moved.write_text(QUEUE.replace("1.5", "1.6"))
    with pytest.raises(InputError, match="must be unchanged since the run was made"):
        load_run_target(stored, moved)
    other = queue.with_name("other.toml")
    other.write_text(QUEUE)
    with pytest.raises(InputError, match=r"must be the problem file that the run was made from"):
        load_run_target(stored, other)
    named = dataclasses.replace(stored, target="queue", settings=[])
    with pytest.raises(InputError, match="must be left out"):
        load_run_target(named, queue)


def test_a_run_runs_nothing_but_what_it_was_made_with(queue: Path, tmp_path: Path) -> None:
    """Not a file that has the name that the run says, nor one where it says it is, unless it is the same."""
    trap = tmp_path / "sprung"
    queue.with_name("queue.py").write_text(f"open({str(trap)!r}, 'w').close()\n{CODE}")
    digest = sha256_of(queue)
    for known in (None, Remembered(str(queue), "0" * 64), Remembered(None, digest), Remembered(str(queue), None)):
        with pytest.raises(InputError, match=r"--problem` must be given|must be unchanged"):
            named_again(str(queue), None, known)
    with pytest.raises(InputError, match=r"queue\.py has changed"):
        named_again(str(queue), None, Remembered(str(queue), digest, {"queue.py": "0" * 16}))
    assert not trap.exists()
    load_target(named_again(str(queue), None, Remembered(str(queue), digest)))
    assert trap.exists(), "the trap works"
