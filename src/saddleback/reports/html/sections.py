"""The sections of a report: each is a few sentences, a figure and a table, from the facts of a :class:`View`.

The last says how to repeat the run: the command, the versions, the seeds, and the hashes of what it drew and wrote.
"""

from __future__ import annotations

import itertools
import os
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from saddleback.certificates.values.averages import Averages
from saddleback.files.json_file import plain, read_json, sha256_of
from saddleback.reports.html import figures
from saddleback.reports.html.markup import Content, Markup, details, join, table, tag
from saddleback.reports.html.view import View
from saddleback.runs.certificate_file import CertificateRecord, LinearityRecord
from saddleback.runs.contradiction import conflict_sentences
from saddleback.runs.drawings_file import DesignRecord, DualRecord
from saddleback.runs.limits import options_of
from saddleback.runs.numbers import at_most, between, count, in_unit, limits_in, number, percent, sentence
from saddleback.runs.request_words import BUDGET, budget_options, option_of
from saddleback.runs.settings import Settings
from saddleback.runs.text import average, average_heads, values_are
from saddleback.runs.words import empty_bound
from saddleback.runs.work_folder import SAMPLES

_MOST_PAIRS_SHOWN = 40
_MOST_HEADER = 1 << 16
_MOST_FOLDERS = 20
_LITTLE = 1e-9  # of the largest reward there can be: a gap of rounding


def proof(view: View) -> Markup:
    """What is proved, or else measured: a figure, a table, and what it is worth."""
    proof, problem = view.proof, view.problem
    units = values_are(problem)
    computed = view.run.request.get("verb") == "exact"
    if view.reward.estimate is None and proof is None and not computed:
        return tag("p", "Nothing was proved: there is no policy, and no certificate.")
    parts: list[Content] = [_conflict(view)]
    if view.reward.estimate is not None:
        parts.append(figures.intervals(view))
        rows: list[list[Content]] = []
        for row in (view.reward, *view.constraints):
            verdict = row.verdict or ("estimated" if row.worth == "none" else row.worth)
            rows.append([row.name, row.wanted or problem.wanted, number(row.estimate), between(row.limits), verdict])
        if proof is not None and proof.upper_bound is not None:
            known = empty_bound(problem, proof.upper_bound) or "proved"
            rows.append(["best policy there is", "", "", at_most(proof.upper_bound, problem.minimise), known])
            rows.append(["what this one loses to it", "", "", at_most(proof.gap), "proved"])
        heads = ["quantity", "wanted", "estimate", "limits", "verdict"]
        parts.append(table(heads, rows, f"Limits, with {percent(view.confidence)} confidence", words=(0, 4)))
    if proof is None and computed:
        parts.append(tag("p", "All this is computed on the known table and checked there; no sample was drawn."))
    elif proof is None:
        parts.append(tag("p", "These limits are measured from the samples that chose the policy: likely, not proved."))
    else:
        parts.append(tag("p", _worth(view, proof)))
    if proof is not None and proof.averages is not None:
        parts.append(_averages(view, proof.averages))
    return join(*parts, tag("p", units, class_="note"))


def _conflict(view: View) -> Markup:
    """Why nothing is feasible, constraint by constraint; empty where it is, or where nothing is known."""
    rows = view.answer.conflict
    if not rows:
        return join()
    how = "computed on the known table" if rows[0].label == "exact" else "estimates from the samples, not proved"
    items = [tag("li", plain(text, 2000)) for text in conflict_sentences(view.problem, rows)]
    return join(tag("p", f"What the constraints leave to one another ({how}):"), tag("ul", *items))


def _averages(view: View, found: Averages) -> Markup:
    """Plain averages over time beside the discounted ones, which the limits are about."""
    rows: list[list[Content]] = []
    for row in view.constraints:
        for told in (told for told in found.constraints if told.name == row.name):
            cells = [between(row.limits), average(told.first), average(told.long_run)]
            rows.append([row.name, row.wanted, *cells])
    title = f"Averages over time: estimates from {found.samples:,} calls, not proved (± two standard errors)"
    lead = (
        "The limit is on the discounted average, in which early steps count most. The plain averages beside it are measured, and "
        "no proof is made of them."
    )
    heads = ["quantity", "wanted", "discounted", *average_heads(found)]
    warnings = [tag("p", sentence(text)) for text in view.average_remarks]
    return join(tag("p", lead), *warnings, table(heads, rows, title, words=(0, 1)))


def _worth(view: View, proof: CertificateRecord) -> str:
    spent = f"The proof took {proof.proof_samples:,} simulator calls"
    spent += ", drawn after the policy was fixed." if proof.value is not None else ", drawn after the solve."
    if not proof.samples:
        spent = "The proof needed no simulator call."
    assumed = list(dict.fromkeys(str(x) for x in proof.assumes.values()))
    verdict = {
        "certified": "The constraints are proved to hold. ",
        "refuted": "This policy is proved to miss a constraint. ",
        "undecided": "Whether the constraints hold is open: their limits lie on both sides. ",
    }[proof.feasible]
    if proof.contradictions:
        verdict = "Nothing is decided: what was found cannot all be true. "
    if proof.value is None:
        verdict = "No policy can meet the constraints: that is proved. " if proof.infeasible == "proved" else ""
    return verdict + spent + (f" It assumes {'; '.join(assumed)}." if assumed else "")


