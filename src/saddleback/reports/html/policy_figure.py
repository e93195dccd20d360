"""The policy drawn where it can be: a map where the states' names say where they lie, a table where states are few.

A mixture plays one member for a whole episode, so every member has a drawing of its own; averaging them state by state would
show a policy that is never played. Colours are never alone: each cell also shows its action.

Where states lie is read from their names: "queue 3, channel fair" is a place in a plane, "4 in system" one on a line. Names
are cut at ", ". Of each part the words that all states share at its start and end are what it measures ("queue", "in system"),
the rest is the coordinate; what stands in brackets at the end ("(lake)") is a remark. If the coordinates tell all states apart,
and number at most two, the policy can be drawn as a map.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from saddleback.problem.policies import MixturePolicy
from saddleback.problem.policy_file import AbsentFeatures, with_features
from saddleback.problem.spaces import Array, BoxStates, States
from saddleback.reports.html.markup import Content, Markup, details, join, table, tag
from saddleback.reports.html.svg import WIDTH, figure, rectangle, text
from saddleback.reports.html.view import View
from saddleback.runs.numbers import percent

_MOST_MEMBERS = 4
_MOST_ROWS, _MOST_OPEN = 2_000, 16
_MOST_CHARACTERS = 800_000  # of a table of states, which is one part of the page
_MARKUP = 12  # characters around a cell
_ARROWS = "↑→↓←"
_SHADES = 6
_MOST_ACTIONS = 256
_CELLS = 20
_MOST_STATES = 1_500
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def policy(view: View) -> Markup:
    """The heaviest members, each as a map or a table."""
    mixture, problem = view.run.mixture, view.problem
    if mixture is None or problem.num_actions > _MOST_ACTIONS:
        return tag("p", "There is no policy that could be drawn.")
    if problem.features is not None:
        mixture = with_features(mixture, problem.features)
    elif isinstance(getattr(mixture.members[0], "features", None), AbsentFeatures):
        words = "The policy's features are code, which a report does not run; `saddleback act` says what it does in a state."
        return tag("p", words)
    order = np.argsort(-mixture.weights, kind="stable")[:_MOST_MEMBERS].tolist()
    found = _of_box(problem.states) if isinstance(problem.states, BoxStates) else _of_names(view)
    if found is None and problem.num_states is None:
        return tag("p", f"A policy on {problem.states} cannot be drawn; `saddleback act` says what it does in a state.")
    if found is None:
        return _table(view, mixture, order)
    places, states, names = found
    arrows = view.run.target == "gridworld" and problem.num_actions == len(_ARROWS)
    drawn = [
        _map(view, places, names, mixture.members[k].probabilities(states), float(mixture.weights[k]), n, arrows)
        for n, k in enumerate(order)
    ]
    rest = len(mixture.weights) - len(order)
    more = tag("p", f"{rest} lighter members are in policy.npz.", class_="note") if rest else None
    return join(_legend(view, arrows), tag("div", *drawn, class_="maps"), more)


def _of_names(view: View) -> tuple[Places, States, list[str]] | None:
    """A finite space whose names say where the states lie."""
    places = places_of(view.problem.state_names)
    if places is None:
        return None
    states = np.arange(len(places.at))
    return places, states, [view.state_name(s) for s in states.tolist()]


def _of_box(box: BoxStates) -> tuple[Places, States, list[str]] | None:
    """The middles of a grid of cells over a box of one or two dimensions."""
    if box.dim > 2 or not np.all(np.isfinite([box.low, box.high])):
        return None
    counts = (_CELLS, _CELLS if box.dim == 2 else 1)
    ways = [
        low + (np.arange(n) + 0.5) / n * (high - low) for low, high, n in zip(box.low, box.high, counts, strict=False)
    ]
    labels = [[f"{x:.3g}" for x in way] for way in ways]
    at = [(i, j) for i in range(counts[0]) for j in range(counts[1])]
    states = np.array([[way[k] for way, k in zip(ways, cell, strict=False)] for cell in at])
    names = ["(" + ", ".join(f"{x:.4g}" for x in state) + ")" for state in states]
    up = labels[1] if box.dim == 2 else [""]
    axes = ("first coordinate", "second coordinate" if box.dim == 2 else "")
    return Places(axes, labels[0], up, at, [""] * len(at)), states, names


def _legend(view: View, arrows: bool) -> Markup | None:
    actions = view.problem.num_actions
    if arrows:
        return tag("p", "Arrows: the move it makes. Shaded: the lake. ★: the goal.", class_="note")
    if actions > 12:
        return None
    keys = [
        tag("span", view.action_name(a), class_=f"key key-shade shade-{_shade(a, actions)}") for a in range(actions)
    ]
    return tag("p", *keys, class_="legend")


def _shade(action: int, actions: int) -> int:
    """From light to strong, by the action's number."""
    return round(action * (_SHADES - 1) / max(actions - 1, 1))


