"""``act``: a stored policy applied, the same member and actions for the same episode seed, and no simulator call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import Call, read, reseal, rewrite
from saddleback import zoo
from saddleback.features import FeatureFunction
from saddleback.files.npz import write_arrays
from saddleback.instances.instance import Instance
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.episodes import Episode
from saddleback.problem.policies import GreedyPolicy, MixturePolicy, SoftmaxPolicy, TabularPolicy
from saddleback.problem.policy_file import load_mixture, save_policy
from saddleback.problem.spaces import BoxStates
from saddleback.runs.stored_policy import load_policy
from saddleback.simulators.generative_model import GenerativeModel
from sampling import streamed_runs


def answer(run: Call, *arguments: Any) -> Any:
    code, out, err = run("act", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.slow
def test_the_same_episode_has_the_same_member_and_actions(run: Call, stored_runs: Path) -> None:
    mixture = load_mixture(stored_runs / "named" / "policy.npz")
    assert len(mixture.members) > 1
    members = []
    for seed in range(12):
        one = answer(run, stored_runs / "named", "--state", 2, "--episode-seed", seed)
        assert one == answer(run, stored_runs / "named", "--state", 2, "--episode-seed", seed)
        k = one["member"]
        assert one["weight"] == mixture.weights[k] and one["members"] == len(mixture.members)
        (row,) = one["actions"]
        np.testing.assert_array_equal(row["probabilities"], mixture.members[k].probabilities(np.array([2]))[0])
        assert row["probabilities"][row["action"]] > 0
        members.append(k)
    assert members == [Episode.of(mixture, seed).member for seed in range(12)]


def test_members_are_numbered_as_reports_number_them(run: Call, stored_runs: Path) -> None:
    """From the most played to the least; in JSON and exports from 0, as they are stored."""
    mixture = load_mixture(stored_runs / "named" / "policy.npz")
    order = np.argsort(-mixture.weights, kind="stable").tolist()
    for seed in range(6):
        member = answer(run, stored_runs / "named", "--state", 2, "--episode-seed", seed)["member"]
        _, out, _ = run("act", stored_runs / "named", "--state", 2, "--episode-seed", seed)
        assert f"member {1 + order.index(member)} of {len(order)}" in out


def test_members_are_drawn_by_their_weights() -> None:
    """Seeds 0 … 3999 against Binomial(4000, 0.3): beyond 5 standard deviations in under 1e-6 of cases."""
    members = (TabularPolicy.deterministic(np.array([0]), 2), TabularPolicy.deterministic(np.array([1]), 2))
    mixture = MixturePolicy(members, np.array([0.3, 0.7]))
    drawn = np.array([Episode.of(mixture, seed).member for seed in range(4000)])
    five = 5 * np.sqrt(4000 * 0.3 * 0.7)
    assert abs(np.sum(drawn == 0) - 1200) < five
    assert abs(np.sum(drawn == 0) - 4000 * 0.4) > five  # another weight is told apart


def test_random_actions_belong_to_their_step() -> None:
    mixture = MixturePolicy((TabularPolicy.stochastic(np.full((1, 2), 0.5)),), np.array([1.0]))
    here, there = Episode.of(mixture, 5), Episode.of(mixture, 5)
    forward = [int(here.act(np.array([0]), t)[0]) for t in range(60)]
    backward = [int(there.act(np.array([0]), t)[0]) for t in reversed(range(60))]
    assert forward == backward[::-1]  # an episode may be taken up at any step
    assert 10 < sum(forward) < 50
    assert forward != [int(Episode.of(mixture, 6).act(np.array([0]), t)[0]) for t in range(60)]


@pytest.mark.slow
def test_states_of_consecutive_steps(run: Call, stored_runs: Path) -> None:
    whole = answer(run, stored_runs / "named", "--state", 0, "--state", 3, "--episode-seed", 1)
    later = answer(run, stored_runs / "named", "--state", 3, "--step", 1, "--episode-seed", 1)
    assert [row["step"] for row in whole["actions"]] == [0, 1]
    assert later["actions"] == whole["actions"][1:]


@pytest.mark.slow
def test_without_a_seed_the_one_drawn_is_told(run: Call, stored_runs: Path) -> None:
    one = answer(run, stored_runs / "named", "--state", 1)
    again = answer(run, stored_runs / "named", "--state", 1, "--episode-seed", one["episode_seed"])
    assert one == again


def test_states_by_name_and_words(run: Call, stored_runs: Path) -> None:
    by_name = answer(run, stored_runs / "named", "--state", "3 in system", "--episode-seed", 1)
    assert by_name == answer(run, stored_runs / "named", "--state", 3, "--episode-seed", 1)
    code, out, _ = run("act", stored_runs / "named", "--state", "3 in system", "--episode-seed", 1)
    assert code == 0
    for said in ("episode 1: member", "drawn with probability", "step 0, state 3 in system: action", "probabilities"):
        assert said in out


def test_a_policy_file_suffices(run: Call, stored_runs: Path) -> None:
    folder = answer(run, stored_runs / "table", "--state", 1, "--episode-seed", 4)
    file = answer(run, stored_runs / "table" / "policy.npz", "--state", 1, "--episode-seed", 4)
    assert {**folder, "run": ""} == {**file, "run": ""}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--state", "11"], ["--state", "0 to 10", "got 11"]),
        (["--state", "-1"], ["--state", "0 to 10"]),
        (["--state", "nowhere"], ["--state", "'0 in system'", "'nowhere'"]),
        (["--state", "1.5"], ["--state", "whole number"]),
        (["--state", "1,2"], ["--state", "whole number"]),
        (["--state", "1", "--step", "-1"], ["--step"]),
        (["--state", "1", "--episode-seed", "-1"], ["--episode-seed"]),
        ([], ["--state"]),
    ],
)
def test_what_is_no_state_is_refused(run: Call, stored_runs: Path, more: list[str], words: list[str]) -> None:
    code, out, err = run("act", stored_runs / "named", *more)
    assert (code, out) == (2, "")
    for word in words:
        assert word in " ".join(err.split())


def test_a_run_without_a_policy_is_refused(run: Call, stored_runs: Path) -> None:
    code, _, err = run("act", stored_runs / "infeasible", "--state", "0")
    assert code == 2 and "must hold a policy" in err


@pytest.mark.parametrize("name", zoo.BY_NAME)
def test_every_zoo_problem(run: Call, tmp_path: Path, name: str) -> None:
    """Any policy of the right shape will do: what is tested is the way from the folder to the action."""
    problem = zoo.make(name).problem
    start = problem.start.states[0]
    text = ",".join(map(str, np.atleast_1d(start).tolist()))
    if problem.num_states is None:
        assert problem.features is not None
        mixture: Any = MixturePolicy((GreedyPolicy(problem.features, np.ones(problem.features.dim)),), np.ones(1))
    else:
        actions = np.arange(problem.num_states) % problem.num_actions
        mixture = MixturePolicy((TabularPolicy.deterministic(actions, problem.num_actions),), np.ones(1))
    folder = bare_run(tmp_path, name, mixture, problem)
    found = answer(run, folder, "--state", text, "--episode-seed", 0)
    assert found["actions"][0]["action"] == int(
        mixture.members[0].act(np.asarray(start)[None], np.random.default_rng())[0]
    )


def test_more_actions_than_could_be_listed(run: Call, tmp_path: Path) -> None:
    """2^36 actions, of which the features know the best."""
    problem = zoo.make("hard-instance", dim=40).problem
    assert problem.features is not None and problem.num_actions > 10**9
    mixture = MixturePolicy((GreedyPolicy(problem.features, np.ones(40)),), np.ones(1))
    folder = bare_run(tmp_path, "hard-instance", mixture, problem)
    manifest = read(folder / "run.json")
    manifest["target"]["settings"] = ["dim=40"]
    reseal(folder / "run.json", manifest)
    (row,) = answer(run, folder, "--state", 0)["actions"]
    assert row["probabilities"] is None
    assert row["action"] == int(problem.features.argmax(np.array([0]), np.ones(40))[0])
    assert run("act", folder, "--state", 4)[0] == 2
    assert f"action {row['action']}" in run("act", folder, "--state", 0)[1]


# ---- linear policies, whose features are the problem's ------------------------------------------------------------------


def bare_run(folder: Path, name: str, mixture: MixturePolicy, problem: CMDP) -> Path:
    """A run folder with an answer and a policy, and no proof."""
    run = folder / "run"
    run.mkdir()
    manifest = {
        "format": "saddleback-run/1",
        "status": "solved",
        "target": {"name": name, "settings": []},
        "request": {},
        "seed": 0,
        "versions": {},
        "files": {},
    }
    (run / "run.json").write_text(json.dumps(manifest))
    answer = {"status": "solved", "message": "", "value": 0.0, "samples": 0, "settings": {}}
    rewrite(run, "solution.json", answer | {k: [] for k in ("multipliers", "constraints", "policy", "remarks")})
    save_policy(mixture, problem, run / "policy.npz")
    rewrite(run, "policy.npz", (run / "policy.npz").read_bytes())
    return run


def phi(states: Any, actions: Any) -> Any:
    rows = np.zeros((len(states), 6))
    for j in range(2):
        rows[np.arange(len(states)), 3 * actions + j] = states[:, j]
    rows[np.arange(len(states)), 3 * actions + 2] = 1.0
    return rows


def box(scale: float = 1.0) -> Instance:
    """Two coordinates, two actions; ``scale`` changes the features behind a policy's back."""
    signal = lambda states, actions: np.zeros(len(states))  # noqa: E731
    problem = CMDP(
        gamma=0.9,
        start=Start(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0.5, 0.5])),
        num_actions=2,
        states=BoxStates(np.array([0.0, -1.0]), np.array([1.0, 1.0])),
        reward=signal,
        constraints=[Constraint("cost", signal, "<=", 1.0, (0.0, 1.0))],
        features=FeatureFunction(lambda s, a: scale * phi(s, a), 6, 2),
        reward_range=(0.0, 1.0),
        name="box",
    )
    return Instance("box", problem, GenerativeModel(no_call, problem.states), None, "a box", {})


