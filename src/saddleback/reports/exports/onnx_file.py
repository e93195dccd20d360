"""A policy as an ONNX model in float64, for programs in any language that have a runtime for it.

    inputs    state          int64 (n,), or float64 (n, k)
              member         int64 (1,), where there are several: the policy that plays the episode, drawn with `weights`
              u              float64 (n,) in [0, 1), where the policy draws: one random number a state
    outputs   action         int64 (n,)
              probabilities  float64 (n, A)

    action = #{a : u·Σ_b p_b ≥ p_0 + … + p_a}      as everywhere here

Names of states and actions, weights, and what the policy is worth are in the metadata, as JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback._version import __version__
from saddleback.errors import optional_package
from saddleback.files.disk import written_whole
from saddleback.problem.numerics import TIE
from saddleback.reports.exports.policy import ExportedPolicy, Points

_OPSET, _FORMAT = 17, 8  # of ONNX 1.12, which every runtime of the last years reads
START = b"\x08\x08\x12\nsaddleback"  # the version of the format, and who wrote it
_DIRECT = {"Add", "Sub", "Mul", "Div", "Min", "Max", "Exp", "Cos", "Sin", "Floor"}


def write_onnx(policy: ExportedPolicy, place: Path, points: Points) -> None:
    """The whole model."""
    onnx = optional_package("onnx", "onnx", "this format")
    graph = _Graph(onnx)
    model = graph.model(policy)
    onnx.checker.check_model(model)
    with written_whole(place) as file:
        file.write(model.SerializeToString())


class _Graph:
    """Nodes and constants of a model under construction."""

    def __init__(self, onnx: Any):
        self.helper, self.types, self.numpy = onnx.helper, onnx.TensorProto, onnx.numpy_helper
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def add(self, operation: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """One node; the name of its result."""
        result = name or f"n{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operation, list(inputs), [result], **attributes))
        return result

    def constant(self, value: Any, kind: Any = np.float64) -> str:
        """An array that the model holds."""
        name = f"k{len(self.constants)}"
        self.constants[name] = self.numpy.from_array(np.asarray(value, dtype=kind), name)
        return name

    def truth(self, operation: str, *inputs: str) -> str:
        """A comparison as 0.0 and 1.0."""
        return self.add("Cast", self.add(operation, *inputs), to=self.types.DOUBLE)

    def model(self, policy: ExportedPolicy) -> Any:
        """The policy as a model."""
        problem, members = policy.problem, len(policy.mixture.members)
        value = self.helper.make_tensor_value_info
        if policy.tabular:
            inputs = [value("state", self.types.INT64, ["n"])]
            p, draws = self._rows_of_tables(policy.tables)
        else:
            inputs = [value("state", self.types.DOUBLE, ["n", problem.start.states.shape[1]])]
            p, draws = self._rows_of_features(policy)
        inputs += [value("member", self.types.INT64, [1])] if members > 1 else []
        inputs += [value("u", self.types.DOUBLE, ["n"])] if draws else []
        self._act(p, draws)
        outputs = [value("action", self.types.INT64, ["n"])]
        outputs.append(value("probabilities", self.types.DOUBLE, ["n", problem.num_actions]))
        graph = self.helper.make_graph(
            self.nodes, "policy", inputs, outputs, list(self.constants.values()), doc_string=policy.sentence()
        )
        opset = self.helper.make_opsetid("", _OPSET)
        model = self.helper.make_model(graph, producer_name="saddleback", opset_imports=[opset])
        model.producer_version, model.ir_version = __version__, _FORMAT
        said = {"weights": policy.mixture.weights.tolist(), "actions": policy.action_names}
        said |= {"states": problem.state_names, **policy.to_json()}
        self.helper.set_model_props(model, {name: json.dumps(x) for name, x in said.items()})
        return model

    def _act(self, p: str, draws: bool) -> None:
        p = self.add("Identity", p, name="probabilities")
        if not draws:
            self.add("ArgMax", p, name="action", axis=1, keepdims=0)
            return
        last, one = self.constant([-1], np.int64), self.constant([1], np.int64)
        below = self.add("CumSum", p, self.constant(1, np.int64))
        total = self.add("Gather", below, last, axis=1)
        u = self.add("Mul", self.add("Unsqueeze", "u", one), total)
        passed = self.add("Cast", self.add("GreaterOrEqual", u, below), to=self.types.INT64)
        self.add("ReduceSum", passed, one, name="action", keepdims=0)

    def _rows_of_tables(self, tables: NDArray[np.float64]) -> tuple[str, bool]:
        k, S, A = tables.shape
        place = "state"
        if k > 1:
            place = self.add("Add", "state", self.add("Mul", "member", self.constant(S, np.int64)))
        p = self.add("Gather", self.constant(tables.reshape(k * S, A)), place, axis=0)
        return p, bool(np.any(tables.max(axis=2) != 1.0))

    def _rows_of_features(self, policy: ExportedPolicy) -> tuple[str, bool]:
        program, (theta, beta) = policy.program, policy.thetas
        known = {"x": "state"}
        for name, constant in program.constants.items():
            known[name] = self.constant(constant)
        for i, (operation, *names) in enumerate(program.steps):
            known[f"t{i}"] = self._step(operation, names, known, program.constants)
        W = np.array([program.weights(t) for t in theta])
        weights, slope = self.constant(W[0]), self.constant(beta[0])
        if len(theta) > 1:
            weights = self.add("Gather", self.constant(W), self._member(), axis=0)
            slope = self.add("Gather", self.constant(beta), self._member(), axis=0)
        values = self.add("MatMul", known[program.result], weights)
        best = self._first_largest(values, policy.problem.num_actions)
        if not np.any(beta > 0):
            return best, False
        drawn = self.add("Softmax", self.add("Mul", values, slope), axis=1)
        greedy = self.add("Equal", slope, self.constant(0.0))
        return self.add("Where", greedy, best, drawn), True

    def _member(self) -> str:
        return self.add("Squeeze", "member")

    def _step(self, operation: str, names: list[str], known: dict[str, str], constants: Any) -> str:
        operands, one = [known[name] for name in names], self.constant([1], np.int64)
        if operation in _DIRECT:
            return self.add(operation, *operands)
        if operation == "Columns":
            return self.add("Gather", operands[0], self.constant(constants[names[1]][0], np.int64), axis=1)
        if operation == "Concat":
            return self.add("Concat", *operands, axis=1)
        if operation == "Sum":
            return self.add("ReduceSum", *operands, one, keepdims=1)
        if operation == "Least":
            return self.add("ReduceMin", *operands, axes=[1], keepdims=1)
        return self.truth({"Equal": "Equal", "AtLeast": "GreaterOrEqual"}[operation], *operands)

    def _first_largest(self, values: str, num_actions: int) -> str:
        """One-hot rows of the first action within rounding of the best (:func:`saddleback.problem.numerics.first_largest`)."""
        top, low = (self.add(name, values, axes=[1], keepdims=1) for name in ("ReduceMax", "ReduceMin"))
        size = self.add("Max", self.add("Abs", top), self.add("Abs", low))
        edge = self.add("Sub", top, self.add("Mul", size, self.constant(TIE)))
        best = self.add("ArgMax", self.truth("GreaterOrEqual", values, edge), axis=1, keepdims=1)
        return self.truth("Equal", best, self.constant(np.arange(num_actions)[None], np.int64))
