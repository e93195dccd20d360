"""The whole trade-off from one buffer: the best reward as a function of one constraint's threshold, the others held.

    F̂(b) = max Σ_i w_i V̂_r^i   s.t.   Σ_i w_i V̂_c^i ≥ b      over the columns (policies) that the oracle has answered

F̂ is concave. For a set of thresholds all masters are solved at once, their prices are asked of the solver in one call (one
read of the data for many multipliers), and the new columns serve every threshold; this repeats until each gap
min_λ D(λ) − Z is within the tolerance. A threshold asked for later starts from all columns known by then and draws no new
sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from saddleback.certificates import Band, Guide, Request, frontier_band
from saddleback.errors import InputError, gone, require
from saddleback.method.duals import ColumnGeneration
from saddleback.method.framework import run
from saddleback.method.master_lp import Master, solve_master, upper_bound
from saddleback.method.oracles import simplex_point
from saddleback.method.slater import reach
from saddleback.problem.cmdp import CMDP
from saddleback.problem.criteria import Unit
from saddleback.problem.numerics import on_grid
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.blocks import Executor
from saddleback.sampling.memory import check, predict_run
from saddleback.simulators.function import as_simulator
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.prepared import Prepared
from saddleback.solving.solution import Solution

_AT_ONCE = 16
_STRAIGHT = 1e-6  # relative to the products that are compared
_MOST_ROUNDS = 60
_MOST_POINTS = 10_000


@dataclass(frozen=True)
class FrontierPoint:
    """The best mixture at one threshold, in discounted totals; ``gap`` bounds what it leaves of F̂.

    ``low`` and ``high`` are proved limits of the true frontier there, once the frontier has been certified; ``low`` is
    None where no policy is proved to meet the threshold.
    """

    threshold: float
    value: float
    constraints: tuple[float, ...]
    multiplier: float
    gap: float
    mixture: MixturePolicy
    low: float | None = None
    high: float | None = None

    def to_json(self, unit: Unit | None = None) -> dict[str, Any]:
        """One JSON-ready object; threshold and price also in the ``unit`` of the constraint, where it is no total."""
        row = {"threshold": self.threshold, "value": self.value, "constraints": list(self.constraints)}
        row |= {"multiplier": self.multiplier, "gap": self.gap, "weights": self.mixture.weights.tolist()}
        if unit is not None and unit.per_step:
            row["in_units"] = {"threshold": unit.of(self.threshold), "price": unit.price_of(self.multiplier)}
        return row if self.high is None else {**row, "low": self.low, "high": self.high}


@dataclass
class Frontier:
    """Columns seen so far and the thresholds they answer; ``constraint`` is the index of the one that moves."""

    parts: Prepared
    constraint: int
    tolerance: float
    points: list[FrontierPoint] = field(default_factory=list)
    band: Band | None = None
    ask: bool = True  # or answer from the columns that are known, with the gap that they leave
    _asked: list[Array] = field(default_factory=list)

    @property
    def problem(self) -> CMDP:
        """The problem whose samples these are."""
        return self.parts.problem

    @property
    def unit(self) -> Unit:
        """What the moving constraint was given in: ``unit.total(0.15)`` is what :meth:`at` takes for 0.15 per step."""
        return self.problem.units[self.constraint]

    @property
    def range(self) -> tuple[float, float]:
        """From the threshold that costs nothing to the last that can be met, as discounted totals."""
        ends = [self._user(x) for x in self.ends()]
        return min(ends), max(ends)

    def breakpoints(self) -> list[tuple[float, float]]:
        """The vertices (constraint value, reward) of F̂ known so far, as discounted totals, for a single constraint."""
        columns = self._columns()
        hull = _upper_hull(on_grid(columns[:, [1 + self.constraint, 0]]))
        # F̂ never rises: it starts at the best reward.
        top = max(range(len(hull)), key=lambda k: (columns[hull[k], 0], k))
        values = self.problem.values_of(columns[hull[top:]])
        return [(float(v[1 + self.constraint]), float(v[0])) for v in values]

    def at(self, threshold: float) -> FrontierPoint:
        """The best mixture at ``threshold`` (a discounted total): from what is known, or by pricing a little more."""
        return self.at_all([threshold])[0]

    def at_all(self, thresholds: ArrayLike) -> list[FrontierPoint]:
        """As :meth:`at`, for many thresholds with shared solver calls."""
        user = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
        targets = np.array([self._target(t) for t in user])
        for _ in range(_MOST_ROUNDS):
            masters = [self._master(b) for b in targets]
            open_prices = self._open_prices(masters, targets)
            if not open_prices or not self.ask:
                break
            self.parts.oracle.prefetch(np.array([simplex_point(lam.tolist()) for lam in open_prices]))
            self._asked += open_prices
        return [self._point(t, b) for t, b in zip(user, targets, strict=True)]

    def ends(self) -> tuple[float, float]:
        """V̂_c where the others alone bind, and the largest V̂_c that the others allow, in the paper's units."""
        m, i, b = self.problem.num_constraints, self.constraint, self.problem.thresholds
        self.parts.oracle.prefetch(np.eye(1 + m))
        loose = -np.inf * np.ones(m)
        loose[np.arange(m) != i] = b[np.arange(m) != i]
        low = ColumnGeneration(np.maximum(loose, -1.0), self.tolerance)
        free = float(run(self.parts.oracle, low).values[1 + i])
        if m == 1:  # of the policies with the best reward, the one that uses least of the constraint
            columns = self._columns()
            free = float(columns[columns[:, 0] >= columns[:, 0].max() - self.tolerance, 1].max())
        return free, self._reach()

    # ---- columns ---------------------------------------------------------------------------------------------------

    def _columns(self) -> Array:
        return np.array([values for _, values in self.parts.oracle.columns])

    def _priced(self) -> Array:
        asked = self.parts.oracle.asked
        asked = asked[asked[:, 0] > 0]
        # What was asked, not what it was rounded to: rounding is part of the solver's error.
        return np.array([*(asked[:, 1:] / asked[:, :1]), *self._asked])

    def _reach(self) -> float:
        """max V̂_c of the moving constraint over mixtures that meet the others: column generation without the reward."""
        others = [j for j in range(self.problem.num_constraints) if j != self.constraint]
        found = reach(self.problem, self.parts.oracle, self.constraint, others, self.tolerance)
        if found is None:
            rule = "must leave room for the one that moves"
            raise InputError("constraints", rule, "none", "relax the other thresholds")
        return found

    def _master(self, target: Array) -> Master:
        master = solve_master(self._columns(), target)
        if master is None:
            threshold, last = (self._user(float(x)) for x in (target[self.constraint], self.ends()[1]))
            asked, reach = (self.unit.say(x, both=self.unit.per_step) for x in (threshold, last))
            rule = f"must be one that some mixture meets (the last is about {reach})"
            raise InputError("threshold", rule, asked, "ask within the frontier's range")
        return master

    def _open_prices(self, masters: list[Master], targets: Array) -> list[Array]:
        """The prices of the masters whose gap is open, widest gaps first, at most one call's worth."""
        columns, priced = self._columns(), self._priced()
        found: dict[bytes, tuple[float, Array]] = {}
        for master, b in zip(masters, targets, strict=True):
            best, gap = upper_bound(columns, priced, b, master.value)
            known = bool(np.any(np.all(priced == master.multipliers, axis=1)))
            if gap > self.tolerance * (1 + best.sum()) and not known:
                key = master.multipliers.tobytes()
                found[key] = (max(gap, found.get(key, (0.0, master.multipliers))[0]), master.multipliers)
        widest = sorted(found.values(), key=lambda pair: -pair[0])
        return [lam for _, lam in widest[:_AT_ONCE]]

    def _point(self, threshold: float, target: Array) -> FrontierPoint:
        master, columns = self._master(target), self._columns()
        gap = upper_bound(columns, self._priced(), target, master.value)[1]
        known, used = self.parts.oracle.columns, np.flatnonzero(master.weights)
        values = self.problem.values_of(master.weights @ columns)
        prices = self.problem.multipliers_of(master.multipliers)
        return FrontierPoint(
            float(threshold),
            float(values[0]),
            tuple(map(float, values[1:])),
            float(prices[self.constraint]),
            gap * self.problem.reward_span,
            MixturePolicy.of([known[i][0] for i in used], master.weights[used]),
            *self._limits(target),
        )

    def _limits(self, target: Array) -> tuple[float | None, float | None]:
        """What is proved of the frontier at ``target``, in the user's units."""
        if self.band is None:
            return None, None
        low, high = self.band.at(target)
        base, scale = self.problem.base[0] * self.problem.horizon, self.problem.scale[0]
        least, most = (float(low * scale + base) if np.isfinite(low) else None), float(high * scale + base)
        return (most, least) if self.problem.minimise else (least, most)

    def certified(
        self,
        simulator: GenerativeModel | Callable[..., Any],
        *,
        samples: int,
        seed: int,
        delta: float = 0.05,
        executor: Executor | None = None,
    ) -> Frontier:
        """The frontier with a confidence band, from ``samples`` fresh simulator calls; it also holds for later thresholds.

        ``simulator`` is what ``solve`` takes: a GenerativeModel or a plain function; ``executor`` draws (None: here).
        The band is made of at most twelve policies and twelve prices, those of points spread evenly over the frontier.
        ``seed`` must be one with which nothing was proved from these samples before.
        """
        chosen = [self.points[i] for i in np.unique(np.linspace(0, len(self.points) - 1, 12).round().astype(int))]
        policies = {member.key(): member for point in chosen for member in point.mixture.members}
        columns, priced, sigmas = self._columns(), self._priced(), dict[bytes, Array]()
        for point in chosen:
            sigma = simplex_point(upper_bound(columns, priced, self._target(point.threshold), 0.0)[0].tolist())
            sigmas[sigma.tobytes()] = sigma
        design, buffers = self.parts.design, (self.parts.solver_buffer, self.parts.evaluation_buffer)
        earlier = [b for b in buffers if b is not None and b.design is design]
        guide = Guide(self.problem, design, earlier, None, None)
        request, model = (
            Request(samples, seed, delta, executor=executor),
            as_simulator(self.problem, simulator).metered(),
        )
        check(predict_run(self.problem, 0, certificate=samples, num_signals=model.num_signals), samples)
        with self.parts.proving(seed, "band", list(policies), *sigmas.values(), samples, delta):
            band = frontier_band(guide, list(policies.values())[:16], list(sigmas.values()), model, request)
        curve = replace(self, band=band)
        curve.points = curve.at_all([point.threshold for point in self.points])
        return curve

    def plot(self, *_: object, **__: object) -> NoReturn:
        """Gone: ``saddleback.plot(frontier)``."""
        gone("Frontier.plot", "saddleback.plot(frontier, ax=..., chosen=...)")

    # ---- units -----------------------------------------------------------------------------------------------------

    def _target(self, threshold: float) -> Array:
        target = np.array(self.problem.thresholds)
        i = 1 + self.constraint
        target[self.constraint] = (threshold - self.problem.base[i] * self.problem.horizon) / self.problem.scale[i]
        return target

    def _user(self, unit: float) -> float:
        i = 1 + self.constraint
        return float(unit * self.problem.scale[i] + self.problem.base[i] * self.problem.horizon)


