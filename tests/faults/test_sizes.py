"""Sizes that a file or an option asks for are compared with what there is before anything is allocated: one message, code 2."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from saddleback import CMDP, Constraint, InputError, zoo
from saddleback.cli import main
from saddleback.instances.problem_file import load_problem
from saddleback.problem.names import LONGEST_NAME, ProductStates
from saddleback.problem.spaces import FiniteStates
from saddleback.simulators.drn import read_drn

PROBLEM = """\
name = "{name}"
gamma = 0.9
states = {states}
actions = {actions}
start = {start}
{more}
[simulator]
function = "shop:step"
[reward]
values = "shop:pay"
range = [0, 1]
[[constraints]]
name = "{constraint}"
values = "shop:pay"
range = [0, 1]
limit = ">= 1"
units = "discounted"
{features}
"""
USUAL = {"name": "shop", "states": "4", "actions": "2", "start": "0", "more": "", "constraint": "c", "features": ""}
CODE = """\
def step(state, action, rng):
    return state
def pay(state, action):
    return 0.5
def somewhere(number, rng):
    raise AssertionError("nobody may ask for so many")
"""
CODE += "def phi(state, action):\n    return [1.0, 2.0]\n"
HUGE = {"2^63": str(2**63), "10^30": "1" + 30 * "0", "10^400": "1" + 400 * "0", "10^5000": "1" + 5000 * "0"}
ROOM = 60_000_000  # bytes above what `zoo` takes

CHILD = """\
import re, sys
from pathlib import Path
from saddleback.cli import main
try:
    main(sys.argv[1:])
finally:
    print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def problem(folder: Path, **changes: str) -> Path:
    (folder / "shop.py").write_text(CODE)
    (folder / "problem.toml").write_text(PROBLEM.format(**(USUAL | changes)))
    return folder / "problem.toml"


