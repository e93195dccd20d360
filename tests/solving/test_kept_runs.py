"""Python has what the command line has: runs that are kept, taken up again, and read."""

from pathlib import Path

import numpy as np
import pytest

import saddleback
from saddleback import InputError, Method, Part, UnmetError, resume, zoo
from saddleback.runs.run_folder import Run, load_run
from saddleback.simulators.function import as_simulator


def stopping_after(simulator, calls):
    """The simulator, which gives up after so many calls, as a power cut would."""
    whole = simulator._sample

    def sample(states, actions, rng):
        if simulator.num_queries > calls:
            raise KeyboardInterrupt
        return whole(states, actions, rng)

    simulator._sample = sample
    return simulator


def made():
    instance = zoo.make("wireless")
    return instance.problem, instance.simulator


def files_of(run: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(run.iterdir()) if p.is_file()}


@pytest.mark.slow
def test_a_kept_run_is_the_run_that_is_not_kept(tmp_path: Path) -> None:
    problem, simulator = made()
    kept = saddleback.solve(problem, simulator, samples=2e4, seed=3, out=tmp_path / "run")
    plain = saddleback.solve(*made(), samples=20_000, seed=3)
    assert (kept.value, kept.samples, kept.certificate.value) == (plain.value, plain.samples, plain.certificate.value)
    stored = load_run(tmp_path / "run")
    assert stored.solution.value == kept.value
    np.testing.assert_array_equal(stored.mixture.weights, kept.mixture.weights)
    assert not (tmp_path / "run.work").exists()


