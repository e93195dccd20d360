"""What is exported: a policy with the names of its states and actions, and a sentence on what it is worth.

*Proved* is what the run's certificate says of the very policy that is exported, or a new certificate for it; *exact* is what was
computed on a known table; all else is an *estimate*, and called so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from saddleback._version import __version__
from saddleback.certificates import Certificate
from saddleback.errors import InputError, require
from saddleback.features.program import Program, program_of
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy, SoftmaxPolicy, TabularPolicy
from saddleback.problem.policy_file import AbsentFeatures, with_features
from saddleback.problem.spaces import Array, BoxStates, States
from saddleback.runs.answer import AnswerRecord
from saddleback.runs.certificate_file import CertificateRecord
from saddleback.runs.exact_run import is_exact
from saddleback.runs.numbers import confidence, limits_in, number
from saddleback.runs.run_folder import Run, without_policy
from saddleback.runs.stored_policy import chosen_policy
from saddleback.runs.targets import load_run_problem, load_run_target

_MOST_STATES = 10_000_000
Kind = Literal["stationary", "mixture"]
_STANDING = {
    "certified": "Every constraint is proved to hold.",
    "refuted": "It is proved to miss a constraint.",
    "undecided": "Feasibility is open: these limits do not settle whether every constraint holds; more samples narrow them.",
}


class Points(NamedTuple):
    """States at which a policy over a box is tabulated: those of a file, or so many that fill the box."""

    file: Path | None = None
    number: int = 10_000


class Worth(NamedTuple):
    """Reward and constraints, (1+m,) each with its limits where there are any, in totals; ``proved`` or ``exact`` is what they are.

    ``own`` is False for a policy that stands for the mixture that was solved for.
    """

    own: bool
    proved: bool
    values: list[float] | None
    limits: list[tuple[float, float]] | None
    confidence: float | None
    note: str
    exact: bool = False


@dataclass(frozen=True)
class ExportedPolicy:
    """A policy that can be played, with the problem it is for."""

    problem: CMDP
    mixture: MixturePolicy
    kind: Kind
    worth: Worth
    run: str
    feasible: str | None = None
    """What the proof says of the constraints: "certified", "refuted" or "undecided"; None where there is none of this policy."""

    @cached_property
    def program(self) -> Program:
        """The features of a linear policy as operations; an error where they are code."""
        program = program_of(self.problem.features)
        if program is None:
            rule = "must be csv or npz for a policy whose features are code, or of numbered states too many to list"
            raise InputError("--to", rule, "another format", "features with a name (docs/features.md) can be exported")
        return program

    @property
    def tabular(self) -> bool:
        """Whether the members are tables over numbered states."""
        return isinstance(self.mixture.members[0], TabularPolicy)

    @property
    def tables(self) -> Array:
        """π(a|s) of every member, ``(k, S, A)``, where they are tables."""
        every = np.arange(self.problem.num_states or 0)
        return np.array([member.probabilities(every) for member in self.mixture.members])

    @property
    def thetas(self) -> tuple[Array, Array]:
        """θ ``(k, d)`` and β ``(k,)`` of every member, where they are linear; β = 0 is greedy."""
        members: list[Any] = list(self.mixture.members)
        beta = [m.beta if isinstance(m, SoftmaxPolicy) else 0.0 for m in members]
        return np.array([m.theta for m in members]), np.array(beta)

    @property
    def action_names(self) -> list[str]:
        """What the actions are called, their numbers where they have no names."""
        names = self.problem.actions
        return list(names) if names is not None else [str(a) for a in range(self.problem.num_actions)]

    def sentence(self) -> str:
        """What the policy is and what it is worth."""
        what, n = "The mixture", len(self.mixture.members)
        if self.kind == "stationary":
            what = "One stationary policy" if self.worth.own else "One stationary policy in the place of the mixture"
        elif n > 1:
            what = f"A mixture of {n} policies: one is drawn at the start of an episode and plays it to its end"
        worth, p = self.worth, self.problem
        if worth.values is None and worth.limits is None:
            return f"{what}. {worth.note}"
        heads, units = [p.objective, *(c.name for c in p.constraints)], [p.reward_unit, *p.units]
        limits = zip(p.constraints, p.units, p.user_thresholds(), strict=True)
        wanted = ["", *(f" ({c.sense} {unit.say(float(b), number)})" for c, unit, b in limits)]
        known = [unit.say(x, number) for unit, x in zip(units, worth.values or (), strict=False)]
        if worth.limits:
            known = [limits_in(unit, x) + unit.suffix for unit, x in zip(units, worth.limits, strict=True)]
        rows = ", ".join(f"{h} {x}{w}" for h, x, w in zip(heads, known, wanted, strict=True))
        sure = "exact, on the known table" if worth.exact else "estimated, not proved"
        if worth.proved and worth.confidence is not None:
            sure = f"proved with {confidence(worth.confidence)} confidence"
        averages = ", or averages per step where that is said" if any(unit.per_step for unit in units) else ""
        return f"{what}. As discounted totals{averages}: {rows}; {sure}. {worth.note}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """What every format says of the policy, JSON-ready."""
        worth, p = self.worth, self.problem
        names = [p.objective, *(c.name for c in p.constraints)]
        return {
            "problem": p.name,
            "made_by": f"saddleback {__version__}",
            "run": self.run,
            "kind": self.kind,
            "feasible": self.feasible,
            "members": len(self.mixture.members),
            "worth": {
                "proved": worth.proved,
                "exact": worth.exact,
                "confidence": worth.confidence,
                "note": worth.note,
                "values": None if worth.values is None else dict(zip(names, worth.values, strict=True)),
                "limits": None if worth.limits is None else dict(zip(names, map(list, worth.limits), strict=True)),
                "wanted": {
                    c.name: [c.sense, float(f"{b:.12g}")]
                    for c, b in zip(p.constraints, p.user_thresholds(), strict=True)
                },
                "in_units": self._in_units(),
            },
            "says": self.sentence(),
        }

    def _in_units(self) -> dict[str, dict[str, Any]]:
        """Of constraints that were not given as totals what is wanted and known, in the unit in which they were."""
        p, (_, _, values, limits, *_) = self.problem, self.worth
        found = dict[str, dict[str, Any]]()
        for i, (c, unit) in enumerate(zip(p.constraints, p.units, strict=True), start=1):
            if unit.per_step:
                ends = None if limits is None else list(unit.limits_of(limits[i]))
                value = None if values is None else unit.of(values[i])
                found[c.name] = {"units": unit.name, "wanted": c.threshold, "value": value, "limits": ends}
        return found

    def points(self, points: Points) -> States:
        """The states of a csv file: all, or those of a box that were asked for."""
        space = self.problem.states
        if not isinstance(space, BoxStates):
            n = self.problem.num_states or 0
            rule = f"must have at most {_MOST_STATES:,} states to be listed"
            require(n <= _MOST_STATES, "RUN", rule, f"{n:,}", "export it as npz")
            require(
                points.file is None, "--states", "must be left out: every state is listed", points.file, "remove it"
            )
            return np.arange(n)
        if points.file is None:
            bounded = bool(np.all(np.isfinite(space.low)) and np.all(np.isfinite(space.high)))
            rule = "must be given for states without bounds"
            require(bounded, "--states", rule, "nothing", "name a file with a state a line, as in 0.5,-1")
            good, rule = 1 <= points.number <= _MOST_STATES, f"must be 1 to {_MOST_STATES:,}"
            require(good, "--points", rule, points.number, "use 10000")
            return space.spread(points.number)
        return _read_states(points.file, space)


def exported(
    run: Run,
    which: str | None = None,
    problem_file: str | os.PathLike[str] | None = None,
    proof: Certificate | None = None,
) -> ExportedPolicy:
    """The policy of a run, ready to be written; ``proof`` is a new certificate for it."""
    if run.mixture is None:
        raise without_policy(run)
    mixture, kind = policy_to_export(run, which)
    problem = load_run_problem(run, problem_file)
    first: Any = mixture.members[0]
    if isinstance(getattr(first, "features", None), AbsentFeatures):
        if problem.features is None:  # they are code
            problem = replace(problem, features=load_run_target(run, problem_file).problem.features)
        assert problem.features is not None
        mixture = with_features(mixture, problem.features)
    worth = _worth(run, kind, proof)
    known = proof if proof is not None else run.certificate
    feasible = known.feasible if known is not None and worth.proved else None
    return ExportedPolicy(problem, mixture, kind, worth, run.path.name, feasible)


def policy_to_export(run: Run, which: str | None = None) -> tuple[MixturePolicy, Kind]:
    """One stationary policy where there is one, else the mixture, unless the user says ``which``."""
    assert run.mixture is not None
    single = len(run.mixture.members) == 1
    if which is None:
        which = "stationary" if single or run.stationary is not None else "mixture"
    mixture = chosen_policy(run, which)
    assert mixture is not None
    return mixture, "stationary" if single or which == "stationary" else "mixture"


def _worth(run: Run, kind: Kind, proof: Certificate | None) -> Worth:
    """From a new certificate, from the run's own if it is about this policy, or from estimates."""
    assert run.mixture is not None
    answer, same = run.solution, kind == "mixture" or len(run.mixture.members) == 1
    values = _estimates(answer, same)
    if proof is not None and proof.value is not None:
        note = f"{_STANDING[proof.feasible]} Certified when it was exported, from {proof.samples:,} further simulator calls."
        return Worth(same, True, values, [proof.value, *proof.constraints], proof.confidence, note)
    own: CertificateRecord | None = run.certificate
    if same and own is not None and own.value is not None:
        doubt = "The run's limits contradict each other, so nothing is decided." if own.contradictions else ""
        verdict = doubt or _STANDING[own.feasible]
        return Worth(same, not doubt, values, [own.value, *own.constraints], own.confidence, verdict)
    if same and is_exact(run):
        return Worth(same, False, values, None, None, "It needs no proof.", exact=True)
    if same or answer.stationary is None:
        return Worth(same, False, values, None, None, "There is no proof.")
    note = (
        f"It is {answer.stationary.label}. The run's proof is about the mixture: --which mixture exports that, "
        "--certificate-samples N proves what this one is worth."
    )
    return Worth(same, False, values, None, None, note)


