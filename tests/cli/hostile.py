"""Text that strangers write to be shown: twelve kinds, the doors by which it comes in, and what may come out."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz.folder_changes import signed_request, signed_run, write
from fuzz.mutants import requests
from saddleback.runs.work_folder import work_folder

KINDS: dict[str, str] = {
    "a colour": "\x1b[31mred\x1b[0m",
    "a title of the window": "\x1b]0;owned\x07",
    "eight bits": "\x9b31m\x90q\x9c",
    "an overwritten line": "bad\rgood",
    "a line of its own": "a\nFORGED: solved",
    "what was wiped out": "abc\x08\x08\x08\x7f",
    "the other direction": "\u202egnp.exe\u2066",
    "what cannot be seen": "a\u200bb\u2028FORGED\u0085c\ufeff",
    "half a character": "caf\udcff",
    "nothing": "a\x00b",
    "markup of rich": "[/][link=http://x.y]z[/link][bold red]\\",
    "HTML": "</script><img src=x onerror=alert(1)>\"'&<!--\u2028",
}
Command = list[str]

PROBLEM = """\
name = {name}
gamma = 0.9
states = 3
actions = [{action}, "b"]
start = {start}
[simulator]
function = {function}
[reward]
values = "shop:pay"
range = [0, 1]
[[constraints]]
name = {constraint}
values = {values}
range = [0, 1]
limit = {limit}
units = {units}
"""
USUAL = {
    "name": "shop",
    "action": "a",
    "function": "shop:step",
    "constraint": "c",
    "values": "shop:cost",
    "limit": ">= 1",
    "units": "discounted",
}
CODE = """\
TEXT = {text!r}
class Sad(Exception):
    pass
Sad.__name__ = TEXT.replace("\\0", "")
def step(state, action, rng):
    return (state + action + int(rng.random() < 0.5)) % 3
def pay(state, action):
    return float(state == 2)
def cost(state, action):
    return 1 - action / 2
def bad(state, action, rng=None):
    raise Sad(TEXT)
def worse(state, action, rng=None):
    return TEXT
"""


def quoted(text: str) -> str:
    """As TOML, which is JSON's way but for what is no character."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def problem(folder: Path, text: str = "", start: str = "0", **changes: str) -> Path:
    (folder / "shop.py").write_text(CODE.format(text=text), encoding="utf-8", errors="surrogatepass")
    words = {key: quoted(value) for key, value in (USUAL | changes).items()}
    path = folder / "problem.toml"
    path.write_text(PROBLEM.format(start=start, **words), encoding="utf-8", errors="surrogatepass")
    return path


def questions(target: str, folder: Path) -> list[Command]:
    """A command of each verb that takes a problem."""
    few = ["--samples", "600"]
    return [
        ["check", target, "--calls", "4000"],
        ["exact", target],
        ["plan", target, "--epsilon", "5", *few],
        ["frontier", target, "--points", "3", *few],
        ["solve", target, *few],
        ["solve", target, "--json", *few],
        ["sample", target, "--out", str(folder / "samples")],
        ["solve", target, "--out", str(folder / "run"), *few],
    ]


def answers(run: str, folder: Path) -> list[Command]:
    """A command of each verb that takes a run."""
    return [
        ["report", run],
        ["report", run, "--json"],
        ["certify", run, "--recheck"],
        ["certify", run, "--recheck", "--json"],
        ["certify", run, "--samples", "400"],
        ["act", run, "--state", "1"],
        ["act", run, "--state", "1", "--json"],
        ["resume", run],
        ["sample", "wireless", "--out", run, "--verify"],
        ["solve", "wireless", "--from", run, "--certificate-samples", "300"],
    ]


# ---- doors: each makes of a text the commands that bring it to a terminal ------------------------------------------------


def names(text: str, folder: Path) -> Iterator[Command]:
    for key in ("name", "constraint", "action"):
        yield from questions(str(problem(folder, **{key: text})), folder)
        yield from answers(str(folder / "run"), folder) if (folder / "run").is_dir() else ()


def words_of_files(text: str, folder: Path) -> Iterator[Command]:
    for key in ("function", "values", "limit", "units"):
        yield ["solve", str(problem(folder, **{key: text}))]
    path = problem(folder)
    path.write_text(path.read_text() + f"{quoted(text)} = 1\n", encoding="utf-8", errors="surrogatepass")
    yield ["solve", str(path)]
    path.write_bytes(f"gamma = {text}\n".encode("utf-8", "surrogatepass"))
    yield ["check", str(path)]
    for name, content in (("t.npz", text), ("t.toml", text)):
        (folder / name).write_bytes(content.encode("utf-8", "surrogatepass"))
        yield ["check", str(folder / name)]


