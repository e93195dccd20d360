"""House rules a linter does not know: short files, docstrings, no pickle, no machine's paths, no stray printing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "saddleback"
MOST_LINES = 350

PRINTERS = ("cli.py", "reports/")
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


def sources() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def text_files() -> Iterator[Path]:
    """What a repository would track: no hidden folders but .ci, no caches, nothing that is built."""
    for path in sorted(ROOT.rglob("*")):
        folders = path.relative_to(ROOT).parts[:-1]
        hidden = any(part.startswith(".") and part != ".ci" for part in folders)
        built = any(part in NOT_OURS or part.endswith(".egg-info") for part in folders)
        if path.is_file() and path.suffix in TEXT and not hidden and not built:
            yield path


def addresses(text: str) -> list[str]:
    """Absolute paths and registry addresses in a text; the interpreter line of a script is neither."""
    body = re.sub(r"\A#!.*", "", text)
    return [m.group() for pattern in (ABSOLUTE_PATH, REGISTRY) for m in pattern.finditer(body)]


def pickles(tree: ast.AST) -> list[int]:
    """Lines that import pickle or one of its kind, or read a NumPy file without refusing it."""
    lines = []
    for node in ast.walk(tree):
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
            lines.append(getattr(node, "lineno", 0))
    return lines


def prints(tree: ast.AST) -> list[int]:
    """Lines that call print."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    return [n.lineno for n in calls if isinstance(n.func, ast.Name) and n.func.id == "print"]


@pytest.mark.parametrize("path", sources(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_source_file(path: Path) -> None:
    name, text = path.relative_to(SOURCE).as_posix(), path.read_text()
    tree = ast.parse(text)
    assert len(text.splitlines()) <= MOST_LINES
    assert ast.get_docstring(tree), "a module says what it is for"
    assert pickles(tree) == []
    if not name.startswith(PRINTERS):
        assert prints(tree) == []


def test_no_machine_in_the_texts() -> None:
    files = list(text_files())
    assert {ROOT / "pyproject.toml", ROOT / "docs" / "errata.md", Path(__file__), ROOT / ".ci" / "run"} <= set(files)
    found = {str(p.relative_to(ROOT)): addresses(p.read_text()) for p in files}
    assert {name: bad for name, bad in found.items() if bad} == {}


def slash(*parts: str) -> str:
    return "/" + "/".join(parts)


@pytest.mark.parametrize(
    "text",
    [
        "open('" + slash("home", "ann", "x.npz") + "')",
        "see " + slash("work", "notes"),
        "C:" + "\\Users",
        "pip install --" + "index-" + "url x",
        "https://my.py" + "pi.example/simple",
        "#!" + slash("usr", "bin", "env") + " bash\ncat " + slash("etc", "hosts"),
    ],
)
def test_the_search_sees_addresses(text: str) -> None:
    assert addresses(text)


@pytest.mark.parametrize(
    "text",
    [
        "#!" + slash("usr", "bin", "env") + " bash\nset -e",
        "https://keepachangelog.com/en/1.1.0/",
        "src/saddleback/zoo and tests/zoo",
        "reward / (1 - gamma) and H/ζ and .venv/bin/python",
        "a per-step cost/work ratio",
    ],
)
def test_the_search_lets_plain_text_pass(text: str) -> None:
    assert addresses(text) == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "def f():\n    import cloudpickle",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "np.load(path)",
    ],
)
def test_the_search_sees_pickles(code: str) -> None:
    assert pickles(ast.parse(code))


def test_the_search_lets_safe_files_pass() -> None:
    assert pickles(ast.parse("np.load(path, allow_pickle=False)\njson.load(file)\ntable.load(x)")) == []


def test_the_search_sees_prints() -> None:
    assert prints(ast.parse("def f():\n    print('x')\nconsole.print('y')")) == [2]
