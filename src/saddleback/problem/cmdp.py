"""§2, the constrained MDP as the agent knows it: everything but the transition probabilities.

    max_π V_r^π(ρ)   subject to   V_{c_i}^π(ρ) ≥ b_i,   i = 1..m            (eq:true-CMDP)

The paper writes r, c ∈ [0, 1] and one constraint "≥ b". Users have rewards in euros, costs with "≤" budgets and several
constraints, so a :class:`CMDP` keeps the user's units and maps them once, here, to the paper's *utilities*:

    u = (x − base) / scale ∈ [0, 1],     V_u = (V_x − base·H) / scale,     b_u = (b_x − base·H) / scale

with (base, scale) = (low, high − low) for rewards and "≥", and (high, low − high) for "≤" budgets: c = 1 − cost. Column 0
of every ``(…, 1+m)`` array is the reward, the others the constraints. :mod:`saddleback.runs.solution` undoes the map once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import InputError, require
from saddleback.problem.spaces import Actions, Array, BoxStates, Features, FiniteStates, States, StateSpace
from saddleback.problem.start import Start as Start
from saddleback.problem.start import as_float64, refuse_float32

SignalFunction = Callable[[States, Actions], Array]
Sense = Literal[">=", "<="]

_POOL = 8192  # pairs of a pool that nobody has given
_RANGE_SLACK = 1e-9  # of the span: how far a value may lie outside its declared range before it is refused


@dataclass(frozen=True)
class Constraint:
    """One constraint in the user's words: ``Constraint("energy", cost, "<=", 12.0)``.

    ``signal`` is an ``(S, A)`` array, a function ``(states, actions) -> (n,)``, or None when the simulator returns it
    with the next state. ``threshold`` is a discounted total, or a per-step average with ``units="per-step"``. ``range``
    bounds the signal; it may be left out for arrays.
    """

    name: str
    signal: ArrayLike | SignalFunction | None
    sense: Sense
    threshold: float
    range: tuple[float, float] | None = None
    units: Literal["discounted", "per-step"] = "discounted"


@dataclass(frozen=True)
class _Signal:
    """A reward or constraint signal with its checked range."""

    name: str
    values: Array | SignalFunction | None
    low: float
    high: float

    def at(self, states: States, actions: Actions) -> Array:
        """Signal at pairs, ``(n,)``, in the user's units and within its range."""
        assert self.values is not None
        if callable(self.values):
            x = np.asarray(self.values(states, actions))
            require(
                x.shape == (len(states),),
                self.name,
                f"must return an array ({len(states)},) for {len(states)} pairs",
                f"shape {x.shape}",
                "vectorise it over states and actions",
            )
            refuse_float32(self.name, x)
            self.check(x, states, actions)
            return x.astype(np.float64)
        return np.asarray(self.values[states, actions], dtype=np.float64)

    def check(self, x: Array, states: States, actions: Actions, key: tuple[int, ...] | None = None) -> None:
        """Refuse values that are not finite or lie outside the declared range, naming the pair.

        ``key`` is the seed key of observed values.
        """
        slack = _RANGE_SLACK * (self.high - self.low)
        bad = np.flatnonzero(~np.isfinite(x) | (x < self.low - slack) | (x > self.high + slack))
        if bad.size:
            i = bad[0]
            seed = "" if key is None else f", sample {i}, seed key (seed, stream, pair, block) = {key}"
            finite = x[np.isfinite(x)]
            low, high = min(self.low, finite.min(initial=self.low)), max(self.high, finite.max(initial=self.high))
            raise InputError(
                self.name,
                f"must be finite and within its declared range [{self.low:g}, {self.high:g}]",
                f"{x[i]} at state {states[i]}, action {actions[i]}{seed}",
                f"declare the true range, at least ({low:g}, {high:g}), from which x is rescaled to "
                "(x - low) / (high - low); it is never clipped, since every bound depends on the range",
            )


