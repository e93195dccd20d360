"""The page: sections in the order in which people ask, one file, no network.

The Content-Security-Policy allows the page's own style sheet and script, by their hashes, and nothing else: what a stranger
wrote into a run folder could not run even if it were taken for HTML.
"""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from saddleback._version import __version__
from saddleback.errors import InputError
from saddleback.files.disk import written_whole
from saddleback.problem.cmdp import CMDP
from saddleback.reports.html import sections
from saddleback.reports.html.markup import Content, Markup, data_block, tag
from saddleback.reports.html.policy_figure import policy
from saddleback.reports.html.tradeoff_figure import tradeoff
from saddleback.reports.html.view import View, answer_sentence, view_of
from saddleback.runs.numbers import between, number
from saddleback.runs.outputs import check_output, is_page
from saddleback.runs.run_folder import Run, verify_run
from saddleback.runs.targets import load_run_problem

_STATUS = {"solved": "good", "infeasible": "bad"}

MOST_BYTES = 3_000_000
"""What a page may take."""


def report(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    problem: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Path:
    """Write a stored run as one self-contained HTML page, and return its path.

    Parameters
    ----------
    run      a folder that ``solve(..., out=...)`` or ``saddleback solve --out`` wrote
    out      the file to write; RUN.html beside the folder if None; a page of ours that is there is replaced
    problem  the problem file that the run was made from, for a run of an earlier version; others hold all that is needed
    force    let ``out`` replace a file of another kind
    """
    return write_page(verify_run(run, contents=False), out, problem, force=force)


def write_page(
    run: Run,
    out: str | os.PathLike[str] | None = None,
    problem_file: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
) -> Path:
    """As :func:`report`, for a run that is loaded already."""
    place = check_output("out", f"{os.path.abspath(run.path)}.html" if out is None else out, is_page, force=force)
    content = page_of(run, load_run_problem(run, problem_file)).encode()
    if len(content) > MOST_BYTES:
        remedy = "shorten the names of states and constraints"
        raise InputError("run", f"must fit a page of {MOST_BYTES:,} bytes", f"{len(content):,}", remedy)
    with written_whole(place) as file:
        file.write(content)
    return place


def page_of(run: Run, problem: CMDP) -> str:
    """The whole report as HTML."""
    view = view_of(run, problem)
    body, data = _sections(view)
    style, script = _asset("style.css"), _asset("report.js")
    policy_words = (
        f"default-src 'none'; style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy_words),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"saddleback {__version__}"),
        tag("title", f"{problem.name}: {run.solution.status}"),
        Markup(f"<style>{style}</style>"),
    )
    block = data_block("numbers", data) if data is not None else None
    main = tag("body", tag("main", _header(view), *body), _footer(), block, Markup(f"<script>{script}</script>"))
    return "<!doctype html>\n" + tag("html", head, main, lang="en") + "\n"


def _asset(name: str) -> str:
    return (files("saddleback.reports.html") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _sections(view: View) -> tuple[list[Markup], dict[str, Any] | None]:
    drawings, data = view.run.drawings, None
    body = [_section("proved", "What is proved" if view.proof is not None else "What is known", sections.proof(view))]
    if drawings.frontier is not None:
        content, data = tradeoff(view, drawings.frontier)
        lead = "Move the slider: every number comes from the samples of this run; nothing is drawn again."
        note = tag("p", lead, class_="note")
        body.append(_section("frontier", "What if the threshold were different?", note, content))
    if view.run.mixture is not None:
        body.append(_section("policy", "The policy", sections.members(view), policy(view)))
    body.append(_section("starts", "By start state", sections.starts(view)))
    if drawings.dual is not None:
        body.append(_section("trace", "How the price was found", sections.trace(view, drawings.dual)))
    if drawings.design is not None:
        body.append(_section("design", "Where the samples were taken", sections.design(view, drawings.design)))
    body.append(_section("diagnostics", "Diagnostics", sections.diagnostics(view)))
    body.append(_section("reproduce", "How to reproduce it", sections.reproduce(view)))
    return body, data


def _section(identity: str, title: str, *children: Content) -> Markup:
    return tag("section", tag("h2", title, id=identity), *children, aria_labelledby=identity)


def _header(view: View) -> Markup:
    status = view.answer.status
    first, *rest = answer_sentence(view)
    answer = tag("p", tag("strong", first), " ", " ".join(rest), class_="answer")
    word = tag("span", status, class_=f"status {_STATUS.get(status, 'open')}")
    above = tag("p", "saddleback report ", word, class_="eyebrow")
    return tag("header", above, tag("h1", view.problem.name), answer, _keys(view))


def _keys(view: View) -> Markup:
    """The numbers to take away."""
    cards = []
    if view.reward.estimate is not None:
        for row in (view.reward, *view.constraints[:4]):
            within = "" if row.limits is None else f"{row.worth} {between(row.limits)}"
            cards.append((f"{row.name} {row.wanted}".strip(), number(row.estimate), within))
            if row.price is not None and len(view.constraints) == 1:
                cards.append(
                    (f"price of {row.name}", number(row.price), f"{view.problem.objective} per unit of threshold")
                )
    proof = view.proof
    spent = "" if proof is None else f"{proof.proof_samples:,} of them for the proof"
    cards.append(("simulator calls", f"{view.answer.samples:,}", spent))
    cells = (tag("div", tag("dt", name), tag("dd", value, tag("small", note))) for name, value, note in cards)
    return tag("dl", *cells, class_="keys")


def _footer() -> Markup:
    words = f"Made by saddleback {__version__}. This page is one file and asks nothing of the network."
    return tag("footer", tag("p", words))