def no_call(states: Any, actions: Any, rng: Any) -> Any:
    raise AssertionError("the simulator was called")


THETA = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.25])  # action 0 where x > y + 1/4


@pytest.fixture
def box_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(zoo.BY_NAME, "box", box)
    problem = box().problem
    assert problem.features is not None
    members = (GreedyPolicy(problem.features, THETA), SoftmaxPolicy(problem.features, THETA, 2.0))
    return bare_run(tmp_path, "box", MixturePolicy(members, np.array([0.5, 0.5])), problem)


def test_a_linear_policy_over_a_box(run: Call, box_run: Path) -> None:
    seen = set()
    for seed in range(20):
        found = answer(run, box_run, "--state", "0.9,-0.5", "--state", "0.25,0", "--episode-seed", seed)
        first, second = found["actions"]
        seen.add(found["member"])
        if found["member"] == 0:
            assert (first["action"], second["action"]) == (0, 0)  # the second is a tie: the lowest action
            assert first["probabilities"] == [1.0, 0.0] and first["state"] == [0.9, -0.5]
        else:
            assert first["probabilities"][0] == pytest.approx(1 / (1 + np.exp(2 * (-0.25 - 0.9))))
            assert second["probabilities"] == pytest.approx([0.5, 0.5])
    assert seen == {0, 1}


