"""The report as a file: what it says is what was stored, it is one whole page, and no name can break it."""

from __future__ import annotations

import base64
import copy
import dataclasses
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import random_table
from report_runs import HOSTILE, Outline, Reported, hostile_table, reported
from saddleback import cli, save_table
from saddleback.cli.report import report
from saddleback.errors import InputError, SaddlebackError
from saddleback.features import FeatureFunction
from saddleback.files.json_file import sealed
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.policies import GreedyPolicy, MixturePolicy
from saddleback.problem.spaces import BoxStates
from saddleback.reports.html.figures import gaps
from saddleback.reports.html.markup import data_block, tag
from saddleback.reports.html.page import MOST_BYTES, page_of
from saddleback.reports.html.page import report as write_report
from saddleback.reports.html.policy_figure import places_of
from saddleback.reports.html.sections import command
from saddleback.reports.html.svg import Scale, ticks
from saddleback.reports.html.view import view_of
from saddleback.runs.drawings_file import NOTHING_DRAWN
from saddleback.runs.run_folder import load_run
from saddleback.runs.targets import load_run_target
from saddleback.solving.frontier import Frontier


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def wireless(folder: Path) -> Reported:
    return reported(folder / "wireless", "wireless")


@pytest.fixture(scope="module")
def cases(folder: Path, wireless: Reported) -> dict[str, Reported]:
    """One of each kind: tables and features, one constraint and two, strict, infeasible, no proof, hostile names."""
    table = random_table(1)
    save_table(table, folder / "good.npz")
    table.thresholds[:] = 4.9
    save_table(table, folder / "bad.npz")
    return {
        "wireless": wireless,
        "gridworld": reported(folder / "gridworld", "gridworld"),
        "queue": reported(folder / "queue", "queue", feasibility="strict", samples=100_000, certificate=100_000),
        "features": reported(folder / "features", "random-linear", ["states=30"]),
        "two": reported(folder / "two", "garnet", ["states=8", "constraints=2"]),
        "descent": reported(folder / "descent", "queue", mode="literal", iterations=40),
        "unproved": reported(folder / "unproved", str(folder / "good.npz"), certificate=0),
        "infeasible": reported(folder / "infeasible", str(folder / "bad.npz")),
        "hostile": reported(folder / "hostile", hostile_table(random_table(2), folder / "hostile.npz")),
    }


def text_of(page: str) -> str:
    return " ".join(" ".join(text for path, text in Outline(page).texts if "script" not in path).split())


# ---- every page ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_page_is_whole_and_keeps_to_itself(cases: dict[str, Reported]) -> None:
    for name, case in cases.items():
        outline = Outline(case.page)
        assert outline.faults == [], name
        assert len(case.page.encode()) < 300_000 < MOST_BYTES
        assert page_of(case.run, case.problem) == case.page  # the same run gives the same page
        for element, attributes in outline.elements:
            assert not {"src", "href", "style", "action"} & attributes.keys(), (name, element, attributes)
            assert not any(key.startswith("on") for key in attributes), (name, element, attributes)
        names = [a["id"] for _, a in outline.elements if "id" in a]
        assert len(set(names)) == len(names)
        assert {element for element, _ in outline.elements} <= KNOWN
        assert not re.search(r"@import|url\(|https?://", case.page.replace(HOSTILE, "")), name


KNOWN = {
    *("html", "head", "meta", "title", "style", "script", "body", "main", "header", "footer", "section"),
    *("h1", "h2", "h3", "h4", "p", "strong", "span", "small", "code", "ul", "li", "dl", "dt", "dd", "div", "noscript"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "figure", "figcaption"),
    *("svg", "desc", "text", "line", "circle", "rect", "path", "label", "input", "output", "button"),
}


