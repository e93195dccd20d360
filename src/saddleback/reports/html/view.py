"""What a report says, before it is put on a page: the stored run as plain facts, each number with what it is worth.

*Proved* limits are the certificate's. *Likely* ones are measured from the samples that chose the policy, by the central limit
theorem: no proof, and always called what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from saddleback.certificates.certificate import ROUNDING, SUSPECTED
from saddleback.certificates.values.averages import differences
from saddleback.errors import InputError, require
from saddleback.files.json_file import Limits, leaves, plain, short, to_plain
from saddleback.problem.cmdp import CMDP
from saddleback.problem.criteria import TOTAL, Unit
from saddleback.runs.answer import AnswerRecord
from saddleback.runs.certificate_file import CertificateRecord
from saddleback.runs.constraint_report import shown_price
from saddleback.runs.numbers import number, percent, sentence, symbol
from saddleback.runs.run_folder import Run
from saddleback.runs.words import empty_bound, standing, whole_range

Worth = Literal["proved", "likely", "none"]
_MOST_NUMBER = 1e100
_AGAIN = "run `saddleback solve ... --out` again"


class Row(NamedTuple):
    """One quantity: the estimate, its limits and what they are worth, and for a constraint what is wanted of it.

    All numbers are in the ``unit`` that the constraint was given in. ``verdict`` says what the limits mean for the threshold,
    ``conclusion`` the same as the end of a sentence.
    """

    name: str
    estimate: float | None
    limits: tuple[float, float] | None
    worth: Worth
    sense: str = ""
    threshold: float | None = None
    price: float | None = None
    verdict: str = ""
    conclusion: str = ""
    unit: Unit = TOTAL

    @property
    def wanted(self) -> str:
        """ "≤ 1.2", "≤ 0.15 per step", or nothing for the reward."""
        return "" if self.threshold is None else f"{symbol(self.sense)} {number(self.threshold)}{self.unit.suffix}"

    def holds(self, value: float) -> bool:
        """Whether a value meets the threshold, up to rounding."""
        assert self.threshold is not None
        room = value - self.threshold if self.sense == ">=" else self.threshold - value
        return room >= -1e-7 * max(1.0, abs(self.threshold))


@dataclass(frozen=True)
class View:
    """A run whose fields have been checked, with the problem it is of."""

    run: Run
    problem: CMDP
    reward: Row
    constraints: tuple[Row, ...]

    @property
    def answer(self) -> AnswerRecord:
        """``solution.json``."""
        return self.run.solution

    @property
    def proof(self) -> CertificateRecord | None:
        """``certificate.json``."""
        return self.run.certificate

    @property
    def bound(self) -> float | None:
        """What no policy can earn more than; None where that is not proved, or no more than the range of rewards says."""
        bound = None if self.proof is None else self.proof.upper_bound
        return None if empty_bound(self.problem, bound) else bound

    @property
    def confidence(self) -> float:
        """Of the limits."""
        if self.proof is not None:
            return self.proof.confidence
        delta = self.answer.settings.get("delta", 0.05)
        return 1 - delta if 0 < delta < 1 else 0.95

    @property
    def average_remarks(self) -> list[str]:
        """Where averages over time are not what the discounted ones are."""
        proof = self.proof
        if proof is None or proof.averages is None or not proof.constraints:
            return []
        return [remark.text for remark in differences(self.problem, proof.averages, proof.constraints)]

    def heads(self, *first: str) -> list[str]:
        """Heads of a table whose last columns are the reward and the constraints."""
        return [*first, self.problem.objective, *(f"{row.name} {row.wanted}" for row in self.constraints)]

    def action_name(self, action: int, word: str = "action ") -> str:
        """As the problem calls it, or ``word`` and its number."""
        names = self.problem.actions
        if names is None or not 0 <= action < len(names):
            return f"{word}{action}"
        return plain(names[action], 80)

    def state_name(self, state: Any) -> str:
        """As the problem calls it."""
        names = self.problem.state_names
        if isinstance(state, int) and names is not None and 0 <= state < len(names):
            return plain(names[state], 80)
        if isinstance(state, list):
            return "(" + ", ".join(f"{x:.4g}" if isinstance(x, (int, float)) else short(x) for x in state[:8]) + ")"
        return f"state {state}" if isinstance(state, (int, float)) else plain(str(state), 80)


def view_of(run: Run, problem: CMDP) -> View:
    """The facts, once it is known that the files are about this problem and hold numbers that can be drawn."""
    m, proof, answer = problem.num_constraints, run.certificate, run.solution
    files = {"solution.json": answer, **({} if proof is None else {"certificate.json": proof}), **run.drawings.files()}
    for name, record in files.items():
        for x in leaves(to_plain(record)):
            large = isinstance(x, (int, float)) and abs(x) > _MOST_NUMBER
            # Numbers so large that their differences, or their squares, are none cannot be drawn.
            require(not large, str(run.path / name), f"must hold numbers up to {_MOST_NUMBER:g}", x, _AGAIN)
    lists: dict[str, list[Sequence[object]]] = {
        "solution.json": [answer.constraints, answer.multipliers, *(x.constraints for x in answer.policy)],
        "certificate.json": [] if proof is None else [x.constraints for x in proof.by_start],
    }
    for name, wrong in ((name, len(x)) for name, rows in lists.items() for x in rows if len(x) not in (0, m)):
        raise InputError(str(run.path / name), f"must speak of the {m} constraints of the problem", wrong, _AGAIN)
    limits = None if proof is None else proof.value
    unit = problem.reward_unit
    ends = None if limits is None else (unit.shown(limits[0]), unit.shown(limits[1]))
    value = None if answer.value is None else unit.shown(answer.value)
    known = "" if limits is None else whole_range(problem, limits)
    reward = Row(problem.objective, value, ends, "none" if limits is None else "proved", verdict=known, unit=unit)
    constraints = tuple(_row(problem, answer, proof, i) for i in range(m))
    return View(run, problem, reward, constraints)


def _row(problem: CMDP, answer: AnswerRecord, proof: CertificateRecord | None, i: int) -> Row:
    c, unit = problem.constraints[i], problem.units[i]
    found = answer.constraints[i] if answer.constraints else None
    price = shown_price(problem, i, answer.multipliers[i]) if answer.multipliers else None
    limits: Limits | None = None
    worth: Worth = "none"
    if proof is not None and proof.value is not None:
        limits, worth = proof.constraints[i], "proved"
    elif found is not None and found.low is not None and found.high is not None:
        limits, worth = (found.low, found.high), "likely"
    limits = None if limits is None else (unit.shown(limits[0]), unit.shown(limits[1]))
    value = None if found is None else unit.shown(found.value)
    row = Row(c.name, value, limits, worth, c.sense, c.threshold, price, unit=unit)
    if proof is not None and proof.contradictions:
        return row._replace(verdict="in doubt", conclusion="which is in doubt")
    allowed = proof.allowance[i] if proof is not None and worth == "proved" else 0.0
    rounding = ROUNDING * problem.horizon * abs(float(problem.scale[1 + i]))
    verdict, conclusion = _verdict(row, unit.of(allowed), unit.of(rounding))
    return row._replace(verdict=verdict, conclusion=conclusion)


def _verdict(row: Row, allowed: float, rounding: float) -> tuple[str, str]:
    """What the limits say of the threshold, in a few words and as the end of a sentence."""
    if row.limits is None or row.threshold is None:
        return "not measured", ""
    kind, least, most = standing(row.limits, row.sense, row.threshold, allowed, rounding)
    if kind == "open":
        missed = f"missed by at most {number(most)}"
        return f"open: {missed}", f"so the limit may be {missed}"
    found = {
        "holds": f"{row.worth} to hold",
        "allowed": f"{row.worth} to hold within the {number(allowed)} that was allowed",
        "fails": f"{row.worth} to be missed, by {number(least)} or more",
    }[kind]
    return found, f"so the limit is {found}"


def answer_sentence(view: View) -> list[str]:
    """The answer in plain words: one sentence a part."""
    answer, proof, reward = view.answer, view.proof, view.reward
    if reward.estimate is None:
        parts = [sentence(answer.message)]
        if proof is not None and proof.infeasible == "proved":
            parts.append(
                f"That no policy can meet the constraints is proved with {percent(view.confidence)} confidence."
            )
        return parts
    earned = f"This policy {'costs' if view.problem.minimise else 'earns'} {number(reward.estimate)}"
    if reward.limits is not None:
        earned += f", proved between {number(reward.limits[0])} and {number(reward.limits[1])}"
    parts = [earned + "."]
    if answer.status != "solved" and not (proof is not None and proof.contradictions):  # which are told at the end
        parts.append(sentence(f"{answer.status}: {answer.message}"))
    for row in view.constraints:
        allowed = "at least {} wanted" if row.sense == ">=" else "at most {} allowed"
        kept = f"It keeps {row.name} at {number(row.estimate)}{row.unit.suffix}, with {allowed.format(number(row.threshold))}"
        if row.limits is not None:
            ends = f"{number(row.limits[0])} and {number(row.limits[1])}"
            kept += f": {'proved' if row.worth == 'proved' else 'likely'} to lie between {ends}, {row.conclusion}"
        parts.append(kept + ".")
    if view.bound is not None:
        most = "cost less than" if view.problem.minimise else "earn more than"
        parts.append(f"No policy that meets the constraints can {most} {number(view.bound)}.")
    if proof is not None and proof.contradictions:
        doubts = "; ".join(plain(text, 1000) for text in proof.contradictions)
        parts.append(f"These limits cannot all be true, so nothing is decided: {doubts}. Suspected: {SUSPECTED}.")
    elif proof is not None and proof.value is not None:
        parts.append(f"All of this holds together with {percent(view.confidence)} confidence.")
    return parts