@pytest.mark.parametrize(
    ("state", "words"),
    [("0.5", "2 numbers"), ("a,b", "2 numbers"), ("0.5,7", "must lie between"), ("nan,0", "must lie between")],
)
def test_points_outside_the_box_are_refused(run: Call, box_run: Path, state: str, words: str) -> None:
    code, _, err = run("act", box_run, "--state", state)
    assert code == 2 and words in " ".join(err.split())


def test_features_that_have_changed_are_noticed(run: Call, box_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(zoo.BY_NAME, "box", lambda: box(1.5))
    code, _, err = run("act", box_run, "--state", "0.5,0.5")
    assert code == 2 and "`features` must give member 0 the value 0.75" in " ".join(err.split())


def test_a_linear_file_alone_needs_the_features(run: Call, box_run: Path) -> None:
    code, _, err = run("act", box_run / "policy.npz", "--state", "0.5,0.5")
    assert code == 2 and "run folder" in err
    loaded = load_policy(box_run)
    with pytest.raises(Exception, match="`features` must be given to a linear policy in 6 dimensions"):
        loaded.predict(np.array([0.5, 0.5]), rng=np.random.default_rng(0))
    for source in (box_run, box_run / "policy.npz"):
        whole = load_policy(source, features=box().problem.features)
        np.testing.assert_array_equal(whole.members[0].probabilities(np.array([[0.9, 0.0]])), [[1.0, 0.0]])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"theta": np.ones((3, 6))}, "must have a row for each of the 2 weights"),
        ({"beta": np.array([0.0, -1.0])}, "must not be negative"),
        ({"beta": None}, "must go with theta"),
        ({"probabilities": np.ones((2, 1, 1))}, "must hold one of"),
        ({"num_actions": np.int64(0)}, "must be at least 1"),
        ({"maxima": np.ones((2, 3))}, "a column of maxima"),
    ],
)
def test_damaged_linear_files_are_refused(box_run: Path, changes: dict[str, Any], words: str) -> None:
    with np.load(box_run / "policy.npz", allow_pickle=False) as file:
        arrays = {**file, **changes}
    write_arrays(box_run / "policy.npz", {k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(Exception, match=words):
        load_mixture(box_run / "policy.npz")


def test_save_and_load(tmp_path: Path, stored_runs: Path) -> None:
    run = load_policy(stored_runs / "named")
    save_policy(run, zoo.make("queue").problem, tmp_path / "p.npz")
    back = load_policy(tmp_path / "p.npz")
    assert [m.key() for m in back.members] == [m.key() for m in run.members]
    action, state = back.predict(3, rng=np.random.default_rng(0))
    assert action.shape == () and state is not None
    assert read(stored_runs / "named" / "run.json")["target"]["name"] == "queue"


def square() -> Instance:
    problem, simulator, _ = streamed_runs.square()
    return Instance("square", problem, simulator, None, "a square of states", {})


@pytest.mark.check
def test_from_solve_to_act_over_continuous_states(run: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run over a square of states: kept, applied without a simulator call, proved again, and the same from Python."""
    monkeypatch.setitem(zoo.BY_NAME, "square", square)
    code, _, err = run("solve", "square", "--samples", 40_000, "--seed", 2, "--out", tmp_path / "run")
    assert code in (0, 4), err
    mixture = load_policy(tmp_path / "run", features=square().problem.features)
    counted = square()
    monkeypatch.setitem(zoo.BY_NAME, "square", lambda: counted)
    for seed in range(4):
        found = answer(run, tmp_path / "run", "--state", "0.3,0.7", "--episode-seed", seed)
        episode = Episode.of(mixture, seed)
        assert (found["member"], found["actions"][0]["state"]) == (episode.member, [0.3, 0.7])
        assert found["actions"][0]["action"] == episode.act(np.array([[0.3, 0.7]]))[0]
    assert counted.simulator.num_queries == 0
    assert run("certify", tmp_path / "run", "--recheck")[0] == 0
    assert run("certify", tmp_path / "run", "--seed", 9, "--samples", 20_000)[0] in (0, 4)
    assert counted.simulator.num_queries > 0
