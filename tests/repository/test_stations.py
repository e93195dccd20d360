"""One folder is one station of a journey, and imports only what it needs of the stations before it.

Every import counts the same: at the top of a file, inside a function, or for the type checker only. ``NEEDS`` is exact: an
import that is not in it fails, and so does an entry that nobody uses. Run with ``-s`` to see the graph and its figures.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

import pytest

from places import ROOT
from repository.import_graph import (
    Graph,
    Import,
    between_stations,
    cycle_in,
    graph_of,
    imports_of,
    longest_chain,
    modules_of,
    reached,
)
from repository.offenders import expect_none

SOURCE = ROOT / "src" / "saddleback"
if not (SOURCE / "certificates").is_dir():
    pytest.skip("the package is not arranged in stations", allow_module_level=True)

# Left to right. A need is a place of this table (all of its modules), or a single module.
NEEDS: dict[str, set[str]] = {
    place: set(needs.split())
    for place, needs in {
        "errors": "",
        "_version": "",
        "files": "errors",
        "problem": "errors files",
        "features": "errors problem",
        "simulators": "errors files problem features",
        "simulators.checks": "errors problem features simulators",
        "designs": "errors problem features",
        "sampling": "errors _version files problem features simulators.generative_model simulators.independence"
        " simulators.seed_rounds simulators.sources designs",
        "method": "errors problem designs sampling.buffer",
        "method.solvers": "errors problem designs sampling.buffer sampling.counted_buffer method",
        "method.evaluators": "errors problem sampling.buffer method",
        "method.duals": "errors problem.spaces problem.registry method",
        "theory": "errors problem.spaces method.oracles method.duals.column_generation",
        "exact": "errors problem simulators.table",
        "certificates": "errors files.json_file problem simulators.generative_model designs sampling method method.evaluators",
        "instances": "errors files problem simulators exact",
        "instances.zoo": "errors files problem features simulators method.master_lp instances",
        "instances.problem_file": "errors files problem features simulators instances instances.zoo",
        "runs": "errors _version files problem simulators.table designs method method.solvers method.evaluators method.duals"
        " exact certificates instances instances.zoo instances.problem_file sampling.store.sample_store"
        " simulators.sources features.program",
        "solving": "errors _version files problem features simulators designs sampling method method.solvers method.evaluators"
        " method.duals theory exact certificates runs",
        "reports.plots": "errors runs solving",
        "reports.listeners": "errors runs",
        "reports.html": "errors certificates.certificate certificates.values.averages _version files problem method.master_lp runs",
        "reports.exports": "errors certificates _version files problem features.program runs",
        "reports": "errors files problem simulators.checks exact certificates runs solving",
        "testing": "problem features simulators simulators.checks designs sampling method exact",
        "cli": "errors _version files problem simulators simulators.checks designs sampling method.solvers"
        " method.evaluators method.duals instances.zoo instances.problem_file runs solving"
        " reports reports.listeners reports.html reports.exports",
        "__main__": "cli",
        "__init__": "errors _version problem features simulators designs certificates instances instances.zoo runs solving"
        " reports.html reports.plots reports.exports",
    }.items()
}

MOST_REACHED = 18
MOST_IN_A_CHAIN, MOST_CALLS = 25, 4
FIRST_TREE = {"top-level entries": 62, "longest chain": 25, "modules walked": 69, "calls to the loop": 5}
HEAVY = "gymnasium jax matplotlib mdpsolver mlflow mujoco numba onnx pandas quantecon ray stable_baselines3 tensorboardX torch"


def place_of(module: str) -> str | None:
    """The place in ``NEEDS``: a sub-folder of its own, or the station."""
    two, one = ".".join(module.split(".")[:2]), module.split(".")[0]
    return two if two in NEEDS else one if one in NEEDS else None


def is_needed(imported: Import, needs: Iterable[str]) -> bool:
    return bool({imported.module, place_of(imported.module)} & set(needs))


def violations(module: str, text: str, known: frozenset[str]) -> list[str]:
    """What the imports of one module break, as sentences."""
    here = place_of(module)
    if here is None:
        return [f"{module}:1 has no place in NEEDS"]
    wrong = []
    for imported in imports_of(text, known):
        at, place = f"{module}:{imported.line}", place_of(imported.module)
        if imported.module.startswith(".") or place == "__init__":
            wrong.append(f"{at} imports {imported.module}: name the module in full")
        elif place != here and not is_needed(imported, NEEDS[here]):
            wrong.append(f"{at} imports {imported.module}, which {here} does not need")
        sees = place == "simulators" or imported.name in ("GenerativeModel", "Sampler")
        if here.split(".")[0] == "method" and sees:  # it sees data through the buffer, or a tap, only
            wrong.append(f"{at} sees {imported.module}.{imported.name or '*'}")
    return wrong


WALK = """
import os, sys
import saddleback.cli as cli
import saddleback.cli.solve  # loading a verb is not walking through it
root, walked, ways = os.path.dirname(os.path.dirname(cli.__file__)), set(), []
loop = os.path.join(root, "method", "framework.py")
def watch(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(root):
        walked.add(frame.f_code.co_filename)
        if (frame.f_code.co_filename, frame.f_code.co_name) == (loop, "run"):
            ways.append([])
            while frame is not None:
                if os.path.dirname(frame.f_code.co_filename).startswith((os.path.join(root, "solving"), os.path.dirname(loop))):
                    ways[-1].append(frame.f_code.co_name)
                frame = frame.f_back
sys.setprofile(watch)
try:
    cli.main(["solve", "wireless", "--samples", "20000", "--feasibility", "relaxed"])
except SystemExit as ended:
    assert not ended.code, ended.code
sys.setprofile(None)
print("\\nwalked", len(walked), max(map(len, ways)))
"""


def figures(graph: Graph) -> dict[str, int]:
    """What ``FIRST_TREE`` says of the first tree: modules walked are those with a function that `solve wireless` calls.

    It asks as the first tree did: without room for a proof, so that the loop is run once, for the answer.
    """
    done = subprocess.run([sys.executable, "-c", WALK], capture_output=True, text=True, check=True)
    _, walked, calls = done.stdout.splitlines()[-1].split()
    entries = [p for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file()]
    return dict(zip(FIRST_TREE, (len(entries), len(longest_chain(graph)), int(walked), int(calls)), strict=True))


MODULES = modules_of(SOURCE)
KNOWN = frozenset(MODULES)


def test_every_station_imports_what_it_needs_and_no_more() -> None:
    assert len(MODULES) > 100
    expect_none(wrong for module, text in MODULES.items() for wrong in violations(module, text, KNOWN))


def test_needs_look_left_and_are_in_use() -> None:
    order = list(NEEDS)
    used: dict[str, set[str]] = {place: set() for place in NEEDS}
    for module, text in MODULES.items():
        for imported in imports_of(text, KNOWN):
            used.setdefault(place_of(module) or "", set()).update({imported.module, place_of(imported.module) or ""})
    known = [(place, need, place_of(need)) for place, needs in NEEDS.items() for need in sorted(needs)]
    expect_none(
        f"{place} needs {need} to its right" for place, need, at in known if order.index(at or "") >= order.index(place)
    )
    expect_none(f"{place} does not use {need}" for place, need, _ in known if need not in used[place])


def test_no_cycle_of_any_kind() -> None:
    graph = graph_of(MODULES)
    cycles = [cycle_in(graph), cycle_in(between_stations(graph))]
    expect_none(" > ".join(cycle) for cycle in cycles if cycle)


def test_the_loop_and_the_solvers_reach_few_modules() -> None:
    graph = graph_of(MODULES)
    solvers = [m for m in graph if m.startswith("method.solvers.")]
    assert len(solvers) > 5
    counts = {m: len(reached(graph, m)) for m in ("method.framework", *solvers)}
    expect_none(
        f"{module} reaches {count}, at most {MOST_REACHED}" for module, count in counts.items() if count > MOST_REACHED
    )


def test_the_figures_beside_those_of_the_first_tree() -> None:
    graph = graph_of(MODULES)
    for station, needs in between_stations(graph).items():
        print(f"{station:>14} imports {', '.join(s for s in NEEDS if s in needs) or 'nothing of ours'}")
    print(" > ".join(longest_chain(graph)))
    now = figures(graph)
    for name, first in FIRST_TREE.items():
        print(f"{name:>20}: {first} in the first tree, {now[name]} now")
    assert now["top-level entries"] < FIRST_TREE["top-level entries"]
    assert now["longest chain"] <= MOST_IN_A_CHAIN
    assert 0 < now["calls to the loop"] <= MOST_CALLS


BAD = [
    ("problem.cmdp", "from saddleback.simulators.table import Table", "does not need"),  # to the right
    ("problem.cmdp", "def f():\n    from saddleback.runs import run_folder", "problem.cmdp:2 imports runs"),
    ("files.npz", "if TYPE_CHECKING:\n    from saddleback.problem.cmdp.cmdp import CMDP", "does not need"),
    ("files.npz", "importlib.import_module('saddleback.problem.cmdp.cmdp')", "does not need"),
    ("certificates.prove", "from saddleback.exact import solve_exactly", "does not need"),
    ("certificates.prove", "from saddleback import instances", "does not need"),
    ("method.framework", "from saddleback.method.solvers import BY_NAME", "does not need"),
    ("method.duals.column_generation", "from saddleback.method.solvers.ls_mdvi import LSMDVI", "does not need"),
    ("method.solvers.ls_mdvi", "from saddleback.simulators.table import Table", "does not need"),
    ("method.solvers.ls_mdvi", "from saddleback.simulators.generative_model import Sampler", "sees simulators"),
    ("method.solvers.gss_stopping", "import saddleback.simulators.generative_model", "sees simulators"),
    ("method.evaluators.ls_pe", "from saddleback.sampling.buffer import GenerativeModel", "sees sampling.buffer"),
    ("exact.values", "from saddleback.simulators import Table", "does not need"),
    ("theory.errors", "from saddleback import CMDP", "name the module in full"),
    ("theory.errors", "from . import meta_theorem", "name the module in full"),
    ("novelty", "x = 1", "has no place"),
]


def test_bad_imports_are_found_and_good_ones_pass() -> None:
    assert [case for case in BAD if not any(case[2] in wrong for wrong in violations(*case[:2], KNOWN))] == []
    good = [
        ("method.solvers.gss_stopping", "from saddleback.sampling.counted_buffer import cut"),
        ("method.solvers.mirror_descent", "from saddleback.method.solvers.ls_mdvi import mixed_reward"),
        ("instances.zoo.queue", "from saddleback.simulators.table import Table"),
        ("sampling.buffer", "import numpy as np"),
    ]
    expect_none(wrong for module, text in good for wrong in violations(module, text, KNOWN))


def test_cycles_and_long_ways_are_found() -> None:
    top = {"a.x": "from saddleback.b import y", "b.y": "import saddleback.a.x"}
    lazy = {"a.x": "from saddleback.b import y", "b.y": "def f():\n    from saddleback.a.x import g"}
    typing = {"a.x": "from saddleback.b import y", "b.y": "if TYPE_CHECKING:\n    from saddleback.a.x import G"}
    for modules in (top, lazy, typing):
        assert len(cycle_in(graph_of(modules))) == len(cycle_in(between_stations(graph_of(modules)))) == 3
    crossing = {"a.x": "import saddleback.b.y", "b.y": "", "b.z": "import saddleback.a.w", "a.w": ""}
    assert cycle_in(graph_of(crossing)) == [] and len(cycle_in(between_stations(graph_of(crossing)))) == 3
    chain = graph_of({"a": "import saddleback.b", "b": "def f():\n    import saddleback.c", "c": "", "d": ""})
    assert reached(chain, "a") == {"b", "c"} and longest_chain(chain) == ["a", "b", "c"]


def test_import_loads_nothing_heavy() -> None:
    """``import saddleback`` is for scripts and notebooks: optional packages load when they are used."""
    code = f"import sys, saddleback; print(*[m for m in {HEAVY.split()!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
