"""What is asked of a solve: a dozen words everybody needs, and one :class:`Method` for those who choose parts.

Both are frozen and validated once, here. The run folder stores them, `resume` reads them and the command line fills them:
a new option is a field of one of the two, and nothing else.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from saddleback.certificates.guide import PURPOSES, Purpose
from saddleback.designs import BY_NAME as DESIGNS
from saddleback.designs.design import Designer
from saddleback.errors import InputError, number, one_of, require, whole_number
from saddleback.files.json_file import Option, Plain, as_record, to_plain
from saddleback.method.duals import BY_NAME as DUALS
from saddleback.method.evaluators import BY_NAME as EVALUATORS
from saddleback.method.oracles import DualKind, Evaluator, InteractiveEvaluator, InteractiveSolver, Solver
from saddleback.method.solvers import BY_NAME as SOLVERS
from saddleback.runs.work_folder import SolveOptions

Feasibility = Literal["relaxed", "strict"]
Mode = Literal["default", "literal"]
Allocation = Literal["equal", "design"]

USUAL_SAMPLES = 1_000_000
MOST_SAMPLES = 100_000_000
_KINDS: Mapping[str, Mapping[str, Any]] = {
    "solver": SOLVERS,
    "evaluator": EVALUATORS,
    "design": DESIGNS,
    "dual": DUALS,
}


class Part(NamedTuple):
    """A part of the method by name, with options of its own: ``Part("projected-descent", {"iterations": 200})``."""

    name: str
    options: Mapping[str, Option] = {}

    def make(self, kind: str) -> Any:
        """What the name stands for, with its options: the part itself, or for duals the class that configures itself."""
        _known(kind, self)
        try:
            return _KINDS[kind][self.name](**self.options)
        except TypeError as error:
            raise InputError(
                f"{kind} options", f"must be options of {self.name}", dict(self.options), str(error)
            ) from None


@dataclass(frozen=True)
class Method:
    """Which parts a solve is made of; None means the usual one for the mode and the problem.

    mode          "default", or "literal": the paper's algorithm as it stands
    solver        a name, a :class:`Part`, or an object with ``solve`` (docs/black_box.md)
    evaluator     likewise, with ``evaluate`` and ``interval``
    design        likewise, with ``design``
    dual          a name, a :class:`Part`, or a class with ``configure``
    certificate   simulator calls that prove the answer; None: half of all, 0: no certificate
    purpose       what the proof is for: "feasibility", that the constraints hold; "value", what the policy is worth; "gap", how
                  far it is from the best; None: feasibility where that is to be strict, else gap
    buffers       2: solver and evaluator have samples of their own; 1: they share them, a heuristic
    batch_size    M, the samples of a pair in each inner iteration
    resolution    of the grid of rewards that an a-priori guarantee needs; 0: no grid, None: 1000 in literal mode, else none
    allocation    "equal", or "design": samples follow the design's weights
    error         f, the oracles' error, set by hand, in utilities
    target        b', one number a constraint, in utilities
    """

    mode: Mode = "default"
    solver: str | Part | Solver | InteractiveSolver | None = None
    evaluator: str | Part | Evaluator | InteractiveEvaluator | None = None
    design: str | Part | Designer | None = None
    dual: str | Part | DualKind | None = None
    certificate: int | None = None
    purpose: Purpose | None = None
    buffers: int = 2
    batch_size: int | None = None
    resolution: int | None = None
    allocation: Allocation | None = None
    error: float | None = None
    target: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        one_of("mode", self.mode, ("default", "literal"))
        if self.allocation is not None:
            one_of("allocation", self.allocation, ("equal", "design"))
        if self.purpose is not None:
            one_of("purpose", self.purpose, PURPOSES)
        known = self.buffers in (1, 2) and not isinstance(self.buffers, bool)
        require(known, "buffers", "must be 1 or 2", repr(self.buffers), "pick one of them")
        _make_whole(self, "certificate", 0, "0 means no certificate")
        _make_whole(self, "batch_size", 1, "use 4")
        _make_whole(self, "resolution", 0, "0 means no grid")
        if self.error is not None:
            number("error", self.error, 0, remedy="give the oracles' f")
        for kind in _KINDS:
            given = getattr(self, kind)
            if isinstance(given, str | Part):
                _known(kind, given)
        if isinstance(self.dual, str | Part):
            name, dual, options = self.dual_part
            try:
                inspect.signature(dual.configure).bind(None, **options)
            except TypeError as error:
                raise InputError("dual options", f"must be options of {name}", dict(options), str(error)) from None
        if self.target is not None:
            object.__setattr__(self, "target", tuple(float(x) for x in self.target))

    @classmethod
    def paper(cls, *, iterations: int = 1000, **choices: Any) -> Method:
        """The paper's algorithm: LS-MDVI and LS-PE from zero, Frank-Wolfe, K projected dual steps, a grid of rewards."""
        return cls(mode="literal", dual=Part("projected-descent", {"iterations": iterations}), **choices)

    @property
    def grid(self) -> int | None:
        """The resolution of the rewards' grid, None for no grid."""
        if self.resolution is None:
            return 1000 if self.mode == "literal" else None
        return self.resolution or None

    @property
    def dual_part(self) -> tuple[str, DualKind, Mapping[str, Option]]:
        """The dual's name, its class and its options."""
        given = self.dual or ("projected-descent" if self.mode == "literal" else "column-generation")
        if isinstance(given, str):
            given = Part(given)
        if isinstance(given, Part):
            return given.name, DUALS[given.name], given.options
        return getattr(given, "__name__", type(given).__name__), given, {}