def exceptions(text: str, folder: Path) -> Iterator[Command]:
    for changes in ({"function": "shop:bad"}, {"values": "shop:bad"}, {"function": "shop:worse"}):
        yield from questions(str(problem(folder, text, **changes)), folder)[::3]
    yield ["solve", str(problem(folder, text, start='{sampler = "shop:bad", number = 3}'))]
    path = problem(folder, text)
    (folder / "shop.py").write_text(f"raise ImportError({text!r})\n", encoding="utf-8", errors="surrogatepass")
    yield ["solve", str(path)]


def paths(text: str, folder: Path) -> Iterator[Command]:
    name = text.replace("/", "∕").replace("\0", "")
    here = folder / name
    here.mkdir()
    for missing in ("x", "x.toml", "x.npz"):
        yield ["solve", str(here / missing)]
    yield from answers(str(here / "nothing"), folder)
    yield ["solve", "wireless", "--samples", "600", "--policy", str(here / "no" / "p.npz")]
    yield from questions(str(problem(here)), here)
    yield from answers(str(here / "run"), here)
    yield ["certify", str(here / "run"), "--samples", "400", "--problem", str(here / "problem.toml")]
    yield ["report", str(here / "run"), "--problem", str(here / "problem.toml"), "--out", str(here / f"{name}.html")]
    renamed = here / f"{name}.toml"
    (here / "problem.toml").rename(renamed)
    shutil.rmtree(here / "run")
    yield ["solve", str(renamed), "--samples", "600", "--out", str(here / name)]
    yield from answers(str(here / name), here)


def options(text: str, folder: Path) -> Iterator[Command]:
    text = text.replace("\0", "")
    for words in (["--set", f"{text}=1"], ["--set", f"budget={text}"], ["--solver", text], ["--design", text]):
        yield ["solve", "wireless", *words]
    for words in (["--executor", text], ["--feasibility", text], ["--mode", text], ["--samples", text], [f"--{text}"]):
        yield ["solve", "wireless", *words]
    for words in (["--callback", text], ["--callback", f"jsonl:{text}/x"], ["--callback", f"{text}:x"], [text]):
        yield ["solve", "wireless", "--samples", "600", *words]
    yield ["frontier", "wireless", "--samples", "600", "--constraint", text]
    yield ["exact", "wireless", "--method", text]
    yield [text]
    yield ["solve", text]


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where texts stand in nested lists and objects, and names of fields."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, str):
        yield place
    for key, inner in inside:
        yield from leaves(inner, (*place, key))


def changed(value: Any, place: tuple[Any, ...], text: str) -> Any:
    if not place:
        return text
    out = dict(value) if isinstance(value, dict) else list(value)
    out[place[0]] = changed(value[place[0]], place[1:], text)
    return out


def strangers_runs(text: str, folder: Path, run: Path, every: int = 1) -> Iterator[Command]:
    """Each text in each JSON file of a sound run replaced in turn, and an unknown field; hashes fit."""
    files = {path.name: path.read_bytes() for path in sorted(run.iterdir()) if path.is_file()}
    at = 0
    for name in sorted(n for n in files if n.endswith(".json")):
        content = json.loads(files[name])
        for place in [*leaves(content), None]:
            at += 1
            if at % every:
                continue
            other = {**content, text: text} if place is None else changed(content, place, text)
            forged = signed_run({**files, name: json.dumps(other).encode()})
            stranger = folder / f"stranger{at}"
            stranger.mkdir()
            for file, data in forged.items():
                (stranger / file).write_bytes(data if isinstance(data, bytes) else b"")
            yield from answers(str(stranger), folder)[::2]
            shutil.rmtree(stranger)


def strangers_requests(text: str, folder: Path) -> Iterator[Command]:
    """Each text of what runs under way were asked replaced in turn; seals fit."""
    for i, files in enumerate(requests()):
        content = json.loads(files["request.json"])  # type: ignore[arg-type]
        for j, place in enumerate(leaves(content)):
            forged = json.dumps(changed(content, place, text)).encode()
            run = folder / f"asked{i}-{j}"
            write(work_folder(run), signed_request({**files, "request.json": forged}))
            yield ["resume", str(run)]


DOORS: dict[str, Callable[[str, Path], Iterator[Command]]] = {
    "names": names,
    "words of files": words_of_files,
    "exceptions": exceptions,
    "paths": paths,
    "options": options,
    "requests": strangers_requests,
}

# ---- what may come out ---------------------------------------------------------------------------------------------------


def faults_of(said: str) -> list[str]:
    """Characters that do something to a terminal, lines that strangers have begun, and tracebacks."""
    found = [f"{c!r} in {line!r:.200}" for line in said.split("\n") for c in set(line) if not shown(c)]
    found += [
        f"a line of its own: {line!r:.200}" for line in said.split("\n") if line.lstrip(" │").startswith("FORGED")
    ]
    return found + (["a traceback"] if "Traceback" in said else [])


def shown(character: str) -> bool:
    return character.isprintable() or character == "\u00a0"


def as_terminal_says(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def in_locale(name: str) -> dict[str, str]:
    """The environment of a terminal that knows ASCII only, or all characters."""
    return {**os.environ, "PYTHONIOENCODING": name, "COLUMNS": "4000"}
