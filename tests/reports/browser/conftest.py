"""A real browser without a window. Where there is none the tests are skipped, except where they are required.

Debian: ``apt-get install chromium chromium-driver``. They are required in continuous integration, where the variable CI is set,
and wherever SADDLEBACK_BROWSER is "required".
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator

import pytest

from helpers import random_table
from report_runs import Reported, hostile_table, reported
from reports.browser.browsing import Browser

REQUIRED = bool(os.environ.get("CI")) or os.environ.get("SADDLEBACK_BROWSER") == "required"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    programs = shutil.which("chromium"), shutil.which("chromedriver")
    missing = [
        f"the program {name}" for name, found in zip(("chromium", "chromedriver"), programs, strict=True) if not found
    ]
    missing += [f"the package {m}" for m in ("selenium", "axe_core_python") if importlib.util.find_spec(m) is None]
    if missing:
        text = f"no browser to test reports in: {', '.join(missing)} (Debian: apt-get install chromium chromium-driver)"
        if REQUIRED:
            pytest.fail(text, pytrace=False)
        pytest.skip(text)
    assert programs[0] is not None and programs[1] is not None
    driver = Browser(programs[0], programs[1], tmp_path_factory.mktemp("browser"))
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def wireless(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    return reported(tmp_path_factory.mktemp("wireless") / "run", "wireless")


@pytest.fixture(scope="session")
def two_constraints(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    settings = ["constraints=2", "states=12"]
    return reported(tmp_path_factory.mktemp("garnet") / "run", "garnet", settings)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    folder = tmp_path_factory.mktemp("hostile")
    return reported(folder / "run", hostile_table(random_table(1), folder / "problem.npz"))