@pytest.mark.slow
def test_every_page_can_be_read_without_seeing_it(cases: dict[str, Reported]) -> None:
    for name, case in cases.items():
        outline = Outline(case.page)
        assert outline.named("html")[0]["lang"] == "en"
        levels = [int(e[1]) for e, _ in outline.elements if re.fullmatch(r"h[1-6]", e)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(b <= a + 1 for a, b in itertools.pairwise(levels)), (name, levels)
        drawings = outline.named("svg")
        assert all(a["role"] == "img" and len(a["aria-label"] or "") > 20 for a in drawings)
        order = [e for e, _ in outline.elements]
        assert all(order[i + 1 : i + 3] == ["title", "desc"] for i, e in enumerate(order) if e == "svg")
        assert order.count("table") == order.count("caption") == order.count("thead")
        labels = {a.get("for") for a in outline.named("label")}
        assert {a["id"] for a in outline.named("input")} <= labels


@pytest.mark.slow
def test_the_policy_of_the_page_allows_its_own_script_and_style_only(wireless: Reported) -> None:
    [content] = [a["content"] for a in Outline(wireless.page).named("meta") if a.get("http-equiv")]
    assert content is not None and "unsafe" not in content and content.startswith("default-src 'none'")
    for element in ("script", "style"):
        inner = wireless.page.split(f"<{element}>")[1].split(f"</{element}>")[0]
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in content


@pytest.mark.slow
def test_names_that_would_be_html_are_text(cases: dict[str, Reported]) -> None:
    page = cases["hostile"].page
    outline = Outline(page)
    assert len(outline.named("script")) == 2 and not outline.named("img")
    assert "<img" not in page and page.count("</script>") == 2
    assert HOSTILE in text_of(page)


# ---- what it says ----------------------------------------------------------------------------------------------------


def test_the_answer_in_plain_words(cases: dict[str, Reported]) -> None:
    text, proof = text_of(cases["wireless"].page), cases["wireless"].run.certificate
    assert proof is not None
    low, high = proof.value
    assert f"This policy earns {cases['wireless'].solution.value:.4g}, proved between {low:.4g} and {high:.4g}." in text
    assert "It keeps energy at 1.2, with at most 1.2 allowed: proved to lie between" in text
    assert f"No policy that meets the constraints can earn more than {proof.upper_bound:.4g}." in text
    assert "95\u00a0% confidence" in cases["wireless"].page
    assert "so the limit is proved to hold" in text_of(cases["queue"].page)
    assert "likely to lie between" in text_of(cases["unproved"].page)
    assert "proved to lie" not in text_of(cases["unproved"].page)
    infeasible = text_of(cases["infeasible"].page)
    assert "infeasible" in infeasible and "This policy earns" not in infeasible and "no policy" in infeasible.lower()


def test_sections_are_there_where_there_is_something_to_say(cases: dict[str, Reported]) -> None:
    heads = {name: Outline(case.page).text_of("h2") for name, case in cases.items()}
    assert heads["wireless"] == [
        *("What is proved", "What if the threshold were different?", "The policy", "By start state"),
        *("How the price was found", "Where the samples were taken", "Diagnostics", "How to reproduce it"),
    ]
    assert "The policy" not in heads["infeasible"] and "How to reproduce it" in heads["infeasible"]
    assert "Linearity in the features was put to" in text_of(cases["features"].page)
    assert text_of(cases["two"].page).count("If the threshold of") == 2


def test_members_that_miss_are_named(wireless: Reported) -> None:
    missing = [m for m in wireless.solution.members if m.constraints[0] > 1.2 * (1 + 1e-7)]
    assert missing  # a relaxed mixture sits on its threshold
    text = text_of(wireless.page)
    assert text.count(" misses") == len(missing)
    share = f"{100 * sum(m.weight for m in missing):.3g}"
    assert f"By the estimates, {share} % of all episodes are played by a member that would miss a constraint" in text
    assert (
        "The constraints are meant to hold on average over these draws, and that is all that is said of them." in text
    )


@pytest.mark.slow
def test_maps(cases: dict[str, Reported]) -> None:
    grid = Outline(cases["gridworld"].page)
    arrows = [t for t in grid.text_of("text") if t in "↑→↓←★"]
    members = min(4, len(cases["gridworld"].solution.members))
    assert len(arrows) == 35 * members and arrows.count("★") == members
    mixture = cases["wireless"].run.mixture
    assert mixture is not None
    heaviest = mixture.members[int(mixture.weights.argmax())].probabilities(np.arange(33)).argmax(axis=1)
    cells = re.findall(r'class="cell shade-\d"><title>([^<]*): action (\d)', cases["wireless"].page)[:33]
    names = list(cases["wireless"].problem.state_names or ())
    assert [(n, int(a)) for n, a in cells] == list(zip(names, heaviest.tolist(), strict=True))


def test_places() -> None:
    both = places_of([f"queue {q}, channel {c}" for q in range(11) for c in ("deep fade", "fair")])
    assert both is not None and both.names == ("queue", "channel")
    assert both.across == [str(q) for q in range(11)] and both.up == ["deep fade", "fair"] and both.at[3] == (1, 1)
    one = places_of([f"{n} in system" for n in (0, 10, 2)])
    assert one is not None and one.names == ("in system", "") and one.across == ["0", "2", "10"]
    marked = places_of(["column 0, row 0 (dry)", "column 1, row 0 (lake)"])
    assert marked is not None and marked.remarks == ["dry", "lake"]
    for none in (None, ["a", "b"], ["x 1", "x 1"], ["s0", "s1, 2"], [f"p {i}, q {i}" for i in range(9)]):
        assert places_of(none) is None


def test_boxes_of_one_and_two_dimensions_are_drawn_as_maps(wireless: Reported) -> None:
    """A policy that takes action 1 right of the diagonal is drawn so, cell by cell."""
    assert wireless.run.mixture is not None
    for dim in (1, 2):
        edge = (lambda s: s[:, 1]) if dim == 2 else (lambda s: 0.5)
        features = FeatureFunction(lambda s, a, edge=edge: (a * (s[:, 0] - edge(s)))[:, None], 1, 2)
        box = BoxStates(np.zeros(dim), np.ones(dim))
        signal = Constraint("energy", lambda s, a: 0.0 * a, "<=", 1.2, range=(0.0, 1.0))
        start = Start(np.full((1, dim), 0.5), np.ones(1))
        problem = CMDP(0.9, start, 2, box, lambda s, a: 0.0 * a, [signal], features=features, reward_range=(0.0, 1.0))
        mixture = MixturePolicy((GreedyPolicy(features, np.ones(1)),), np.ones(1))
        run = dataclasses.replace(wireless.run, mixture=mixture, drawings=NOTHING_DRAWN, certificate=None)
        cells = re.findall(r">\(([^()]*)\): action (\d) 100", page_of(run, problem))
        assert len(cells) == 20**dim and {a for _, a in cells} == {"0", "1"}
        for place, action in cells:
            x, *y = map(float, place.split(", "))
            assert int(action) == (x > (y[0] if y else 0.5))


def test_the_gap_of_the_trace_ends_where_the_dual_ended(cases: dict[str, Reported]) -> None:
    for name in ("wireless", "features", "two"):
        case = cases[name]
        steps, found = gaps(case.problem, case.run.drawings.dual)
        assert steps[-1] == len(case.solution.trace.values) - 1  # type: ignore[union-attr]
        assert all(a >= b - 1e-12 for a, b in itertools.pairwise(found))
        assert case.solution.gap is not None
        np.testing.assert_allclose(found[-1], case.solution.gap, atol=1e-7)


def test_the_stored_frontier_is_the_frontier(cases: dict[str, Reported]) -> None:
    for name in ("wireless", "features", "gridworld", "descent"):
        case = cases[name]
        data, parts = case.run.drawings.frontier, case.solution.prepared
        curve = Frontier(parts, 0, 1e-4 * case.problem.horizon)
        points = data.curves[0].points
        for point in points[::9]:
            expected = curve.at(point.threshold)
            np.testing.assert_allclose(point.value, expected.value, rtol=1e-12)
            np.testing.assert_allclose(point.multiplier, expected.multiplier, rtol=1e-12)
        np.testing.assert_array_equal(data.columns, [v for _, v in parts.oracle.columns])
        assert case.problem.user_thresholds()[0] in [p.threshold for p in points]


def test_design_and_trace_are_those_of_the_solution(cases: dict[str, Reported]) -> None:
    case = cases["features"]
    data, design = case.run.drawings.design, case.solution.prepared.design
    order = np.argsort(-design.weights, kind="stable")
    np.testing.assert_array_equal(data.weights, design.weights[order])
    np.testing.assert_allclose(np.dot(data.weights, data.leverages), data.rank)  # Σ ρ̃ φᵀG⁻¹φ = d
    trace = case.run.drawings.dual
    np.testing.assert_array_equal(trace.values, case.solution.trace.values)  # type: ignore[union-attr]


def test_a_run_without_drawings_still_gives_a_page(wireless: Reported, tmp_path: Path) -> None:
    from saddleback.runs.run_folder import save_run
    from saddleback.runs.targets import origin_of

    save_run(tmp_path / "run", wireless.solution, origin_of("wireless", ()), wireless.run.request, 0)
    page = page_of(load_run(tmp_path / "run"), wireless.problem)
    assert "This policy earns" in text_of(page) and "slider-0" not in page.split("<script>")[0]


# ---- the command -----------------------------------------------------------------------------------------------------


def test_report_writes_the_page(wireless: Reported, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "page.html"
    report(wireless.run.path, out=place)
    assert place.read_text() == wireless.page
    assert "page.html" in capsys.readouterr().out.replace("\n", "")
    report(wireless.run.path, out=place, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == place.stat().st_size and told["report"] == str(place)
    assert told["drawn_from"] == ["design.json", "dual.json", "frontier.json"]
    assert write_report(str(wireless.run.path), tmp_path / "again.html") == tmp_path / "again.html"
    assert (tmp_path / "again.html").read_text() == wireless.page
    with pytest.raises(InputError, match="existing folder"):
        report(wireless.run.path, out=tmp_path / "nowhere" / "page.html")
    with pytest.raises(InputError, match="must be a plain file"):
        report(wireless.run.path, out=tmp_path)
    with pytest.raises(InputError, match="solve --out"):
        report(tmp_path / "missing")


def test_report_as_a_verb(wireless: Reported, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, code in (([wireless.run.path, "--out", tmp_path / "a.html"], 0), ([tmp_path / "none"], 2)):
        with pytest.raises(SystemExit) as ended:
            cli.main(["report", *map(str, arguments)])
        assert int(ended.value.code or 0) == code
        out, err = capsys.readouterr()
        assert "Traceback" not in err and ("open it in any browser" in out) == (code == 0)
    assert (tmp_path / "a.html").read_text() == wireless.page


@pytest.mark.slow
def test_the_command_on_the_page_makes_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["--set", "budget=0.2", "--samples", "20000", "--certificate-samples", "5000", "--seed", "3"]
    strict = ["--feasibility", "strict", "--delta", "0.1", "--evaluator", "tabular-pe"]
    with pytest.raises(SystemExit):
        cli.main(["solve", "wireless", *asked, *strict, "--out", "run"])
    run = load_run("run")
    text = command(view_of(run, load_run_target(run).problem))
    assert text.startswith("saddleback solve wireless --set budget=0.2 --samples 20000 --certificate-samples 5000 ")
    with pytest.raises(SystemExit):
        cli.main(text.split()[1:])
    for name in ("solution.json", "certificate.json", "frontier.json", "dual.json", "design.json", "policy.npz"):
        assert Path("run", name).read_bytes() == Path("again", name).read_bytes(), name


# ---- files of strangers ----------------------------------------------------------------------------------------------


def _set(*path: Any) -> Callable[[Any], None]:
    *way, last, value = path

    def change(data: Any) -> None:
        for key in way:
            data = data[key]
        data[last] = value

    return change


POINT = ("curves", 0, "points", 0)
FORGERIES = [
    ("frontier.json", _set("format", "saddleback-frontier/9"), "format"),
    ("frontier.json", _set("columns", 0, 0, "1"), r"columns\[0\]\[0\]"),
    ("frontier.json", _set("columns", 0, [1.0]), "columns"),
    ("frontier.json", _set("columns", []), "columns"),
    ("frontier.json", _set("columns", [[0.0, 0.0]] * 6000), "1 to 5,000"),
    ("frontier.json", _set("limits", []), "limits"),
    ("frontier.json", _set("limits", 0, [[1.0, 2.0]]), r"limits\[0\]"),
    ("frontier.json", _set("confidence", 1), "confidence"),
    ("frontier.json", _set(*POINT, "members", [10**6]), "members"),
    ("frontier.json", _set(*POINT, "members", []), "members"),
    ("frontier.json", _set(*POINT, "weights", [2.0]), "members|weights"),
    ("frontier.json", _set(*POINT, "threshold", 1e9), "increasing"),
    ("frontier.json", _set(*POINT, "constraints", []), "constraints"),
    ("frontier.json", _set("more", 1), "unknown field"),
    ("dual.json", _set("iterations", 0, 10**9), "increase"),
    ("dual.json", _set("multipliers", 0, []), "column more"),
    ("dual.json", _set("values", []), "as many"),
    ("design.json", _set("states", 0, "<b>"), r"states\[0\]"),
    ("design.json", _set("states", 0, True), r"states\[0\]"),
    ("design.json", _set("weights", 0, 2.0), r"weights\[0\]"),
    ("design.json", _set("actions", []), "as many"),
    ("design.json", _set("size", 1), "at most size"),
    ("solution.json", _set("policy", 0, "constraints", [1.0, 2.0]), "speak of the 1"),
    ("solution.json", _set("remarks", [1]), r"remarks\[0\]"),
]


@pytest.mark.parametrize(("name", "change", "said"), FORGERIES)
def test_forged_files_are_refused_by_name(
    wireless: Reported, tmp_path: Path, name: str, change: Callable[[Any], None], said: str
) -> None:
    run = _forge(wireless, tmp_path, name, change)
    with pytest.raises(InputError, match=said) as caught:
        report(run, out=tmp_path / "page.html")
    assert name in str(caught.value) and not (tmp_path / "page.html").exists()


def test_an_unchanged_copy_is_taken(wireless: Reported, tmp_path: Path) -> None:
    for name in ("frontier.json", "solution.json"):
        report(_forge(wireless, tmp_path / name, name, lambda data: None), out=tmp_path / "page.html")
    assert (tmp_path / "page.html").exists()


STRANGE = [None, True, -1, 10**400, 1e300, -1e99, 1e-320, 0.0, "", HOSTILE, "\x1b[2J\ud800", [], [[]], {}, {"a": 1}]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["frontier.json", "dual.json", "design.json", "solution.json", "certificate.json"])
def test_a_page_of_strange_values_is_whole_or_refused(wireless: Reported, tmp_path: Path, name: str) -> None:
    """One value after another is replaced: whatever it is, there is a page in one piece or one message, never a traceback."""
    whole, rng = json.loads((wireless.run.path / name).read_bytes()), np.random.default_rng(7)
    places = list(_places(whole))
    refused: list[str] = []
    for n in range(40):
        place, strange = places[int(rng.integers(len(places)))], STRANGE[n % len(STRANGE)]
        try:
            run = _forge(wireless, tmp_path / str(n), name, _set(*place, strange))
            loaded = load_run(run)
            outline = Outline(page_of(loaded, load_run_target(loaded).problem))
        except SaddlebackError as error:
            refused.append(str(error))
            continue
        assert outline.faults == [] and {e for e, _ in outline.elements} <= KNOWN
        assert len(outline.named("script")) == 2
        numbers = [a for e, a in outline.elements if e in ("line", "circle", "rect", "path")]
        assert not any("nan" in str(v) or "inf" in str(v) for a in numbers for k, v in a.items() if k != "class"), place
    assert len(refused) > 5 and all(text.isprintable() for text in refused)


def _places(data: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every way into nested lists and objects."""
    for key, inner in data.items() if isinstance(data, dict) else enumerate(data):
        yield (*way, key)
        if isinstance(inner, (dict, list)):
            yield from _places(inner, (*way, key))


def _forge(case: Reported, folder: Path, name: str, change: Callable[[Any], None]) -> Path:
    """A copy of the run with one file changed, and a manifest that agrees."""
    run = folder / "run"
    run.mkdir(parents=True)
    for path in case.run.path.iterdir():
        if path.is_file():
            (run / path.name).write_bytes(path.read_bytes())
    data = copy.deepcopy(json.loads((run / name).read_bytes()))
    change(data)
    content = json.dumps(data).encode("ascii")
    (run / name).write_bytes(content)
    manifest = json.loads((run / "run.json").read_text())
    manifest["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (run / "run.json").write_text(json.dumps(sealed(manifest)))
    return run


# ---- the bricks ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.text(), st.text())
def test_any_text_comes_back_from_a_tag(content: str, attribute: str) -> None:
    outline = Outline(tag("p", content, title=attribute))
    shown, kept = "".join(outline.text_of("p")), outline.named("p")[0]["title"]
    assert outline.faults == [] and [e for e, _ in outline.elements] == ["p"]
    if content.isprintable():
        assert shown == content
    if attribute.isprintable():
        assert kept == attribute


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False), lambda x: st.lists(x, max_size=3)))
def test_any_data_comes_back_from_its_block(data: Any) -> None:
    block = data_block("numbers", data)
    inner = block.removeprefix('<script type="application/json" id="numbers">').removesuffix("</script>")
    assert not set("<>&") & set(inner) and json.loads(inner) == data


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_and_inside(low: float, span: float) -> None:
    scale = Scale(low, low + span, 0, 100)
    if scale.high - scale.low < 1e-9 * max(1.0, abs(low)):
        return
    found = ticks(scale)
    assert len(found) <= 6 and all(low - 1e-9 <= t <= low + span + 1e-9 for t in found)