@pytest.mark.slow
def test_an_interrupted_run_is_taken_up_to_the_same_bytes(tmp_path: Path) -> None:
    problem, simulator = made()
    saddleback.solve(problem, simulator, samples=20_000, seed=3, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        saddleback.solve(problem, stopping_after(made()[1], 9_000), samples=20_000, seed=3, out=tmp_path / "run")
    assert (tmp_path / "run.work" / "samples").is_dir() and not (tmp_path / "run").exists()
    fresh = made()[1]
    found = resume(tmp_path / "run", problem, fresh)
    assert found.status.value == "solved"
    one, two = files_of(tmp_path / "whole"), files_of(tmp_path / "run")
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
    assert isinstance(resume(tmp_path / "run"), Run)


def test_a_run_made_in_python_is_resumed_with_its_problem(tmp_path: Path) -> None:
    problem, _ = made()
    with pytest.raises(KeyboardInterrupt):
        saddleback.solve(problem, stopping_after(made()[1], 9_000), samples=20_000, out=tmp_path / "run")
    with pytest.raises(InputError, match="made in Python"):
        resume(tmp_path / "run")


@pytest.mark.slow
def test_a_plain_function_is_a_simulator_wherever_one_is_asked_for(tmp_path: Path) -> None:
    """In solve, and in what follows it: a certificate, a frontier's band, a run that is taken up."""

    def step(state: int, action: int, rng: np.random.Generator) -> int:
        return int(min(4, state + 1) if rng.random() < 0.3 + 0.3 * action else max(0, state - 1))

    def breaking(state: int, action: int, rng: np.random.Generator) -> int:
        calls.append(state)
        if len(calls) > 12_000:
            raise KeyboardInterrupt
        return step(state, action, rng)

    calls: list[int] = []
    cost = saddleback.Constraint("effort", np.tile([0.0, 1.0], (5, 1)), "<=", 4.0)
    reward = np.repeat(np.arange(5.0)[:, None], 2, axis=1)
    problem = saddleback.CMDP(gamma=0.9, states=5, actions=2, start=0, reward=reward, constraints=[cost])
    model = as_simulator(problem, step)
    found = saddleback.solve(problem, step, samples=20_000)
    proof = saddleback.issue_certificate(found, step, samples=10_000, seed=5)
    assert proof == saddleback.issue_certificate(found, model, samples=10_000, seed=5)
    curve = saddleback.frontier(found, num_points=3)
    bands = [curve.certified(simulator, samples=10_000, seed=7).points for simulator in (step, model)]
    assert [(p.low, p.high) for p in bands[0]] == [(p.low, p.high) for p in bands[1]]
    with pytest.raises(KeyboardInterrupt):
        saddleback.solve(problem, breaking, samples=20_000, out=tmp_path / "run")
    assert resume(tmp_path / "run", problem, step).value == found.value
    for call in (saddleback.issue_certificate, lambda *a, **k: curve.certified(a[1], **k)):
        with pytest.raises(InputError, match=r"simulator|function"):
            call(found, "step", samples=10_000, seed=6)


def test_a_choice_that_a_run_cannot_keep_is_refused(tmp_path: Path) -> None:
    for method in (Method(dual=Part("column-generation", {"tolerance": 0.1})), Method(target=(1.0,))):
        with pytest.raises(InputError, match="must be left out where the run is kept"):
            saddleback.solve(*made(), samples=20_000, method=method, out=tmp_path / "run")
        assert list(tmp_path.iterdir()) == []


def test_options_of_another_dual_are_refused() -> None:
    with pytest.raises(InputError, match="must be options of column-generation"):
        Method(dual=Part("column-generation", {"iterations": 5}))


@pytest.mark.slow
def test_two_workers_draw_the_same_samples(tmp_path: Path) -> None:
    one = saddleback.solve(*made(), samples=20_000, seed=1)
    two = saddleback.solve(*made(), samples=20_000, seed=1, workers=2)
    assert (one.value, one.certificate.value) == (two.value, two.certificate.value)


def test_words_of_earlier_versions_name_their_successors() -> None:
    problem, simulator = made()
    for name in ("certificate", "mode", "solver", "iterations", "upper", "step_size", "tolerance", "store", "target"):
        with pytest.raises(InputError, match=rf"`{name}` must not be an argument of solve any more") as caught:
            saddleback.solve(problem, simulator, **{name: 1})
        assert "Method" in caught.value.remedy or "reuse" in caught.value.remedy
    with pytest.raises(InputError, match="did you mean samples"):
        saddleback.solve(problem, simulator, sample=10)


def test_an_answer_that_must_be_proved(tmp_path: Path) -> None:
    problem, simulator = made()
    found = saddleback.solve(problem, simulator, samples=100_000, feasibility="strict", must="proved")
    assert found.certificate.feasible == "certified" and found.require() is found
    with pytest.raises(UnmetError, match="not proved to hold") as caught:
        saddleback.solve(*made(), samples=20_000, method=Method(certificate=0), must="proved")
    assert caught.value.exit_code == 4


@pytest.mark.slow
def test_the_same_confidence_by_both_names() -> None:
    one = saddleback.solve(*made(), samples=20_000, delta=0.1)
    two = saddleback.solve(*made(), samples=20_000, confidence=0.9)
    assert one.certificate.value == two.certificate.value and one.certificate.confidence == pytest.approx(0.9)
    with pytest.raises(InputError, match="must not be given with delta"):
        saddleback.solve(*made(), delta=0.1, confidence=0.9)


def test_an_answer_prints_as_the_command_line_does() -> None:
    found = saddleback.solve(*made(), samples=20_000)
    text = str(found)
    assert text.startswith("wireless: ") and "What is proved, with 95 % confidence" in text
    assert found._repr_html_().startswith("<pre>")


def test_the_paper_by_name() -> None:
    method = Method.paper(iterations=20)
    found = saddleback.solve(*made(), samples=50_000, method=method)
    assert found.settings["mode"] == "literal" and found.settings["iterations"] == 20
    same = Method(mode="literal", dual=Part("projected-descent", {"iterations": 20}))
    assert saddleback.solve(*made(), samples=50_000, method=same).value == found.value


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    words = {"samples": 4_000, "delta": np.float64(0.1), "seed": np.int64(1)}
    found = saddleback.solve(*made(), **words, out=tmp_path / "run")
    assert found.asked.delta == 0.1 and type(found.asked.delta) is float
    assert (tmp_path / "run" / "run.json").is_file()