def _estimates(answer: AnswerRecord, same: bool) -> list[float] | None:
    if same:
        return None if answer.value is None else [answer.value, *(c.value for c in answer.constraints)]
    one = answer.stationary
    return None if one is None else [one.value, *one.constraints]


def _read_states(file: Path, space: BoxStates) -> States:
    """One state a line, coordinates separated by commas; a first line of names is passed over."""
    try:
        lines = [line for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeError) as error:
        raise InputError("--states", "must be a text file", f"{file}: {error}", "check the path") from None
    rows, rule = list[list[float]](), f"must hold {space.dim} numbers a line, separated by commas"
    for i, line in enumerate(lines):
        try:
            row = [float(part) for part in line.split(",")]
        except ValueError:
            require(i == 0, "--states", rule, f"line {i + 1}: {line!r:.60}", "one state a line")
            continue
        require(len(row) == space.dim, "--states", rule, f"line {i + 1}: {line!r:.60}", "one state a line")
        rows.append(row)
    states = np.array(rows, dtype=np.float64).reshape(-1, space.dim)
    require(len(states) > 0, "--states", "must hold a state", "none", "one state a line")
    for i in np.flatnonzero(space.outside(states))[:1]:
        box = f"must lie between {space.low.tolist()} and {space.high.tolist()}"
        raise InputError("--states", box, states[i].tolist(), "give states of the problem")
    return states
