"""Every verb's help: a sentence, examples that parse, a text for every option, defaults, and names that agree."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from cli.command_line import Call, quietly, words
from repository.import_graph import graph_of, modules_of
from repository.offenders import expect_none
from saddleback import cli, zoo

ROOT: Any = typer.main.get_command(cli.app)
VERBS: dict[str, Any] = {name: cli.load(name) for name in cli.VERBS}


def options(command: Any) -> list[Any]:
    return [p for p in command.params if p.param_type_name == "option" and "--help" not in p.opts]


def examples(command: Any) -> list[list[str]]:
    lines = (command.epilog or "").split("\n\n")
    assert lines[0] in ("Example:", "Examples:")
    return [shlex.split(line) for line in lines[1:]]


def test_the_verbs_are_there() -> None:
    assert set(VERBS) >= {"zoo", "exact", "plan", "solve", "frontier", "sample", "resume", "certify", "act"}


def test_the_front_page(run: Call) -> None:
    code, out, _ = run("--help")
    assert code == 0
    text = words(re.sub("[│╭╰─╮╯]", " ", out))
    for verb in VERBS:
        assert re.search(rf"\b{verb}\b", out), verb
    for said in (*cli.NOTES, *cli.OPTIONS.values(), *(verb.summary for verb in cli.VERBS.values())):
        assert words(said) in text, said
    assert run()[1].split() == out.split()  # nothing at all is a question too


def test_the_front_page_says_what_the_verbs_say() -> None:
    """Its sentences stand in a table of their own, because no verb is imported for it."""
    assert {name: verb.summary for name, verb in cli.VERBS.items()} == {v: VERBS[v].help for v in VERBS}
    assert {p.opts[0]: p.help for p in ROOT.params} | {"--help": "Show this message and exit."} == cli.OPTIONS
    assert ROOT.get_command(None, "no-such-verb") is None and ROOT.list_commands(None) == list(VERBS)


LOADED = """
import sys, saddleback.cli as cli
try:
    cli.main(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
print("\\nloaded", *sys.modules)
"""

BARE = "import sys, typer; print(*sys.modules)"


def loaded_by(*arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.slow
def test_only_the_verb_that_is_called_is_imported() -> None:
    bare = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=True).stdout.split()
    front = loaded_by("--help") - set(bare)  # an older typer loads its help pages itself
    assert front & {"numpy", "scipy", "markdown_it", "saddleback.solving", "typer.rich_utils"} == set()
    assert [name for name in front if name.startswith("saddleback.cli.")] == []
    exact = loaded_by("exact", "wireless")
    assert {f"saddleback.cli.{verb}" for verb in VERBS} & exact == {"saddleback.cli.exact"}
    stations = {name.split(".")[1] for name in exact if name.startswith("saddleback.")}
    assert stations & {"solving", "certificates", "sampling", "designs", "theory"} == set()


@pytest.mark.slow
def test_the_library_never_calls_up_into_the_command_line() -> None:
    modules = modules_of(Path(cli.__file__).parents[1])
    graph = graph_of(modules)
    assert "cli.solve" in graph and len(graph) > 100
    up = {m: [t for t in targets if t.split(".")[0] == "cli"] for m, targets in graph.items()}
    assert [m for m, targets in up.items() if targets and m.split(".")[0] != "cli"] == ["__main__"]


def faults_of_help(verb: str, command: Any, out: str) -> list[str]:
    """What a verb's help page lacks, as sentences."""
    sentence = command.help.strip().split("\n")[0]
    shaped = sentence[0].isupper() and sentence.endswith(".") and 20 < len(sentence) < 130
    wrong = ["no usage"] * (f"Usage: saddleback {verb}" not in out)
    wrong += [f"not one plain sentence: {sentence}"] * (not shaped)
    wrong += ["its sentence is not printed"] * (words(sentence) not in words(out))
    wrong += ["no example"] * (not examples(command) or "Example" not in out)
    for option in options(command):
        name = option.opts[0]
        wrong += [f"{name} is not printed or not a long name"] * (not name.startswith("--") or name not in out)
    return [f"{verb}: {fault}" for fault in wrong]


def faults_of_options(verb: str, command: Any, out: str) -> list[str]:
    """Options without a text, with an odd name, or with a default that the page does not show."""
    page, wrong = words(out.replace("│", " ")), []
    for option in options(command):
        name, text = option.opts[0], option.help or " "
        wrong += [f"{name} has no text that ends with a full stop"] * (
            text[0] in " \t" or not text.rstrip().endswith(".")
        )
        wrong += [f"{name} is not lower case with dashes"] * (name != name.lower() or "_" in name)
        if option.is_flag or option.default is None or option.required:
            continue
        default = option.default if option.show_default is True else f"({option.show_default})"
        wrong += [f"{name} hides its default"] * (not option.show_default or f"[default: {default}]" not in page)
    for argument in [p for p in command.params if p.param_type_name == "argument"]:
        known = argument.help and argument.metavar in ("TARGET", "RUN", "NAME")
        wrong += [f"argument {argument.name} has no text or is none of TARGET, RUN, NAME"] * (not known)
    return [f"{verb}: {fault}" for fault in wrong]


def faults_of_examples(verb: str, command: Any) -> list[str]:
    """Words of the examples that are no verb, option or value that is taken; nothing is run."""
    mentioned, wrong = set(), []
    for program, name, *rest in examples(command):
        try:
            context = VERBS[name].make_context(name, list(rest), resilient_parsing=False)
        except Exception as refused:  # whatever it is, the example does not parse
            wrong.append(f"{shlex.join([program, name, *rest])}: {refused}")
            continue
        mentioned.add(name)
        target = context.params.get("target")
        taken = target is None or target in zoo.BY_NAME or target.endswith((".npz", ".drn", ".toml"))
        taken = taken or (name == "frontier" and target == "run")  # which may be a run too
        settings = {s.partition("=")[0] for s in context.params.get("settings") or []}
        unknown = settings - {p.name for p in (zoo.describe(target) if target in zoo.BY_NAME else ())}
        wrong += [f"not saddleback: {program}"] * (program != "saddleback")
        wrong += [f"no such target: {target}"] * (not taken)
        wrong += [f"no such setting of {target}: {setting}" for setting in sorted(unknown)]
    wrong += ["no example of itself"] * (verb not in mentioned)
    return [f"{verb}: {fault}" for fault in wrong]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The help page of every verb, asked for once."""
    printed = {}
    for verb in VERBS:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = quietly(verb, "--help")
        assert (code, err.getvalue()) == (0, ""), verb
        printed[verb] = out.getvalue()
    return printed


def test_every_verb_has_a_help_page(pages: dict[str, str]) -> None:
    expect_none(fault for verb in VERBS for fault in faults_of_help(verb, VERBS[verb], pages[verb]))


def test_every_option_has_a_text_and_shows_its_default(pages: dict[str, str]) -> None:
    expect_none(fault for verb in VERBS for fault in faults_of_options(verb, VERBS[verb], pages[verb]))


def test_examples_parse() -> None:
    expect_none(fault for verb in VERBS for fault in faults_of_examples(verb, VERBS[verb]))


def test_the_checks_can_fail() -> None:
    app = typer.Typer(add_completion=False)

    examples = ("solve wireless --no-such", "zoo maze", "exact maze", "exact wireless --set power=3", "no-such-verb")

    @app.command("solve", epilog="\n\n".join(["Examples:", *(f"saddleback {words}" for words in examples)]))
    def _solve(
        target: str,
        Odd_Name: Annotated[str, typer.Option("--Odd_name", help="no full stop")] = "x",
        hidden: Annotated[str, typer.Option(help="A text.", show_default=False)] = "x",
    ) -> None:
        """short"""

    command: Any = typer.main.get_command(app)
    assert faults_of_help("solve", command, "Usage: --Odd_name") == [
        "solve: no usage",
        "solve: not one plain sentence: short",
        "solve: its sentence is not printed",
        "solve: no example",
        "solve: --hidden is not printed or not a long name",
    ]
    assert faults_of_options("solve", command, "--Odd_name TEXT  no full stop") == [
        "solve: --Odd_name has no text that ends with a full stop",
        "solve: --Odd_name is not lower case with dashes",
        "solve: --Odd_name hides its default",
        "solve: --hidden hides its default",
        "solve: argument target has no text or is none of TARGET, RUN, NAME",
    ]
    wrong = faults_of_examples("solve", command)
    assert "No such option" in wrong[0] and "saddleback zoo maze: " in wrong[1]
    assert wrong[2:4] == ["solve: no such target: maze", "solve: no such setting of wireless: power"]
    assert "saddleback no-such-verb: " in wrong[4] and wrong[5] == "solve: no example of itself"


def test_an_example_with_a_wrong_option_would_be_seen() -> None:
    with pytest.raises(Exception, match="No such option"):
        VERBS["solve"].make_context("solve", ["wireless", "--no-such"])


SAME_EVERYWHERE = (
    "--set",
    "--json",
    "--seed",
    "--delta",
    "--workers",
    "--executor",
    "--timeout",
    "--callback",
    "--epsilon",
)


def faults_of_name(name: str, found: dict[str, Any], pages: dict[str, str]) -> list[str]:
    """Verbs that differ in the kind of an option, or in its text where that has to be one."""
    kind = re.compile(rf"{name} +(<[\w\[\]]+>|[A-Z]{{4,}}\b)?")  # <int>; in Typer 0.15 INTEGER, and nothing for a flag
    kinds = {verb: kind.search(pages[verb])[1] for verb in found}  # type: ignore[index]
    wrong = [f"{name} is of several kinds: {kinds}"] * (len(set(kinds.values())) != 1)
    if name in ("--set", "--json", "--workers", "--executor", "--timeout", "--callback"):
        texts = {verb: option.help for verb, option in found.items()}
        wrong += [f"{name} has several texts: {texts}"] * (len(set(texts.values())) != 1)
    return wrong


def test_the_same_name_means_the_same(pages: dict[str, str]) -> None:
    found = {n: {v: o for v in VERBS for o in options(VERBS[v]) if o.opts[0] == n} for n in SAME_EVERYWHERE}
    assert [name for name in found if not found[name]] == []
    expect_none(fault for name in found for fault in faults_of_name(name, found[name], pages))


def test_two_meanings_of_a_name_would_be_seen() -> None:
    mine = {option.opts[0]: option for option in options(VERBS["solve"])}
    pages = {"solve": "--set <text>", "plan": "--set <integer>"}
    wrong = faults_of_name("--set", {"solve": mine["--set"], "plan": mine["--seed"]}, pages)
    assert len(wrong) == 2 and "several kinds" in wrong[0] and "several texts" in wrong[1]
    assert (
        faults_of_name("--set", {"solve": mine["--set"], "plan": mine["--set"]}, dict.fromkeys(pages, "--set <x>"))
        == []
    )


def test_every_verb_speaks_json() -> None:
    assert [v for v in VERBS if "--json" not in {o.opts[0] for o in options(VERBS[v])}] == []
