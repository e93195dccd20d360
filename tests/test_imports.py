"""The import order of docs/adr/0002: who may know whom, checked on the syntax tree of every source file.

    errors < spaces < start < problem < simulator, policy < blocks, design, kernels < batches < support < buffer < oracles, columns
           < framework < slater, solution < plug-in folders < certify, choices < setup, testing < stationary, targets, a_priori
           < steering < status < budgeted, tradeoff < certification < adaptive < solving < reports < cli

Buffer oracles, duals and the framework see data only through the buffer: they may not name the simulator or the exact
answers. The few files that may are listed here by name.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import saddleback
from offenders import expect_none

SOURCE = Path(saddleback.__file__).parent

ORDER: list[set[str]] = [
    {"errors", "_version"},
    {"plots", "spaces"},
    {"start"},
    {"problem"},
    {"simulator", "policy"},
    {"blocks", "design", "episode", "kernels"},
    {"batches"},
    {"support"},
    {"buffer"},
    {"oracles", "columns"},
    {"framework"},
    {"slater", "solution"},
    {
        "callbacks",
        "designs",
        "duals",
        "evaluators",
        "exact",
        "executors",
        "features",
        "simulators",
        "solvers",
        "storage",
        "theory",
        "zoo",
    },
    {"certify", "allocation", "choices"},
    {"checks", "durable", "fingerprint", "growing", "memory", "problem_files", "streamed"},
    {"setup", "testing"},
    {"stationary", "targets", "a_priori", "from_store"},
    {"steering"},
    {"status"},
    {"budgeted", "tradeoff"},
    {"certification"},
    {"adaptive"},
    {"recertify", "recheck", "solving"},
    {"planning"},
    {"reports"},
    {"cli"},
    {"__main__"},
    {"__init__"},
]
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
PLUG_INS = LEVEL["solvers"]

# ADR 0002: folder -> what it may import of other plug-in folders.
BETWEEN_PLUG_INS = {
    "designs": {"features"},
    "simulators": {"features"},
    "exact": {"simulators.table"},
    "storage": {"simulators.table"},
    "zoo": {"features", "simulators.table", "simulators.gymnasium_table", "simulators.gymnasium_env"},
}

# Files that may not see the simulator or the truth, and the names that a few of them may import all the same.
BLIND = ("solvers.", "evaluators.", "duals.", "oracles", "framework")
MAY_NAME = {
    "oracles": {"Sampler"},  # in the protocol of interactive oracles
    "solvers.gss_stopping": {"Sampler"},  # an interactive oracle
    "solvers.stable_baselines": {"Sampler"},  # an interactive oracle
    "evaluators.rollouts": {"Sampler"},  # an interactive oracle
    "solvers.perturbed_model": {"Stream", "generator"},  # its own noise, never a sample
}

# Doors to later modules that a class has as methods, opened when they are used: MixturePolicy.load and save.
DOORS = {"policy": {"storage.policy_file", "storage.run_folder"}}

HEAVY = (
    "gymnasium",
    "jax",
    "matplotlib",
    "mdpsolver",
    "mlflow",
    "mujoco",
    "numba",
    "pandas",
    "quantecon",
    "ray",
    "stable_baselines3",
    "tensorboardX",
    "torch",
)


class Import(NamedTuple):
    """``module`` is dotted and starts below the package; ``name`` is what is taken from it, None for all of it."""

    module: str
    name: str | None
    line: int


def modules() -> dict[str, str]:
    """Every source file's dotted name below the package, and its text."""
    files = sorted(SOURCE.rglob("*.py"))
    names = [".".join(f.relative_to(SOURCE).with_suffix("").parts) for f in files]
    return dict(zip(names, (f.read_text() for f in files), strict=True))


@cache
def imports_of(source: str) -> list[Import]:
    """All imports of the package's own modules, those inside functions and type-checking blocks too."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [Import(a.name, None, node.lineno) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                found.append(Import("." * node.level + (node.module or ""), None, node.lineno))
            elif node.module == "saddleback":
                found += [_of_the_package(a.name, node.lineno) for a in node.names]
            else:
                found += [Import(node.module or "", a.name, node.lineno) for a in node.names]
    own = [i for i in found if i.module.split(".")[0] in ("saddleback", "")]
    return [i._replace(module=i.module.removeprefix("saddleback.")) for i in own]


def _of_the_package(name: str, line: int) -> Import:
    """``from saddleback import zoo`` imports a module, ``from saddleback import CMDP`` the package's front page."""
    return Import(f"saddleback.{name}", None, line) if name in LEVEL else Import("saddleback.__init__", name, line)


