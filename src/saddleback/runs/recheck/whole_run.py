"""Check a whole run again: its proof (:func:`saddleback.runs.recheck.recheck`), and what its other files say of policy, request and answer.

files       the certificate names policy, problem and samples by hash; problem.json says what the problem says
policy      its weights are those of the answer, and those with which the rollouts drew their members
answer      mixture values, slacks and status follow from members, thresholds, request and certificate
truth       where the table is known: what the policy is really worth, and the true optimum, lie within what is stated
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from saddleback.errors import InputError
from saddleback.files.json_file import to_plain
from saddleback.instances.instance import Instance
from saddleback.problem.cmdp import CMDP
from saddleback.problem.digest import problem_digest
from saddleback.runs.answer import AnswerRecord
from saddleback.runs.certificate_file import CertificateRecord, ConstraintRecord, ProblemRecord, SignalRecord
from saddleback.runs.problem_record import QuestionRecord
from saddleback.runs.recheck import recheck
from saddleback.runs.recheck.check import Check, Request, close, signals_of, size, unchecked
from saddleback.runs.run_folder import Run
from saddleback.runs.targets import same_up_to_rounding
from saddleback.runs.truth import truth_of

_ROUNDING = 1e-9
_MOST_PAIRS = 20_000  # of a table whose truth is computed
_MOST_DEVIATIONS = (
    8.0  # of a member's share among the rollouts from its weight: chance does that with probability 1e-15
)


def recheck_run(run: Run, instance: Instance | None) -> list[Check]:
    """Everything that can be checked of a run with a certificate; ``instance`` is its problem, where that can be loaded."""
    proof, problem = run.certificate, None if instance is None else instance.problem
    assert proof is not None
    request = Request.of(run)
    checks = recheck(proof, run.rollouts, bound=run.bound, problem=problem, policy=run.mixture, request=request)
    return [
        _files(run, proof, instance),
        *checks,
        _policy(run, proof),
        _answer(run, proof, problem),
        _status(run, proof, request),
        _truth(run, proof, instance),
    ]


def _files(run: Run, proof: CertificateRecord, instance: Instance | None) -> Check:
    about = proof.about
    if about is None and run.known_by is None:
        return unchecked("files", "the version that wrote the run did not name them by hash")
    if about is None:
        return Check("files", False, "the certificate does not name them, which this version of a run does")
    named = {"policy.npz": about.policy, "rollouts.npz": about.rollouts, "bound.npz": about.bound}
    wrong = [name for name, sha in named.items() if run.files.get(name) != sha]
    known, named_code = run.known_by, run.target.endswith((".npz", ".drn", ".toml")) or run.target.startswith("python:")
    told = known is not None and about.problem == known.asks and (named_code or known.law is not None)
    if not told or (instance is not None and about.problem != problem_digest(instance.problem)):
        wrong.append("the problem")
    if run.question is not None and not _is_asked(run, run.question, proof, instance):
        wrong.append("problem.json")
    found = f"another than that of the certificate: {', '.join(wrong)}" if wrong else "policy, problem and samples"
    more = "; the problem itself was not loaded: --problem names its file" if instance is None and not wrong else ""
    return Check("files", not wrong, found + more)


def _is_asked(run: Run, told: QuestionRecord, proof: CertificateRecord, instance: Instance | None) -> bool:
    """Whether ``problem.json`` is about the problem, or where that is not loaded about what the certificate says of it."""
    if instance is None:
        try:
            asked = msgspec.structs.replace(ProblemRecord.of(told.problem()), observed=told.observed)
            return same_up_to_rounding(to_plain(proof.problem), to_plain(asked))
        except (InputError, ValueError):
            return False
    linear = run.mixture is not None and instance.problem.num_states is None
    question = QuestionRecord.of(instance.problem, linear)
    if (
        question is not None and told.observed is None and proof.problem.observed is None
    ):  # as earlier versions wrote them
        question = msgspec.structs.replace(question, observed=None)
    return question is not None and same_up_to_rounding(to_plain(question), to_plain(told))


def _policy(run: Run, proof: CertificateRecord) -> Check:
    if run.mixture is None:
        return Check("policy", proof.value is None and not run.solution.policy, "there is none")
    weights, told = run.mixture.weights, proof.evidence.rollouts
    members = [member.weight for member in run.solution.policy]
    right = len(members) == len(weights) and all(map(close, members, weights.tolist()))
    detail = (
        f"{len(weights)} members, with the weights of the answer"
        if right
        else "its weights are not those of the answer"
    )
    if told is not None and right:
        n = sum(told.by_member)
        spread = np.sqrt(n * weights * (1 - weights)) + 1.0
        share = len(told.by_member) == len(weights)
        if not share or np.any(np.abs(np.array(told.by_member) - n * weights) > _MOST_DEVIATIONS * spread):
            return Check("policy", False, "the rollouts did not draw its members with these weights")
    return Check("policy", right and (told is not None) == (proof.value is not None), detail)


def _answer(run: Run, proof: CertificateRecord, problem: CMDP | None) -> Check:
    """Sums over members, slacks and names, and the choices that ``run.json`` and ``solution.json`` both have."""
    wrong = [*_wrong_thresholds(proof), *_wrong_values(run.solution, proof), *_wrong_choices(run)]
    wrong += [*_wrong_units(run.solution, proof, problem), *_wrong_conflict(run.solution, proof)]
    if not proof.samples <= run.solution.samples <= _most_samples(run, proof):
        wrong.append("samples")
    return Check(
        "answer", not wrong, f"does not follow: {', '.join(wrong)}" if wrong else "estimates and choices agree"
    )


def _most_samples(run: Run, proof: CertificateRecord) -> float:
    """What was asked for, which is a limit; earlier versions went beyond it."""
    asked = run.request
    if proof.about is None or "from" in asked:
        return math.inf
    names = ("max_samples",) if "epsilon" in asked else ("samples", "certificate")
    given = [x for name in names if isinstance(x := asked.get(name), int)]
    return sum(given) if len(given) == len(names) else math.inf


def _wrong_thresholds(proof: CertificateRecord) -> Iterator[str]:
    """A constraint has its threshold twice, in the user's units and as a utility: the verdict needs one, the bound the other."""
    H = proof.problem.horizon
    for i, c in enumerate(proof.problem.constraints):
        apart = c.scale * c.unit_threshold + c.base * H - c.threshold
        if abs(apart) > _ROUNDING * H * (abs(c.base) + abs(c.scale)) or (c.scale > 0) != (c.sense == ">="):
            yield f"problem.constraints[{i}]"


