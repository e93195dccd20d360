"""The golden record as other processors would write it: the same seed must give the same calls, samples and policies.

    python tests/golden/processors.py [--cases REGEX] [--only NAMES] [--keep FOLDER]

OpenBLAS, numpy and numba choose their kernels by the processor they find, and sums in another order are rounded otherwise.
Each of them can be told to choose as on another processor, which is what the environments below do. The first that runs is
the one that the others are held against. An environment whose instructions this processor lacks is named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from compare import USUAL_LIMIT, Difference, difference

HERE = Path(__file__).parent
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
CHOSEN_BY = ("OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NPY_DISABLE_CPU_FEATURES")

_FEATURES = """
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
print(" ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name)))
"""
# Which kernels OpenBLAS has taken, after a product and a factorisation that would meet a missing instruction.
_PROBE = """
import ctypes
import pathlib
import numpy
import scipy.linalg
x = numpy.random.default_rng(0).random((64, 64)) + 64 * numpy.eye(64)
scipy.linalg.cho_factor(x @ x.T), numpy.linalg.svd(x), numpy.exp(x), numpy.sin(x)
maps = pathlib.Path("/proc/self/maps")
lines = maps.read_text().splitlines() if maps.exists() else []
names = set()
for path in {line.split()[-1] for line in lines if "openblas" in line}:
    library = ctypes.CDLL(path)
    for symbol in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename"):
        if hasattr(library, symbol):
            function = getattr(library, symbol)
            function.restype = ctypes.c_char_p
            names.add(function().decode())
print("/".join(sorted(names)) or "unknown")
"""


def environments() -> dict[str, dict[str, str]]:
    """Names and settings of all processors that can be imitated here."""
    found = {
        core: {**ONE_THREAD, "OPENBLAS_CORETYPE": core}
        for core in ("Haswell", "Nehalem", "Prescott", "Zen", "SkylakeX")
    }
    found["Haswell, 2 threads"] = {**found["Haswell"], "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    found["numba generic"] = {**found["Haswell"], "NUMBA_CPU_NAME": "generic"}
    features = _python(["-c", _FEATURES], ONE_THREAD).stdout.strip()
    if features:
        found["numpy baseline"] = {**found["Haswell"], "NPY_DISABLE_CPU_FEATURES": features}
    found["as it is"] = dict(ONE_THREAD)
    return found


def _python(arguments: list[str], settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in CHOSEN_BY}
    command = [sys.executable, "-W", "error::ImportWarning", "-W", "error::RuntimeWarning", *arguments]
    return subprocess.run(command, env={**clean, **settings}, capture_output=True, text=True, check=False)


def probe(settings: dict[str, str]) -> tuple[bool, str]:
    """Whether this processor can run so, and which kernels OpenBLAS takes, or what went wrong."""
    done = _python(["-c", _PROBE], settings)
    if done.returncode < 0:
        return False, f"this processor cannot: stopped by signal {-done.returncode} (an instruction is missing)"
    if done.returncode > 0:
        return False, f"cannot be imitated: {_message(done.stderr)}"
    return True, done.stdout.strip()


def _message(stderr: str) -> str:
    """What an exception said, in one line: its type and all that follows."""
    lines = [line.strip() for line in stderr.strip().splitlines()]
    errors = [number for number, line in enumerate(lines) if "Error" in line.partition(":")[0]]
    return " ".join(lines[errors[-1] if errors else -1 :]) or "no message"


def record_under(settings: dict[str, str], pattern: str, seed: int | None, out: Path) -> str | None:
    """Write the record as under these settings; what went wrong, or None."""
    options = ["--cases", pattern, "--out", str(out), *([] if seed is None else ["--seed", str(seed)])]
    done = _python([str(HERE / "record.py"), *options], settings)
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"stopped by signal {-done.returncode} (4 is a missing instruction)"
    return _message(done.stderr)


def print_table(records: dict[str, dict[str, Any]], limit: float) -> int:
    """Case by case: what the environments agree on; the number of cases where they do not."""
    base, *others = records
    width, failed = max(map(len, records[base])), 0
    print(
        f"\n{'case':{width}}  {'calls':>8}  samples   actions   largest difference of a value, over {len(records)} environments"
    )
    for name, entry in records[base].items():
        found = {other: difference(entry, records[other][name]) for other in others}
        largest = max((diff.largest for diff in found.values()), default=0.0)
        wrong = {other: diff for other, diff in found.items() if diff.beyond(limit)}
        failed += bool(wrong)
        row = f"{name:{width}}  {entry['calls']:8}  {entry['samples'][:8]}  {entry['actions'][:8]}  {largest:.1e}"
        print(row + ("  DIFFERS" if wrong else ""))
        for other, diff in wrong.items():
            print(f"{'':{width}}    {other}: {_told(diff)}")
    print(f"\n{len(records[base])} cases, {failed} differ from {base} beyond what is allowed (values: {limit:g})")
    return failed


def _told(diff: Difference) -> str:
    fields = ", ".join([*diff.fields, f"values by {diff.largest:.1e} ({diff.where})"])
    return f"{fields}; first at {diff.first}"


def chosen(names: str, known: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Those of the environments that are named, in that order."""
    wanted = [name.strip() for name in names.split(";") if name.strip()]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SystemExit(f"--only {unknown[0]!r} is not an environment; choose from: {'; '.join(known)}")
    return {name: known[name] for name in wanted or known}


QUICK_CASES, QUICK_ONLY = "/(default|strict)$", "Haswell; Nehalem"


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description="Run the golden record as on other processors.")
    parser.add_argument("--cases", default="", help="a regular expression: only cases whose names match it somewhere")
    parser.add_argument("--only", default="", help='environments, separated by semicolons: "Haswell; Nehalem"')
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_CASES} under {QUICK_ONLY}, unless said otherwise")
    parser.add_argument("--seed", type=int, help="another seed than the record's")
    help_text = f"allowed |a - b| / max(1, |a|, |b|) of every number (default: {USUAL_LIMIT:g})"
    parser.add_argument("--values", type=float, default=USUAL_LIMIT, help=help_text)
    parser.add_argument("--keep", type=Path, help="a folder for the records")
    given = parser.parse_args()
    if given.quick:
        given.cases, given.only = given.cases or QUICK_CASES, given.only or QUICK_ONLY
    records: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(exist_ok=True, parents=True)
        for name, settings in chosen(given.only, environments()).items():
            runs, told = probe(settings)
            print(f"{name}: {f'OpenBLAS uses {told}' if runs else told}", flush=True)
            if not runs:
                continue
            out = folder / f"{name.replace(', ', '-').replace(' ', '-')}.json"
            fault = record_under(settings, given.cases, given.seed, out)
            if fault is not None:
                raise SystemExit(f"{name}: the record failed: {fault}")
            records[name] = json.loads(out.read_text())
    if len(records) < 2:
        raise SystemExit("fewer than two environments could be run here: nothing to compare")
    sys.exit(1 if print_table(records, given.values) else 0)


if __name__ == "__main__":
    main()
