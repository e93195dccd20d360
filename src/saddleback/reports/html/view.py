"""What a report says, before it is put on a page: the stored run as plain facts, each number with what it is worth.

*Proved* limits are the certificate's. *Likely* ones are measured from the samples that chose the policy, by the central limit
theorem: no proof, and always called what they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from saddleback.errors import InputError
from saddleback.files.json_file import Maybe, check_shape, plain, short
from saddleback.problem.cmdp import CMDP
from saddleback.runs.numbers import number, percent, symbol
from saddleback.runs.run_folder import Run

Worth = Literal["proved", "likely", "none"]
_ROUNDING = 1e-9
_MOST_NUMBER = 1e100
_ANSWER: dict[str, Any] = {  # the fields of solution.json that are drawn; others may be there
    "status": "text",
    "message": "text",
    "value": Maybe("number"),
    "samples": "whole",
    "remarks": ["text"],
    "settings": "object",
    "multipliers": ["number"],
    "policy": [{"weight": "number", "value": "number", "constraints": ["number"]}],
    "constraints": [
        {
            "name": "text",
            "value": "number",
            "threshold": "number",
            "sense": "text",
            "slack": "number",
            "low?": "number",
            "high?": "number",
        }
    ],
    "gap?": "number",
    "max_slack?": "number",
    "stationary?": {"value": "number", "constraints": ["number"], "label": "text"},
}


class Row(NamedTuple):
    """One quantity: the estimate, its limits and what they are worth, and for a constraint what is wanted of it.

    ``verdict`` says what the limits mean for the threshold, ``conclusion`` the same as the end of a sentence.
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

    @property
    def wanted(self) -> str:
        """ "≤ 1.2", or nothing for the reward."""
        return "" if self.threshold is None else f"{symbol(self.sense)} {number(self.threshold)}"

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
    def answer(self) -> dict[str, Any]:
        """``solution.json``."""
        return self.run.solution

    @property
    def proof(self) -> dict[str, Any] | None:
        """``certificate.json``."""
        return self.run.certificate

    @property
    def confidence(self) -> float:
        """Of the limits."""
        if self.proof is not None:
            return float(self.proof["confidence"])
        delta = self.answer["settings"].get("delta")
        return 1 - delta if isinstance(delta, float) and 0 < delta < 1 else 0.95

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
    """The facts; every field that will be drawn is checked first."""
    where, remedy = str(run.path / "solution.json"), "run `saddleback solve ... --out` again"
    known = {name.removesuffix("?") for name in _ANSWER}
    check_shape({k: v for k, v in run.solution.items() if k in known}, _ANSWER, where, remedy)
    for name, data in {"solution.json": run.solution, "certificate.json": run.certificate, **run.drawings}.items():
        _check_sizes(data, str(run.path / name), remedy)
    m, proof, answer = problem.num_constraints, run.certificate, run.solution
    rows = answer["constraints"]
    _same_length(where, remedy, m, [rows, answer["multipliers"], *(x["constraints"] for x in answer["policy"])])
    if proof is not None:
        starts = [x["constraints"] for x in proof["by_start"]]
        _same_length(str(run.path / "certificate.json"), remedy, m, starts)
    proved = proof is not None and proof["value"] is not None
    assert proof is not None or not proved
    reward = Row(
        problem.objective,
        answer["value"],
        tuple(proof["value"]) if proof and proved else None,
        "proved" if proved else "none",
    )
    thresholds = problem.user_thresholds().tolist()
    constraints = []
    for i, c in enumerate(problem.constraints):
        found = rows[i] if rows else {}
        limits: tuple[float, float] | None = None
        worth: Worth = "none"
        if proof is not None and proved:
            limits, worth = tuple(proof["constraints"][i]), "proved"
        elif "low" in found and "high" in found:
            limits, worth = (found["low"], found["high"]), "likely"
        price = answer["multipliers"][i] if answer["multipliers"] else None
        row = Row(c.name, found.get("value"), limits, worth, c.sense, thresholds[i], price)
        allowed = proof["allowance"][i] if proof is not None and proved else 0.0
        verdict, conclusion = _verdict(row, allowed, abs(float(problem.scale[1 + i])))
        constraints.append(row._replace(verdict=verdict, conclusion=conclusion))
    return View(run, problem, reward, tuple(constraints))


def _check_sizes(data: Any, where: str, remedy: str) -> None:
    """Numbers so large that their differences, or their squares, are none cannot be drawn."""
    level = [data]
    while level:
        for x in level:
            if isinstance(x, (int, float)) and abs(x) > _MOST_NUMBER:
                raise InputError(where, f"must hold numbers up to {_MOST_NUMBER:g}", short(x), remedy)
        inner = (x.values() if isinstance(x, dict) else x for x in level if isinstance(x, (dict, list)))
        level = [x for values in inner for x in values]


def _same_length(where: str, remedy: str, m: int, lists: list[list[Any]]) -> None:
    """Every list speaks of all constraints of the problem, or of none."""
    wrong = {len(x) for x in lists} - {0, m}
    if wrong:
        raise InputError(where, f"must speak of the {m} constraints of the problem", wrong.pop(), remedy)


def _verdict(row: Row, allowed: float, scale: float) -> tuple[str, str]:
    """What the limits say of the threshold, in a few words and as the end of a sentence."""
    if row.limits is None or row.threshold is None:
        return "not measured", ""
    (low, high), b = row.limits, row.threshold
    most, least = (b - low, b - high) if row.sense == ">=" else (high - b, low - b)
    rounding, word = _ROUNDING * scale, "proved" if row.worth == "proved" else "likely"
    if most <= rounding:
        found = f"{word} to hold"
    elif allowed > 0 and most <= allowed + rounding:
        found = f"{word} to hold within the {number(allowed)} that was allowed"
    elif least > allowed + rounding:
        found = f"{word} to be missed, by {number(least)} or more"
    else:
        missed = f"missed by at most {number(most)}"
        return f"open: {missed}", f"so the limit may be {missed}"
    return found, f"so the limit is {found}"


def answer_sentence(view: View) -> list[str]:
    """The answer in plain words: one sentence a part."""
    answer, proof, reward = view.answer, view.proof, view.reward
    if reward.estimate is None:
        parts = [_capital(answer["message"]) + "."]
        if proof is not None and proof.get("infeasible") == "proved":
            parts.append(
                f"That no policy can meet the constraints is proved with {percent(view.confidence)} confidence."
            )
        return parts
    earned = f"This policy {'costs' if view.problem.minimise else 'earns'} {number(reward.estimate)}"
    if reward.limits is not None:
        earned += f", proved between {number(reward.limits[0])} and {number(reward.limits[1])}"
    parts = [earned + "."]
    for row in view.constraints:
        allowed = "at least {} wanted" if row.sense == ">=" else "at most {} allowed"
        kept = f"It keeps {row.name} at {number(row.estimate)}, with {allowed.format(number(row.threshold))}"
        if row.limits is not None:
            ends = f"{number(row.limits[0])} and {number(row.limits[1])}"
            kept += f": {'proved' if row.worth == 'proved' else 'likely'} to lie between {ends}, {row.conclusion}"
        parts.append(kept + ".")
    if proof is not None and proof["upper_bound"] is not None:
        most = "cost less than" if view.problem.minimise else "earn more than"
        parts.append(f"No policy that meets the constraints can {most} {number(proof['upper_bound'])}.")
    if proof is not None and proof["value"] is not None:
        parts.append(f"All of this holds together with {percent(view.confidence)} confidence.")
    return parts


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".")