def _wrong_values(answer: AnswerRecord, proof: CertificateRecord) -> Iterator[str]:
    members, m = answer.policy, len(proof.problem.constraints)
    if (answer.value is None) == bool(members) or len(answer.constraints) != (m if members else 0):
        yield "policy"
        return
    if any(len(member.constraints) != m for member in members):
        yield "policy.constraints"
        return
    mixed = [[k.weight * x for x in (k.value, *k.constraints)] for k in members]
    follows = [_follows(proof, j, sum(row[j] for row in mixed)) for j in range(1 + m)] if members else []
    if answer.value is not None and not follows[0](answer.value):
        yield "value"
    if any(price < 0 for price in answer.multipliers):
        yield "multipliers"
    H = proof.problem.horizon
    for i, (row, c) in enumerate(
        zip(answer.constraints, proof.problem.constraints, strict=False)
    ):  # none without a policy
        slack = row.value - row.threshold if row.sense == ">=" else row.threshold - row.value
        same = (row.name, row.sense) == (c.name, c.sense) and _near(c, H, row.threshold, c.threshold)
        zero = row.slack == 0 and abs(slack) <= 1e-7 * H * abs(c.scale)
        if not same or not (zero or _near(c, H, row.slack, slack)):
            yield f"constraints[{i}]"
        if not follows[1 + i](row.value):
            yield f"constraints[{i}].value"


def _follows(proof: CertificateRecord, j: int, mixed: float) -> Callable[[float], bool]:
    """Whether a stated value is what the members ``mixed`` to, or, where that lies outside the proved limits, the proof's own."""
    signal, H, told = signals_of(proof)[j], proof.problem.horizon, proof.evidence.rollouts
    allowed = [mixed]
    if proof.value is not None and told is not None:
        low, high = [proof.value, *proof.constraints][j]
        if not low <= mixed <= high:
            allowed.append(min(max(told.mean[j] * signal.scale + signal.base * H, low), high))
    return lambda value: any(_near(signal, H, value, x) for x in allowed)


def _wrong_units(answer: AnswerRecord, proof: CertificateRecord, problem: CMDP | None) -> Iterator[str]:
    """What a constraint was given in stands in both files, and its numbers in that unit follow from the totals."""
    H = proof.problem.horizon
    sizes = [H if c.units == "per-step" else 1.0 for c in proof.problem.constraints]
    prices = [size * x for size, x in zip(sizes, answer.multipliers, strict=False)]
    if answer.prices and not (len(prices) == len(answer.prices) and all(map(close, prices, answer.prices))):
        yield "prices"
    for i, c in enumerate(proof.problem.constraints):
        row = answer.constraints[i] if i < len(answer.constraints) else None
        if problem is not None and c.units not in (None, problem.constraints[i].units):
            yield f"problem.constraints[{i}].units"
        if row is None or (row.units is None and row.in_units is None):  # as earlier versions wrote it
            continue
        if row.units != c.units or (row.units == "per-step") != (row.in_units is not None):
            yield f"constraints[{i}].units"
        elif row.in_units is not None:
            pairs = [(getattr(row.in_units, name), getattr(row, name)) for name in ("value", "threshold", "slack")]
            if not all(_near(c, H, H * shown, total) for shown, total in pairs):
                yield f"constraints[{i}].in_units"


