"""House rules a linter does not know: short files, docstrings, no pickle, no machine's paths, no stray printing.

Each rule is one function from a text to what is wrong with it, as (line, complaint), and one test that walks the whole
repository and lists the offenders.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from places import ROOT
from repository.offenders import expect_none

SOURCE = ROOT / "src" / "saddleback"
MOST_LINES = 350

TEXT = {"", ".cff", ".cfg", ".ini", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yaml", ".yml"}
PICKLE_AND_KIN = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal"}
NOT_OURS = {"__pycache__", "build", "dist", "output"}

FOLDERS = ("home", "root", "work", "tmp", "Users", "usr", "opt", "mnt", "srv", "var", "etc")

# Written in pieces, so that this file does not accuse itself.
ABSOLUTE_PATH = re.compile(
    r"(?<![\w.~/:\-])/(?:" + "|".join(FOLDERS) + r")/\w"
    r"|\b[A-Za-z]:\\{1,2}\w"
)
REGISTRY = re.compile(
    r"(?:extra-)?" + r"index-" + r"url|trusted-" + r"host|find-" + r"links"
    r"|https?://[^\s)>\"'`]*(?:py" + r"pi|simple/|regis" + r"try|artifac" + r"tory|nex" + r"us|arti" + r"facts)",
    re.IGNORECASE,
)

Complaint = tuple[int, str]
"""A line, and what is wrong there."""


# ---- the rules ------------------------------------------------------------------------------------------------------


def too_long(text: str) -> list[Complaint]:
    """Lines beyond the most that a file may have."""
    count = len(text.splitlines())
    return [(count, f"{count} lines, at most {MOST_LINES}")] if count > MOST_LINES else []


def without_docstring(text: str) -> list[Complaint]:
    """A module says what it is for."""
    return [] if ast.get_docstring(ast.parse(text)) else [(1, "no module docstring")]


def tree_with(words: Iterable[str], text: str) -> ast.Module:
    """The syntax tree of a text that holds one of the words; others are not worth the time to parse."""
    return ast.parse(text if any(word in text for word in words) else "")


def pickles(text: str) -> list[Complaint]:
    """Lines that import pickle or one of its kind, or read a NumPy file without refusing it."""
    found = []
    for node in ast.walk(tree_with((*PICKLE_AND_KIN, "load"), text)):
        match node:
            case ast.Import(names=names):
                bad = any(a.name.split(".")[0] in PICKLE_AND_KIN for a in names)
            case ast.ImportFrom(module=str(module)):
                bad = module.split(".")[0] in PICKLE_AND_KIN
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="load")):
                bad = not any(k.arg == "allow_pickle" for k in node.keywords)
            case ast.keyword(arg="allow_pickle", value=value):
                bad = not (isinstance(value, ast.Constant) and value.value is False)
            case _:
                continue
        if bad:
            found.append((getattr(node, "lineno", 0), f"pickle: {ast.unparse(node)}"))
    return found


def prints(text: str) -> list[Complaint]:
    """Lines that call print: what people read goes through a console."""
    calls = [
        n for n in ast.walk(tree_with(("print",), text)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    ]
    return [(n.lineno, ast.unparse(n)) for n in calls if isinstance(n.func, ast.Name) and n.func.id == "print"]


def addresses(text: str) -> list[Complaint]:
    """Absolute paths and registry addresses in a text; the interpreter line of a script is neither."""
    body = re.sub(r"\A#!.*", "", text)
    found = [m for pattern in (ABSOLUTE_PATH, REGISTRY) for m in pattern.finditer(body)]
    return [(body.count("\n", 0, m.start()) + 1, m.group()) for m in found]


# ---- the repository -------------------------------------------------------------------------------------------------


def sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def text_files() -> Iterator[Path]:
    """What a repository would track: no hidden folders but .ci, no caches, nothing that is built."""
    for path in sorted(ROOT.rglob("*")):
        folders = path.relative_to(ROOT).parts[:-1]
        hidden = any(part.startswith(".") and part != ".ci" for part in folders)
        built = any(part in NOT_OURS or part.endswith(".egg-info") for part in folders)
        pointer = path.name == ".git"  # a file in a linked worktree
        if path.is_file() and path.suffix in TEXT and not hidden and not built and not pointer:
            yield path


def offenders(rule: Callable[[str], list[Complaint]], paths: Iterable[Path], root: Path = ROOT) -> list[str]:
    """What a rule finds in files, as file:line: complaint."""
    return [f"{p.relative_to(root)}:{line}: {wrong}" for p in paths for line, wrong in rule(p.read_text())]


def test_source_files_are_short() -> None:
    assert len(sources()) > 100
    expect_none(offenders(too_long, sources()))


@pytest.mark.slow
def test_every_module_says_what_it_is_for() -> None:
    expect_none(offenders(without_docstring, sources()))


def test_nothing_is_pickled() -> None:
    expect_none(offenders(pickles, sources()))


def test_nothing_prints() -> None:
    expect_none(offenders(prints, sources()))


def test_no_machine_in_the_texts() -> None:
    files = list(text_files())
    assert {ROOT / "pyproject.toml", ROOT / "docs" / "errata.md", Path(__file__), ROOT / ".ci" / "run"} <= set(files)
    expect_none(offenders(addresses, files))


# ---- the rules can fail ---------------------------------------------------------------------------------------------


def slash(*parts: str) -> str:
    return "/" + "/".join(parts)


def test_the_search_sees_addresses() -> None:
    bad = [
        "open('" + slash("home", "ann", "x.npz") + "')",
        "see " + slash("work", "notes"),
        "C:" + "\\Users",
        "pip install --" + "index-" + "url x",
        "https://my.py" + "pi.example/simple",
        "#!" + slash("usr", "bin", "env") + " bash\ncat " + slash("etc", "hosts"),
    ]
    assert [text for text in bad if not addresses(text)] == []
    assert addresses(bad[-1]) == [(2, slash("etc", "h"))]


def test_the_search_lets_plain_text_pass() -> None:
    good = [
        "#!" + slash("usr", "bin", "env") + " bash\nset -e",
        "https://keepachangelog.com/en/1.1.0/",
        "src/saddleback/zoo and tests/zoo",
        "reward / (1 - gamma) and H/ζ and .venv/bin/python",
        "a per-step cost/work ratio",
    ]
    assert {text: addresses(text) for text in good if addresses(text)} == {}


def test_the_search_sees_pickles() -> None:
    bad = [
        "import pickle",
        "from pickle import loads",
        "def f():\n    import cloudpickle",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "np.load(path)",
    ]
    assert [code for code in bad if not pickles(code)] == []
    assert pickles(bad[2]) == [(2, "pickle: import cloudpickle")]
    assert pickles("np.load(path, allow_pickle=False)\njson.load(file)\ntable.load(x)") == []


def test_the_search_sees_prints() -> None:
    assert prints("def f():\n    print('x')\nconsole.print('y')") == [(2, "print('x')")]


def test_the_search_sees_long_and_unexplained_files() -> None:
    assert too_long("x\n" * (MOST_LINES + 1)) == [(MOST_LINES + 1, f"{MOST_LINES + 1} lines, at most {MOST_LINES}")]
    assert too_long("x\n" * MOST_LINES) == []
    assert without_docstring("x = 1") == [(1, "no module docstring")]
    assert without_docstring('"""What it is for."""\nx = 1') == []


def test_offenders_are_named_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import json\nimport pickle\n")
    found = offenders(pickles, [tmp_path / "bad.py"], tmp_path)
    assert found == ["bad.py:2: pickle: import pickle"]
    many = [*found, *(f"file_{i}.py:1: too long" for i in range(500))]
    with pytest.raises(AssertionError) as failed:
        expect_none(many)
    assert str(failed.value).splitlines() == ["501 found", *many]
    expect_none([])
