"""The README says what is there; its examples run in tests/repository/test_docs.py with those of the other pages."""

import re
import tomllib

import pytest

from places import ROOT
from saddleback import InputError, SimulatorError, Status, solve, zoo
from saddleback.theory import plan

PAGE = (ROOT / "README.md").read_text()


def test_the_example_is_short_and_shows_its_output():
    code = re.search(r"```python\n(.*?)```\n\n```text\n", PAGE, re.S).group(1)
    assert len(code.splitlines()) == 12


def test_the_picture_is_there():
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE)
    assert pictures and all((ROOT / picture).is_file() for picture in pictures)


def test_every_extra_is_listed():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    table = PAGE[PAGE.index("| Extra |") : PAGE.index("## Exit codes")]
    named = {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    assert named == set(extras)


def test_the_exit_codes_are_those_of_the_code():
    table = PAGE[PAGE.index("## Exit codes") : PAGE.index("## The paper")]
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert codes >= {s.exit_code for s in Status} | {InputError.exit_code, SimulatorError.exit_code}


@pytest.mark.slow
def test_the_measured_figures_of_wireless_are_those_that_its_commands_print():
    """From `saddleback solve wireless --feasibility relaxed`, and the worst case that `plan` names for a loss of 1."""
    problem, simulator = (instance := zoo.make("wireless")).problem, instance.simulator
    found = solve(problem, simulator, samples=1_000_000, feasibility="relaxed", seed=0)
    proof, pairs = found.certificate, problem.num_states * problem.num_actions
    theory = plan(
        1.0 / problem.reward_span, 0.05, kind="tabular", gamma=0.9, num_pairs=pairs, zeta=1.2, feasibility="relaxed"
    )
    mantissa, exponent = f"{theory.samples:.1e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    for figure in (
        f"| at most {proof.gap:.2g} of {found.value:.3g} after {found.samples:,} calls |",
        f"| worst-case theory: {mantissa}·10{power} calls for a loss of 1 |",
        f"| {found.settings['iterations']} (wireless) |",
    ):
        assert figure in PAGE, figure
