"""``terminal`` and ``successors`` of a problem file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saddleback.files.json_file import short
from saddleback.instances.problem_file.code import imported
from saddleback.instances.problem_file.sections import Section
from saddleback.problem.spaces import FiniteStates, States, StateSpace


def terminal_of(file: Section, space: StateSpace, ends: bool, listed: Callable[..., States]) -> Any:
    """``terminal``: a list of states, "module:function" of a state (of an array of states where they form a box), or "terminated"
    where a Gymnasium environment marks its ``ends`` itself."""
    remedy = 'write terminal = [5, 7], terminal = "shop:is_over", or terminal = "terminated" with an environment'
    given = file.get("terminal", "anything", None)
    if given is None:
        return None
    if given == "terminated":
        if not ends:
            raise file.fault("terminal", "must name states: nothing here says when it is over", short(given), remedy)
        return [space.num - 1] if isinstance(space, FiniteStates) else marked_done
    if isinstance(given, str):
        return imported(file, "terminal")
    if not isinstance(given, list) or not isinstance(space, FiniteStates):
        raise file.fault("terminal", "must be a list of states, or a function", short(given), remedy)
    states = listed(file, "terminal", given, space)
    if np.any(space.outside(states)):
        raise file.fault("terminal", "must lie in the state space", short(given), remedy)
    return states.tolist()


def marked_done(states: States) -> Any:
    """Whose last coordinate says that all is over."""
    return states[:, -1] == 1


def successors_of(file: Section, space: StateSpace) -> Any:
    """``successors``: "module:function" of a state and an action, or a list of lists of states, one an action, a state."""
    given = file.get("successors", "anything", None)
    if given is None:
        return None
    remedy = 'write successors = "shop:followers", a function (state, action) -> list of states'
    if not isinstance(given, (str, list)) or not isinstance(space, FiniteStates):
        raise file.fault("successors", "must be a function or lists, of finite states", short(given), remedy)
    return imported(file, "successors") if isinstance(given, str) else given
