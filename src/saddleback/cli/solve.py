"""``saddleback solve``: a policy from simulator calls, with a proof of how good it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from saddleback.cli.common import Console, Json, Limits, Parameters, Seed, Target, Timeout, print_json, say_kept
from saddleback.cli.drawing import Callbacks, ExecutorName, Workers, resumable
from saddleback.designs import BY_NAME as DESIGNS
from saddleback.errors import InputError, one_of, plain_text, require
from saddleback.method.duals import BY_NAME as DUALS
from saddleback.method.evaluators import BY_NAME as EVALUATORS
from saddleback.method.solvers import BY_NAME as SOLVERS
from saddleback.problem.policy_file import save_policy
from saddleback.reports.listeners import make as make_callback
from saddleback.runs.events import Callback
from saddleback.runs.limits import with_limit_settings
from saddleback.runs.outputs import check_output, is_policy, refuse_inside, refuse_taken
from saddleback.runs.run_folder import check_place
from saddleback.runs.settings import MOST_SAMPLES, PURPOSES, USUAL_SAMPLES, Settings
from saddleback.runs.targets import load_source, origin_of
from saddleback.runs.text import print_solution
from saddleback.runs.truth import truth_of
from saddleback.runs.work_folder import Work, owned
from saddleback.solving.kept_run import Drawing, Place, is_finished, keeping, put_away
from saddleback.solving.progress import display
from saddleback.solving.solve import carry_out
from saddleback.solving.stored_samples import samples_for


def _part(help_text: str, default: str | None = None) -> Any:
    """An option for those who want to choose the parts of the method themselves."""
    shown: Any = True if default is None else default
    return typer.Option(help=help_text, show_default=shown, rich_help_panel="Parts of the method, and its paper form")


def solve(
    target: Target,
    settings: Parameters = None,
    limit: Limits = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Simulator calls in all, half of them for the certificate.", show_default="1000000"),
    ] = None,
    certificate_samples: Annotated[
        int | None, typer.Option(help="How many of them for the certificate.", show_default="half")
    ] = None,
    samples_from: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Instead of --samples: a folder that `sample` has made. What is large is streamed."
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Instead of --samples: draw until this accuracy of the discounted reward is proved."),
    ] = None,
    max_samples: Annotated[
        int | None, typer.Option(help="With --epsilon: give up after this many.", show_default="100000000")
    ] = None,
    feasibility: Annotated[
        str,
        typer.Option(help="strict: constraints are proved to hold; relaxed: they hold up to the accuracy of the run."),
    ] = "strict",
    purpose: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="What the proof is for: feasibility, value or gap.",
            show_default="feasibility where that is strict, else gap",
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="One minus the confidence of the limits.")] = 0.05,
    seed: Seed = 0,
    check: Annotated[bool, typer.Option("--check", help="Compare with the truth where the table is known.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Keep the run, samples and all, in this new folder, for `resume` and `certify`.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Let --out replace an earlier run, and other files be replaced.")
    ] = False,
    policy: Annotated[Path | None, typer.Option(help="Write the mixture to this .npz file.")] = None,
    workers: Workers = 1,
    executor: ExecutorName = None,
    timeout: Timeout = None,
    callback: Callbacks = None,
    as_json: Json = False,
    solver: Annotated[str | None, _part("One of " + ", ".join(SOLVERS) + ".")] = None,
    evaluator: Annotated[str | None, _part("One of " + ", ".join(EVALUATORS) + ".")] = None,
    dual: Annotated[str | None, _part("One of " + ", ".join(DUALS) + ".")] = None,
    design: Annotated[str | None, _part("One of " + ", ".join(DESIGNS) + ".")] = None,
    mode: Annotated[str, _part("default, or literal: the paper's algorithm as it stands.")] = "default",
    iterations: Annotated[int | None, _part("K, for the projected descent of literal mode.", "1000")] = None,
    error: Annotated[float | None, _part("The oracles' error f, set by hand, in utilities.")] = None,
    buffers: Annotated[int, _part("2: solver and evaluator have their own samples. 1: the paper's.")] = 2,
    batch_size: Annotated[int | None, _part("M, samples a pair in each inner iteration.")] = None,
    resolution: Annotated[
        int,
        _part(
            "Grid of the solver's rewards, which a-priori guarantees need; 0: none.", "1000 in literal mode, else none"
        ),
    ] = -1,
    allocation: Annotated[str | None, _part("equal, or design: samples follow the design's weights.")] = None,
) -> None:
    """Find a policy from simulator calls alone, and prove how good it is."""
    proof = certificate_samples
    if samples_from is not None:
        budget = _stored(samples_from, proof, samples=samples, max_samples=max_samples, epsilon=epsilon)
    elif epsilon is None:
        budget = _split(samples, proof, max_samples)
    else:
        grid = None if resolution == -1 else resolution
        choices = {
            "iterations": iterations,
            "error": error,
            "batch_size": batch_size,
            "resolution": grid,
            "for": purpose,
        }
        budget = _adaptive(epsilon, max_samples, samples=samples, certificate_samples=proof, **choices)
    parts: dict[str, Any] = {
        "feasibility": feasibility,
        "mode": mode,
        "delta": delta,
        "seed": seed,
        "dual": dual,
        "solver": solver,
        "evaluator": evaluator,
        "design": design,
        "buffers": buffers,
        "allocation": allocation,
    }
    if purpose is not None:
        one_of("--for", purpose, PURPOSES)
        parts["purpose"] = purpose
    require(iterations is None or iterations >= 1, "--iterations", "must be at least 1", iterations, "use 1000 or more")
    written = out is not None or policy is not None or bool(callback)
    require(
        written or not force, "--force", "must go with --out, --policy or --callback", "none", "name what to replace"
    )
    if epsilon is None:
        parts |= {
            "iterations": 1000 if iterations is None else iterations,
            "error": error,
            "batch_size": batch_size,
            "resolution": resolution or None,
        }
    options = {"budget": budget, "parts": parts}
    drawing = Drawing(workers, executor, timeout)
    with nullcontext() if out is None else owned(out) as work:
        if work is not None:
            is_finished(work)  # one that was killed when all was done is put away first, whatever is asked now
        answer(
            target,
            with_limit_settings(settings, limit),
            options,
            drawing,
            Output(work, force, policy, check, as_json, callback or [], force, out),
        )


class Output(NamedTuple):
    """Where the answer goes; ``force`` is for the run, ``force_files`` for all else; ``out`` is the run as it was named."""

    work: Work | None = None
    force: bool = False
    policy: Path | None = None
    check: bool = False
    as_json: bool = False
    callbacks: Sequence[str] = ()
    force_files: bool = False
    out: Path | None = None


def answer(
    target: str,
    settings: list[str],
    options: dict[str, Any],
    drawing: Drawing,
    output: Output,
    source: str | None = None,
    path: str | None = None,
) -> None:
    """Solve as ``options`` say, keep what is to be kept, and print the answer.

    ``source`` is where the target is now (:func:`saddleback.runs.targets.named_again`), ``path`` where it was at the beginning.
    """
    source = target if source is None else source
    instance, place = load_source(target, source, settings), None
    problem, simulator = instance.problem, instance.simulator
    if output.work is not None:
        check_place(output.work.place, problem, force=output.force)
        origin = replace(origin_of(source, settings, instance), target=target)
        origin = replace(origin, path=path or origin.path)  # wherever the file is now
        place = Place(output.work, target, origin, output.force)
    policy, listeners = _outputs(output)
    with samples_for(problem, simulator, options) as (store, record, seed):
        try:
            asked, under_way = Settings.of_record(record), None if place is None else place.work.place
            with (
                resumable(under_way),
                display() as progress,
                keeping(place, record, problem, simulator, drawing, progress) as (executor, kept),
            ):
                told = [progress.notice, *listeners, *kept]
                solution = carry_out(problem, simulator, asked, store, executor, progress, told, seed)
        except InputError as fault:
            raise _in_all(fault, record["budget"]) from None
    truth = truth_of(instance, solution.mixture) if output.check else None
    try:
        if policy is not None and solution.mixture is not None:
            save_policy(solution.mixture, solution.problem, policy)
        elif policy is not None:
            Console(stderr=True).print(f"no policy to write to {plain_text(str(output.policy))}", markup=False)
        if place is not None:
            with display():
                put_away(place, solution, record, seed)
    finally:  # a full disk must not cost the answer too
        if output.as_json:
            print_json({**solution.to_json(), **executor.report(), **({"exact": truth} if output.check else {})})
        else:
            print_solution(Console(), solution, truth)
            if executor.finding is not None:
                Console().print(f"This run cannot be repeated: {executor.finding}", markup=False, highlight=False)
    if not output.as_json:
        say_kept(None if place is None else output.out, None if solution.mixture is None else output.policy)
    raise typer.Exit(solution.status.exit_code)


def _outputs(output: Output) -> tuple[Path | None, list[Callback]]:
    """Where the policy goes, and who else is told: places that are ours to write, and not the same."""
    taken = [] if output.work is None else [output.work.place, output.work.folder]
    policy = None
    if output.policy is not None:
        policy = check_output("--policy", output.policy, is_policy, force=output.force_files, besides=taken)
        taken.append(policy)
    for text in output.callbacks:
        name, _, place = text.partition(":")
        if place and name != "mlflow":  # whose place is an address
            file = Path(os.path.abspath(place))
            refuse_inside("--callback", file)
            refuse_taken("--callback", file, taken)
            taken.append(file)
    return policy, [make_callback(text, force=output.force_files) for text in output.callbacks]


def _stored(folder: Path, certificate: int | None, **others: Any) -> dict[str, Any]:
    """Samples that are there already, and the simulator calls of the certificate."""
    _left_out("--from", others)
    proof = USUAL_SAMPLES // 2 if certificate is None else certificate
    require(proof >= 0, "--certificate-samples", "must not be negative", proof, "0 means no certificate")
    return {"from": str(folder.absolute()), "certificate": proof}


def _split(samples: int | None, certificate: int | None, most: int | None) -> dict[str, Any]:
    """The simulator calls of solve and certificate."""
    require(most is None, "--max-samples", "must go with --epsilon", most, "use --samples for a fixed number")
    total = USUAL_SAMPLES if samples is None else samples
    rule = "must be at least 2: one for the solve, one for the certificate"
    require(total >= 2, "samples", rule, total, "use 100000")
    proof = total // 2 if certificate is None else certificate
    require(proof >= 1, "--certificate-samples", "must be at least 1", proof, "use half of --samples")
    rule = f"must be less than --samples, {total}, which counts them too"
    require(proof < total, "--certificate-samples", rule, proof, "raise --samples")
    return {"samples": total - proof, "certificate": proof}


def _adaptive(epsilon: float, most: int | None, **others: Any) -> dict[str, Any]:
    """A solve to an accuracy, which takes its own decisions about the rest."""
    _left_out("--epsilon", others)
    require(most is None or most >= 2, "--max-samples", "must be at least 2", most, "use 10000000")
    return {"epsilon": epsilon, "max_samples": MOST_SAMPLES if most is None else most}


def _left_out(option: str, others: dict[str, Any]) -> None:
    for name, value in others.items():
        rule = f"must not be given with {option}"
        require(value is None, f"--{name.replace('_', '-')}", rule, value, "leave one of the two out")


def _in_all(fault: InputError, budget: dict[str, Any]) -> InputError:
    """Too few samples, in terms of what the user gave: the certificate's are not the solve's."""
    if fault.name != "samples":
        return fault
    if "max_samples" in budget:
        most = f"{fault.value}, with {budget['max_samples']:,} in all"
        return InputError("--max-samples", fault.rule, most, fault.remedy.replace("the number of samples", "it"))
    if "samples" not in budget:  # those that are stored suffice: these are the certificate's
        return InputError("--certificate-samples", fault.rule, fault.value, fault.remedy)
    share = f"{budget['samples']:,} of {budget['samples'] + budget['certificate']:,} are for the solve"
    return InputError("samples", fault.rule, f"{fault.value} ({share})", fault.remedy)
