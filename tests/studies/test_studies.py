"""The studies in their quick form: files, pictures, exponents; the full form is `python -m studies`."""

from __future__ import annotations

import csv
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from places import ROOT
from studies import BY_NAME
from studies.__main__ import main
from studies.drawing import draw
from studies.error_against_samples import buffers, evaluation_error
from studies.error_against_size import implied, implied_below
from studies.measuring import Curve, slopes, spelled
from studies.panels import POINT_COLUMNS, Panel
from studies.strict_against_relaxed import EPSILON, crossing
from studies.truth import Truth, random_problems
from studies.writing import write_page

pytestmark = pytest.mark.check

STUDIES = ROOT / "studies"
MOST_BYTES = 200_000


@pytest.mark.parametrize("name", BY_NAME)
def test_quick_form_writes_tables_and_pictures(name, tmp_path):
    assert main([name, "--quick", "--output", str(tmp_path)]) == 0
    stem = name.replace("-", "_")
    with (tmp_path / f"{stem}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == POINT_COLUMNS
    assert all(float(row["x"]) > 0 and float(row["value"]) >= 0 and row["seeds"] for row in rows)
    section = (tmp_path / f"{stem}.md").read_text()
    pictures = sorted(tmp_path.glob(f"{stem}_*.svg"))
    assert len(pictures) == len({row["figure"] for row in rows})
    for picture in pictures:
        assert f"]({picture.name})" in section
        assert ElementTree.parse(picture).getroot().tag.endswith("svg")
        assert picture.stat().st_size < MOST_BYTES
    assert all(f"| {row['panel']} | {row['curve']} |" in section for row in rows)


def test_a_name_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["error-against-luck"])
    assert "error-against-size" in capsys.readouterr().err


def test_the_page_is_made_of_the_files(tmp_path):
    """What is committed belongs together: the page holds every section, and every file it points to is there."""
    write_page(tmp_path / "README.md", STUDIES / "output", list(BY_NAME))
    page = (STUDIES / "README.md").read_text()
    assert (tmp_path / "README.md").read_text() == page
    linked = [part.split(")")[0] for part in page.split("](")[1:]]
    assert linked
    for name in linked:
        assert 0 < (STUDIES / name).stat().st_size < MOST_BYTES


def a_panel(slope=-0.5):
    x = np.array([1e3, 1e4, 1e5])
    errors = 3 * x[:, None] ** slope * np.array([0.5, 1.0, 2.0, 0.7])
    return Panel("a title", "samples", "error", "a problem", (Curve.of("lstd", x, errors, range(4)),), slope)


def test_pictures_are_the_same_bytes_for_the_same_numbers(tmp_path):
    for name, panel in (("one", a_panel()), ("two", a_panel()), ("other", a_panel(-0.6))):
        draw(tmp_path / f"{name}.svg", (panel,))
    one, two, other = (tmp_path / f"{name}.svg" for name in ("one", "two", "other"))
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()


def test_fit_finds_a_power_law():
    fit = a_panel().curves[0].fit()
    assert math.isclose(fit.slope, -0.5, abs_tol=1e-12)
    assert fit.low <= fit.slope <= fit.high and fit.points == 3


def test_fit_leaves_out_what_has_no_logarithm():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    curve = Curve.of("x", x, np.stack([x**-2, x**-2, x**-2], axis=1) * [[1], [1], [0], [np.inf]], range(3))
    assert curve.fit().points == 2
    assert math.isclose(curve.fit().slope, -2.0, abs_tol=1e-12)
    assert curve.unanswered.tolist() == [0, 0, 0, 1]
    assert str(Curve.of("x", x, np.zeros((4, 3)), range(3)).fit()) == "none"


def test_slopes_column_by_column():
    x = np.array([1.0, 10.0, 100.0])
    y = np.column_stack([x**-1, 7 * x**0.5, [1.0, 0.0, 100.0], [0.0, 0.0, 1.0]])
    assert np.allclose(slopes(x, y), [-1, 0.5, 1, np.nan], equal_nan=True)


def test_a_quantile_next_to_a_run_without_answer_is_finite():
    curve = Curve.of("x", [1.0], [[1.0, 2.0, 3.0, np.inf]], range(4), level=0.75)
    assert curve.middle.tolist() == [3.0]


def test_crossing_lies_on_the_power_law():
    numbers = 1e3 * 4.0 ** np.arange(5)
    assert math.isclose(crossing(numbers, 6 * EPSILON * (numbers / 1e3) ** -0.5), 36e3)
    assert crossing(numbers, np.zeros(5)) == 1e3  # even the smallest is enough
    assert crossing(numbers, np.full(5, 2 * EPSILON)) == np.inf  # no number is
    assert math.isclose(crossing(numbers, EPSILON * np.array([np.inf, np.inf, 2.0, 1.0, 0.5])), numbers[3])


def test_spelled_seeds():
    assert spelled([0, 1, 2, 3, 5, 7, 8]) == "0-3 5 7-8"


def test_exponents_of_the_paper():
    """Corollary thm_main2C and the lower bound: d²H⁴/ε², d²H⁶/(ε²ζ²) and d²H⁵/(ε²ζ²)."""
    assert [implied(v, "relaxed") for v in ("d", "H", "zeta")] == [1, 2, 0]
    assert [implied(v, "strict") for v in ("d", "H", "zeta")] == [1, 3, -1]
    assert [implied_below(v) for v in ("d", "H", "zeta")] == [1, 2.5, -1]


def evaluator_slope(name: str, truth: Truth, numbers: list[int], seeds: range) -> float:
    """Of one evaluator on one problem, over fresh samples for every seed."""
    truths = [truth.with_seed(seed) for seed in seeds]
    errors = [[evaluation_error(name, buffers(t, samples), t) for t in truths] for samples in numbers]
    return Curve.of(name, numbers, errors, seeds).fit().slope


def test_lstd_errs_by_one_over_root_n():
    """Exponent −1/2 within 0.2, and the biased evaluator outside.

    LSTD's errors in r and c are normal to first order. The log of their root mean square spreads no more than that of one of
    them, so its median over n = 40 has a standard deviation of at most 1.17/√40 = 0.185, and the exponent over four points a
    factor 8 apart one of 0.185/√(5 (ln 8)²) = 0.04; that the points share samples only narrows it. The band is five of those:
    a false alarm in 6·10⁻⁷ of all sets of seeds.
    """
    truth, numbers = random_problems("random-linear", 1, 0.02, states=50)[0], [2**k for k in (8, 11, 14, 17)]
    lstd = evaluator_slope("lstd", truth, numbers, range(40))
    biased = evaluator_slope("ls-pe", truth, numbers[:3], range(10))
    print(f"problem seed {truth.seed}, sample seeds 0 to 39: lstd {lstd:.3f}; seeds 0 to 9: ls-pe {biased:.3f}")
    assert abs(lstd + 0.5) <= 0.2
    assert abs(biased + 0.5) > 0.2  # V⁰ = 0 costs γH·V/T, which falls as 1/N here