@dataclass(frozen=True)
class CMDP:
    """A constrained MDP without its transition probabilities, in the user's units.

    ``features=None`` on a finite space means the tabular case. ``candidates`` are the pairs (states, actions) a design
    may choose from; by default all of them, or points that fill the box.
    """

    gamma: float
    start: Start
    num_actions: int
    states: StateSpace
    reward: ArrayLike | SignalFunction | None
    constraints: Sequence[Constraint]
    features: Features | None = None
    reward_range: tuple[float, float] | None = None
    candidates: tuple[States, Actions] | None = None
    name: str = "problem"
    state_names: Sequence[str] | None = None
    signals: tuple[_Signal, ...] = field(init=False)
    base: Array = field(init=False)
    scale: Array = field(init=False)
    thresholds: Array = field(init=False)

    def __post_init__(self) -> None:
        require(
            isinstance(self.gamma, (int, float, np.floating)) and 0 <= self.gamma < 1,
            "gamma",
            "must lie in [0, 1)",
            self.gamma,
            "for undiscounted problems choose a horizon H and set gamma = 1 - 1/H",
        )
        require(self.num_actions >= 1, "num_actions", "must be at least 1", self.num_actions, "give one action or more")
        require(len(self.constraints) >= 1, "constraints", "must hold at least one constraint", 0, "add a Constraint")
        names = [c.name for c in self.constraints]
        require(len(set(names)) == len(names), "constraints", "must have distinct names", names, "rename one")
        for c in self.constraints:
            self._check_constraint(c)
        self._check_start()
        if self.features is not None:
            require(
                self.features.num_actions == self.num_actions,
                "features",
                f"must cover the problem's {self.num_actions} actions",
                self.features.num_actions,
                "make the feature map and the problem agree",
            )
        signals = [self._signal("reward", self.reward, self.reward_range)]
        signals += [self._signal(c.name, c.signal, c.range) for c in self.constraints]
        up = np.array([True] + [c.sense == ">=" for c in self.constraints])
        low, high = np.array([s.low for s in signals]), np.array([s.high for s in signals])
        H = self.horizon
        b = np.array([c.threshold * (H if c.units == "per-step" else 1.0) for c in self.constraints])
        with np.errstate(all="ignore"):
            base, scale = np.where(up, low, high), np.where(up, high - low, low - high)
            thresholds = (b - base[1:] * H) / scale[1:]
        require(
            all(bool(np.all(np.isfinite(x))) for x in (base * H, scale * H, thresholds)),
            "reward, constraints",
            "must have ranges and thresholds whose discounted totals are finite numbers",
            f"ranges {list(zip(low.tolist(), high.tolist(), strict=True))}",
            "use units in which the numbers are of ordinary size",
        )
        object.__setattr__(self, "signals", tuple(signals))
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "thresholds", thresholds)

    # ---- sizes -----------------------------------------------------------------------------------------------------

    @property
    def horizon(self) -> float:
        """H = 1/(1−γ), the effective horizon."""
        return 1.0 / (1.0 - self.gamma)

    @property
    def num_constraints(self) -> int:
        """m, the number of constraints."""
        return len(self.constraints)

    @property
    def num_states(self) -> int | None:
        """S, or None for a continuous space."""
        return self.states.num if isinstance(self.states, FiniteStates) else None

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Which of reward and constraints come from the simulator rather than from a known function, ``(1+m,)``."""
        return np.array([s.values is None for s in self.signals])

    def required_features(self) -> Features:
        """The features, which least-squares oracles cannot do without."""
        if self.features is None:
            raise InputError(
                "features", "must be given for a least-squares oracle", None, "use a tabular oracle instead"
            )
        return self.features

    # ---- the map to the paper's units and back ---------------------------------------------------------------------

    def utilities(self, states: States, actions: Actions) -> Array:
        """The known r, c_1..c_m ∈ [0, 1] at pairs, ``(n, 1+m)``; NaN in the columns that are observed."""
        x = np.full((len(states), 1 + self.num_constraints), np.nan)
        for i, signal in enumerate(self.signals):
            if signal.values is not None:
                x[:, i] = signal.at(states, actions)
        return self.utilities_of(x)

    def utilities_of(self, signals: Array) -> Array:
        """Signals ``(…, 1+m)`` in the user's units as utilities in [0, 1]."""
        return np.clip((signals - self.base) / self.scale, 0.0, 1.0)

    def values_of(self, unit_values: Array) -> Array:
        """Unit values ``(…, 1+m)`` of r, c_1..c_m as discounted totals in the user's units."""
        return np.asarray(unit_values * self.scale + self.base * self.horizon)

    def unit_values_of(self, values: Array) -> Array:
        """The inverse of :meth:`values_of`."""
        return np.asarray((values - self.base * self.horizon) / self.scale)

    def multipliers_of(self, unit_multipliers: Array) -> Array:
        """Unit multipliers ``(…, m)`` as reward per unit of threshold, non-negative."""
        return np.asarray(unit_multipliers * self.scale[0] / np.abs(self.scale[1:]))

    def user_thresholds(self) -> Array:
        """The thresholds as discounted totals in the user's units, ``(m,)``."""
        return np.asarray(self.thresholds * self.scale[1:] + self.base[1:] * self.horizon)

    # ---- pairs -----------------------------------------------------------------------------------------------------

    def pairs(self) -> tuple[States, Actions]:
        """The candidate pairs of a design: as given, or all of S × A in the order s·A + a."""
        if self.candidates is not None:
            return self.candidates
        if self.num_states is None:
            return self._spread_pairs()
        S, A = self.num_states, self.num_actions
        return np.repeat(np.arange(S), A), np.tile(np.arange(A), S)

    @property
    def lists_all_pairs(self) -> bool:
        """Whether :meth:`pairs` are all there are."""
        return self.candidates is None and self.num_states is not None

    def _spread_pairs(self) -> tuple[States, Actions]:
        """Points that fill a bounded box, and the start states, each with all actions."""
        box, A = self.states, self.num_actions
        if not (isinstance(box, BoxStates) and np.all(np.isfinite(box.low)) and np.all(np.isfinite(box.high))):
            raise InputError(
                "candidates",
                "must be given for a state space without bounds",
                None,
                "pass a pool of (states, actions) to choose the design from",
            )
        pool = np.concatenate([box.spread(_POOL // A + 1), np.asarray(self.start.states)[: _POOL // 8]])
        return np.repeat(pool, A, axis=0), np.tile(np.arange(A), len(pool))

    # ---- checks ----------------------------------------------------------------------------------------------------

    def _signal(self, name: str, given: Any, declared: tuple[float, float] | None) -> _Signal:
        if given is None or callable(given):
            if declared is None:
                raise InputError(
                    name, "must declare its range when it is a function or observed", None, "pass range=(low, high)"
                )
            values: Array | SignalFunction | None = given
            low, high = map(float, declared)
        else:
            values = as_float64(name, given)
            expected = (self.num_states, self.num_actions)
            require(
                values.shape == expected, name, f"must have shape {expected}", values.shape, "give one value a pair"
            )
            bad = np.argwhere(~np.isfinite(values))
            if bad.size:
                s, a = bad[0]
                raise InputError(f"{name}[{s}, {a}]", "must be finite", values[s, a], "remove NaN and infinities")
            low, high = map(float, declared) if declared else (float(values.min()), float(values.max()))
            if declared is None and low == high:
                high = low + 1.0  # a constant signal: any span does
        require(
            bool(np.isfinite(low) and np.isfinite(high) and low < high),
            name,
            "must have a finite range with low < high",
            (low, high),
            "declare the range (low, high)",
        )
        signal = _Signal(name, values, low, high)
        if isinstance(values, np.ndarray):
            s, a = np.divmod(np.arange(values.size), self.num_actions)
            signal.check(values.ravel(), s, a)
        return signal

    def _check_constraint(self, c: Constraint) -> None:
        require(c.sense in (">=", "<="), c.name, "must have sense '>=' or '<='", repr(c.sense), "use one of the two")
        require(bool(np.isfinite(c.threshold)), c.name, "must have a finite threshold", c.threshold, "give a number")
        require(
            c.units in ("discounted", "per-step"),
            c.name,
            "must have units 'discounted' or 'per-step'",
            repr(c.units),
            "use one of the two",
        )

    def _check_start(self) -> None:
        wrong = self.states.well_formed(np.asarray(self.start.states))
        require(wrong is None, "start.states", wrong or "", "that", "match the state space")
        outside = np.flatnonzero(self.states.outside(self.start.states))
        if outside.size:
            raise InputError(
                "start.states", "must lie in the state space", self.start.states[outside[0]], "move it inside"
            )
        w = np.asarray(self.start.weights)
        require(
            w.shape == (len(self.start.states),) and bool(np.all(w >= 0)) and abs(float(w.sum()) - 1) < 1e-9,
            "start.weights",
            "must be non-negative, one a start state, and sum to 1",
            w,
            "give a probability vector",
        )
