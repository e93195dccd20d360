"""A stored proof beside a new one, or the outcome of checking it again."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from saddleback.certificates import Certificate
from saddleback.problem.cmdp import CMDP
from saddleback.runs.certificate_text import print_certificate
from saddleback.runs.numbers import at_most, between, confidence
from saddleback.runs.recheck import Check
from saddleback.runs.run_folder import Run
from saddleback.runs.tables import add_row, empty_table


def print_recertified(console: Console, problem: CMDP, run: Run, proof: Certificate, pilot: int) -> None:
    """The new proof, and what the stored one had said."""
    console.print(
        f"[bold]{escape(problem.name)}[/bold], {escape(str(run.path))}: "
        f"{proof.samples + pilot:,} new simulator calls with seed {proof.seed}, {pilot:,} of them a pilot."
    )
    strict = run.request.get("feasibility") == "strict"
    print_certificate(console, problem, proof, strict=strict, total=proof.samples + pilot)
    stored = run.certificate
    if stored is None or stored["value"] is None or proof.value is None:
        return
    table = empty_table("Beside the stored proof", ["limits of"], ["stored", "new"], ranges=["stored", "new"])
    add_row(table, problem.objective, between(stored["value"]), between(proof.value))
    for c, old, new in zip(problem.constraints, stored["constraints"], proof.constraints, strict=True):
        add_row(table, c.name, between(old), between(new))
    tops = (at_most(top, problem.minimise) for top in (stored["upper_bound"], proof.upper_bound))
    add_row(table, f"best {problem.objective}", *tops)
    add_row(table, "confidence", confidence(stored["confidence"]), confidence(proof.confidence))
    console.print(table)


def print_recheck(console: Console, run: Run, checks: Sequence[Check]) -> None:
    """One row per check, what failed in words, and what could not be checked."""
    table = empty_table(f"{escape(str(run.path))}: the stored proof, computed again", ["statement", "outcome"], [])
    table.add_column("detail", overflow="fold")
    for check in checks:
        add_row(table, check.name, "agrees" if check.passed else "DISAGREES", check.detail)
    console.print(table)
    bad = sum(not c.passed for c in checks)
    if bad:
        console.print(f"[red]{bad} of {len(checks)} statements do not follow from the stored numbers.[/red]")
    else:
        console.print(f"[green]All {len(checks)} statements follow from the stored numbers.[/green]")
    console.print(
        "Without new samples the bound on the best mixed reward is taken as stated; "
        "`saddleback certify` without --recheck draws new ones."
    )