def peak_of(*arguments: str) -> tuple[int, str, int]:
    """Exit code, standard error, and the peak memory of a command in bytes."""
    command = [sys.executable, "-c", CHILD, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr, 1024 * int(done.stdout.split()[-1])


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one message of a command that ends with code 2."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.out == "" and said.err.count("error: ") == 1 and "Traceback" not in said.err
    assert len(said.err) < 1500
    return said.err


@pytest.mark.parametrize("key", ["states", "actions"])
@pytest.mark.parametrize("number", HUGE)
def test_whole_numbers_beyond_int64(key: str, number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = problem(tmp_path, **{key: HUGE[number]})
    for verb in (["solve"], ["plan", "--epsilon", "1"], ["check"], ["sample", "--out", str(tmp_path / "samples")]):
        refused(capsys, verb[0], str(path), *verb[1:])
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == ["problem.toml", "shop.py"]


@pytest.mark.parametrize("number", [2**63, 10**30, 1e30, 10**400])
def test_python_says_the_same(number: float) -> None:
    with pytest.raises(InputError, match="states"):
        FiniteStates(number)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="states"):
        ProductStates((number, 2))
    limit = Constraint("c", lambda s, a: 0.5, ">=", 1.0, (0, 1))
    with pytest.raises(InputError, match=r"`actions` must be at most 2\^62"):
        CMDP(
            gamma=0.9, start=0, num_actions=int(number), states=3, reward=None, reward_range=(0, 1), constraints=[limit]
        )


VERBS = {
    "solve": ["solve", "--samples", "2000"],
    "epsilon": ["solve", "--epsilon", "1"],
    "sample": ["sample", "--out", "samples"],
    "plan": ["plan", "--epsilon", "1"],
    "frontier": ["frontier"],
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["solve", *(pytest.param(v, marks=pytest.mark.check) for v in list(VERBS)[1:])])
def test_twenty_million_states_are_refused_before_they_are_listed(verb: str, tmp_path: Path) -> None:
    name, *options = VERBS[verb]
    path = problem(tmp_path, states="20_000_000")
    os.environ["SADDLEBACK_MEMORY"] = "8GB"
    try:
        code, said, peak = peak_of(name, str(path), *(str(tmp_path / o) if o == "samples" else o for o in options))
    finally:
        del os.environ["SADDLEBACK_MEMORY"]
    least = peak_of("zoo")[2]
    assert code == 2 and "pairs" in said
    assert peak < least + ROOM, "a list of the pairs alone is 640 MB"


def test_a_problem_that_fits_is_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SADDLEBACK_MEMORY", "200MB")
    assert zoo.make("garnet", states=200).problem.num_states == 200
    with pytest.raises(InputError, match="must hold the table"):
        zoo.make("garnet", states=2000, successors=1000)


BOX = {"states": "{low = [0, 0], high = [1, 1]}", "start": "[0, 0]", "features": '[features]\nname = "polynomial"'}
MORE = """
[[constraints]]
name = "c{}"
values = "shop:pay"
range = [0, 1]
limit = ">= 1"
units = "discounted"
"""
ASKED = {
    "a pool": BOX | {"more": "pool = 10_000_000"},
    "a pool with many actions": BOX | {"actions": "100_000_000"},
    "a sampled pool": BOX | {"more": 'pool = {sampler = "shop:somewhere", number = 1_000_000_000_000_000_000}'},
    "sampled starts": BOX | {"start": '{sampler = "shop:somewhere", number = 1_000_000_000_000}'},
    "coordinates": BOX | {"states": f"{{low = {[0] * 20_000}, high = {[1] * 20_000}}}", "start": f"{[0] * 20_000}"},
    "features": BOX | {"features": '[features]\nname = "radial-basis"\ngrid = 1_000_000_000_000'},
    "features of a function": BOX | {"features": f'[features]\nfunction = "shop:phi"\ndim = {10**30}'},
    "constraints": {"features": "".join(MORE.format(i) for i in range(1000))},
    "a start": {"start": str(2**63 - 1)},
    "starts": {"start": f"[0, {10**300}]"},
    "a name": {"name": 1_000_000 * "x"},
    "a constraint's name": {"constraint": 1_000_000 * "x"},
    "an action's name": {"actions": f'["{1_000_000 * "x"}", "b"]'},
    "a key of many parts": {"more": ".".join(["a"] * 3000) + " = 1"},
    "a quoted key of many parts": {"more": " . ".join(['"a"', "'b'", "c-d"] * 1000) + " = 1"},
    "a header of many parts": {"more": "[" + ".".join(["a"] * 3000) + "]"},
    "a key of many parts inside": {"more": "x = {" + ".".join(["a"] * 3000) + " = 1}"},
    "lists in lists": {"more": f"x = {120 * '['}1{120 * ']'}"},
    "many lists in lists": {"more": f"x = {5000 * '['}1{5000 * ']'}"},
    "tables in tables": {"more": f"x = {150 * '{a = '}1{150 * '}'}"},
    "an unknown key": {"more": 100_000 * "x" + " = 1"},
    "a file of five million bytes": {"more": "# " + 5_000_000 * "x"},
}


@pytest.mark.parametrize("what", ASKED)
def test_files_that_ask_for_much(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "solve", str(problem(tmp_path, **ASKED[what])), "--samples", "2000")


def test_names_of_bearable_length_are_names(tmp_path: Path) -> None:
    good = problem(tmp_path, name=LONGEST_NAME * "é", constraint="énergie [x] </b>")
    assert load_problem(good).problem.name == LONGEST_NAME * "é"
    with pytest.raises(InputError, match="1 to 200 printable characters"):
        load_problem(problem(tmp_path, name=(1 + LONGEST_NAME) * "é"))


DRN = "@type: MDP\n@reward_models\ngain wear {names}\n@nr_states\n{states}\n@model\n"
SMALL_FILES = {
    "choices of one state": ("", 4000, 8000),
    "reward models": (" ".join(f"m{i}" for i in range(998)), 8000, 1),
}


@pytest.mark.parametrize("what", SMALL_FILES)
def test_a_small_drn_file_takes_little_room(what: str, tmp_path: Path) -> None:
    """A fifth of a megabyte: refused, or read in less than a hundred; a table of all choices in all states takes 3.4 GB."""
    names, S, A = SMALL_FILES[what]
    rest = "".join(f"state {s}{' init' * (s == 0)}\n" + "action 0\n0 : 1\n" * (A if s == 0 else 1) for s in range(S))
    path = tmp_path / "m.drn"
    path.write_text(DRN.format(names=names, states=S) + rest)
    assert path.stat().st_size < 250_000
    before = _peak()
    limits = [Constraint("wear", None, "<=", 1.0, (0, 1))]
    with pytest.raises(InputError, match="500 times its size") if A > 1 else nullcontext():
        read_drn(path, limits, gamma=0.9, reward="gain", reward_range=(0, 1))
    assert _peak() < before + 100_000_000


def _peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


BAD = {
    "solve": {
        "--epsilon": ["inf", "-inf", "nan", "0", "-1", "1e-400"],
        "--delta": ["inf", "nan", "0", "1", "-1", "1e300", "1e-20", "1e-100"],
        "--error": ["inf", "nan", "-1"],
        "--samples": ["0", "-1", str(2**63), str(10**30)],
        "--certificate-samples": ["0", "-1", str(10**30)],
        "--max-samples": ["0", "-1", str(2**63)],
        "--seed": ["-1"],
        "--iterations": ["0", "-1", str(10**30)],
        "--buffers": ["0", "3", str(10**30)],
        "--batch-size": ["0", "-1", str(10**30)],
        "--resolution": ["-2", str(10**30)],
        "--workers": ["0", "-1", str(10**30)],
        "--timeout": ["inf", "nan", "0", "-1", "1e300"],
    },
    "plan": {
        "--epsilon": ["inf", "nan", "0", "-1", "1e300"],
        "--delta": ["nan", "0", "1e-20"],
        "--samples": ["1", str(10**30)],
    },
    "frontier": {
        "--delta": ["inf", "nan", "0", "1", "1e-20"],
        "--points": ["1", str(10**30)],
        "--samples": ["0", "-1", str(10**30)],
        "--certificate-samples": ["-1", str(2**63), str(10**30)],
        "--seed": ["-1"],
    },
    "check": {"--calls": ["0", "-1", str(2**63), str(10**30)], "--seed": ["-1"]},
    "sample": {"--rounds": ["0", "-1", str(2**63)], "--seed": ["-1"]},
}


@pytest.mark.parametrize("verb", BAD)
def test_numbers_that_no_option_takes(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option, values in BAD[verb].items():
        for value in values:
            needed = {"plan": {"--epsilon": "1"}, "sample": {"--out": str(tmp_path / "s")}}.get(verb, {})
            if option == "--max-samples":
                needed = {"--epsilon": "1"}
            elif verb in ("solve", "frontier") and option != "--epsilon":
                needed = {"--samples": "2000"}
            words = [word for pair in (needed | {option: value}).items() for word in pair]
            refused(capsys, verb, "river-swim", *words)
    assert not list(tmp_path.iterdir())
