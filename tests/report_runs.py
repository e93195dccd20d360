"""Stored runs to make reports of, with the solution that they are of still in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

from saddleback import Solution, save_table
from saddleback.problem.cmdp import CMDP
from saddleback.reports.html.page import page_of
from saddleback.runs.run_folder import Run, load_run, save_run
from saddleback.runs.targets import load_run_target, load_target, origin_of
from saddleback.simulators.table import Table
from saddleback.solving.kept_run import drawings_of
from spelled_out import solve

HOSTILE = '</script><script>window.hacked = 1</script>"\'><img src=x onerror="window.hacked = 2">&amp;'


class Reported(NamedTuple):
    """A stored run, its solution, its problem and its page."""

    run: Run
    solution: Solution
    problem: CMDP
    page: str


def reported(folder: Path, target: str, settings: Sequence[str] = (), **options: Any) -> Reported:
    """Solve, store, load, and draw."""
    instance = load_target(target, settings)
    asked = {"samples": 30_000, "certificate": 30_000, "seed": 0, **options}
    solution = solve(instance.problem, instance.simulator, **asked)
    drawings = drawings_of(solution)
    save_run(folder, solution, origin_of(target, settings), asked, asked["seed"], drawings=drawings)
    run = load_run(folder)
    problem = load_run_target(run).problem
    return Reported(run, solution, problem, page_of(run, problem))


def hostile_table(table: Table, path: Path) -> str:
    """A table file all of whose names would like to be HTML."""
    states = [f"{HOSTILE} {s}" for s in range(table.num_states)]
    names = [f"{HOSTILE}{i}" for i in range(len(table.thresholds))]
    save_table(dataclasses.replace(table, state_names=states, names=names), path)
    return str(path)


class Outline(HTMLParser):
    """What a page is made of: every element with its attributes, in order; tags that do not match are faults."""

    _void = ("meta", "input", "br", "link", "hr")

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        self.faults += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self._void:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text_of(self, tag: str) -> list[str]:
        return [text for path, text in self.texts if path and path[-1] == tag]