def _map(view: View, places: Places, names: list[str], p: Array, weight: float, n: int, arrows: bool) -> Markup:
    """One cell a state, rows from below."""
    columns, rows = len(places.across), len(places.up)
    left = 0 if rows == 1 else min(10 + 7 * max(map(len, places.up)), 120)
    size = min(48.0, (WIDTH - left - 4) / columns)
    shapes: list[Markup] = []
    for s, (i, j) in enumerate(places.at):
        x, y = left + i * size, 4 + (rows - 1 - j) * size
        best = int(p[s].argmax())
        taken = ", ".join(f"{view.action_name(a)} {percent(p[s, a])}" for a in np.flatnonzero(p[s] > 0).tolist())
        remark = f" {'water' if places.remarks[s] == 'lake' else ''}".rstrip()
        shade = f"shade-{_shade(best, p.shape[1])}" if not arrows else "plain"
        shapes.append(rectangle(x + 1, y + 1, size - 2, size - 2, f"cell {shade}{remark}", f"{names[s]}: {taken}"))
        letter = _ARROWS[best] if arrows else str(best)
        if places.remarks[s] == "goal":
            letter = "★"
        if size >= 12:
            unsure = " unsure" if p[s, best] < 0.999 else ""
            colour = "" if arrows else f" on-{_shade(best, p.shape[1])}"
            shapes.append(text(x + size / 2, y + size / 2 + 5, letter, f"cell-text{unsure}{colour}", "middle"))
    bottom = 4 + rows * size
    every = math.ceil((8 * max(map(len, places.across)) + 6) / size)
    shapes += [
        text(left + (i + 0.5) * size, bottom + 15, places.across[i], "", "middle") for i in range(0, columns, every)
    ]
    if rows > 1:
        shapes += [
            text(left - 6, 4 + (rows - 0.5 - j) * size + 4, places.up[j], "", "end")
            for j in range(0, rows, max(1, rows // 8))
        ]
    shapes.append(text(left, bottom + 33, _axis_words(places), "name"))
    name = f"Member {n + 1}, played in {percent(weight)} of the episodes"
    counts = np.bincount(p.argmax(axis=1), minlength=p.shape[1])
    said = "; ".join(f"{view.action_name(a)} in {c} of {len(p)} states" for a, c in enumerate(counts) if c)
    drawing = figure(bottom + 40, name, said + ".", *shapes)
    return tag("div", tag("h3", name), drawing)


def _axis_words(places: Places) -> str:
    across, up = places.names
    return f"across: {across or 'state'}" + (f" · up: {up}" if up else "")


def _table(view: View, mixture: MixturePolicy, order: list[int]) -> Markup:
    """State by action; the chance of each action, one column a member, and a field to find a state by its name.

    Where there are too many states for a page, those in which episodes start come first.
    """
    S, A = view.problem.num_states or 0, view.problem.num_actions
    states = np.arange(min(S, _MOST_ROWS))
    if S > _MOST_ROWS:
        starts = np.asarray(view.problem.start.states)[np.argsort(-view.problem.start.weights, kind="stable")]
        first = dict.fromkeys([*starts[:_MOST_ROWS].tolist(), *states.tolist()])
        states = np.array(list(first)[:_MOST_ROWS])
    tables = [mixture.members[k].probabilities(states) for k in order]
    heads = ["state", *(f"member {n + 1} ({percent(float(mixture.weights[k]))})" for n, k in enumerate(order))]
    rows: list[list[Content]] = []
    room = _MOST_CHARACTERS
    for i, s in enumerate(states.tolist()):
        cells: list[Any] = [view.state_name(s), *(_chances(view, p[i]) for p in tables)]
        room -= sum(len(escape(cell)) + _MARKUP for cell in cells)
        if room < 0:
            break
        rows.append(cells)
    note = (
        f"Shown are {len(rows):,} of {S:,} states, start states first; policy.npz holds all." if len(rows) < S else ""
    )
    lead = f"What each member does in each state, out of {A} actions numbered from 0. {note}".strip()
    whole = table(heads, rows, "Actions by state")
    if len(rows) > _MOST_OPEN:
        whole = details(f"State by state ({len(rows):,})", _search(len(rows)), tag("div", whole, id="states"))
    return join(tag("p", lead, class_="note"), whole)


def _search(number: int) -> Markup:
    """A field that leaves those rows of the table whose text it holds; the script shows it."""
    field = tag("input", type="search", id="find-state", autocomplete="off", aria_controls="states")
    found = tag("output", f"{number:,} states", id="found-states", for_="find-state")
    return tag("p", tag("label", "Find a state ", for_="find-state"), field, " ", found, class_="note", hidden=True)


def _chances(view: View, p: Array) -> str:
    best = np.argsort(-p, kind="stable")[:3]
    if p[best[0]] > 0.999:
        return view.action_name(int(best[0]), "")
    return ", ".join(f"{view.action_name(a, '')}: {percent(float(p[a]))}" for a in best.tolist() if p[a] > 0.0005)


class Places(NamedTuple):
    """Axis names, their coordinates in order, and for each state its (column, row) and its remark."""

    names: tuple[str, str]
    across: list[str]
    up: list[str]
    at: list[tuple[int, int]]
    remarks: list[str]


def places_of(names: Sequence[str] | None) -> Places | None:
    """The places, or None where the names do not tell."""
    if names is None or not 2 <= len(names) <= _MOST_STATES:
        return None
    bare, remarks = [], []
    for name in names:
        found = re.fullmatch(r"(.*?)\s*\(([^()]*)\)", name)
        bare.append(found.group(1) if found else name)
        remarks.append(found.group(2) if found else "")
    cut = [name.split(", ") for name in bare]
    if {len(parts) for parts in cut} not in ({1}, {2}):
        return None
    columns = [_coordinate([parts[j] for parts in cut]) for j in range(len(cut[0]))]
    if len(columns) == 1:
        columns.append(("", [""] * len(names)))
    (first, xs), (second, ys) = columns
    across, up = _in_order(xs), _in_order(ys)
    at = [(across.index(x), up.index(y)) for x, y in zip(xs, ys, strict=True)]
    if len(set(at)) < len(at) or len(across) * len(up) > 1.5 * len(at) or len(across) < 2 or not _numbers(across):
        return None
    return Places((first, second), across, up, at, remarks)


def _coordinate(texts: list[str]) -> tuple[str, list[str]]:
    """What a part measures, and its values."""
    words = [t.split(" ") for t in texts]
    shortest = min(map(len, words))
    head = tail = 0
    while head < shortest - 1 and len({w[head] for w in words}) == 1:
        head += 1
    while tail < shortest - 1 - head and len({w[-1 - tail] for w in words}) == 1:
        tail += 1
    name = " ".join([*words[0][:head], *words[0][len(words[0]) - tail :]])
    return name, [" ".join(w[head : len(w) - tail]) for w in words]


def _in_order(values: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(values))
    return sorted(distinct, key=float) if _numbers(distinct) else distinct


def _numbers(values: list[str]) -> bool:
    return all(_NUMBER.fullmatch(v) for v in values)