def members(view: View) -> Markup:
    """The members of the mixture, and who misses a constraint when played alone."""
    members = sorted(view.answer.policy, key=lambda m: -m.weight)
    rows: list[list[Content]] = []
    missing = 0.0
    for n, member in enumerate(members[:12]):
        cells: list[Content] = []
        broken = False
        for value, row in zip(member.constraints, view.constraints, strict=True):
            own = row.unit.shown(value)
            holds = row.holds(own)
            broken |= not holds
            cells.append(number(own) if holds else join(number(own), tag("span", " misses", class_="misses")))
        missing += member.weight if broken else 0.0
        rows.append([str(n + 1), percent(member.weight), in_unit(view.reward.unit, member.value), *cells])
    many, lead = len(members) > 1, "One policy, played in every episode."
    if many:
        lead = f"A mixture of {len(members)} policies: one is drawn when an episode starts and played to its end. "
        lead += f"{_on_average(view)} on average over these draws"
        lead += (
            "; by the estimates, every member also keeps them by itself."
            if not missing
            else (
                f", and that is all that is said of them. By the estimates, {percent(missing)} of all episodes are played by a "
                "member that would miss a constraint by itself; the others make up for it."
            )
        )
    heads = view.heads("member", "share of episodes")
    parts: list[Content] = [tag("p", lead), table(heads, rows, "The members and how each does on its own")]
    one = view.answer.stationary
    if one is not None and many:
        rows_of = zip(view.constraints, one.constraints, strict=False)
        values = ", ".join(f"{row.name} {row.unit.say(v, number)}" for row, v in rows_of)
        words = f"As one stationary policy: reward {in_unit(view.reward.unit, one.value)}, {values} ({one.label})."
        parts.append(tag("p", words, class_="note"))
    return join(*parts)


def _on_average(view: View) -> str:
    """What is known of the constraints of the mixture, as the beginning of a sentence."""
    proof = view.proof
    if proof is None or proof.value is None or proof.feasible == "undecided" or proof.contradictions:
        return "The constraints are meant to hold"
    return "The constraints are proved to hold" if proof.feasible == "certified" else "The constraints are missed"


def starts(view: View) -> Markup:
    """Limits of the values from single start states."""
    rows = [] if view.proof is None else view.proof.by_start
    starts = np.asarray(view.problem.start.states)
    if len(starts) == 1:
        name = view.state_name(starts.tolist()[0])
        return tag("p", f"Every episode starts in the same state, {name}: the limits above are those from there.")
    if not rows:
        return tag("p", "There are no limits by start state: no start state had enough rollouts of its own.")
    cells: list[list[Content]] = []
    for row in rows[:40]:
        of_constraints = zip(view.problem.units, row.constraints, strict=True)
        limits = (between(row.value), *(limits_in(unit, pair) for unit, pair in of_constraints))
        cells.append([view.state_name(row.state), percent(row.weight), f"{row.rollouts:,}", *limits])
    lead = f"Proved limits from each start state, which hold together with {percent(view.confidence)} confidence."
    whole = table(view.heads("start state", "probability", "rollouts"), cells, "Limits by start state")
    shown = whole if len(cells) <= 8 else details("As a table", whole)
    return join(tag("p", lead), figures.by_start(view, rows), shown)


def trace(view: View, trace: DualRecord) -> Markup:
    """How the dual moved, and what it left open."""
    gap = view.answer.gap
    lead = (
        f"{count(trace.total, 'iteration')}. Each asks for the best policy at a price λ on the constraint, and moves the price by "
        "what that policy does."
    )
    objective, little = view.problem.objective, _LITTLE * view.problem.horizon * view.problem.reward_span
    if gap is not None and gap <= little:
        lead += f" It ended where no other mixture of policies has a better {objective}, by the estimates."
    elif gap is not None:
        lead += (
            f" It ended where another mixture could improve the {objective} by {number(gap)} at most, by the estimates."
        )
    if len(trace.values[0]) != 1 + view.problem.num_constraints:
        return tag("p", lead)
    pair = tag("div", figures.multipliers(view, trace), figures.gap_figure(view.problem, trace), class_="pair")
    return join(tag("p", lead), pair)


def design(view: View, data: DesignRecord) -> Markup:
    """Which pairs were sampled, how often, and how much each of them matters."""
    equal = max(data.weights) - min(data.weights) <= 1e-12
    kind = "all state-action pairs" if data.features is None else f"{data.features} features, rank {data.rank}"
    lead = f"{data.size:,} pairs were sampled ({kind})."
    more = (
        f"The largest leverage, the factor by which noise can grow, is {number(data.leverage_bound)}, against a least "
    )
    more += f"possible of {data.rank:,}; the condition number is {number(data.condition)}."
    whole = zip(data.states, data.actions, data.weights, data.leverages, strict=True)
    heaviest = itertools.islice(whole, _MOST_PAIRS_SHOWN)
    rows: list[list[Content]] = [[view.state_name(s), str(a), percent(w), number(g)] for s, a, w, g in heaviest]
    pairs = table(["state", "action", "weight", "leverage"], rows, f"The {len(rows)} heaviest of {data.size:,} pairs")
    if equal:
        lead += " All have the same weight, so there is nothing to choose and nothing to draw."
    drawn = None if equal else figures.design(view, data)
    return join(tag("p", lead), details("The sampled pairs and their leverages", join(tag("p", more), drawn, pairs)))


