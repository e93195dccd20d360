"""§3, the framework's oracles, as protocols: what Alg. 1 asks of a solver, an evaluator and a dual.

    Assumption asmp_b1.  MDP-Solver(□, B, φ) returns π̃ with  max_π V_□^π(ρ) − V_□^π̃(ρ) ≤ R·f_mdp(B),   □ ∈ [0, R]
    Assumption asmp_b2.  PolicyEvaluation(π, ◇, B, φ) returns V̂ with  |V̂_◇(ρ) − V_◇^π(ρ)| ≤ f_eva(B),   ◇ ∈ {r, c}

The reward □ = r + λᵀc is handed over as a point of the simplex, σ = (1, λ)/(1 + Σλ), so □_σ = σᵀ(r, c_1..c_m) ∈ [0, 1]
and R = 1: every solver here is positively homogeneous, the policy is the same, and λ = ∞ ("constraints only") is a point
like any other. *Buffer oracles* see the problem and a buffer, never the simulator; *interactive oracles* get a metered
:class:`~saddleback.sampling.buffer.Tap` on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import NumericalError, optional_package, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, Tap, counted


@runtime_checkable
class Solver(Protocol):
    """A buffer oracle for Assumption asmp_b1; ``mixing`` holds one point σ of the simplex per row, ``(k, 1+m)``."""

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """One policy per row of ``mixing``."""
        ...


@runtime_checkable
class Allocating(Protocol):
    """A solver that shares out the samples of its own buffer itself, as GSS does: i.i.d. from the design."""

    def allocate(self, design: Design, total: int, rng: np.random.Generator) -> tuple[Design, NDArray[np.int64]]:
        """The pairs and the number of samples of each, ``total`` in all."""
        ...


@runtime_checkable
class Remarking(Protocol):
    """A part that has something to tell the user about a problem."""

    def remarks(self, problem: CMDP) -> list[str]:
        """Sentences without a full stop."""
        ...


class Needs(NamedTuple):
    """What a part needs beyond a problem and a buffer.

    every_pair   a finite problem and a sample of every pair: it solves a table and does not look at features
    package      a module that must be installed, and the extra of this package that brings it
    batches      samples cut into batches; False where these mean nothing to it
    """

    every_pair: bool = False
    package: tuple[str, str] | None = None
    batches: bool = True


@runtime_checkable
class Needing(Protocol):
    """A part that says what it needs; one that does not is taken to need nothing but batches."""

    def needs(self, problem: CMDP) -> Needs:
        """What it needs for this problem."""
        ...


@runtime_checkable
class InteractiveSolver(Protocol):
    """A solver that decides for itself what to sample; its calls are metered."""

    def solve_interactively(self, problem: CMDP, design: Design, sampler: Tap, mixing: Array) -> list[Policy]:
        """One policy per row of ``mixing``."""
        ...


@runtime_checkable
class Evaluator(Protocol):
    """A buffer oracle for Assumption asmp_b2."""

    def evaluate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Array:
        """V̂_r(ρ), V̂_{c_1}(ρ), … in the paper's units, ``(1+m,)``, within [0, H]."""
        ...

    def interval(self, problem: CMDP, buffer: Buffer, policy: Policy, confidence: float) -> Interval:
        """What the data say of the error of :meth:`evaluate`: approximate, by the central limit theorem."""
        ...


@runtime_checkable
class InteractiveEvaluator(Protocol):
    """An evaluator that plays the policies itself; its calls are metered."""

    def evaluate_interactively(self, problem: CMDP, sampler: Tap, policies: Sequence[Policy]) -> Evaluator:
        """What was measured of ``policies``, as an evaluator that draws nothing more."""
        ...


class Interval(NamedTuple):
    """Lower and upper limits ``(1+m,)`` for the true values in the paper's units."""

    low: Array
    high: Array


@dataclass(frozen=True, slots=True)
class Step:
    """One round of Alg. 1: λ_k, the policy it led to, and that policy's estimated values ``(1+m,)``.

    ``multipliers`` holds infinities where the round asked for the constraints alone.
    """

    multipliers: tuple[float, ...]
    policy: Policy
    values: Array


class Proposal(NamedTuple):
    """What a dual says next: try these ``multipliers`` ``(m,)``; or, when done, mix the steps with ``weights``.

    Where the reward has no part in what is asked (λ = ∞), ``point`` gives the point σ of the simplex itself.
    """

    multipliers: tuple[float, ...]
    weights: Array | None
    done: bool
    point: Array | None = None


class OracleErrors(NamedTuple):
    """f_mdp (rounding included) and f_eva, which hold together with probability 1 − δ; infinite where nothing is proved."""

    solver: float
    evaluation: float

    @property
    def both(self) -> float:
        """f = max{f_mdp, f_eva}."""
        return max(self.solver, self.evaluation)


@dataclass(frozen=True)
class DualContext:
    """What a dual may know when it is configured; everything is in the paper's units.

    horizon        H
    thresholds     b ``(m,)``
    strict         whether the constraints must hold strictly, or up to the accuracy of the run
    room           ζ̂, the estimated Slater constant, and ``least_room`` its measured lower limit
    errors         policies → the oracles' proved errors for them; with no policy, for the one behind ``room``
    half_widths    () → half the measured interval of each constraint at its safest policy ``(m,)``
    error_given    whether the errors were set by hand
    target         b' ``(m,)`` where the caller has chosen it, else None
    """

    horizon: float
    thresholds: Array
    strict: bool
    room: float
    least_room: float
    errors: Callable[[Sequence[Policy]], OracleErrors]
    half_widths: Callable[[], Array]
    error_given: bool = False
    target: Array | None = None

    def measured_target(self) -> Array:
        """b' where no proved error is small enough to be of use: b, or for strict feasibility b plus what is measured."""
        return self.thresholds + self.half_widths() if self.strict else self.thresholds


