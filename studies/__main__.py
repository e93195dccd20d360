"""`python -m studies [name ...] [--quick] [--output FOLDER]`: measure, write the tables and pictures, make the page."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from studies import BY_NAME
from studies.writing import write, write_page

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m studies", description="Measure, write tables and pictures, make the page."
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"one or more of: {', '.join(BY_NAME)}; none: all")
    parser.add_argument("--quick", action="store_true", help="a reduced form, for a look at the machinery")
    parser.add_argument("--output", type=Path, help="folder for the files (studies/output, or build/studies if quick)")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in BY_NAME]
    if unknown:
        parser.error(f"no study is called {unknown[0]!r}; choose from {', '.join(BY_NAME)}")
    folder = given.output or (HERE.parent / "build" / "studies" if given.quick else HERE / "output")
    for name in given.names or BY_NAME:
        study, began = BY_NAME[name], time.process_time()

        def say(line: str, name: str = name, began: float = began) -> None:
            print(f"[{time.process_time() - began:6.1f} s] {name}: {line}", flush=True)

        figures = study.measure(given.quick, say)
        written = write(folder, name, study.TITLE, study.QUESTION, study.answer(figures), figures)
        say("wrote " + ", ".join(path.name for path in written))
    if given.output is None and not given.quick:
        write_page(HERE / "README.md", folder, list(BY_NAME))
    return 0


if __name__ == "__main__":
    sys.exit(main())