def diagnostics(view: View) -> Markup:
    """Status, tests and remarks, one sentence each."""
    answer, proof = view.answer, view.proof
    items = [sentence(f"{answer.status}: {answer.message}")]
    if proof is not None and proof.linearity is not None:
        items.append(_linearity(proof.linearity))
    items += [sentence(remark) for remark in answer.remarks]
    items += [] if proof is None else [sentence(remark) for remark in proof.remarks]
    kinds = ("solver", "evaluator", "dual", "design", "mode")
    parts = [f"{kind} {answer.settings[kind]}" for kind in kinds if kind in answer.settings]  # type: ignore[literal-required]
    items += [sentence("parts used: " + ", ".join(parts))] if parts else []
    return tag("ul", *(tag("li", item) for item in items))


def _linearity(report: LinearityRecord) -> str:
    if report.passed:
        n = len(report.tests)
        return f"Linearity in the features was put to {n} test{'s' if n != 1 else ''} and not refuted; tests cannot prove it."
    words = "; ".join(str(t.meaning) for t in report.tests if not t.passed)
    return sentence(f"the problem is not linear in its features, so that no bound on the best policy is given: {words}")


def command(view: View) -> str:
    """The command that makes the run again."""
    run, request = view.run, dict(view.run.request)
    words = ["saddleback", str(request.pop("verb", "solve")), run.target, *options_of(run.settings)]
    if words[1] == "exact":
        request = {"method": request.get("method")} if request.get("method") != "auto" else {}
    words += itertools.chain(*budget_options(request).items())
    usual = Settings().record()["parts"]
    for name, value in request.items():
        if name not in BUDGET and value is not None and value != usual.get(name):
            words += [option_of(name), str(value)]
    return shlex.join([*map(_plain_word, words), "--out", "again"])


def _plain_word(word: str) -> str:
    """A word of a command, on one line."""
    return plain(word, 200)


def reproduce(view: View) -> Markup:
    """Commands, versions, seeds and hashes."""
    run, name = view.run, shlex.quote(_plain_word(view.run.path.name))
    commands = [
        ("Make the same run again", command(view)),
        ("Check its proof without the code that made it", f"saddleback certify {name} --recheck"),
        ("Prove it again from new samples", f"saddleback certify {name} --seed 7"),
        ("Make this page", f"saddleback report {name}"),
    ]
    shown = [join(tag("dt", words), tag("dd", tag("code", text))) for words, text in commands]
    versions = ", ".join(f"{plain(str(k))} {plain(str(v))}" for k, v in run.versions.items())
    seeds = f"Seed of the samples {run.seed}"
    if view.proof is not None:
        seeds += f", of the proof {view.proof.seed}"
    folders = _folders(run.path)
    return join(
        tag("dl", *shown, class_="commands"),
        tag("p", f"{seeds}. Versions: {versions}. The same seed gives the same samples, on any number of machines."),
        details("Fingerprints and hashes", _hashes(view, folders)),
    )


def _hashes(view: View, folders: list[tuple[str, dict[str, Any], str]]) -> Markup:
    rows: list[list[Content]] = [
        [tag("code", name), tag("code", digest)] for name, digest in sorted(view.run.files.items())
    ]
    rows += [[tag("code", f"{SAMPLES}/{name}/manifest.jsonl"), tag("code", digest)] for name, _, digest in folders]
    parts = [table(["file", "SHA-256"], rows, "What the run wrote and drew", words=(0, 1))]
    for name, fingerprint, _ in folders[:1]:
        fields: list[list[Content]] = [[plain(str(k)), tag("code", plain(str(v), 200))] for k, v in fingerprint.items()]
        parts.append(
            table(["field", "value"], fields, f"Fingerprint of the problem and its simulator ({name})", words=(0, 1))
        )
    return join(*parts)


def _folders(path: Path) -> list[tuple[str, dict[str, Any], str]]:
    """The sample folders of the run: name, fingerprint, and the hash of the manifest, which holds those of all shards."""
    found: list[tuple[str, dict[str, Any], str]] = []
    folder = path / SAMPLES
    names = sorted(os.listdir(folder))[:_MOST_FOLDERS] if folder.is_dir() and not folder.is_symlink() else []
    for name in names:
        manifest, header = folder / name / "manifest.jsonl", folder / name / "store.json"
        if manifest.is_file() and header.is_file():
            data = read_json(header, _MOST_HEADER, "run `saddleback solve ... --out` again")
            fields = data.get("fingerprint") if isinstance(data, dict) else None
            found.append((plain(name), fields if isinstance(fields, dict) else {}, sha256_of(manifest)))
    return found