class Ending(Enum):
    """How a dual ended."""

    CONVERGED = "converged"
    AT_CAP = "at-cap"
    NOTHING_FEASIBLE = "nothing-feasible"
    OUT_OF_STEPS = "out-of-steps"


class ColumnTerms(NamedTuple):
    """What the guarantee of column generation is made of: τ; ``closed`` says whether the gap was closed."""

    tolerance: float
    closed: bool


class DescentTerms(NamedTuple):
    """What the guarantee of projected descent is made of: U, η, K and the lower bound on ζ it was set by."""

    upper: float
    step_size: float
    num_iterations: int
    zeta: float


@dataclass(frozen=True)
class DualSummary:
    """What a dual says of its finished run.

    ``multipliers`` ``(m,)`` are the prices of the constraints (empty: there are none), ``gap`` what is left open (None: not
    known), ``meets_target`` whether the mixture meets b' by the estimates or only up to the accuracy of the run, ``terms``
    what a guarantee needs (None: none is known), and ``record`` what belongs in the record of the run.
    """

    ending: Ending
    multipliers: Array
    gap: float | None
    meets_target: bool
    terms: ColumnTerms | DescentTerms | None = None
    record: Mapping[str, float] = field(default_factory=dict)


@runtime_checkable
class Dual(Protocol):
    """The rule that moves the multipliers in one run; it sees the whole history."""

    @property
    def target(self) -> Array:
        """b' ``(m,)``."""
        ...

    @property
    def error(self) -> float:
        """The f of the oracles that it was set by."""
        ...

    @property
    def num_steps(self) -> int:
        """How many rounds a progress display should expect."""
        ...

    def propose(self, steps: Sequence[Step]) -> Proposal:
        """The next multipliers, or the final weights."""
        ...

    def gap(self, steps: Sequence[Step]) -> float:
        """What is left open between the mixture and an upper bound; infinite where that is not known."""
        ...

    def summary(self, steps: Sequence[Step]) -> DualSummary:
        """What came of the run."""
        ...


class DualKind(Protocol):
    """What the name of a dual stands for, as a rule its class: ``configure(context, **options)`` makes the rule for one run.

    ``retargets`` says whether a strict solve may configure it again with a higher target.
    """

    retargets: bool

    def configure(self, context: DualContext, *args: Any, **options: Any) -> Dual:
        """The rule for one run."""
        ...


def needs_of(part: object, problem: CMDP) -> Needs:
    """What a part says that it needs."""
    return part.needs(problem) if isinstance(part, Needing) else Needs()


def met_needs(kind: str, name: str, part: object, problem: CMDP) -> Needs:
    """What the part ``name`` needs, refused with a message where the problem or the installation does not have it."""
    needs = needs_of(part, problem)
    if needs.package is not None:
        optional_package(*needs.package, f"this {kind}")
    finite = problem.num_states is not None or not needs.every_pair
    require(finite, "states", f"must be finite for the {kind} {name}", problem.states, "use ls-mdvi or gss")
    return needs


def over_all_states(P: scipy.sparse.csr_array, buffer: Buffer, num_states: int) -> scipy.sparse.csr_array:
    """P ``(n, len(support))`` as ``(n, S)``, its columns in order."""
    wide = scipy.sparse.csr_array((P.data, buffer.support[P.indices], P.indptr), shape=(P.shape[0], num_states))
    wide.sort_indices()
    return wide


def estimated_table(problem: CMDP, buffer: Buffer, mixing: Array) -> tuple[scipy.sparse.csr_array, Array]:
    """What a buffer of every pair estimates: P̂ ``(S·A, S)`` from frequencies, □ ``(k, S, A)`` for each row σ of ``mixing`` ``(k, 1+m)``."""
    S, A = buffer.tabular_shape(problem)
    box = buffer.utilities(problem) @ np.asarray(mixing, dtype=np.float64).T
    return over_all_states(counted(buffer).empirical_model(), buffer, S), np.ascontiguousarray(box.T).reshape(-1, S, A)


def simplex_point(multipliers: Sequence[float]) -> Array:
    """σ = (1, λ_1..λ_m) / (1 + Σλ)."""
    point = np.array([1.0, *multipliers])
    return point / point.sum()


def round_to_grid(sigma: Array, resolution: int | None) -> Array:
    """The nearest point of the simplex whose coordinates are multiples of 1/resolution (largest remainders first).

    The grid is fixed before sampling, which is what lets a union bound cover every reward the solver is asked about
    (docs/errata.md, data dependence). ``None`` leaves σ as it is, as the paper does.
    """
    if resolution is None:
        return sigma
    scaled = sigma * resolution
    whole = np.floor(scaled + 1e-9)
    missing = round(resolution - float(whole.sum()))
    if missing > 0:
        order = np.argsort(-(scaled - whole), kind="stable")
        whole[order[:missing]] += 1
    return whole / resolution


def require_bounded(theta: Array) -> None:
    """Refuse what an iteration has made of features that next states have and the coreset has not."""
    if not np.all(np.isfinite(theta)):
        raise NumericalError(
            "the least-squares iteration grew without bound: next states have features far outside those of the design's "
            "candidates; add such pairs to the candidates, or let the default mode do it."
        )
