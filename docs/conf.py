"""The documentation site: `make docs` builds it into docs/_build/html, and every warning is an error."""

from __future__ import annotations

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
