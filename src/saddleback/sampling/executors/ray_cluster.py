"""The way to a Ray cluster (an extra), and objects that live in actors there, each beside its data, and answer questions.

    make_i  →  actor i: object_i        call: question → actor i → answer        the data stay where they are

A cluster that was started here, or joined by its address, is let go when the last of its users has released it; one that the
program was connected to before stays. A demand that no living node could meet, however idle, is *homeless*: Ray would keep
it waiting for such a node to come, without a word. A node that is merely busy is worth waiting for.

An actor that is lost, with its process or its node, is started again: its object is made anew, what all were told before
(``prepare``) is told again, and the question is asked once more. Answers depend on questions and data alone, so nobody can
tell. Ray's own retries are off, so that ``num_restarts`` says how often it happened. One that dies at every start, or finds
no place, is given up with its reason. Questions and answers are packed here: arrays that Ray unpacks are read-only.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.util import Finalize
from operator import methodcaller
from typing import Any

from saddleback.errors import SaddlebackError, optional_package, require
from saddleback.sampling.executors.shipping import dumps, loads, pack, unpack
from saddleback.sampling.executors.task_book import Fault, check_options

PATIENCE = 120.0  # seconds for a node to come, or come back, before what only it could do is given up
RESTARTS = 3  # how often in a row an actor may be lost over one question
_users: set[int] = set()  # of a connection that was made here


class Connection:
    """``ray`` is the module, connected to ``address`` (None: what ``RAY_ADDRESS`` says) or to a cluster of ``num_cpus`` here."""

    def __init__(self, name: str, address: str | None, num_cpus: int | None):
        self.ray: Any = optional_package("ray", "ray", f"this {name}")
        self._last: Finalize | None = None
        if self.ray.is_initialized():
            if not _users:
                return  # the program's own
        else:
            _users.clear()
            address = address or os.environ.get("RAY_ADDRESS")
            quiet = {"log_to_driver": False, "logging_level": "WARNING"}
            if address is None:
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a private cluster tells nobody
                self.ray.init(address="local", num_cpus=num_cpus, include_dashboard=False, **quiet)
            else:
                self.ray.init(address=address, **quiet)
        _users.add(id(self))
        self._last = Finalize(self, _release, (id(self), self.ray), exitpriority=10)

    def release(self) -> None:
        """No longer needed here."""
        if self._last is not None:
            self._last()
            self._last = None

    def homeless(self, options: Mapping[str, Any]) -> str | None:
        """What is asked for and no living node has, beside what they have; None if one could take it."""
        wanted = _wanted(options)
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        if any(all(have.get(name, 0.0) >= amount for name, amount in wanted.items()) for have in nodes):
            return None
        return f"it asks for {_shown(wanted)}; there are nodes with {'; '.join(map(_shown, nodes)) or 'nothing'}"

    def in_turn(self, i: int) -> dict[str, Any]:
        """Options for the i-th of several actors that reserve nothing: the nodes in turn, or another if that one is gone."""
        strategies = importlib.import_module("ray.util.scheduling_strategies")
        nodes = sorted(n["NodeID"] for n in self.ray.nodes() if n["Alive"] and n["Resources"].get("CPU", 0.0) > 0)
        if not nodes:
            return {}
        return {"scheduling_strategy": strategies.NodeAffinitySchedulingStrategy(nodes[i % len(nodes)], soft=True)}


def _release(user: int, ray: Any) -> None:
    _users.discard(user)
    if not _users:
        ray.shutdown()


def _wanted(options: Mapping[str, Any]) -> dict[str, float]:
    plain = {"CPU": options.get("num_cpus"), "GPU": options.get("num_gpus"), "memory": options.get("memory")}
    return {name: float(amount) for name, amount in (plain | (options.get("resources") or {})).items() if amount}


def _shown(resources: Mapping[str, float]) -> str:
    """Without what Ray adds for itself."""
    own = sorted((k, v) for k, v in resources.items() if ":" not in k and k != "object_store_memory")
    return ", ".join(f"{amount:g} {name}" for name, amount in own) or "no resources"


class Host:
    """The other side: makes its object at the first question, so that its faults are answers too."""

    def __init__(self, packed: bytes, paths: Sequence[str]):
        self._packed, self._object = packed, None
        sys.path.extend(path for path in paths if path not in sys.path)

    def hello(self) -> None:
        """The actor has a place."""

    def call(self, packed: bytes) -> bytes:
        """The answer to one question, packed."""
        try:
            if self._object is None:
                self._object = unpack(self._packed)()
            return dumps(unpack(packed)(self._object))
        except SaddlebackError as error:
            return dumps(Fault.of(error))


class Hosts:
    """One actor for each of ``makes``; ``options`` go to Ray, one mapping for each actor.

    ``address`` names a cluster. Without it the one this program is connected to is used, or that of ``RAY_ADDRESS``, or a
    local one is started, and shut down by :meth:`close` or the end of the program. Unless ``options`` say so actors reserve no core, or two buffers that
    are asked in turn would keep each other out; they take the nodes in turn. One that has no place within ``patience``
    seconds is an error; one that takes more than ``timeout`` over an answer (None: any time) is taken for lost.
    """

    def __init__(
        self,
        makes: Sequence[Callable[[], Any]],
        *,
        address: str | None = None,
        options: Sequence[Mapping[str, Any]] | None = None,
        patience: float = PATIENCE,
        timeout: float | None = None,
    ):
        require(len(makes) >= 1, "actors", "must be at least 1", len(makes), "give a folder for each")
        options = [{}] * len(makes) if options is None else options
        rule = f"must be one mapping for each of the {len(makes)} actors"
        require(len(options) == len(makes), "options", rule, len(options), "leave them out for the usual ones")
        check_options(None, timeout, patience=patience)
        self._packed = [pack(make) for make in makes]
        self._options = [dict(more) for more in options]
        self._patience, self._timeout = patience, timeout
        self._told: list[bytes] = []
        self.num_restarts = 0
        self._connection = Connection("buffer", address, len(makes))
        self._ray = self._connection.ray
        self._placed: dict[int, Any] = {}
        self._actors = [self._start(i) for i in range(len(makes))]

    def call(self, method: str, arguments: Mapping[int, Sequence[Any]]) -> list[Any]:
        """What the objects answer to ``method(*arguments[i])``, in the order of ``arguments``, all at the same time."""
        questions = {i: pack(methodcaller(method, *given)) for i, given in arguments.items()}
        coming = {i: self._actors[i].call.remote(question) for i, question in questions.items()}
        return [self._receive(i, reference, questions[i]) for i, reference in coming.items()]

    def call_all(self, method: str, *arguments: Any) -> list[Any]:
        """The same question to all."""
        return self.call(method, dict.fromkeys(range(len(self._actors)), arguments))

    def prepare(self, method: str, *arguments: Any) -> None:
        """Tell all of them something that those who come later must be told too."""
        self.call_all(method, *arguments)
        self._told.append(pack(methodcaller(method, *arguments)))

    def close(self) -> None:
        """End the actors, and the cluster if it was started here."""
        actors, self._actors = self._actors, []
        if self._ray.is_initialized():
            for actor in actors:
                self._ray.kill(actor)
        self._connection.release()

    def _receive(self, i: int, reference: Any, question: bytes) -> Any:
        for lost in range(RESTARTS + 1):
            self._await_place(i)
            try:
                answer = loads(self._ray.get(reference, timeout=self._timeout))
                break
            except self._ray.exceptions.RayTaskError as error:  # our own code, or the user's features, failed there
                text = f"an actor could not answer: {type(error.cause).__name__}: {error.cause}"
                raise SaddlebackError(text) from error
            except self._ray.exceptions.RayError as error:
                if lost == RESTARTS:
                    how = str(error).splitlines()[0]
                    raise SaddlebackError(f"an actor was lost {lost + 1} times over one question: {how}") from error
                self.num_restarts += 1
                self._ray.kill(self._actors[i])  # it may only have been late
                self._actors[i] = self._start(i)
                reference = self._actors[i].call.remote(question)
        if isinstance(answer, Fault):
            raise answer.error(self.call, i)
        return answer

    def _await_place(self, i: int) -> None:
        ready, _ = self._ray.wait([self._placed[i]], timeout=self._patience)
        if not ready:
            busy = "the nodes that could take it have no room or do not answer"
            problem = self._connection.homeless(self._options[i]) or busy
            raise SaddlebackError(f"actor {i} found no place in the cluster within {self._patience:g} s: {problem}.")

    def _start(self, i: int) -> Any:
        options = self._options[i] or self._connection.in_turn(i)
        host = remote(Host).options(max_restarts=0, max_task_retries=0, **options)
        actor = host.remote(self._packed[i], sys.path)
        self._placed[i] = actor.hello.remote()
        for told in self._told:
            actor.call.remote(told)
        return actor


@functools.cache
def remote(part: Any) -> Any:
    """A function or class that Ray can run, made once: Ray takes every new one for another kind of task."""
    return importlib.import_module("ray").remote(part)
