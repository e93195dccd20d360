"""Sentences and pages that used to puzzle their readers."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from cli.command_line import quietly, words
from helpers import random_table
from report_runs import Outline, Reported, reported
from reports.printing import printed
from saddleback import save_table
from saddleback.cli import whole_number
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.reports.html.page import page_of
from saddleback.runs.answer import MemberReport
from saddleback.runs.text import print_solution
from saddleback.simulators.table import Table
from spelled_out import solve


def long_table(states: int = 360) -> Table:
    """A ring with more states than a page used to show."""
    P = np.zeros((states, 2, states))
    P[np.arange(states), 0, (np.arange(states) + 1) % states] = 1.0
    P[np.arange(states), 1, np.arange(states)] = 1.0
    reward, cost = np.tile([1.0, 0.0], (states, 1)), np.tile([1.0, 0.0], (states, 1))
    rho = np.eye(states)[states - 1]
    names = [f"bed {s} of ward {s % 7}" for s in range(states)]
    more = {"senses": ["<="], "names": ["moves"], "state_names": names}
    return Table.of(P, reward, cost[None], [2.0], gamma=0.8, rho=rho, **more)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    folder = tmp_path_factory.mktemp("ring")
    save_table(long_table(), folder / "ring.npz")
    return reported(folder / "run", str(folder / "ring.npz"), samples=40_000, certificate=5_000)


@pytest.mark.slow
def test_the_report_shows_every_state_and_a_field_to_find_one(ring: Reported) -> None:
    shown = set(re.findall(r'<th scope="row">(bed \d+ of ward \d)</th>', ring.page))
    assert len(shown) >= 360
    fields = [attributes for name, attributes in Outline(ring.page).elements if attributes.get("id") == "find-state"]
    assert [field["type"] for field in fields] == ["search"] and 'getElementById("find-state")' in ring.page


@pytest.mark.slow
def test_of_very_many_states_those_where_episodes_start_come_first(ring: Reported) -> None:
    many = long_table(2_500)
    members = [TabularPolicy.deterministic(np.zeros(2_500), 2)]
    run = dataclasses.replace(
        ring.run, mixture=MixturePolicy.of(members, np.ones(1)), drawings=type(ring.run.drawings)()
    )
    page = page_of(run, many.problem())
    assert "Shown are 2,000 of 2,500 states, start states first; policy.npz holds all." in page
    assert re.findall(r'<th scope="row">(bed \d+) of ward \d</th>', page)[:2] == ["bed 2499", "bed 0"]
    assert len(page.encode()) < 3_000_000


def test_leverage_and_condition_number_are_folded_away(ring: Reported) -> None:
    body = ring.page.split("</head>")[1].split("<script")[0]
    outside = re.sub(r"<details>.*?</details>", "", body, flags=re.S)
    assert "Where the samples were taken" in outside
    assert "everage" not in outside and "condition number" not in outside
    assert "The largest leverage" in ring.page and "the condition number is" in ring.page


def test_the_dual_says_what_it_left_in_words(ring: Reported) -> None:
    assert "left" not in re.search(r"Each asks for the best policy.*?</p>", ring.page, re.S)[0]  # type: ignore[index]
    assert ring.solution.gap is not None and ring.solution.gap < 1e-9
    assert "It ended where no other mixture of policies has a better reward, by the estimates." in ring.page
    opened = dataclasses.replace(ring.run, solution=structs.replace(ring.run.solution, gap=0.25))
    assert "could improve the reward by 0.25 at most, by the estimates" in page_of(opened, ring.problem)


def test_one_policy_is_no_mixture_and_one_iteration_has_no_plural() -> None:
    table = random_table(1)
    found = solve(table.problem(), table.simulator(), samples=5_000)
    alone = dataclasses.replace(
        found,
        mixture=MixturePolicy.of(found.mixture.members[:1], np.ones(1)),
        members=(MemberReport(1.0, 1.0, (0.5,)),),
        settings={**found.settings, "iterations": 1, "coreset": 1},
    )
    text = words(printed(print_solution, alone))
    assert "1 dual iteration;" in text and "1 state-action pair sampled" in text
    assert "One policy, played in every episode" in text and "mixture of 1" not in text and "'(misses)'" not in text


@pytest.mark.slow
def test_members_that_miss_are_explained_beside_a_proof(tmp_path: Path) -> None:
    save_table(dataclasses.replace(random_table(1), thresholds=np.array([3.7])), tmp_path / "table.npz")
    asked = {"samples": 20_000, "certificate": 40_000, "feasibility": "strict"}
    made = reported(tmp_path / "run", str(tmp_path / "table.npz"), **asked)
    assert made.solution.certificate is not None and made.solution.certificate.feasible == "certified"
    text = words(printed(print_solution, made.solution))
    assert (
        "(misses)" in text
        and "would not meet the constraint, by the estimates. Limits and verdicts are about the mixture" in text
    )
    page = words(made.page.replace("\u00a0", " "))
    assert (
        "The constraints are proved to hold on average over these draws, and that is all that is said of them." in page
    )
    assert (
        "of all episodes are played by a member that would miss a constraint by itself; the others make up for it."
        in page
    )


@pytest.mark.parametrize(
    ("text", "number"), [("1e6", 10**6), ("1_000", 1000), ("2.5e3", 2500), ("7", 7), ("-1", -1), (5, 5)]
)
def test_whole_numbers_are_read_as_people_write_them(text: str | int, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["1.5", "1e-3", "abc", "", "nan", "inf", "1e400", "1e999999999", "9" * 5000])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(Exception, match="is not a whole number; write it in digits, or as 1e6"):
        whole_number(text)


def test_every_verb_takes_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    save_table(random_table(1), tmp_path / "table.npz")
    asked = ["--samples", "1e4", "--points", "3e0", "--seed", "1e0", "--json"]
    assert quietly("frontier", tmp_path / "table.npz", *asked) == 0
    assert '"samples": 99' in capsys.readouterr().out
    assert quietly("frontier", tmp_path / "table.npz", "--samples", "1.5") == 2


def test_help_speaks_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    quietly("--help")
    front = words(re.sub("[│╭╰─╮╯]", " ", capsys.readouterr().out))
    assert "TARGET is your own problem in a .toml file that names your simulator" in front
    quietly("solve", "--help")
    solving = words(re.sub("[│╭╰─╮╯]", " ", capsys.readouterr().out))
    assert "who else is told" not in solving and "Send every event of the solve to name:place" in solving
    quietly("certify", "--help")
    assert "named again" not in words(re.sub("[│╭╰─╮╯]", " ", capsys.readouterr().out))


def test_workers_and_exact_are_refused_in_words_that_fit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    save_table(random_table(1), tmp_path / "table.npz")
    assert quietly("solve", tmp_path / "table.npz", "--workers", "0") == 2
    said = words(capsys.readouterr().err)
    assert "one a core" not in said and "say how many processes draw samples, 1 for this one alone" in said
    assert quietly("exact", "linear-quadratic") == 2
    assert "{" not in words(capsys.readouterr().err)
