"""What parts say that they need, and that it is looked at before a sample is drawn."""

import numpy as np
import pytest

from helpers import needs_by_name, random_table
from saddleback import solve
from saddleback.errors import InputError
from saddleback.instances.zoo import make
from saddleback.method.evaluators import BY_NAME as EVALUATORS
from saddleback.method.framework import Seated
from saddleback.method.oracles import Needs, needs_of
from saddleback.method.solvers import BY_NAME as SOLVERS
from saddleback.method.solvers import LSMDVI, TabularMDVI
from saddleback.problem.policies import TabularPolicy
from saddleback.runs.settings import Method


def test_who_needs_a_table_and_who_a_package() -> None:
    tables = {name for name in SOLVERS if needs_by_name(name).every_pair}
    assert tables == {"tabular-mdvi", "tabular-mdvi-burn-in", "perturbed-model", "quantecon", "mdpsolver"}
    packages = {name for name in SOLVERS if needs_by_name(name).package is not None}
    assert packages == {"quantecon", "mdpsolver", "stable-baselines3"}
    problem = random_table(0).problem()
    assert [name for name in EVALUATORS if not needs_of(EVALUATORS[name](), problem).batches] == ["lstd"]


def test_a_part_that_says_nothing_needs_nothing_but_batches() -> None:
    assert needs_of(LSMDVI(), random_table(0).problem()) == Needs(every_pair=False, package=None, batches=True)


@pytest.mark.parametrize("solver", ["tabular-mdvi", TabularMDVI()])
def test_a_solver_of_tables_is_refused_for_a_box_before_a_sample_is_drawn(solver) -> None:
    instance = make("mountain-car")
    with pytest.raises(InputError, match=r"`states` must be finite for the solver .*; use ls-mdvi or gss"):
        solve(instance.problem, instance.simulator, samples=20_000, method=Method(solver=solver))
    assert instance.simulator.num_queries == 0


class Absent(LSMDVI):
    def needs(self, problem) -> Needs:
        return Needs(package=("a_package_that_nobody_has", "neural"))


def test_a_package_that_is_not_there_is_named_before_a_sample_is_drawn() -> None:
    instance = make("garnet")
    with pytest.raises(InputError, match=r"`a_package_that_nobody_has` must be installed for this solver.*\[neural\]"):
        solve(instance.problem, instance.simulator, samples=20_000, method=Method(solver=Absent()))
    assert instance.simulator.num_queries == 0


@pytest.mark.slow
def test_a_solver_of_tables_given_as_an_object_gets_its_table() -> None:
    """As one given by name does, whatever features the problem has."""
    instance = make("random-linear")
    found = [
        solve(instance.problem, instance.simulator, samples=40_000, method=Method(solver=solver))
        for solver in ("tabular-mdvi", TabularMDVI())
    ]
    assert found[0].value == found[1].value


def test_policies_found_beforehand_sit_in_the_solvers_seat() -> None:
    policies = [TabularPolicy.deterministic(np.full(3, a), 2) for a in (0, 1)]
    mixing = np.array([[1.0, 0.0], [0.5, 0.5]])
    problem = random_table(0).problem()
    assert Seated.at(mixing, policies).solve(problem, None, mixing[::-1]) == policies[::-1]  # type: ignore[arg-type]
