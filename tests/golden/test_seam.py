"""Golden numbers of the buffer oracles on small problems: however the batches are held and read, the answers stay.

``golden/seam.json`` was written by the first version of the buffer, which kept all samples and read them with numpy.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from helpers import random_design, random_table, sampled, tabular_buffer
from saddleback.method.evaluators import LSPE, TabularPE
from saddleback.method.solvers import GSS, LSMDVI, MirrorDescent, TabularMDVI
from saddleback.problem.policies import GreedyPolicy
from saddleback.sampling.batches import CountBatches, Parts, SampleBatches
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut

GOLDEN = json.loads((Path(__file__).parent / "seam.json").read_text())
MIXING = np.array([[1.0, 0.0], [0.4, 0.6], [0.0, 1.0]])
FORMS = {
    "as chosen": lambda buffer: buffer,
    "samples": lambda buffer: held_as_samples(buffer, np.intp),
    "samples, compiled": lambda buffer: held_as_samples(buffer, np.uint32),
    "batch by batch": lambda buffer: batch_by_batch(held_as_samples(buffer, np.intp)),
    "batch by batch, compiled": lambda buffer: batch_by_batch(held_as_samples(buffer, np.uint32)),
}


def held_as_samples(buffer, dtype):
    batches = SampleBatches(buffer.batches.index.astype(dtype), Parts(buffer.batch_sizes))
    return dataclasses.replace(buffer, batches=batches, compiled=dtype == np.uint32)


def batch_by_batch(buffer):
    buffer._whole = False
    return buffer


def linear_buffers():
    table = random_table(11, S=30, A=3, gamma=0.9, d=5)
    problem = table.problem()
    design = random_design(problem, 11)
    counts = 120 + 10 * (np.arange(design.size) % 7)
    uneven = collect(table.simulator(), problem, design, counts, seed=2, stream=1)
    return problem, {
        "even": sampled(table, problem, design, 160, 40, seed=1),
        "uneven": cut(uneven, problem, design, 10),
        "counted": sampled(table, problem, design, 4000, 10, seed=3),
    }


def linear_results(problem, buffer):
    yield "ls-mdvi, one", [p.theta for p in LSMDVI().solve(problem, buffer, MIXING[1:2])]
    yield "ls-mdvi, three", [p.theta for p in LSMDVI().solve(problem, buffer, MIXING)]
    yield "ls-mdvi, burn-in", [p.theta for p in LSMDVI(0.05).solve(problem, buffer, MIXING)]
    yield "mirror-descent", [p.theta for p in MirrorDescent(0.3, 0.1).solve(problem, buffer, MIXING)]
    yield "gss", GSS().parameters(problem, buffer, MIXING)
    yield "ls-pe", LSPE().evaluate(problem, buffer, GreedyPolicy(problem.features, np.arange(5.0) % 3))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_linear_oracles(form):
    problem, buffers = linear_buffers()
    for name, buffer in buffers.items():
        for what, seen in linear_results(problem, FORMS[form](buffer)):
            np.testing.assert_allclose(seen, GOLDEN[f"{name}/{what}"], rtol=1e-12, err_msg=f"{name}/{what}")


@pytest.mark.parametrize("form", ["as chosen", "samples", "samples, compiled"])
def test_tabular_oracles(form):
    for name, N, T in (("even", 60, 15), ("counted", 1000, 5)):
        problem, buffer = tabular_buffer(random_table(12, S=12, A=3, gamma=0.9), N, T)
        buffer = FORMS[form](buffer)
        policies = TabularMDVI().solve(problem, buffer, MIXING)
        np.testing.assert_array_equal([p.table for p in policies], GOLDEN[f"tabular {name}/tabular-mdvi"])
        values = TabularPE().evaluate(problem, buffer, policies[1])
        np.testing.assert_allclose(values, GOLDEN[f"tabular {name}/tabular-pe"], rtol=1e-12)


def test_the_forms_are_what_they_are_called():
    _, buffers = linear_buffers()
    assert isinstance(buffers["even"].batches, SampleBatches)
    assert isinstance(buffers["counted"].batches, CountBatches)
    assert FORMS["samples, compiled"](buffers["even"]).batches.compiled


def test_another_sample_would_show():
    problem, buffers = linear_buffers()
    moved = held_as_samples(buffers["even"], np.intp)
    moved.batches.index[0, 0] = (moved.batches.index[0, 0] + 1) % len(moved.support)
    moved.batches.index[7, 3] = (moved.batches.index[7, 3] + 1) % len(moved.support)
    _, seen = next(linear_results(problem, moved))
    assert np.abs(np.array(seen) / GOLDEN["even/ls-mdvi, one"] - 1).max() > 1e-9
