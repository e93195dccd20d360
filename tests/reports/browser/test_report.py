"""The report in a real browser: the slider says what the frontier says, nothing leaves the page, all can read it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from report_runs import HOSTILE, Reported
from reports.browser.browsing import DESKTOP, SHOWN, SLIDE, TELEPHONE, TYPE, Browser
from saddleback.files.json_file import to_plain
from saddleback.method.master_lp import solve_master
from saddleback.solving.frontier import Frontier

pytestmark = pytest.mark.check

CLOSE = 1e-9
VIEWS = [(DESKTOP, "light"), (DESKTOP, "dark"), (TELEPHONE, "light"), (TELEPHONE, "dark")]


def curve_of(case: Reported, constraint: int = 0) -> Frontier:
    """The frontier as Python has it, over the same samples and policies."""
    assert case.solution.prepared is not None
    return Frontier(case.solution.prepared, constraint, 1e-4 * case.problem.horizon)


def stops(case: Reported, k: int = 0) -> list[dict[str, Any]]:
    assert case.run.drawings.frontier is not None
    return [to_plain(point) for point in case.run.drawings.frontier.curves[k].points]


def close(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * max(1.0, abs(a), abs(b))


def test_the_slider_shows_what_the_frontier_computes_at_every_stop(browser: Browser, wireless: Reported) -> None:
    browser.open(wireless.page)
    curve, points, known = curve_of(wireless), stops(wireless), wireless.solution.prepared.oracle.columns
    before = len(known)
    assert len(points) >= 80
    truth = curve.at_all([p["threshold"] for p in points])
    assert len(wireless.solution.prepared.oracle.columns) == before  # nothing was left to ask
    for i, (stored, expected) in enumerate(zip(points, truth, strict=True)):
        browser.run(SLIDE, 0, i)
        shown = browser.run(SHOWN, 0)
        assert close(shown["value"], expected.value), (i, shown, expected)
        assert close(shown["price"], expected.multiplier), (i, shown, expected)
        weights = {expected.mixture.members[n].key(): w for n, w in enumerate(expected.mixture.weights)}
        assert {known[k][0].key() for k, _ in shown["mixture"]} == set(weights)
        assert all(close(w, weights[known[k][0].key()]) for k, w in shown["mixture"])
        assert stored["threshold"] == expected.threshold and shown["text"] in shown["spoken"]
    assert len({p.value for p in truth}) > 20  # the numbers did move


def test_the_band_is_the_members_limits_and_the_ceiling_is_the_certificate(
    browser: Browser, wireless: Reported
) -> None:
    browser.open(wireless.page)
    problem, proof, parts = wireless.problem, wireless.run.certificate, wireless.solution.prepared
    assert proof is not None
    curve, bound = curve_of(wireless), proof.evidence.bound
    for i in (0, 20, 50):
        point = curve.at(stops(wireless)[i]["threshold"])
        limits = [parts.interval(member, 0.95) for member in point.mixture.members]
        w = point.mixture.weights
        ends = [problem.values_of(w @ np.array([getattr(x, e) for x in limits]))[0] for e in ("low", "high")]
        b = problem.unit_values_of(np.array([0.0, point.threshold]))[1]
        unit = min(problem.horizon, (bound.value - bound.sigma[1] * b) / bound.sigma[0])
        browser.run(SLIDE, 0, i)
        shown = browser.run(SHOWN, 0)
        assert all(map(close, shown["range"], ends))
        assert close(shown["ceiling"], problem.values_of(np.array([unit, 0.0]))[0])
    browser.run(SLIDE, 0, [p["threshold"] for p in stops(wireless)].index(problem.user_thresholds()[0]))
    assert close(browser.run(SHOWN, 0)["ceiling"], proof.upper_bound)


def test_any_threshold_may_be_typed(browser: Browser, wireless: Reported) -> None:
    browser.open(wireless.page)
    problem, columns = wireless.problem, np.array(wireless.run.drawings.frontier.columns)
    first, last = stops(wireless)[0]["threshold"], stops(wireless)[-1]["threshold"]
    for share in (0.013, 0.2718, 0.5772, 0.9):
        threshold = float(f"{first + share * (last - first):.9g}")
        target = problem.unit_values_of(np.array([0.0, threshold]))[1:]
        master = solve_master(columns, target)
        assert master is not None
        browser.run(TYPE, 0, repr(threshold))
        shown = browser.run(SHOWN, 0)
        assert close(shown["value"], problem.values_of(master.weights @ columns)[0])
        assert close(shown["price"], problem.multipliers_of(master.multipliers)[0])
    browser.run(TYPE, 0, "-5")  # an energy budget below zero
    shown = browser.run(SHOWN, 0)
    assert shown["value"] is None and shown["mixture"] == [] and "No mixture" in shown["how"]
    assert browser.complaints() == []


def test_keys_move_the_slider(browser: Browser, wireless: Reported) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    browser.open(wireless.page)
    slider = browser.driver.find_element(By.ID, "slider-0")
    start = browser.run(SHOWN, 0)
    slider.send_keys(Keys.ARROW_RIGHT)
    one = browser.run(SHOWN, 0)
    assert (
        one["position"] == start["position"] + 1 and one["value"] != start["value"] and one["spoken"] != start["spoken"]
    )
    slider.send_keys(Keys.HOME)
    assert browser.run(SHOWN, 0)["position"] == 0
    slider.send_keys(Keys.END)
    assert browser.run(SHOWN, 0)["position"] == len(stops(wireless)) - 1
    style = "return getComputedStyle(document.activeElement).outlineStyle + document.activeElement.id"
    assert browser.run(style) == "solidslider-0"  # the focus can be seen
    browser.driver.find_element(By.ID, "back-0").send_keys(Keys.ENTER)
    assert browser.run(SHOWN, 0) == start


def test_several_constraints_show_the_stored_points_and_say_when_they_lie_between(
    browser: Browser, two_constraints: Reported
) -> None:
    browser.open(two_constraints.page)
    for k in range(2):
        curve, points = curve_of(two_constraints, k), stops(two_constraints, k)
        for i in (0, 7, len(points) - 1):
            browser.run(SLIDE, k, i)
            shown, expected = browser.run(SHOWN, k), curve.at(points[i]["threshold"])
            # Every curve was drawn to the tolerance of the dual; a later one may have added a policy that does better yet.
            assert abs(shown["value"] - expected.value) <= curve.tolerance * (1 + expected.multiplier)
            assert close(shown["value"], points[i]["value"]) and close(shown["price"], points[i]["multiplier"])
            assert shown["how"] == ""
        middle = (points[6]["threshold"] + points[7]["threshold"]) / 2
        browser.run(TYPE, k, repr(middle))
        shown = browser.run(SHOWN, k)
        assert "Between two computed points" in shown["how"]
        assert abs(shown["value"] - (points[6]["value"] + points[7]["value"]) / 2) < 1e-5  # the field keeps some digits
        assert abs(sum(w for _, w in shown["mixture"]) - 1) < CLOSE
    assert browser.complaints() == []


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_fits_the_window_and_is_accessible(
    browser: Browser, wireless: Reported, two_constraints: Reported, width: int, scheme: str
) -> None:
    for case in (wireless, two_constraints):
        browser.open(case.page, width, scheme)
        browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        assert browser.overflow() <= 0
        assert browser.accessibility() == []
        dark = browser.run("return getComputedStyle(document.body).backgroundColor") != "rgb(251, 250, 247)"
        assert dark == (scheme == "dark")


def test_nothing_is_asked_of_the_network_and_nothing_complains(
    browser: Browser, wireless: Reported, two_constraints: Reported, hostile: Reported
) -> None:
    for case in (wireless, two_constraints, hostile):
        browser.open(case.page)
        browser.run(SLIDE, 0, 3)
        assert browser.requests() == []
        assert browser.complaints() == []


def test_names_of_strangers_stay_names(browser: Browser, hostile: Reported) -> None:
    browser.open(hostile.page)
    assert browser.run("return window.hacked === undefined && document.images.length === 0")
    assert browser.run("return document.scripts.length") == 2  # the numbers and the script
    assert HOSTILE in browser.run("return document.querySelector('.answer').textContent")
    browser.run(SLIDE, 0, 5)
    assert HOSTILE in browser.run("return document.getElementById('mixture-0').textContent")
    assert browser.run("return window.hacked === undefined")


def test_screenshots_are_written(browser: Browser, wireless: Reported, tmp_path: Path) -> None:
    """Into the folder SADDLEBACK_SCREENSHOTS if it is given, for people to look at."""
    folder = Path(os.environ.get("SADDLEBACK_SCREENSHOTS", tmp_path))
    for width, scheme in VIEWS[:3]:
        browser.open(wireless.page, width, scheme)
        path = browser.screenshot(folder / f"report-{'phone' if width == TELEPHONE else scheme}.png")
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and path.stat().st_size > 20_000


# ---- the instruments see what they are there to see ------------------------------------------------------------------


def test_controls(browser: Browser) -> None:
    start, end = (
        "<!doctype html><html lang='en'><head><title>x</title></head><body><main><h1>x</h1>",
        "</main></body></html>",
    )
    browser.open(f"{start}<img alt='' src='http://127.0.0.1:9/x.png'>{end}")
    assert browser.requests() == ["http://127.0.0.1:9/x.png"]
    assert browser.complaints() != []
    browser.open(f"{start}<script>undefined.nothing</script>{end}")
    assert any("TypeError" in text for text in browser.complaints())
    browser.open(f"{start}<div style='width:2000px'>wide</div>{end}", TELEPHONE)
    assert browser.overflow() > 0
    browser.open(f"{start}<p style='color:#bbb;background:#fff'>faint</p><input type='range'>{end}")
    found = browser.accessibility()
    assert any("color-contrast" in text for text in found) and any("label" in text for text in found)
    browser.open(f"{start}{HOSTILE}{end}")
    assert browser.run("return window.hacked") in (1, 2)


def test_the_policy_of_the_page_stops_what_escaping_would_miss(browser: Browser, wireless: Reported) -> None:
    """A name that got onto the page as HTML could still not run, nor ask for anything."""
    opened = wireless.page.replace("<main>", f"<main>{HOSTILE}<img alt='' src='http://127.0.0.1:9/y.png'>", 1)
    browser.open(opened)
    assert browser.run("return window.hacked === undefined")
    assert all("Content Security Policy" in text for text in browser.complaints())
