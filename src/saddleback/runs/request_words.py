"""What was asked, as it is typed: a request that was written down in full is told by the few options that matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from saddleback.errors import plain_text
from saddleback.files.json_file import Record, to_plain
from saddleback.runs.limits import limit_settings, own_settings

BUDGET = ("samples", "certificate", "from", "from_sha256", "epsilon", "max_samples")
"""The fields of a request that :func:`budget_options` tells."""

_NAMES = {"purpose": "--for"}
_NOT_TYPED = {"resolution": -1, "iterations": 1000}  # with --epsilon they cannot be given
_LONGEST = 200


def option_of(name: str) -> str:
    """The option by which a field of a request is given."""
    return _NAMES.get(name, f"--{name.replace('_', '-')}")


def budget_options(budget: Mapping[str, Any]) -> dict[str, str]:
    """A budget by its options; solve and certificate, which are kept apart, are typed as one number."""
    spent, proof, folder = budget.get("samples"), budget.get("certificate"), budget.get("from")
    given: dict[str, Any] = {"--from": folder}
    if folder is not None:
        given["--certificate-samples"] = proof
    elif isinstance(spent, int) and isinstance(proof, int):
        given["--samples"] = spent + proof
        given["--certificate-samples"] = None if proof == (spent + proof) // 2 else proof
    else:
        given["--samples"] = spent
    given |= {"--epsilon": budget.get("epsilon"), "--max-samples": budget.get("max_samples")}
    return {name: str(value) for name, value in given.items() if value is not None}


class Asked(NamedTuple):
    """All that has to be the same where a run is taken up again; options that were left out are what they are then."""

    verb: str
    target: str
    settings: list[str]
    options: Record


def differences(was: Asked, now: Asked) -> tuple[str, str]:
    """What differs of two requests, as words of a command line."""
    if was.verb != now.verb:  # whose options cannot be compared
        return f"`saddleback {was.verb}`", f"`saddleback {now.verb}`"
    before, after = _words(was), _words(now)
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return _those(before, keys), _those(after, keys)


def _those(words: dict[str, str], keys: Sequence[str]) -> str:
    found = [plain_text(words[key], _LONGEST) for key in keys if key in words]
    return " ".join(found) or " and ".join(f"no {plain_text(key, _LONGEST)}" for key in keys)


def _words(asked: Asked) -> dict[str, str]:
    """Every word of a request by what it is about."""
    return {"target": asked.target} | _settings(asked.settings) | _options(asked.verb, to_plain(asked.options))


def _settings(settings: Sequence[str]) -> dict[str, str]:
    words = {}
    for option, texts in (("--set", own_settings(settings)), ("--limit", limit_settings(settings))):
        for text in (text.removeprefix("limit ") for text in texts):
            words[f"{option} {text.rpartition('=')[0]}"] = f"{option} {text}"
    for text in settings:
        if text.startswith("sha256="):
            words["file"] = f"a file with the SHA-256 {text.removeprefix('sha256=')[:12]}"
    return words


def _options(verb: str, options: Mapping[str, Any]) -> dict[str, str]:
    budget, parts = options, {"rounds": options.get("rounds") or None, "seed": options.get("seed")}
    if verb == "solve":
        budget, parts = options["budget"], options["parts"]
    words = {name: f"{name} {value}" for name, value in budget_options(budget).items()}
    if budget.get("from_sha256") is not None:
        words["--from"] += f" (SHA-256 {budget['from_sha256'][:12]})"
    for name, value in parts.items():
        value = value or 0 if name == "resolution" else value  # none is typed as 0
        if value is not None and value != _NOT_TYPED.get(name):
            words[option_of(name)] = f"{option_of(name)} {value}"
    return words
