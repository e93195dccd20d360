"""Runs the pages and writes what is printed into them: ``python docs/rewrite.py [--check | --words] [PAGE ...]``.

A page is run as the tests run it (tests/pages.py). Where it says something else than what is printed, beyond its tolerance, the
printed text takes its place, ellipses kept; where it agrees, nothing is touched, so that a second run changes nothing and another
processor no more than it must. Where words differ the place is named and left as it is; ``--words`` takes the printed ones too,
where no ellipsis leaves some out: read the difference before it is committed. ``--check`` writes nothing. The exit code is 1
where a page was wrong and still is, else 0.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # as the tests run; NumPy reads it when it is imported


def rewrite(page: Path, check: bool, words: bool) -> bool:
    """Run a page and bring it up to date; False where something is wrong with it still."""
    from pages import name_of, run, workplace

    name, text = name_of(page), page.read_text()
    changes, right = [], True
    with tempfile.TemporaryDirectory() as folder, workplace(Path(folder)):
        try:
            for shown in run(text, name):
                if found := shown.differences():
                    print(f"{shown.where}: {'; '.join(found)}", flush=True)
                    new = shown.rewritten(words)
                    if new is None:
                        print(shown.printed)
                    right = right and new is not None and not check
                    changes.append((shown.at, shown.said, new or shown.said))
        except Exception:
            traceback.print_exc()
            right = False
    for at, said, new in sorted(changes, reverse=True):
        text = text[:at] + new + text[at + len(said) :]
    if changes and not check:
        page.write_text(text)
    return right


def main() -> int:
    """The command line."""
    from pages import PAGES

    parser = argparse.ArgumentParser(description="Write what the pages' examples print into the pages.")
    parser.add_argument("pages", metavar="PAGE", nargs="*", type=Path, help="all of them if none is named")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--check", action="store_true", help="say what differs, and write nothing")
    how.add_argument("--words", action="store_true", help="change words as well as numbers")
    arguments = parser.parse_args()
    right = [rewrite(page.resolve(), arguments.check, arguments.words) for page in arguments.pages or PAGES]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