def frontier(
    source: Prepared | Solution,
    constraint: str | int | None = None,
    num_points: int = 50,
    tolerance: float | None = None,
    *,
    thresholds: Sequence[float] | None = None,
    ask: bool = True,
) -> Frontier:
    """The frontier over ``num_points`` thresholds of one constraint, between what costs nothing and what is reachable.

    ``source`` is a solution that holds its samples, or what was prepared for one. ``tolerance`` is in the paper's units, as for a single solve (1e-4·H).
    ``thresholds`` are discounted totals in the user's units, in the place of evenly spread ones. Without ``ask`` the solver is
    hardly asked again: the curve is what the policies that are known already make of it.
    """
    parts = source.prepared if isinstance(source, Solution) else source
    if not isinstance(parts, Prepared):
        raise InputError("solution", "must hold its samples", parts, "solve it first")
    problem = parts.problem
    names = [c.name for c in problem.constraints]
    index = 0 if constraint is None else names.index(constraint) if constraint in names else constraint
    if not isinstance(index, int) or not 0 <= index < len(names):
        raise InputError("constraint", f"must be one of {', '.join(names)}", repr(constraint), "choose one of them")
    require(num_points >= 2, "points", "must be at least 2", num_points, "use 50")
    require(num_points <= _MOST_POINTS, "points", f"must be at most {_MOST_POINTS:,}", num_points, "use 50")
    curve = Frontier(parts, index, 1e-4 * problem.horizon if tolerance is None else tolerance, ask=ask)
    loose, tight = curve.ends()
    # A spread of prices in one call spares the first few rounds, which would ask for one, two, four … of them.
    share = np.linspace(0.0, 1.0, _AT_ONCE + 2)[1:-1, None]
    held, moving = np.eye(1 + len(names))[0], np.eye(1 + len(names))[1 + index]
    if ask:
        parts.oracle.prefetch((1 - share) * held + share * moving)
    slack = 1e-9 * problem.horizon  # the very last threshold is met by one policy only, up to rounding
    if thresholds is None:
        thresholds = [curve._user(x) for x in np.linspace(loose, max(loose, tight - slack), num_points)]
    curve.points = curve.at_all(thresholds)
    return curve


def _upper_hull(points: Array) -> list[int]:
    """Indices of the vertices of the upper concave hull of ``(x, y)`` points, by increasing x."""
    hull: list[int] = []
    for i in np.lexsort((points[:, 1], points[:, 0])):
        while len(hull) >= 2 and _left_of(points[hull[-2]], points[hull[-1]], points[i]):
            hull.pop()
        hull.append(int(i))
    return hull


def _left_of(a: Array, b: Array, c: Array) -> bool:
    """Whether b lies on or below the line from a to c, which up to rounding counts as on it."""
    one, other = (b[0] - a[0]) * (c[1] - a[1]), (b[1] - a[1]) * (c[0] - a[0])
    return bool(one - other >= -_STRAIGHT * max(abs(one), abs(other)))
