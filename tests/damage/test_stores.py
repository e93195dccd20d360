"""One flipped bit anywhere in a folder of samples: never "sound", never fewer samples than were paid for, and it can be mended."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from cli.command_line import Call, quietly, words
from saddleback.sampling.store.sample_store import SampleStore, verify_store

QUEUE = ["queue", "--set", "capacity=3", "--set", "gamma=0.5", "--set", "limit=0.3"]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rounds, drawn one after the other: the manifest has two lines."""
    place = tmp_path_factory.mktemp("drawn") / "s"
    for rounds in (1, 2):
        assert quietly("sample", *QUEUE, "--rounds", rounds, "--out", place) == 0
    return place


@pytest.fixture
def samples(drawn: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(drawn, tmp_path / "s"))


def flip(path: Path, at: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("at", [-1, -2, -40, -300])
def test_the_last_line_of_a_manifest(samples: Path, run: Call, at: int) -> None:
    manifest = samples / "samples" / "samples-0" / "manifest.jsonl"
    whole = json.loads(run("sample", *QUEUE, "--rounds", 2, "--out", samples, "--json")[1])
    assert whole["drawn_now"] == 0 and manifest.read_bytes().count(b"\n") == 2
    flip(manifest, at)
    code, out, _ = run("sample", *QUEUE, "--out", samples, "--verify")
    assert code == 5 and "manifest.jsonl:2 must be unchanged" in words(out) and "sound" not in out
    assert re.search(r"[\d,]+ blocks with [\d,]+ samples are unharmed: --repair", words(out))
    for verb in (["solve", *QUEUE, "--from", samples], ["sample", *QUEUE, "--rounds", 2, "--out", samples]):
        code, out, err = run(*verb)
        assert (code, out) == (2, "") and "manifest.jsonl:2`" in err
        assert re.search(r"[\d,]+ blocks with [\d,]+ samples are sound.*--repair", words(err))
    code, out, err = run("sample", *QUEUE, "--out", samples, "--repair")
    assert code == 0 and "sound" in out and "000001.npy taken away" in words(err)
    again = json.loads(run("sample", *QUEUE, "--rounds", 2, "--out", samples, "--json")[1])
    assert again["sha256"] == whole["sha256"] and again["samples"] == whole["samples"]
    assert 0 < again["drawn_now"] < again["samples"]


@pytest.mark.parametrize("cut", ["a line", "half a line", "one byte", "all"])
def test_a_manifest_that_lost_its_end_was_longer_when_it_was_closed(samples: Path, run: Call, cut: str) -> None:
    store = samples / "samples" / "samples-0"
    data = (store / "manifest.jsonl").read_bytes()
    line = data.splitlines(keepends=True)[-1]
    lost = {"a line": len(line), "half a line": len(line) // 2, "one byte": 1, "all": len(data)}[cut]
    (store / "manifest.jsonl").write_bytes(data[:-lost])
    if cut in ("a line", "all"):
        (store / "000001.npy").unlink()  # so that no shard is left over either
    assert not verify_store(store).sound
    code, _, err = run("solve", *QUEUE, "--from", samples)
    assert code == 2 and "manifest.jsonl" in err


def test_a_store_that_is_added_to_after_it_was_closed_is_sound(samples: Path, run: Call) -> None:
    """Also where the one who adds is killed: what was sealed is how the manifest begins."""
    folder = samples / "samples" / "samples-0"
    header = (folder / "store.json").read_bytes()
    assert run("sample", *QUEUE, "--rounds", 3, "--out", samples)[0] == 0
    (folder / "store.json").write_bytes(header)
    assert verify_store(folder).sound
    with open(folder / "manifest.jsonl", "ab") as manifest:
        manifest.write(b'{"blocks":[[0,')
    with SampleStore.open(folder) as store:
        assert store.recovery.torn
    assert run("sample", *QUEUE, "--out", samples, "--verify")[0] == 0


def test_files_of_others_are_named_and_no_damage(samples: Path, run: Call) -> None:
    (samples / "samples" / "samples-0" / "notes.txt").write_text("mine")
    code, out, _ = run("sample", *QUEUE, "--out", samples, "--verify")
    assert code == 0 and "samples-0: sound (besides files that are none of its own: notes.txt)" in words(out)


def test_of_two_stores_with_one_name_neither_hides_the_other(samples: Path, run: Call) -> None:
    shutil.copytree(samples, samples.with_name("s.work"))
    flip(samples / "samples" / "samples-0" / "000000.npy", -1)
    code, out, _ = run("sample", *QUEUE, "--out", samples, "--verify", "--json")
    found = json.loads(out)
    assert code == 5 and not found["sound"] and [bool(x) for x in found["stores"].values()] == [True, False]