@dataclass(frozen=True)
class Settings:
    """What is asked of a solve.

    samples       all simulator calls, the certificate's included
    epsilon       instead of samples: draw until this accuracy of the discounted reward is proved
    max_samples   with epsilon: give up after this many
    feasibility   "strict": the constraints are proved to hold; "relaxed": they hold up to the accuracy of the run
    delta         one minus the confidence of everything that is proved together
    seed          the same seed gives the same samples
    method        which parts
    """

    samples: int | None = None
    epsilon: float | None = None
    max_samples: int | None = None
    feasibility: Feasibility = "strict"
    delta: float = 0.05
    seed: int = 0
    method: Method = field(default_factory=Method)

    def __post_init__(self) -> None:
        one_of("feasibility", self.feasibility, ("relaxed", "strict"))
        require(isinstance(self.method, Method), "method", "must be a Method", repr(self.method), "use Method(...)")
        delta = number("delta", self.delta, 1e-12, 1, open_high=True, remedy="0.05 means 95 % confidence")
        object.__setattr__(self, "delta", delta)  # a NumPy number too
        _make_whole(self, "seed", 0, "use 0, 1, 2 …")
        _make_whole(self, "samples", 1, "give a number of simulator calls")
        if self.epsilon is None:
            require(self.max_samples is None, "max_samples", "must go with epsilon", self.max_samples, "use samples")
            return
        rule, remedy = "must be positive and finite", "give the accuracy wanted of the discounted total"
        epsilon = number("epsilon", self.epsilon, 0, open_low=True, rule=rule, remedy=remedy)
        object.__setattr__(self, "epsilon", epsilon)
        _make_whole(self, "max_samples", 2, "use 10000000")
        self._check_accuracy_method()

    def _check_accuracy_method(self) -> None:
        """A solve to an accuracy takes its own decisions about the rest."""
        m = self.method
        for name in ("samples", "certificate", "purpose", "error", "target", "batch_size", "resolution"):
            value = getattr(self if name == "samples" else m, name)
            require(value is None, name, "must not be given with epsilon", value, "leave one of the two out")
        found, rule = (m.mode, m.dual_part[0], m.buffers), "must be the usual ones with epsilon"
        usual = found == ("default", "column-generation", 2)
        require(usual, "mode, dual, buffers", rule, found, "give a number of samples instead")

    @property
    def confidence(self) -> float:
        """1 − δ."""
        return 1.0 - self.delta

    @property
    def purpose(self) -> Purpose:
        """What the proof is for; an accuracy is proved by its gap."""
        if self.method.purpose is not None:
            return self.method.purpose
        return "feasibility" if self.feasibility == "strict" and self.epsilon is None else "gap"

    def split(self, stored: bool = False) -> tuple[int, int]:
        """The simulator calls of the solve and of the certificate; a solve from ``stored`` samples draws none itself."""
        total, proof = self.samples, self.method.certificate
        if stored:
            proof = proof if proof is not None else USUAL_SAMPLES // 2 if total is None else total
            return 0, proof
        total = USUAL_SAMPLES if total is None else total
        proof = total // 2 if proof is None else proof
        rule = f"must be less than samples, {total}, which counts its calls too"
        remedy = "raise samples, or leave the certificate out with certificate=0"
        require(proof < total, "certificate", rule, proof, remedy)
        return total - proof, proof

    def record(self) -> dict[str, dict[str, Option]]:
        """What a run folder keeps: the parts by name, for `resume` to ask the very same again.

        A choice that it has no place for is refused, lest the run that is kept be another than the one that was asked for.
        """
        m = self.method
        lost = sorted(set(m.dual_part[2]) - {"iterations"})
        require(not lost, "dual options", "must be left out where the run is kept", lost, "solve without out=")
        require(m.target is None, "target", "must be left out where the run is kept", m.target, "solve without out=")
        first = {"feasibility": self.feasibility, "mode": m.mode, "delta": self.delta, "seed": self.seed}
        parts: dict[str, Option] = dict(first)
        parts |= {kind: _name_of(kind, getattr(m, kind)) for kind in ("dual", "solver", "evaluator", "design")}
        parts |= {"buffers": m.buffers, "allocation": m.allocation}
        parts |= {} if m.purpose is None else {"purpose": m.purpose}
        if self.epsilon is None:
            parts |= {
                "iterations": whole_number("iterations", dict(m.dual_part[2]).get("iterations", 1000)),
                "error": None if m.error is None else float(m.error),
                "batch_size": m.batch_size,
                "resolution": -1 if m.resolution is None else m.resolution or None,
            }
            solve, proof = self.split()
            return {"budget": {"samples": solve, "certificate": proof}, "parts": parts}
        most = MOST_SAMPLES if self.max_samples is None else self.max_samples
        return {"budget": {"epsilon": self.epsilon, "max_samples": most}, "parts": parts}

    def question(self) -> dict[str, Plain]:
        """All that is asked, JSON-ready and the same in any process: what has a place in no record (:meth:`record`) too."""
        m, parts = self.method, {kind: _spelled(getattr(self.method, kind)) for kind in _KINDS}
        same = ("mode", "buffers", "batch_size", "resolution", "allocation", "error", "target")
        asked = {"feasibility": self.feasibility, "delta": self.delta, "seed": self.seed, "purpose": self.purpose}
        plain: dict[str, Plain] = to_plain({**asked, **{name: getattr(m, name) for name in same}, **parts})
        return plain

    @classmethod
    def of_record(cls, record: Mapping[str, Mapping[str, Option]]) -> Settings:
        """The settings that a run folder keeps, those of stored samples included; see :meth:`record`."""
        kept = as_record(record, SolveOptions, "options", "give finite numbers of ordinary size")
        budget, parts = kept.budget, kept.parts
        dual: str | Part | None = parts.dual
        if dual == "projected-descent" or (dual is None and parts.mode == "literal"):
            dual = Part("projected-descent", {"iterations": parts.iterations})
        shared = {name: getattr(parts, name) for name in ("feasibility", "delta", "seed")}
        same = ("mode", "solver", "evaluator", "design", "buffers", "batch_size", "allocation", "error", "purpose")
        method = Method(
            dual=dual,
            certificate=budget.certificate,
            resolution=None if parts.resolution == -1 else parts.resolution or 0,
            **{name: getattr(parts, name) for name in same},
        )
        if budget.epsilon is not None:
            return cls(epsilon=budget.epsilon, max_samples=budget.max_samples, method=method, **shared)
        total = (budget.samples or 0) + (budget.certificate or 0)
        return cls(samples=max(1, total), method=method, **shared)

    def with_target(self, target: Sequence[float]) -> Settings:
        """The same with b' fixed, for one more look at the samples that are there: an accuracy is no longer asked for."""
        method = dataclasses.replace(self.method, target=tuple(target))
        return dataclasses.replace(self, epsilon=None, max_samples=None, method=method)


