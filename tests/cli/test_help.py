"""Every verb's help: a sentence, examples that parse, a text for every option, defaults, and names that agree."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import typer
from command_line import Call, words

from saddleback import cli, zoo
from saddleback.solution import Status

ROOT: Any = typer.main.get_command(cli.app)
VERBS: dict[str, Any] = dict(ROOT.commands)


def options(verb: str) -> list[Any]:
    return [p for p in VERBS[verb].params if p.param_type_name == "option" and "--help" not in p.opts]


def examples(verb: str) -> list[list[str]]:
    lines = (VERBS[verb].epilog or "").split("\n\n")
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
    for said in ("Exit codes: 0 solved", "130 interrupted", "discounted totals", "stdout", "saddleback solve wireless"):
        assert said in text, said
    codes = {int(n) for n in re.findall(r"(?<=[:,] )(\d+) [a-z]", text[text.index("Exit codes") :])}
    assert codes == {0, 1, 2, 3, 4, 5, 130} >= {s.exit_code for s in Status}
    assert run()[1].split() == out.split()  # nothing at all is a question too


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb(run: Call, verb: str) -> None:
    code, out, err = run(verb, "--help")
    assert (code, err) == (0, "")
    assert f"Usage: saddleback {verb}" in out
    sentence = VERBS[verb].help.strip().split("\n")[0]
    assert sentence[0].isupper() and sentence.endswith(".") and 20 < len(sentence) < 130
    assert words(sentence) in words(out)
    assert len(examples(verb)) >= 1 and "Example" in out
    for option in options(verb):
        assert option.opts[0].startswith("--") and option.opts[0] in out


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_has_a_text_and_shows_its_default(run: Call, verb: str) -> None:
    out = words(run(verb, "--help")[1].replace("│", " "))
    for option in options(verb):
        name = option.opts[0]
        assert option.help and option.help[0] not in " \t" and option.help.rstrip().endswith("."), name
        assert name == name.lower() and "_" not in name
        if option.is_flag or option.default is None or option.required:
            continue
        assert option.show_default, name
        default = option.default if option.show_default is True else f"({option.show_default})"
        assert f"[default: {default}]" in out, name
    for argument in [p for p in VERBS[verb].params if p.param_type_name == "argument"]:
        assert argument.help and argument.metavar in ("TARGET", "RUN")


@pytest.mark.parametrize("verb", VERBS)
def test_examples_parse(verb: str) -> None:
    """Every word of an example is a verb, an option or a value that is taken; nothing is run."""
    mentioned = set()
    for command, name, *rest in examples(verb):
        assert command == "saddleback"
        context = VERBS[name].make_context(name, list(rest), resilient_parsing=False)
        mentioned.add(name)
        target = context.params.get("target")
        assert target is None or target in zoo.BY_NAME or target.endswith((".npz", ".toml"))
        for setting in context.params.get("settings") or []:
            assert setting.partition("=")[0] in {p.name for p in zoo.describe(target)}
    assert verb in mentioned


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


@pytest.mark.parametrize("name", SAME_EVERYWHERE)
def test_the_same_name_means_the_same(run: Call, name: str) -> None:
    found = {verb: o for verb in VERBS for o in options(verb) if o.opts[0] == name}
    assert found
    kind = re.compile(rf"{name} +(<[\w\[\]]+>|[A-Z]{{4,}}\b)?")  # <int>; in Typer 0.15 INTEGER, and nothing for a flag
    kinds = {kind.search(run(verb, "--help")[1])[1] for verb in found}  # type: ignore[index]
    assert len(kinds) == 1, kinds
    if name in ("--set", "--json", "--workers", "--executor", "--timeout", "--callback"):
        assert len({o.help for o in found.values()}) == 1, found


def test_every_verb_speaks_json() -> None:
    assert [v for v in VERBS if "--json" not in {o.opts[0] for o in options(v)}] == []
