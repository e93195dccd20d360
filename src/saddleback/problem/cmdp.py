"""§2, the constrained MDP as the agent knows it: everything but the transition probabilities.

    max_π V_r^π(ρ)   subject to   V_{c_i}^π(ρ) ≥ b_i,   i = 1..m            (eq:true-CMDP)

The paper writes r, c ∈ [0, 1] and one constraint "≥ b". Users have rewards in euros, costs with "≤" budgets and several
constraints, so a :class:`CMDP` keeps the user's units and maps them once, here, to the paper's *utilities*:

    u = (x − base) / scale ∈ [0, 1],     V_u = (V_x − base·H) / scale,     b_u = (b_x − base·H) / scale

with (base, scale) = (low, high − low) for rewards and "≥", and (high, low − high) for costs that are minimised and "≤"
budgets: c = 1 − cost. Column 0 of every ``(…, 1+m)`` array is the reward (or the cost), the others the constraints.
:mod:`saddleback.runs.answer` undoes the map once. Where a difference of rewards is meant, its unit is
:attr:`CMDP.reward_span`, which is positive either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import InputError, checked_arguments, discount, require
from saddleback.problem.actions import (
    Mask,
    described_policy,
    permitted_policy,
    read_allowed,
    read_features,
    read_preferred,
    stand_ins_of,
)
from saddleback.problem.criteria import UNSEEN, Criterion, Discounted, Unit
from saddleback.problem.names import action_index, check_words, read_actions, state_space
from saddleback.problem.policies import Policy
from saddleback.problem.signals import Constraint as Constraint
from saddleback.problem.signals import Sense as Sense
from saddleback.problem.signals import Signal, SignalFunction, read_constraints, read_signal
from saddleback.problem.spaces import (
    MOST,
    Actions,
    Array,
    BoxStates,
    Features,
    FiniteStates,
    States,
    StateSpace,
    read_pairs,
)
from saddleback.problem.start import Start as Start
from saddleback.problem.start import read_start
from saddleback.problem.user_code import frozen_if_array

_POOL = 8192  # pairs of a pool that nobody has given
_GAMMA = "for undiscounted problems choose a horizon H and set gamma = 1 - 1/H"
_MISSING: Any = object()


@dataclass(frozen=True, init=False)
class CMDP:
    """A constrained MDP without its transition probabilities, in the user's units.

    Parameters
    ----------
    gamma            discount, in [0, 1)
    start            where the process begins: a state, {state: weight}, a list with one weight a state, or a Start
    num_actions      how many actions there are; may be left out where ``actions`` is given
    states           a number n (the states 0 … n − 1), a list of names or tuples, a tuple of ranges such as
                     ``(range(10), range(5))``, or FiniteStates, ListedStates, ProductStates, BoxStates
    reward           an array or a function, as the signal of a Constraint; None when the simulator returns it
    constraints      a list of Constraint, at least one
    features         a feature map; None on a finite space means the tabular case
    reward_range     the smallest and largest reward; may be left out for arrays
    candidates       pairs (states, actions) a design may choose from; by default all, or points that fill the box
    name             what the problem is called in reports
    state_names      names for reports only; by default those of ``states``
    actions          how many actions there are, or a list of their names
    actions_allowed  a mask ``(S, A)``, a list of actions a state, {state: actions} (others allow everything), or a
                     function state -> actions; by default every action is allowed everywhere
    preferred        actions by number or name, the most preferred first: who is taken where samples cannot tell (docs/policies.md)
    minimise         whether ``reward`` is a cost to be minimised: values, limits and gaps are then costs too
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
    actions: tuple[str, ...] | None = None
    actions_allowed: Mask | None = None
    minimise: bool = False
    preferred: tuple[int, ...] | None = None
    signals: tuple[Signal, ...] = field(init=False)
    base: Array = field(init=False)
    scale: Array = field(init=False)
    thresholds: Array = field(init=False)
    stand_ins: NDArray[np.int64] | None = field(init=False)

    @checked_arguments
    def __init__(
        self,
        gamma: float,
        start: Any,
        num_actions: int | None = None,
        states: Any = _MISSING,
        reward: Any = _MISSING,
        constraints: Sequence[Constraint] = _MISSING,
        features: Features | None = None,
        reward_range: tuple[float, float] | None = None,
        candidates: tuple[States, Actions] | None = None,
        name: str = "problem",
        state_names: Sequence[str] | None = None,
        *,
        actions: int | Sequence[str] | None = None,
        actions_allowed: Any = None,
        minimise: bool = False,
        preferred: Sequence[int | str] | None = None,
    ):
        for word, value in (("states", states), ("reward", reward), ("constraints", constraints)):
            require(value is not _MISSING, word, "must be given to CMDP", "nothing", f"add {word}=...")
        discount(gamma, _GAMMA)
        space = state_space(states)
        A, names = read_actions(actions, num_actions)
        require(A <= MOST, "actions", "must be at most 2^62", "more", "use fewer: int64 must number them")
        allowed = read_allowed(actions_allowed, space, A, names)
        stand_ins = None if allowed is None else stand_ins_of(allowed)
        check_words(name, minimise, state_names, space.num if isinstance(space, FiniteStates) else None)
        listed = tuple(replace(c, signal=frozen_if_array(c.signal)) for c in read_constraints(constraints))
        if state_names is None and isinstance(space, FiniteStates) and space.named:
            state_names = space.names()
        known: dict[str, Any] = {
            "gamma": gamma,
            "start": read_start(start, space),
            "num_actions": A,
            "states": space,
            "reward": frozen_if_array(reward),
            "constraints": listed,
            "features": read_features(features, A, stand_ins),
            "reward_range": reward_range,
            "candidates": None if candidates is None else read_pairs("candidates", candidates, space),
            "name": name,
            "state_names": None if state_names is None else list(state_names),
            "actions": names,
            "actions_allowed": allowed,
            "minimise": minimise,
            "preferred": read_preferred(preferred, A, names),
            "stand_ins": stand_ins,
        }
        for word, value in known.items():
            object.__setattr__(self, word, value)
        self.start.check(self.states)
        given = [("reward", self.reward, reward_range), *((c.name, c.signal, c.range) for c in listed)]
        signals = tuple(read_signal(*g, space, A, names, stand_ins) for g in given)
        object.__setattr__(self, "signals", signals)
        self._set_units()

    def _set_units(self) -> None:
        """(base, scale) of every signal, and the thresholds as unit values."""
        up = np.array([not self.minimise] + [c.sense == ">=" for c in self.constraints])
        low, high = np.array([s.low for s in self.signals]), np.array([s.high for s in self.signals])
        H = self.horizon
        b = np.array([c.unit(self.horizon).total(c.threshold) for c in self.constraints])
        with np.errstate(all="ignore"):
            base, scale = np.where(up, low, high), np.where(up, high - low, low - high)
            thresholds = (b - base[1:] * H) / scale[1:]
            finite = all(bool(np.all(np.isfinite(x))) for x in (base * H, scale * H, thresholds))
        rule = "must have ranges and thresholds whose discounted totals are finite numbers of float64"
        found = f"ranges {list(zip(low.tolist(), high.tolist(), strict=True))}"
        require(finite, "reward, constraints", rule, found, "use units in which the numbers are of ordinary size")
        for word, value in (("base", base), ("scale", scale), ("thresholds", thresholds)):
            object.__setattr__(self, word, value)

    # ---- sizes -----------------------------------------------------------------------------------------------------

    @property
    def criterion(self) -> Criterion:
        """How the signals of the steps are added up."""
        return Discounted(self.gamma)

    @property
    def horizon(self) -> float:
        """H, the value of a signal that is always one."""
        return self.criterion.horizon

    @property
    def num_constraints(self) -> int:
        """m, the number of constraints."""
        return len(self.constraints)

    @property
    def num_states(self) -> int | None:
        """S, or None for a continuous space."""
        return self.states.num if isinstance(self.states, FiniteStates) else None

    @property
    def num_unknowns(self) -> int:
        """About how many numbers there are to learn: pairs of a table, or twice the features."""
        return (self.num_states or 1) * self.num_actions if self.features is None else 2 * self.features.dim

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Which of reward and constraints come from the simulator rather than from a known function, ``(1+m,)``."""
        return np.array([s.values is None for s in self.signals])

    @property
    def reward_span(self) -> float:
        """high − low of the reward: the unit of gaps and other differences of rewards, positive for costs too."""
        return abs(float(self.scale[0]))

    @property
    def objective(self) -> str:
        """What column 0 is to people: "reward", or "cost" where it is minimised."""
        return "cost" if self.minimise else "reward"

    @property
    def wanted(self) -> str:
        """How much of it is wanted: "largest" or "smallest"."""
        return "smallest" if self.minimise else "largest"

    def loss(self, best: float, value: tuple[float, float]) -> float:
        """By how much a policy with these limits of its ``value`` may miss the bound ``best`` on all policies."""
        return max(0.0, value[1] - best if self.minimise else best - value[0])

    def required_features(self) -> Features:
        """The features, which least-squares oracles cannot do without."""
        if self.features is None:
            rule = "must be given for a least-squares oracle"
            raise InputError("features", rule, None, "use a tabular oracle instead")
        return self.features

    # ---- the map to the paper's units and back ---------------------------------------------------------------------

    def utilities(self, states: States, actions: Actions) -> Array:
        """The known r, c_1..c_m ∈ [0, 1] at pairs, ``(n, 1+m)``; NaN in the columns that are observed."""
        x = np.full((len(states), 1 + self.num_constraints), np.nan)
        if self.stand_ins is not None:
            actions = self.stand_ins[states, actions]
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
        return np.asarray(unit_multipliers * np.abs(self.scale[0]) / np.abs(self.scale[1:]))

    @property
    def units(self) -> tuple[Unit, ...]:
        """What each constraint was given in, and is shown in."""
        rows = zip(self.constraints, np.abs(self.scale[1:]).tolist(), strict=True)
        return tuple(replace(c.unit(self.horizon), rounding=UNSEEN * self.horizon * span) for c, span in rows)

    @property
    def reward_unit(self) -> Unit:
        """That of the reward, or cost: discounted totals."""
        return Unit(horizon=self.horizon, rounding=UNSEEN * self.horizon * self.reward_span)

    def user_thresholds(self) -> Array:
        """The thresholds as discounted totals in the user's units, ``(m,)``."""
        return np.asarray(self.thresholds * self.scale[1:] + self.base[1:] * self.horizon)

    # ---- the user's own words --------------------------------------------------------------------------------------

    @property
    def allowed(self) -> Mask | None:
        """Which actions each state allows, ``(S, A)``; None where all do."""
        return self.actions_allowed

    def action_name(self, action: int) -> str:
        """An action as people call it."""
        return str(action) if self.actions is None else self.actions[action]

    def action_index(self, action: Any) -> int:
        """The number of an action given by number or name."""
        return action_index(action, self.num_actions, self.actions)

    def permitted(self, policy: Policy) -> Policy:
        """The policy with an allowed action in the place of every other: the action it stands for, so no value changes."""
        return permitted_policy(policy, self.stand_ins)

    def described(self, policy: Policy) -> dict[Any, Any]:
        """A policy in the user's words: {state: action}, or {state: {action: probability}} where it is random.

        Finite problems only. Actions without a name are numbers.
        """
        return described_policy(self.permitted(policy), self.states, self.actions)

    # ---- pairs -----------------------------------------------------------------------------------------------------

    def pairs(self) -> tuple[States, Actions]:
        """The candidate pairs of a design: as given, or all of S × A in the order s·A + a."""
        if self.candidates is not None:
            return self.candidates
        if self.num_states is None:
            return self._spread_pairs()
        S, A = self.num_states, self.num_actions
        return np.repeat(np.arange(S), A), np.tile(np.arange(A), S)

    def some_pairs(self, number: int, rng: np.random.Generator) -> tuple[States, Actions]:
        """Candidate pairs by chance, with repetition; where they are all of S × A they need not be listed for it."""
        if self.lists_all_pairs:
            every = (self.num_states or 0) * self.num_actions
            require(
                every < 2 * MOST, "candidates", "must be given for 2^63 pairs or more", None, "pass a pool of pairs"
            )
            places = rng.integers(0, every, number)
            return places // self.num_actions, places % self.num_actions
        states, actions = self.pairs()
        chosen = rng.integers(0, len(actions), number)
        return np.asarray(states)[chosen], np.asarray(actions)[chosen]

    @property
    def lists_all_pairs(self) -> bool:
        """Whether :meth:`pairs` are all there are."""
        return self.candidates is None and self.num_states is not None

    def _spread_pairs(self) -> tuple[States, Actions]:
        """Points that fill a bounded box, and the start states, each with all actions."""
        box, A = self.states, self.num_actions
        if not (isinstance(box, BoxStates) and np.all(np.isfinite(box.low)) and np.all(np.isfinite(box.high))):
            rule, remedy = (
                "must be given for a state space without bounds",
                "pass a pool of (states, actions) to choose from",
            )
            raise InputError("candidates", rule, None, remedy)
        pool = np.concatenate([box.spread(_POOL // A + 1), np.asarray(self.start.states)[: _POOL // 8]])
        return np.repeat(pool, A, axis=0), np.tile(np.arange(A), len(pool))
