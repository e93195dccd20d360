"""The documentation site: `make docs` builds it into docs/_build/html, and every warning is an error."""

from __future__ import annotations

import re
from typing import Any

from saddleback import __version__

project = "saddleback"
author = "the saddleback authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "zoo/*.py"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Problem files and run folders are named in console blocks, whose prompts and tables no lexer knows.
suppress_warnings = ["misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
# Modules are not on the site: docstrings name them and parts of them for readers of the source.
nitpick_ignore_regex = [(r"py:.*", r"(saddleback\.|numpy|np\.|ArrayLike).*")]

html_theme = "furo"
html_title = f"saddleback {version}"
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False


_ENTRY = re.compile(r"^(?P<names>[a-z_]\w*(?:, [a-z_]\w*)*):? {2,}(?P<text>\S.*)$")


def parameter_lists(_app: object, _what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    """Parameters in two columns, as the docstrings have them for people at a prompt, become a list of definitions."""
    out: list[str] = []
    inside = False
    for line in lines:
        entry = _ENTRY.match(line)
        if line in ("Parameters", "----------"):
            continue
        if entry:
            out += ([] if inside else [""]) + [f"``{entry['names']}``", f"   {entry['text']}"]
        elif inside and line.startswith("  "):
            out.append(f"   {line.strip()}")
        else:
            out += ["", line] if inside and line else [line]
        inside = bool(entry) or (inside and line.startswith("  "))
    lines[:] = out


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", parameter_lists)
