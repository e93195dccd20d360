"""Figures: the drawn data are the solution's numbers, labels carry names and units, and pyplot stays untouched."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from places import ROOT
from printed import differences
from saddleback import frontier, zoo
from saddleback.errors import InputError
from saddleback.reports.plots import PANELS, plot
from saddleback.solving.frontier import Frontier
from saddleback.solving.solution import Solution
from spelled_out import solve

pytest.importorskip("matplotlib", reason="an extra: pip install 'saddleback[plots]'")
from matplotlib.figure import Figure


@pytest.fixture(scope="module")
def proved() -> Solution:
    instance = zoo.make("queue")
    return solve(instance.problem, instance.simulator, samples=20_000, certificate=100_000, seed=2)


@pytest.fixture(scope="module")
def curve() -> Frontier:
    instance = zoo.make("wireless")
    solution = solve(instance.problem, instance.simulator, samples=50_000, seed=2)
    return frontier(solution, num_points=9).certified(instance.simulator, samples=200_000, seed=9)


def drawn(ax: Any, label: str) -> tuple[list[float], list[float]]:
    (line,) = [x for x in ax.lines if x.get_label() == label]
    return list(line.get_xdata()), list(line.get_ydata())


def test_a_whole_figure(proved: Solution) -> None:
    figure = plot(proved)
    assert isinstance(figure, Figure)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["Reward", "Constraints", "Dual trace", "Members of the mixture"]
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_the_reward(proved: Solution) -> None:
    ax = plot(proved, "reward").axes[0]
    proof: Any = proved.certificate
    assert drawn(ax, "proved, 95 %") == (list(proof.value), [0, 0])
    assert drawn(ax, "estimate") == ([proved.value], [0])
    assert drawn(ax, "no policy exceeds")[0] == [proof.upper_bound] * 2
    assert ax.get_xlabel() == "discounted total"


def test_the_constraints(proved: Solution) -> None:
    ax = plot(proved, "constraints").axes[0]
    proof: Any = proved.certificate
    (row,) = proved.constraints
    assert drawn(ax, "proved, 95 %")[0] == list(proof.constraints[0])
    assert drawn(ax, "threshold")[0] == [row.threshold] * 2
    assert drawn(ax, "estimate") == ([row.value], [0])
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"{row.name} ≤ {row.threshold:.4g}"]


def test_without_a_certificate_limits_are_only_likely(proved: Solution) -> None:
    bare = dataclasses.replace(proved, certificate=None)
    ax = plot(bare, "constraints").axes[0]
    (row,) = bare.constraints
    assert drawn(ax, "likely range")[0] == [row.low, row.high]
    assert not any("proved" in str(line.get_label()) for line in ax.lines)
    assert [line.get_label() for line in plot(bare, "reward").axes[0].lines] == ["estimate"]


def test_the_dual_trace(proved: Solution) -> None:
    ax = plot(proved, "dual").axes[0]
    assert proved.trace is not None
    x, y = drawn(ax, proved.constraints[0].name)
    expected = proved.trace.multipliers[:, 0]
    assert x == list(range(1, 1 + len(expected)))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.array(y)[finite], expected[finite])
    assert np.isnan(np.array(y)[~finite]).all() and not finite.all()  # a round for the constraint alone is a gap
    assert ax.get_xlabel() == "iteration" and ax.get_ylabel() == "multiplier (reward per unit)"
    assert [line.get_ydata()[0] for line in ax.lines[1:]] == [proved.multipliers[0]]


def test_the_members(proved: Solution) -> None:
    ax = plot(proved, "members").axes[0]
    (points,) = ax.collections
    expected = [(m.constraints[0], m.value) for m in proved.members]
    np.testing.assert_array_equal(points.get_offsets(), expected)
    assert drawn(ax, "mixture") == ([proved.constraints[0].value], [proved.value])
    assert drawn(ax, "threshold (≤)")[0] == [proved.constraints[0].threshold] * 2
    assert len(ax.texts) == len(proved.members)
    order = np.argsort(points.get_sizes())
    assert list(order) == list(np.argsort([m.weight for m in proved.members]))


@pytest.mark.slow
def test_the_frontier(curve: Frontier) -> None:
    figure = plot(curve)
    above, below = figure.axes
    x, y = drawn(above, "from the samples")
    assert x == [p.threshold for p in curve.points] and y == [p.value for p in curve.points]
    band = next(c for c in above.collections if "proved, 95 %" in str(c.get_label()))
    edges = np.vstack([path.vertices for path in band.get_paths()])
    known = [p for p in curve.points if p.low is not None and p.high is not None]
    assert known
    for p in known:
        heights = edges[np.isclose(edges[:, 0], p.threshold), 1]
        assert p.low is not None and p.high is not None
        assert np.isclose(heights, p.low).any() and np.isclose(heights, p.high).any()
    assert list(below.lines[0].get_ydata()) == [p.multiplier for p in curve.points]
    own = float(curve.problem.user_thresholds()[0])
    assert drawn(above, f"asked for: {own:.4g}") == ([own], [curve.at(own).value])
    name = curve.problem.constraints[0].name
    assert below.get_xlabel() == f"threshold of {name} (discounted total)"
    assert above.get_ylabel() == "reward (discounted total)"


@pytest.mark.slow
def test_axes_of_one_s_own_and_a_chosen_threshold(curve: Frontier, proved: Solution) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    middle = float(np.mean(curve.range))
    assert plot(curve, ax=left, chosen=middle) is figure and plot(proved, "dual", ax=right) is figure
    assert drawn(left, f"chosen: {middle:.4g}") == ([middle], [curve.at(middle).value])
    assert len(figure.axes) == 2
    uncertified = dataclasses.replace(curve, band=None)
    assert plot(uncertified).axes[0].collections == [] or not any(
        "proved" in str(c.get_label()) for c in plot(uncertified).axes[0].collections
    )


@pytest.mark.slow
def test_several_constraints(tmp_path: Path) -> None:
    instance = zoo.make("garnet", constraints=2)
    solution = solve(instance.problem, instance.simulator, samples=40_000, certificate=20_000, seed=0)
    ax = plot(solution, "constraints").axes[0]
    assert len(ax.get_yticklabels()) == 2
    plot(solution).savefig(tmp_path / "all.pdf")
    assert (tmp_path / "all.pdf").stat().st_size > 5_000


def test_what_cannot_be_drawn_is_refused(proved: Solution, curve: Frontier, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="must be one of reward, constraints, dual, members"):
        plot(proved, "everything")
    with pytest.raises(InputError, match="must be named where axes are given"):
        plot(proved, ax=Figure().subplots())
    with pytest.raises(InputError, match="must hold a policy to be drawn"):
        plot(dataclasses.replace(proved, mixture=None))
    with pytest.raises(InputError, match="`chosen` must be left out for a solution"):
        plot(proved, chosen=1.0)
    with pytest.raises(InputError, match="`panel` must be left out for a frontier"):
        plot(curve, "dual")
    with pytest.raises(InputError, match="`answer` must be a Solution or a Frontier, got CMDP; draw what"):
        plot(proved.problem)  # type: ignore[arg-type]
    for name in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r'pip install "saddleback\[plots\]"'):
        plot(proved)


@pytest.mark.slow
def test_drawing_loads_no_pyplot() -> None:
    code = (
        "import sys; from saddleback import solve, zoo; i = zoo.make('queue')\n"
        "from saddleback.reports.plots import plot\n"
        "s = solve(i.problem, i.simulator, samples=5000); assert 'matplotlib' not in sys.modules\n"
        "plot(s); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def words(svg: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.read_text())


@pytest.mark.slow
def test_the_gallery_is_drawn_by_its_page(tmp_path: Path) -> None:
    """The committed pictures show what docs/plots.md draws today, up to the tolerance of all pages."""
    command = [sys.executable, "-W", "error", str(ROOT / "docs" / "draw_plots.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "plots.md").read_text()
    shown = re.findall(r"!\[([^\]]+)\]\(images/([\w.]+)\)", page)
    assert {name for _, name in shown} == {p.name for p in tmp_path.iterdir()}
    for text, name in shown:
        committed = ROOT / "docs" / "images" / name
        assert len(text) > 40 and committed.stat().st_size < 60_000
        drawn, said = (" ".join(words(picture)) for picture in (tmp_path / name, committed))
        assert not differences(drawn, said), name
        assert len(words(committed)) > 10
    assert set(re.findall(r"`(\w+)`", page)) >= set(PANELS)
