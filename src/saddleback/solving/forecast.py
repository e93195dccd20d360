"""What an accuracy will cost, before it is paid for: the worst case that is proved, and what is likely from a pilot.

*Worst case* (rigorous): :func:`saddleback.theory.plan`, with the size of the coreset; in strict mode it also needs a lower
limit of the Slater constant ζ, which is measured on the pilot, not proved.

*Adaptive* (heuristic): a run of ``solve(epsilon=…)`` ends with n samples in its buffers and ⁷⁄₃n in a certificate. The pilot's samples
say what that may be expected to show for any n (:mod:`.outlook`), so the least n that shows ε, with the margin that a run leaves, is
searched for, not extrapolated. Buffers grow without waste; a tenth is added for certificates that fail. The range goes from a
run without margin, which has luck, to one with twice the margin and a certificate that fails.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from saddleback.certificates import Request
from saddleback.designs.design import Design
from saddleback.errors import InputError, Remark, number, require
from saddleback.method.slater import Slater, estimate_slater
from saddleback.problem.cmdp import CMDP
from saddleback.problem.phases import phase
from saddleback.problem.start import going_on
from saddleback.runs.settings import USUAL_SAMPLES, Feasibility, Method, Settings
from saddleback.sampling.blocks import Executor
from saddleback.sampling.collect import TooFewSamples
from saddleback.sampling.examination import EXAMINATION_CALLS
from saddleback.sampling.fingerprint import CHECK_CALLS
from saddleback.sampling.memory import Lot, check, check_size, predict, predict_run
from saddleback.simulators.generative_model import BLOCK, GenerativeModel, Stream, generator
from saddleback.solving.find import budget_of
from saddleback.solving.outlook import MARGIN, PROOF, Outlook
from saddleback.solving.prepared import Prepared
from saddleback.solving.progress import Progress
from saddleback.solving.solution import Solution, rests_on
from saddleback.solving.strict import certified, guide_of
from saddleback.solving.table_size import budget_remarks, sampled_pairs
from saddleback.theory import Plan
from saddleback.theory import plan as worst_case_plan

AFFORDABLE = 1_000_000_000
"""Simulator calls above which no way is recommended."""

_PILOT, _PILOT_PER_PAIR = 20_000, 40
_BATCHES, _BATCH = 4, 1024
_FIRST_BATCH = 16  # where time is short
_ALSO_CALLED = EXAMINATION_CALLS + CHECK_CALLS
_LEAST_PILOT = 100
_FAILING, _FAILED = 1.1, 1.5  # times as many calls: for certificates that may fail, and where one does
_MOST = 1e13


class _Likely(NamedTuple):
    """Simulator calls of an adaptive run, a range of them, or why there is no number."""

    samples: int | None = None
    limits: tuple[int, int] | None = None
    why: str = ""


@dataclass(frozen=True)
class Forecast:
    """Costs in simulator calls; None, with the reason, where there is no number. Units are the user's, ``slater``'s utilities.

    ``likely`` is the middle of ``likely_range``. ``pilot_error`` is the accuracy that the pilot, a relaxed solve, has shown by itself, None if none,
    and ``pilot_if_linear`` says that this needs P to be linear in the features. ``likely_bytes`` and
    ``worst_bytes`` are predicted peaks (:mod:`saddleback.sampling.memory`). ``remarks`` say where a table is too large for the usual
    number of samples, and which states the pilot did not reach.
    """

    solution: Solution
    epsilon: float
    delta: float
    feasibility: str
    pilot_samples: int
    pilot_error: float | None
    seconds_per_call: float
    coreset: int | None = None
    slater: Slater | None = None
    worst: Plan | None = None
    likely: int | None = None
    likely_range: tuple[int, int] | None = None
    why_no_worst: str = ""
    pilot_if_linear: bool = False
    why_no_likely: str = ""
    likely_bytes: int | None = None
    worst_bytes: int | None = None
    remarks: tuple[Remark, ...] = ()

    @property
    def recommended(self) -> str:
        """ "adaptive", "worst-case" or "neither": the cheaper way, if anybody can afford it."""
        ways = {"adaptive": self.likely, "worst-case": None if self.worst is None else self.worst.samples}
        known = {name: cost for name, cost in ways.items() if cost is not None and cost <= AFFORDABLE}
        return min(known, key=lambda name: known[name]) if known else "neither"

    @property
    def recommended_bytes(self) -> int | None:
        """The peak memory of the way that is recommended."""
        return {"adaptive": self.likely_bytes, "worst-case": self.worst_bytes}.get(self.recommended)


def forecast(
    problem: CMDP,
    simulator: GenerativeModel,
    *,
    epsilon: float,
    delta: float = 0.05,
    feasibility: Feasibility = "strict",
    samples: int | None = None,
    seed: int = 0,
    budget: int | None = None,
    time_limit: float | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Forecast:
    """The cost of ``epsilon`` (the user's units of the discounted reward), from a pilot of ``samples`` simulator calls.

    A tenth of them at most tell how long a call takes; where no number is given, these are drawn besides. ``budget`` are all
    simulator calls, those that examine the simulator included; with ``time_limit``, in seconds, the pilot takes no more
    calls than fit in it by the time of the first few. ``say`` is told what the pilot will cost before it is drawn.
    """
    largest = problem.horizon * problem.reward_span
    rule = f"must lie in (0, {largest:.6g}], the range of the discounted reward"
    require(0 < epsilon <= largest, "epsilon", rule, epsilon, "give the accuracy wanted")
    Settings(delta=delta, feasibility=feasibility, seed=seed)  # which are checked there
    check_size(problem)
    before = simulator.num_queries
    require(samples is None or samples >= 2, "samples", "must be at least 2", samples, "use 20000")
    if budget is not None:
        require(samples is None, "budget", "must not be given with samples", budget, "leave one of the two out")
        least = _ALSO_CALLED + _LEAST_PILOT
        rule = f"must be at least {least:,}: {_ALSO_CALLED:,} calls examine the simulator, the others are a pilot"
        require(budget >= least, "budget", rule, budget, "use 20000")
        samples = budget - _ALSO_CALLED
    if time_limit is not None:
        number("time limit", time_limit, 0, open_low=True, remedy="give seconds, such as 60")
    batch = _BATCH if samples is None else min(_BATCH, max(1, samples // (10 * _BATCHES)))
    pilot = (
        max(_PILOT, _PILOT_PER_PAIR * problem.num_unknowns) if samples is None else max(2, samples - _BATCHES * batch)
    )
    batch = batch if time_limit is None else min(batch, _FIRST_BATCH)
    seconds = _seconds_per_call(problem, simulator, seed, batch)
    if time_limit is not None:
        fits = int(time_limit / max(seconds, 1e-9)) - _ALSO_CALLED
        rule = f"must allow {_ALSO_CALLED + _LEAST_PILOT:,} calls, which take {_lasting(_ALSO_CALLED + _LEAST_PILOT, seconds)}"
        require(fits >= _LEAST_PILOT, "time limit", rule, f"{time_limit:g} s", "raise it, or use a quicker simulator")
        pilot = min(pilot, fits)
    if say is not None:
        calls = pilot + _ALSO_CALLED
        say(f"a pilot of about {calls:,} simulator calls, {_lasting(calls, seconds)} at {seconds:.3g} s a call")
    try:
        asked = Settings(
            pilot, feasibility="relaxed", delta=delta, seed=seed, method=Method(certificate=pilot - pilot // 2)
        )
        calls, proof = asked.split()
        check(predict_run(problem, calls, certificate=proof, num_signals=simulator.num_signals), pilot)
        tried = budget_of(problem, simulator, asked, calls, executor, progress)
        with phase("proving what the pilot found"):
            tried = certified(tried, simulator, Request(proof, seed, delta, executor=executor))
    except InputError as fault:
        if fault.name != "samples":
            raise
        found = f"{fault.value}, of a pilot of {pilot}"
        if isinstance(fault, TooFewSamples):  # half of the pilot proves, and half of the rest is drawn first
            raise TooFewSamples(fault.rule, found, fault.otherwise, fault.pairs, 5 * fault.pairs) from None
        raise InputError("samples", fault.rule, found, fault.remedy) from None
    parts, spent = tried.prepared, simulator.num_queries - before
    if tried.mixture is None or not isinstance(parts, Prepared):
        why = "the pilot found no policy that meets the constraints"
        return Forecast(tried, epsilon, delta, feasibility, spent, None, seconds, why_no_worst=why, why_no_likely=why)
    with phase("forecasting what the accuracy will cost"):
        return _forecast_from(tried, problem, simulator, spent, seconds, epsilon, delta, feasibility, calls)


def _lasting(calls: int, seconds: float) -> str:
    return f"about {calls * seconds:,.3g} s"


def _forecast_from(
    tried: Solution,
    problem: CMDP,
    simulator: GenerativeModel,
    spent: int,
    seconds: float,
    epsilon: float,
    delta: float,
    feasibility: Feasibility,
    calls: int,
) -> Forecast:
    """What a pilot, whose solve took ``calls``, says of the costs."""
    parts = tried.prepared
    assert isinstance(parts, Prepared)
    slater = estimate_slater(parts.problem, parts.oracle, lambda p: parts.interval(p, 1 - delta), parts.optimum)
    worst, why_no_worst = _worst_case(parts.problem, parts.design, slater, epsilon, delta, feasibility, seconds)
    shown = tried.shown_error if math.isfinite(tried.shown_error) else None
    likely, limits, why_no_likely = _likely(tried, calls, epsilon, delta, feasibility)
    found = Forecast(tried, epsilon, delta, feasibility, spent, shown, seconds, _pairs(parts), slater, worst, likely)
    return replace(
        found,
        likely_range=limits,
        pilot_if_linear=rests_on(parts.design).assumes_linearity,
        why_no_worst=why_no_worst,
        why_no_likely=why_no_likely,
        remarks=tuple(budget_remarks(parts.problem, parts.buffer, USUAL_SAMPLES)),
        likely_bytes=None if likely is None else _likely_bytes(problem, simulator, likely),
        worst_bytes=None if worst is None else _worst_bytes(parts.problem, simulator, worst),
    )


def _pairs(parts: Prepared) -> int:
    """How many pairs have to be sampled."""
    return parts.design.size if parts.design.operator is not None else sampled_pairs(parts.problem, parts.buffer)


def _likely_bytes(problem: CMDP, simulator: GenerativeModel, likely: int) -> int:
    """Peak memory of the last round, with the rounds before it still held."""
    last, signals = int(likely / (1 + PROOF)), simulator.num_signals
    proof = int(PROOF * last)
    return predict_run(problem, last, certificate=proof, num_signals=signals, earlier=last // 2).peak


def _worst_bytes(problem: CMDP, simulator: GenerativeModel, worst: Plan) -> int:
    """Peak memory of a solve with the plan's buffers, the same for every pair."""
    c, lots = worst.num_pairs, []
    for T, M in (worst.solver, worst.evaluation):
        lots.append(Lot(c * T * M, T, c * math.ceil(T * M / BLOCK), T * M > BLOCK))
    return predict(problem, c, *lots, num_signals=simulator.num_signals).peak


def _seconds_per_call(problem: CMDP, simulator: GenerativeModel, seed: int, batch: int) -> float:
    """Of the fastest of a few batches: the first has to warm up, others may have been disturbed."""
    rng = generator(seed, Stream.DESIGN, 0, 0)
    took = []
    for _ in range(_BATCHES):
        states, actions = problem.some_pairs(batch, rng)
        states, actions = going_on(problem.ended(states), states, actions)
        start = time.perf_counter()
        simulator.sample(states, actions, rng)
        took.append(time.perf_counter() - start)
    return min(took) / batch


def _worst_case(
    problem: CMDP,
    design: Design,
    slater: Slater,
    epsilon: float,
    delta: float,
    feasibility: Feasibility,
    seconds: float,
) -> tuple[Plan | None, str]:
    strict = feasibility == "strict"
    if strict and slater.low <= 0:
        return (
            None,
            "strict plans need room between the constraints and what can be reached, and the pilot leaves open whether there is any",
        )
    tabular = design.operator is None
    try:
        found = worst_case_plan(
            epsilon / problem.reward_span,
            delta,
            kind="tabular" if tabular else "linear",
            gamma=problem.gamma,
            feasibility=feasibility,
            zeta=min(slater.low, problem.horizon) if strict else None,
            dimension=None if tabular else design.rank,
            coreset_size=None if tabular else design.size,
            leverage_bound=None if tabular else max(design.leverage_bound, float(design.rank)),
            num_pairs=design.size if tabular else None,
            num_constraints=problem.num_constraints,
            bytes_per_sample=8,
            num_states=problem.num_states,
            simulator_seconds_per_call=seconds,
        )
    except InputError as error:  # an accuracy out of the theory's reach, in the paper's units
        return None, f"the bounds cannot be had for it ({error.name} {error.rule}, got {error.value}, in utilities)"
    return found, ""


def _likely(tried: Solution, size: int, epsilon: float, delta: float, feasibility: Feasibility) -> _Likely:
    """Simulator calls of an adaptive run, from a pilot whose solve took ``size`` of them; or the reason why there is no number."""
    guide = guide_of(tried)
    if guide.sigma is None or guide.sigma[0] == 0:
        return _Likely(
            why="the pilot found no prices for the constraints, so no bound can be foreseen; give it more samples"
        )
    assert tried.asked is not None
    outlook = Outlook(replace(tried, asked=replace(tried.asked, feasibility=feasibility)), size, delta / 2)
    found = [outlook.total(epsilon / MARGIN**power, _MOST) for power in range(3)]
    if found[1] is None:
        return _Likely(why=f"more than {_MOST:.0e} simulator calls")
    likely = int(_FAILING * found[1])
    low, high = found[0] or likely, int(_MOST) if found[2] is None else found[2]
    return _Likely(likely, (min(low, likely), max(int(_FAILED * high), likely)))
