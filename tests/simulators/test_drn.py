"""DRN files: read, written, read again; uneven choices; and files that are wrong in every way we could think of."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError, SaddlebackError, StorageError
from saddleback.instances.zoo import make
from saddleback.problem.cmdp import Constraint
from saddleback.simulators import Table, drn, read_drn, write_drn
from simulators.one_problem import known

SMALL = """\
// a door that may stay open
@type: MDP
@parameters

@reward_models
gain wear
@nr_states
3
@nr_choices
5
@model
state 0 [0.5, 0] init
//[door=0]
	action push [1, 2]
		0 : 0.25
		1 : 3/4
	action wait [0, 0]
		0 : 1
state 1 [0, 1] open "wide open"
	action __NOLABEL__ [-1e-3, 0]
		2 : 1
state 2
	action 0
		2 : .5
		0 : 5E-1
	action 1 [7, 0]
		1 : 1
"""
WEAR = [Constraint("wear", None, "<=", 3.0)]


def read(text: str | bytes, folder: Path, **options: Any) -> Table:
    path = folder / "model.drn"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_drn(path, WEAR, **{"gamma": 0.9, "reward": "gain", **options})


def test_a_small_file(tmp_path: Path) -> None:
    table = read(SMALL, tmp_path)
    assert (table.num_states, table.num_actions, table.name) == (3, 2, "model")
    assert table.P.toarray().tolist() == [[0.25, 0.75, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1], [0.5, 0, 0.5], [0, 1, 0]]
    assert table.reward.tolist() == [[1.5, 0.5], [-0.001, -0.001], [0, 7]]
    assert table.constraints.tolist() == [[[2, 0], [1, 1], [0, 0]]]
    assert table.rho.tolist() == [1, 0, 0]
    assert table.state_names == ["0", "open wide open", "2"]
    assert (table.senses, table.thresholds.tolist()) == (("<=",), [3.0])


def test_a_header_as_storm_writes_it(tmp_path: Path) -> None:
    """A type of values, a blank after the last name, no number of choices, Windows' ends of lines."""
    text = put("@parameters", "@value_type: rational\n@parameters").replace("gain wear", "gain wear ")
    text = text.replace("@nr_choices\n5\n", "").replace("\n", "\r\n")
    one, other = read(text, tmp_path), read(SMALL, tmp_path)
    assert (one.P != other.P).nnz == 0 and one.reward.tolist() == other.reward.tolist()


def test_missing_choices_stand_for_the_first(tmp_path: Path) -> None:
    """State 1 has one choice: its second action is the same again, in law and in signals."""
    table = read(SMALL, tmp_path)
    np.testing.assert_array_equal(table.P[[2]].toarray(), table.P[[3]].toarray())
    assert table.reward[1, 0] == table.reward[1, 1]


def test_a_cost_of_one_s_own_follows_the_stand_in(tmp_path: Path) -> None:
    """The second action of state 1 does not exist: it must not be had for less than what it stands for."""
    path = tmp_path / "m.drn"
    path.write_text(SMALL)
    cost = np.array([[5.0, 1.0], [5.0, 1.0], [5.0, 1.0]])
    table = read_drn(path, [Constraint("c", cost, "<=", 3.0)], gamma=0.9, reward="gain")
    assert table.constraints[0].tolist() == [[5, 1], [5, 5], [5, 1]]


