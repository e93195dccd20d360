"""What an accuracy will cost, before it is paid for: the worst case that is proved, and what is likely from a pilot.

*Worst case* (rigorous): :func:`saddleback.theory.plan`, with the size of the coreset; in strict mode it also needs a lower
limit of the Slater constant ζ, which is measured on the pilot, not proved.

*Adaptive* (heuristic): a run of ``solve(epsilon=…)`` ends with n samples in its buffers and n in a certificate. The pilot's
buffers say what a certificate of n samples may be expected to show (:func:`saddleback.certificates.expect`), which is better than
to extrapolate the pilot's own error by 1/√n: small certificates suffer from the range of a rollout, whose share falls like
1/n. In strict mode the mixture also gives up the room that its proof needs, 1.5 half-widths of every constraint at its price.
The least n for which all that is ε, doubled for the rounds on the way, was within a factor of 5 of what runs on the zoo's
problems took, except for the hard instance in strict mode.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from saddleback.certificates import Guide, Request, expect
from saddleback.designs.design import Design
from saddleback.errors import InputError, Remark, number, require
from saddleback.method.slater import Slater, estimate_slater
from saddleback.problem.cmdp import CMDP
from saddleback.problem.phases import phase
from saddleback.runs.settings import USUAL_SAMPLES, Feasibility, Method, Settings
from saddleback.sampling.blocks import Executor
from saddleback.sampling.examination import EXAMINATION_CALLS
from saddleback.sampling.fingerprint import CHECK_CALLS
from saddleback.sampling.memory import Lot, check, check_size, predict, predict_run
from saddleback.simulators.generative_model import BLOCK, GenerativeModel, Stream, generator
from saddleback.solving.find import budget_of
from saddleback.solving.prepared import Prepared
from saddleback.solving.progress import Progress
from saddleback.solving.solution import Solution
from saddleback.solving.strict import ROOM, certified, guide_of
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
_ROUNDS = 2.0  # what the rounds before the last cost, and what the forecast misses
_MOST = 1e13


@dataclass(frozen=True)
class Forecast:
    """Costs in simulator calls; None, with the reason, where there is no number. Units are the user's, ``slater``'s utilities.

    ``pilot_error`` is the accuracy that the pilot, a relaxed solve, has proved by itself, None if none. ``likely_bytes`` and
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
    why_no_worst: str = ""
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
        raise InputError("samples", fault.rule, f"{fault.value}, of a pilot of {pilot}", fault.remedy) from None
    parts, spent = tried.prepared, simulator.num_queries - before
    if tried.mixture is None or not isinstance(parts, Prepared):
        why = "the pilot found no policy that meets the constraints"
        return Forecast(tried, epsilon, delta, feasibility, spent, None, seconds, why_no_worst=why, why_no_likely=why)
    with phase("forecasting what the accuracy will cost"):
        return _forecast_from(tried, problem, simulator, spent, seconds, epsilon, delta, feasibility, proof)


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
    proof: int,
) -> Forecast:
    """What a pilot, whose certificate took ``proof`` calls, says of the costs."""
    parts = tried.prepared
    assert isinstance(parts, Prepared)
    slater = estimate_slater(parts.problem, parts.oracle, lambda p: parts.interval(p, 1 - delta), parts.optimum)
    worst, why_no_worst = _worst_case(parts.problem, parts.design, slater, epsilon, delta, feasibility, seconds)
    proved = tried.proved_error if math.isfinite(tried.proved_error) else None
    likely, why_no_likely = _likely(guide_of(tried), epsilon, delta, feasibility, proved, proof)
    found = Forecast(tried, epsilon, delta, feasibility, spent, proved, seconds, _pairs(parts), slater, worst, likely)
    return replace(
        found,
        why_no_worst=why_no_worst,
        why_no_likely=why_no_likely,
        remarks=tuple(budget_remarks(parts.problem, parts.evaluation_buffer, USUAL_SAMPLES)),
        likely_bytes=None if likely is None else _likely_bytes(problem, simulator, likely),
        worst_bytes=None if worst is None else _worst_bytes(parts.problem, simulator, worst),
    )


def _pairs(parts: Prepared) -> int:
    """How many pairs have to be sampled."""
    return (
        parts.design.size
        if parts.design.operator is not None
        else sampled_pairs(parts.problem, parts.evaluation_buffer)
    )


def _likely_bytes(problem: CMDP, simulator: GenerativeModel, likely: int) -> int:
    """Peak memory of the last round, with the rounds before it still held."""
    last = int(likely / (2 * _ROUNDS))
    signals = simulator.num_signals
    return predict_run(problem, last, certificate=last, num_signals=signals, earlier=last // 2).peak


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


def _likely(
    guide: Guide, epsilon: float, delta: float, feasibility: Feasibility, proved: float | None, pilot: int
) -> tuple[int | None, str]:
    """Simulator calls of an adaptive run, or None and the reason."""
    if guide.sigma is None or guide.sigma[0] == 0:
        return None, "the pilot found no prices for the constraints, so no bound can be foreseen; give it more samples"
    scale, prices = guide.problem.reward_span, guide.sigma[1:] / guide.sigma[0]

    def error(n: float, strict: bool) -> float:
        widths, gap = expect(guide, Request(int(n), 0, delta / 2, any_bound=True))
        if strict:
            return scale * (gap + ROOM * float(prices @ widths[1:]))
        return scale * max(gap, float(widths[1:].max()))

    strict, foreseen = feasibility == "strict", error(pilot, False)
    # Where the pilot did worse than foreseen, so may the run, but less so: larger certificates surprise less.
    surprise = 1.0 if proved is None or not 0 < foreseen < math.inf else max(1.0, math.sqrt(proved / foreseen))
    low = high = 1000.0
    while not surprise * error(high, strict) <= epsilon:
        low, high = high, 4 * high
        if high > _MOST:
            return None, f"more than {_MOST:.0e} simulator calls"
    while high > 1.1 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if surprise * error(middle, strict) <= epsilon else (middle, high)
    return int(_ROUNDS * 2 * high), ""
