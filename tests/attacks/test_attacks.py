"""Attacks from outside, on this tree and on commit 1c6912f.

Every attack uses the command line, or a script of a user, in processes of their own, and knows no module of ours; so the same
attack can be made on the commit on which a hostile test was first done. Here all are repelled; there each one succeeds, which
shows that it is an attack.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

import pytest

import saddleback
from attacks import false_proofs, limits, owners, stored, strangers, user_code
from attacks.gave_way import DAMAGE, FIRST, OFTEN
from attacks.programs import Attack, Tree
from places import ROOT

MODULES = (owners, user_code, false_proofs, stored, limits, strangers)
ATTACKS: dict[str, Attack] = {name: attack for module in MODULES for name, attack in module.ATTACKS.items()}
QUICK = {"9 a reader who has gone", "9 control characters in a path", "11 a discount that is almost one"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The tree under test."""
    return Tree(Path(saddleback.__file__).parent.parent, tmp_path_factory.mktemp("kept"))


@pytest.fixture(scope="module")
def old_tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The commit on which the attacks were first made."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed, and the old tree is in its history only")
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", FIRST, "src"], capture_output=True, check=False)
    if packed.returncode != 0:
        pytest.skip(f"commit {FIRST} is not in this repository (a shallow clone?): {packed.stderr.decode().strip()}")
    home = tmp_path_factory.mktemp("old")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(home, filter="data")
    return Tree(home / "src", tmp_path_factory.mktemp("old_kept"))


def test_every_item_is_attacked() -> None:
    """Sixteen items, none without an attack, and of each it is known what it once did."""
    assert len(ATTACKS) == sum(len(module.ATTACKS) for module in MODULES), "two attacks have one name"
    assert set(Counter(int(name.split()[0]) for name in ATTACKS)) == set(range(1, 17))
    assert set(DAMAGE) == set(ATTACKS) > QUICK | OFTEN and not QUICK & OFTEN


def _mark(name: str) -> pytest.MarkDecorator:
    return pytest.mark.slow if name in QUICK else pytest.mark.check if name in OFTEN else pytest.mark.study


@pytest.mark.parametrize("name", [pytest.param(name, marks=_mark(name)) for name in ATTACKS])
def test_repelled(name: str, tree: Tree, tmp_path: Path) -> None:
    ATTACKS[name](tree, tmp_path)


@pytest.mark.study
@pytest.mark.parametrize("name", ATTACKS)
def test_the_old_tree_gives_way(name: str, old_tree: Tree, tmp_path: Path) -> None:
    """The negative control: the attack does there what it did when it was found."""
    with pytest.raises(AssertionError) as damage:
        ATTACKS[name](old_tree, tmp_path)
    assert re.search(DAMAGE[name], str(damage.value)), f"it gave way in another manner: {damage.value}"
