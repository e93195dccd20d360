"""What more samples may be expected to show, asked of those that are there: no simulator call.

As if every sample had come up k times: the estimated model stays what it is, and its errors are those of k times as many samples. The
policy is found again, for it needs less room inside of its limits then, and the plan of a certificate of n fresh samples says what that
would show. With N samples in the buffers now,

    e(k, n)           the error to be expected of a solve on kN samples and a certificate of n, in units of the reward
    e(k) = e(k, ⁷⁄₃kN)      … seven tenths of all calls being the certificate's

No rate is assumed, but far beyond the samples: an error falls as 1/n while ranges rule it, as 1/√n when noise does, and at once where a sharper bound begins to
apply. Between two numbers of samples it is taken for a power of them. Comparisons are of rounded numbers.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from saddleback.certificates import Request, balanced, expect, expected_fall
from saddleback.errors import NumericalError
from saddleback.problem.numerics import rounded
from saddleback.sampling.counted_buffer import CountedBuffer, repeated
from saddleback.solving.find import find_policy
from saddleback.solving.prepare import pools, wired
from saddleback.solving.prepared import Prepared
from saddleback.solving.solution import Solution
from saddleback.solving.strict import attempts_of, estimates_of, guide_of, leaves_room, with_room

PROOF = 7 / 3
"""Calls of a certificate for one of the solve, as in a solve of a fixed number of calls."""

LEAST_GROWTH, MOST_GROWTH = 1.5, 4.0
"""Of the buffers, from one round to the next."""

MARGIN = 1.2
"""Between the error that is expected of a certificate and the one that is wanted of it: the noise of a gap by pairing is in it."""

_STEP = 8  # between numbers of samples that are tried first in a search over all of them
_FAR = 512  # times the samples, beyond which noise is taken to rule: 1/√n
_HALVINGS = 3  # of a certificate that is expected to show more than is wanted


class Outlook:
    """One solution on ``size`` samples, and certificates at ``delta``; errors were ``surprise`` times what was expected so far."""

    def __init__(self, found: Solution, size: int, delta: float, surprise: float = 1.0):
        self.found, self.size, self.delta, self.surprise = found, size, delta, surprise
        self._errors, self._requests = dict[tuple[int, int], float](), dict[tuple[int, int], Request]()
        self._solutions = {1: found}

    def error(self, times: int = 1, samples: int | None = None) -> float:
        """e(k, n), or e(k); inf where nothing can be foreseen."""
        n = int(PROOF * times * self.size) if samples is None else samples
        if (times, n) not in self._errors:
            request, error = expected_proof(self._solved(times), Request(max(1, n), 0, self.delta, any_bound=True))
            self._errors[times, n] = float(rounded(self.surprise * error * self.found.problem.reward_span, 3))
            self._requests[times, n] = request
        return self._errors[times, n]

    def request(self, samples: int) -> Request:
        """A certificate of so many samples, as it should be made now."""
        self.error(1, samples)
        return self._requests[1, samples]

    def proof(self, epsilon: float, least: int, most: int) -> Request:
        """The smallest certificate between both limits that is expected to show ``epsilon``, if ``most`` samples are."""
        n, e = most, self.error(1, most)
        for _ in range(_HALVINGS):
            half = max(least, n // 2)
            if half == n:
                break
            before = self.error(1, half)
            if before > epsilon:
                n = _between(half, n, before, e, epsilon)
                break
            n, e = half, before
        return self.request(max(least, min(n, most)))

    def growth(self, epsilon: float) -> float:
        """By how much the buffers should grow for e(k) = ``epsilon``, within what they may from one round to the next."""
        low = self.error()
        if not math.isfinite(low) or low > MOST_GROWTH * epsilon:  # no error falls faster than 1/n for long
            return MOST_GROWTH
        if low <= math.sqrt(LEAST_GROWTH) * epsilon:  # nor more slowly than 1/√n
            return LEAST_GROWTH
        for times in (2, 4):
            high = self.error(times)
            if high <= epsilon:
                return max(LEAST_GROWTH, _between(500 * times, 1000 * times, low, high, epsilon) / 1000)
            low = high
        return MOST_GROWTH

    def total(self, epsilon: float, most: float) -> int | None:
        """Simulator calls of solve and certificate together for that error; None if more than ``most``."""
        if not math.isfinite(self.error()):
            return None
        if self.error() <= epsilon:
            proof = self.proof(epsilon, 1, int(PROOF * self.size)).samples
            return int(proof * (1 + 1 / PROOF))
        k = 1
        while self.error(k) > epsilon:
            if k * self.size * (self.error(k) / epsilon) > most:  # no error falls faster than 1/n for long
                return None
            if k >= _FAR:
                total = (1 + PROOF) * k * self.size * (self.error(k) / epsilon) ** 2
                return int(total) if total <= most else None
            k *= _STEP
        while k > 1 and self.error(k // 2) <= epsilon:
            k //= 2
        n = _between(k * self.size // 2, k * self.size, self.error(k // 2), self.error(k), epsilon)
        return int((1 + PROOF) * n)

    def _solved(self, times: int) -> Solution:
        """The solution on so many times as many samples; the one there is where the samples are not to be had as counts."""
        if times not in self._solutions:
            self._solutions[times] = _solved_on(self.found, times) or self.found
        return self._solutions[times]


def _between(low: int, high: int, before: float, after: float, wanted: float) -> int:
    """The number of samples at which an error that is ``before`` at ``low`` and ``after`` at ``high`` is what is wanted."""
    if not after < wanted < before:
        return high
    share = math.log(before / wanted) / math.log(before / max(after, 1e-12 * before))
    return math.ceil(float(rounded(low * (high / low) ** share, 3)))


def _solved_on(found: Solution, times: int) -> Solution | None:
    parts, asked = found.prepared, found.asked
    if not isinstance(parts, Prepared) or asked is None or parts.problem.num_states is None:
        return None
    first, second = parts.solver_buffer, parts.evaluation_buffer
    if not (isinstance(first, CountedBuffer) and isinstance(second, CountedBuffer)):
        return None
    if not pools(parts.problem, asked.method, parts.solver, parts.evaluator):
        return None
    buffers = repeated(first, times), repeated(second, times)
    told = parts.solver, parts.evaluator, times * parts.samples, parts.names, (), asked.method
    try:
        return find_policy(found.problem, wired(parts.problem, parts.design, buffers, *told), asked)
    except NumericalError:
        return None


def expected_proof(solution: Solution, request: Request) -> tuple[Request, float]:
    """The request as it should be made, and the error that its certificate is expected to leave, in utilities.

    Relaxed: the larger of gap and violation. Strict: the gap of the mixture with the room that its proof needs, and the horizon where
    no policy is expected to leave as much. inf where nothing can be foreseen.
    """
    if solution.prepared is None or solution.mixture is None:
        return request, math.inf
    if not leaves_room(solution):
        request, expected = balanced(guide_of(solution), request)
        return request, expected.error
    attempts, pilot = attempts_of(solution, request), solution.problem.num_states is None
    attempt = attempts[1 if pilot else 0]
    part = dataclasses.replace(
        request, samples=max(1, int(request.samples * attempt.share)), delta=request.delta * attempt.level
    )
    raised = with_room(solution, part)
    if raised is None or raised.mixture is None:
        return request, solution.problem.horizon
    guide = guide_of(raised)
    kept = estimates_of(raised) - expected_fall(guide, part).below[1:]
    if np.any(kept < solution.problem.thresholds):
        return request, solution.problem.horizon
    return request, expect(guide, part).gap
