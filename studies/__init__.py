"""Studies: what the algorithms do on problems whose truth is known, against the rates the paper proves.

`python -m studies` runs all of them, `python -m studies error-against-size` one, `--quick` a reduced form. A study is one
file with ``TITLE``, ``QUESTION``, ``measure(quick, say)`` and ``answer(figures)``, and one line here.
"""

from __future__ import annotations

from types import ModuleType

from studies import error_against_samples, error_against_size, strict_against_relaxed

BY_NAME: dict[str, ModuleType] = {
    "error-against-samples": error_against_samples,
    "error-against-size": error_against_size,
    "strict-against-relaxed": strict_against_relaxed,
}