def test_rewards_that_are_not_written_down_take_no_room(tmp_path: Path) -> None:
    """A thousand reward models, of which no line says anything."""
    names = " ".join(f"m{i}" for i in range(998))
    rest = "".join(f"state {s}{' init' * (s == 0)}\naction 0\n{s} : 1\n" for s in range(300))
    (tmp_path / "m.drn").write_text(f"@type: MDP\n@reward_models\ngain wear {names}\n@nr_states\n300\n@model\n{rest}")
    tracemalloc.start()
    limits = [Constraint("wear", None, "<=", 1.0, (0, 1))]
    table = read_drn(tmp_path / "m.drn", limits, gamma=0.9, reward="gain", reward_range=(0, 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert not table.reward.any() and not table.constraints.any()
    assert peak < 2e6, "600 lines x 1,000 rewards x 8 bytes would be 4.8 MB"


def test_any_reward_model_may_be_the_reward(tmp_path: Path) -> None:
    path = tmp_path / "m.drn"
    path.write_text(SMALL)
    limits = [Constraint("gain", None, ">=", 0.1), Constraint("early", lambda s, a: 1.0 * (s == 0), "<=", 5.0)]
    table = read_drn(path, limits, gamma=0.9, reward="wear", rho=[0.5, 0.5, 0.0])
    assert table.reward.tolist() == [[2, 0], [1, 1], [0, 0]]
    assert table.constraints[1].tolist() == [[1, 1], [0, 0], [0, 0]] and table.rho.tolist() == [0.5, 0.5, 0]
    with pytest.raises(InputError, match=r"reward model 'profit', got gain, wear"):
        read_drn(path, limits, gamma=0.9, reward="profit")
    with pytest.raises(InputError, match=r"reward model 'cost'"):
        read_drn(path, [Constraint("cost", None, "<=", 1.0)], gamma=0.9, reward="gain")


@pytest.mark.parametrize("name", ["queue", "gridworld", "garnet", "wireless"])
def test_a_table_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    table = make(name).table
    assert table is not None
    path = tmp_path / "table.drn"
    write_drn(table, path)
    limits = [Constraint(c.name, None, c.sense, c.threshold) for c in known(table)]
    again = read_drn(path, limits, gamma=table.gamma)
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(again.P, part), getattr(table.P, part))
    for part in ("reward", "constraints", "rho", "thresholds"):
        np.testing.assert_array_equal(getattr(again, part), getattr(table, part))
    assert again.state_names == (None if table.state_names is None else list(table.state_names))
    first = path.read_bytes()
    write_drn(again, path)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["table.drn"]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_random_tables_come_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Rewards of any size, tiny probabilities, a start of any shape."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    P = rng.dirichlet(np.full(S, 0.05), (S, A))
    signals = rng.normal(size=(2, S, A)) * 10.0 ** rng.integers(-200, 200, (2, S, A))
    table = Table.of(P, signals[0], signals[1:], [0.0], gamma=0.5, rho=rng.dirichlet(np.ones(S)), names=["c"])
    path = tmp_path_factory.mktemp("drn") / "t.drn"
    write_drn(table, path)
    again = read_drn(path, [Constraint("c", None, ">=", 0.0)], gamma=0.5)
    assert (again.P != table.P).nnz == 0
    for part in ("reward", "constraints", "rho"):
        np.testing.assert_array_equal(getattr(again, part), getattr(table, part))


def test_few_digits_are_divided_by_their_sum_on_request_only(tmp_path: Path) -> None:
    """Three times 0.333333: a file of six digits."""
    text = SMALL.replace("\t\t0 : 0.25\n\t\t1 : 3/4\n", "\t\t0 : 0.333333\n\t\t1 : 0.333333\n\t\t2 : 0.333333\n")
    with pytest.raises(InputError, match=r"line 14.*sum to 1, got 0.999999; mend them, or read it with normalise=True"):
        read(text, tmp_path)
    table = read(text, tmp_path, normalise=True)
    assert table.P[[0]].toarray().tolist() == [[1 / 3] * 3]
    with pytest.raises(InputError, match=r"line 14.*got 0.9; mend them\."):
        read(text.replace("1 : 0.333333", "1 : 0.233334"), tmp_path, normalise=True)


def put(old: str, new: str, count: int = 1) -> str:
    assert old in SMALL
    return SMALL.replace(old, new, count)


FAULTS: dict[str, tuple[str | bytes, list[str]]] = {
    "empty": ("", ["line 1", "@model", "end of the file"]),
    "no model": (SMALL[: SMALL.index("@model")], ["line 11", "@model", "cut short"]),
    "cut in a state": (SMALL[: SMALL.index("state 2")], ["line 22", "3 of @nr_states", "got 2"]),
    "cut in a choice": (SMALL[: SMALL.index("\t\t1 : 3/4")], ["line 14", "sum to 1", "0.25"]),
    "another type": (put("MDP", "Markov Automaton"), ["line 2", "@type: MDP", "'Markov Automaton'"]),
    "no type": (put("@type: MDP\n", ""), ["line 10", "@type", "before @model"]),
    "type twice": (put("@type: MDP\n", "@type: MDP\n@type: MDP\n"), ["line 3", "once"]),
    "interval values": (put("@par", "@value_type: double-interval\n@par"), ["line 3", "double-interval"]),
    "parameters": (put("@parameters\n\n", "@parameters\np q\n"), ["line 4", "parameters", "'p'"]),
    "placeholders": (put("@reward_models", "@placeholders\n$0 : 1\n@reward_models"), ["line 5", "@placeholders"]),
    "unknown field": (put("@nr_states", "@players"), ["line 7", "@players"]),
    "rewards twice": (put("gain wear", "gain gain"), ["line 6", "distinct"]),
    "odd reward name": (put("gain wear", "gain,wear"), ["line 6", "commas", "gain,wear"]),
    "no states": (put("@nr_states\n3", "@nr_states\n0"), ["line 8", "above 0"]),
    "negative states": (put("@nr_states\n3", "@nr_states\n-3"), ["line 8", "whole number", "'-3'"]),
    "huge states": (put("@nr_states\n3", "@nr_states\n" + "9" * 18), ["line 28", "999999999999999999"]),
    "absurd states": (put("@nr_states\n3", "@nr_states\n" + "9" * 300), ["line 8", "whole number", "..."]),
    "fewer states": (put("@nr_states\n3", "@nr_states\n2"), ["line 21", "0 to 1", "2"]),
    "more states": (put("@nr_states\n3", "@nr_states\n4"), ["line 28", "4 of @nr_states", "got 3"]),
    "choices": (put("@nr_choices\n5", "@nr_choices\n6"), ["line 28", "6 of @nr_choices", "got 5"]),
    "gap": (put("state 1", "state 2"), ["line 19", "state 1", "'2'"]),
    "same state": (put("state 1", "state 0"), ["line 19", "state 1", "'0'"]),
    "word": (put("state 1", "state one"), ["line 19", "whole number", "'one'"]),
    "no action": (put("\taction __NOLABEL__ [-1e-3, 0]\n\t\t2 : 1\n", ""), ["line 20", "state 1 an action"]),
    "no transitions": (put("\t\t2 : 1\nstate 2", "state 2"), ["line 20", "sum to 1", "0"]),
    "action first": (put("state 0 [0.5, 0] init\n", ""), ["line 13", "begin with a state"]),
    "transition first": (put("\taction push [1, 2]\n", ""), ["line 14", "after an action"]),
    "nameless action": (put("action push [1, 2]", "action [1, 2]"), ["line 14", "name the action"]),
    "few rewards": (put("[1, 2]", "[1]"), ["line 14", "2 rewards", "got 1"]),
    "many rewards": (put("[0.5, 0]", "[0.5, 0, 1]"), ["line 12", "2 rewards", "got 3"]),
    "open bracket": (put("[1, 2]", "[1, 2"), ["line 14", "close the bracket"]),
    "after the rewards": (put("[1, 2]", "[1, 2] 3"), ["line 14", "end after the rewards", "3"]),
    "infinite reward": (put("[1, 2]", "[1, inf]"), ["line 14", "finite", "'inf'"]),
    "NaN reward": (put("[1, 2]", "[nan, 2]"), ["line 14", "finite", "'nan'"]),
    "overflow": (put("[1, 2]", "[1e400, 2]"), ["line 14", "finite", "'1e400'"]),
    "underscore": (put("0 : 0.25", "0 : 0_25"), ["line 15", "finite", "'0_25'"]),
    "long number": (put("0 : 0.25", "0 : 0.25" + "0" * 1000), ["line 15", "finite", "..."]),
    "by zero": (put("3/4", "3/0"), ["line 16", "finite", "'3/0'"]),
    "interval": (put("1 : 3/4", "1 : [0.7, 0.8]"), ["line 16", "finite", "[0.7, 0.8]"]),
    "placeholder": (put("1 : 3/4", "1 : $0"), ["line 16", "finite", "'$0'"]),
    "other digits": (put("0 : 0.25", "0 : ٠.٢٥"), ["line 15", "finite"]),
    "negative chance": (put("0 : 0.25", "0 : -0.25"), ["line 15", "probability", "-0.25"]),
    "large chance": (put("0 : 0.25", "0 : 2"), ["line 15", "probability", "2"]),
    "row sum": (put("0 : 0.25", "0 : 0.2"), ["line 14", "sum to 1", "0.95"]),
    "far target": (put("1 : 3/4", "3 : 3/4"), ["line 16", "0 to 2", "got 3"]),
    "target twice": (put("1 : 3/4", "0 : 3/4"), ["line 16", "once", "state 0 again"]),
    "no colon": (put("1 : 3/4", "1 3/4"), ["line 16", "target : probability"]),
    "bad label": (put('"wide open"', '"wide open'), ["line 19", "labels"]),
    "not labelled": (put(" init", ""), ["`init`", "none"]),
    "weight": (put(" init", " init rho=half"), ["line 12", "finite", "'half'"]),
    "weights": (put(" init", " init rho=0.5"), ["rho", "sum to 1", "0.5"]),
    "long line": (put("// a door", "//" + "x" * 70_000), ["line 1", "65,536"]),
    "bytes": (b"\x1f\x8b\x08\x00garbage", ["line 1", "plain text", "compressed"]),
    "latin": (SMALL.replace("door", "Tür").encode("latin-1"), ["line 1", "plain text"]),
    "escape": (put("door", "\x1b[2J"), ["line 1", "plain text"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_names_file_and_line(fault: str, tmp_path: Path) -> None:
    text, words = FAULTS[fault]
    with pytest.raises(InputError) as caught:
        read(text, tmp_path)
    message = str(caught.value)
    for word in ["model.drn", *words, "; "]:
        assert word in message
    assert len(message) < 400 + len(str(tmp_path)) and message.isprintable()


def test_sizes_are_bounded_before_they_are_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One state with many choices among many with one: every state would get as many."""
    many = "".join(f"\taction {a} [0, 0]\n\t\t0 : 1\n" for a in range(60))
    rest = "".join(f"state {s} [0, 0]\n\taction 0 [0, 0]\n\t\t{s} : 1\n" for s in range(1, 60))
    head = "@type: MDP\n@reward_models\ngain wear\n@nr_states\n60\n@model\nstate 0 [0, 0] init\n"
    assert read(head + many + rest, tmp_path).P.shape == (3600, 60)
    monkeypatch.setattr(drn, "_FREE_BYTES", 0)
    monkeypatch.setattr(drn, "_GROWTH", 100)
    with pytest.raises(InputError, match=r"100 times its size.*3,600 pairs"):
        read(head + many + rest, tmp_path)
    monkeypatch.undo()
    monkeypatch.setenv("SADDLEBACK_MEMORY", "300KB")
    with pytest.raises(InputError, match=r"`memory` must hold a table of 3,600 pairs"):
        read(head + many + rest, tmp_path)
    with pytest.raises(InputError, match=r"at most 100 bytes"):
        read(SMALL, tmp_path, most_bytes=100)


def test_a_long_line_of_labels_takes_no_long_time(tmp_path: Path) -> None:
    """Sixty-five thousand bytes of labels a state: read once, not once a label."""
    labels = " a" * 32_000
    text = SMALL.replace(" init\n", f" init{labels}\n").replace('"wide open"', labels)
    began = time.process_time()
    read(text, tmp_path)
    assert time.process_time() - began < 2


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for path, found in [(tmp_path / "none.drn", "no such file"), (tmp_path, "a directory")]:
        with pytest.raises(InputError, match=found):
            read_drn(path, WEAR, gamma=0.9)
    with pytest.raises(StorageError, match="could not be written"):
        write_drn(make("queue").table, tmp_path / "no" / "such.drn")  # type: ignore[arg-type]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_files_are_refused_or_read_never_worse(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Bytes changed, cut out, doubled: an error of ours, or a table that holds."""
    text = bytearray(SMALL.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        match data.draw(st.sampled_from(["change", "cut", "double"])):
            case "change":
                text[at] = data.draw(st.integers(0, 255))
            case "cut":
                del text[at : at + data.draw(st.integers(1, 40))]
            case _:
                text[at:at] = text[at : at + data.draw(st.integers(1, 40))]
        if not text:
            break
    message, table = "", None
    try:
        table = read(bytes(text), tmp_path_factory.getbasetemp())
    except SaddlebackError as error:
        message = str(error)
    assert message.isprintable()
    if table is not None:
        np.testing.assert_allclose(table.P.sum(axis=1), 1, atol=1e-9)
        assert table.problem().num_actions == table.num_actions


NAMED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "blank": ({"names": ["two words"]}, ["'two words'", "blanks"]),
    "bracket": ({"names": ["a[0]"]}, ["'a[0]'", "brackets"]),
    "the reward's": ({"names": ["reward"]}, ["differ", "reward"]),
    "a quote": ({"state_names": ['a"b', "c"]}, ["state_names[0]", "label"]),
    "init": ({"state_names": ["a", "init"]}, ["state_names[1]", "label"]),
    "weight": ({"state_names": ["a", "rho=1"]}, ["state_names[1]", "label"]),
}


@pytest.mark.parametrize("fault", NAMED)
def test_names_that_the_format_cannot_hold_are_refused(fault: str, tmp_path: Path) -> None:
    more, words = NAMED[fault]
    table = Table.of(
        np.full((2, 1, 2), 0.5), [[0.0], [1.0]], [[[0.0], [1.0]]], [1.0], gamma=0.5, rho=[1.0, 0.0], **more
    )
    with pytest.raises(InputError) as caught:
        write_drn(table, tmp_path / "t.drn")
    for word in words:
        assert word in str(caught.value)
    assert list(tmp_path.iterdir()) == []