def _known(kind: str, given: str | Part) -> None:
    name = given if isinstance(given, str) else given.name
    if name not in _KINDS[kind]:
        known = ", ".join(sorted(_KINDS[kind]))
        raise InputError(kind, f"must be one of {known}", repr(name), "choose one of them")


def _name_of(kind: str, given: Any) -> str | None:
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, Part) and (kind == "dual" or not given.options):
        return given.name
    raise InputError(kind, "must be given by name where the run is kept", given, "leave out, or register the part")


def _spelled(given: Any) -> list[Any] | None:
    """A part as data: its name and its options; of an object what it shows of itself, without its place in memory."""
    if given is None:
        return None
    if isinstance(given, str | Part):
        part = Part(given) if isinstance(given, str) else given
        return [part.name, dict(part.options)]
    kind = given if isinstance(given, type) else type(given)
    held = "" if given is kind else f"{given!r} {sorted(getattr(given, '__dict__', {}).items())!r}"
    return [f"{kind.__module__}.{kind.__qualname__}", re.sub(r" at 0x[0-9a-fA-F]+", "", held)]


def _make_whole(settings: Method | Settings, name: str, least: int, remedy: str) -> None:
    """1e6 is a whole number too."""
    value = getattr(settings, name)
    if value is not None:
        object.__setattr__(settings, name, whole_number(name, value, least, remedy))