def _wrong_conflict(answer: AnswerRecord, proof: CertificateRecord) -> Iterator[str]:
    """Constraints that contradict each other are those of the problem, and what they reach at best is estimated."""
    H, known = proof.problem.horizon, {c.name: c for c in proof.problem.constraints}
    for i, row in enumerate(answer.conflict):
        c = known.get(row.name)
        right = c is not None and row.label == "estimated" and {row.name, *row.given} <= known.keys()
        if c is not None and right:
            total = H * row.limit if row.units == "per-step" else row.limit
            right = (row.sense, row.units) == (c.sense, c.units) and _near(c, H, total, c.threshold)
        if not right:
            yield f"conflict[{i}]"


def _wrong_choices(run: Run) -> Iterator[str]:
    settings, request = run.solution.settings, run.request
    for name in ("feasibility", "mode", "delta", "epsilon"):
        if name in settings and name in request and settings[name] != request[name]:
            yield f"settings.{name}"
    if run.certificate is not None and run.certificate.about is not None:
        yield from (f"request.{name}" for name in ("feasibility", "mode", "delta", "seed") if name not in request)
    usual = "projected-descent" if request.get("mode") == "literal" else "column-generation"
    if "dual" in settings and "dual" in request and settings["dual"] != (request["dual"] or usual):
        yield "settings.dual"
    seed = run.seed if "from" in request else request.get("seed", run.seed)  # one for stored samples is derived
    if not seed == run.seed == settings.get("seed", run.seed):
        yield "seed"


def _status(run: Run, proof: CertificateRecord, request: Request) -> Check:
    """What the status says must follow from the proof; one that says less is no fault."""
    status, told = run.solution.status, run.status
    right = told is None or told == status
    if status == "solved":
        right &= proof.value is not None and not proof.contradictions and proof.feasible != "refuted"
        if run.request.get("feasibility") == "strict" or request.epsilon is not None:
            right &= proof.feasible == "certified"
        if request.epsilon is not None:
            right &= proof.gap is not None and proof.gap <= request.epsilon * (1 + _ROUNDING)
    elif status == "refuted":
        right &= proof.feasible == "refuted"
    elif status == "infeasible":
        right &= proof.infeasible == "proved"
    else:
        right &= status in ("undecided", "budget-exhausted")
    return Check("status", right, f"'{status[:20]}' {'follows' if right else 'does not follow'}")


def _truth(run: Run, proof: CertificateRecord, instance: Instance | None) -> Check:
    """Exact values of the stored policy, and the exact optimum, within what is stated."""
    table = None if instance is None else instance.table
    if instance is None or table is None or table.reward.size > _MOST_PAIRS:
        return unchecked("the truth", "no table of bearable size is known")
    known = truth_of(instance, run.mixture)
    assert known is not None
    best, wrong = known["optimum"], list[str]()
    H, reward = proof.problem.horizon, proof.problem.reward
    feasible = best["status"] == "solved"
    if run.mixture is not None and proof.value is not None:
        true = [known["value"], *known["constraints"]]
        stated = {"limits": [proof.value, *proof.constraints]}
        stated |= {} if proof.linear is None else {"limits if linear": [proof.linear.value, *proof.linear.constraints]}
        for name, limits in stated.items():
            rows = zip(signals_of(proof), true, limits, strict=True)
            wrong += [name for signal, x, ends in rows if not _within(x, ends, _slack(signal, H, x))][:1]
    if proof.upper_bound is not None and feasible:
        side, near = proof.upper_bound - best["value"], _slack(reward, H, proof.upper_bound)
        cost = reward.scale < 0
        wrong += ["upper bound"] if (-side if cost else side) < -near else []
        if run.mixture is not None and proof.gap is not None:
            loss = known["value"] - best["value"] if cost else best["value"] - known["value"]
            wrong += ["gap"] if loss > proof.gap + near else []
    if proof.infeasible == "proved" and feasible:
        wrong.append("infeasibility")
    return Check("the truth", not wrong, f"is against: {', '.join(wrong)}" if wrong else "lies within what is stated")


def _slack(signal: SignalRecord | ConstraintRecord, H: float, x: float) -> float:
    return 1e-6 * size(signal, H, x)


def _within(x: float, limits: tuple[float, float], near: float) -> bool:
    return limits[0] - near <= x <= limits[1] + near


def _near(signal: SignalRecord | ConstraintRecord, H: float, a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=_slack(signal, H, 0.0))