def violations(module: str, source: str) -> list[str]:
    """What the imports of one source file break, as sentences."""
    top = module.split(".")[0]
    if top not in LEVEL:
        return [f"{module} has no place in ORDER"]
    wrong = []
    for imported in imports_of(source):
        target, here = imported.module.split(".")[0], f"{module}:{imported.line}"
        if not target or target == "saddleback":
            wrong.append(f"{here} imports {imported.module or 'relatively'}: name the module in full")
        elif target not in LEVEL:
            wrong.append(f"{here} imports {imported.module}, which has no place in ORDER")
        elif target == top:
            continue  # one folder is one place
        elif LEVEL[target] > LEVEL[top] and imported.module not in DOORS.get(module, set()):
            wrong.append(f"{here} imports {imported.module}, which comes later")
        elif LEVEL[target] == LEVEL[top] and not _allowed_between(top, imported):
            wrong.append(f"{here} imports {imported.module}, a neighbour")
        if module.startswith(BLIND) and _sees(imported) and imported.name not in MAY_NAME.get(module, set()):
            wrong.append(f"{here} sees {imported.module}.{imported.name or '*'}")
    return wrong


def _sees(imported: Import) -> bool:
    """Whether an import lets its file reach the simulator or the truth, by the front door or through another module."""
    return imported.module.split(".")[0] in ("simulator", "exact") or imported.name in ("GenerativeModel", "Sampler")


def _allowed_between(top: str, imported: Import) -> bool:
    if LEVEL[top] != PLUG_INS:
        return False
    return any(f"{imported.module}.".startswith(f"{allowed}.") for allowed in BETWEEN_PLUG_INS.get(top, set()))


MODULES = modules()


def test_imports_follow_the_order() -> None:
    assert len(MODULES) > 100
    expect_none(wrong for module, source in MODULES.items() for wrong in violations(module, source))


def test_every_exception_is_in_use() -> None:
    """An exception nobody needs is a hole in the fence."""
    for module, names in MAY_NAME.items():
        assert {i.name for i in imports_of(MODULES[module]) if i.module == "simulator"} == names, module
    for module, doors in DOORS.items():
        assert doors <= {i.module for i in imports_of(MODULES[module])}, module
    for folder, allowed in BETWEEN_PLUG_INS.items():
        used = {i.module for m, s in MODULES.items() if m.startswith(f"{folder}.") for i in imports_of(s)}
        for neighbour in allowed:
            assert any(f"{i}.".startswith(f"{neighbour}.") for i in used), (folder, neighbour)


BAD = [
    ("problem", "from saddleback.simulator import GenerativeModel", "comes later"),
    ("simulator", "from saddleback.policy import Policy", "a neighbour"),
    ("framework", "from saddleback.duals import BY_NAME", "comes later"),
    ("framework", "from saddleback.simulator import GenerativeModel", "sees simulator.GenerativeModel"),
    ("solvers.ls_mdvi", "from saddleback.simulator import GenerativeModel", "sees simulator.GenerativeModel"),
    ("solvers.ls_mdvi", "import saddleback.simulator", "sees simulator.*"),
    ("solvers.ls_mdvi", "def f():\n    from saddleback.simulator import Sampler", "sees simulator.Sampler"),
    ("solvers.gss_stopping", "from saddleback.simulator import GenerativeModel", "sees simulator.GenerativeModel"),
    ("solvers.gss", "from saddleback.simulators.table import Table", "a neighbour"),
    ("evaluators.ls_pe", "from saddleback.exact import policy_values", "sees exact.policy_values"),
    ("evaluators.ls_pe", "from saddleback import exact", "sees exact.*"),
    ("evaluators.ls_pe", "from saddleback.buffer import GenerativeModel", "sees buffer.GenerativeModel"),
    ("duals.projected_descent", "from saddleback.exact import solve_exactly", "sees exact.solve_exactly"),
    ("duals.projected_descent", "from saddleback.solvers.ls_mdvi import LSMDVI", "a neighbour"),
    ("exact.values", "from saddleback.simulators import Table", "a neighbour"),
    ("theory.errors", "from saddleback import CMDP", "comes later"),
    ("theory.errors", "from . import meta_theorem", "name the module in full"),
    ("setup", "from saddleback.solving import solve", "comes later"),
    ("reports.text", "from saddleback.cli import app", "comes later"),
    ("novelty", "x = 1", "has no place in ORDER"),
]


def test_the_checker_sees_bad_imports() -> None:
    assert [case for case in BAD if not any(case[2] in wrong for wrong in violations(*case[:2]))] == []
    assert violations("problem", "import os\nimport saddleback.zoo") == ["problem:2 imports zoo, which comes later"]


def test_the_checker_lets_good_imports_pass() -> None:
    good = [
        ("solvers.gss_stopping", "from saddleback.simulator import Sampler"),
        ("zoo.queue", "from saddleback.simulators.table import Table"),
        ("solvers.mirror_descent", "from saddleback.solvers.ls_mdvi import mixed_reward"),
        ("targets", "from saddleback import zoo"),
        ("buffer", "import numpy as np"),
    ]
    assert [wrong for module, source in good for wrong in violations(module, source)] == []


def test_import_loads_nothing_heavy() -> None:
    """``import saddleback`` is for scripts and notebooks: optional packages load when they are used."""
    code = f"import sys, saddleback; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
