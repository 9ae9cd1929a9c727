"""Records every call of a run's ports on a tape, and answers calls from one."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import fields, is_dataclass, replace
from difflib import SequenceMatcher, unified_diff
from functools import partial
from typing import Any, cast

from langgraph.config import get_config

from app.workbench.tapes.port_methods import PortMethod, freeze, name_port, read_attributes, read_methods
from app.workbench.tapes.tape import Call, Tape
from app.workbench.tapes.tape_codec import pack, show_request
from domain import errors
from domain.errors import AskgraphError, NotOnTape, OverBudget
from domain.ports.calculation import Calculator
from domain.ports.embedding import Embedder
from domain.ports.functions import Functions
from domain.ports.judgement import Judges
from domain.ports.library import Library
from domain.ports.models import ChatModel, FailedAttempt, ModelUsage, TokenCounter, UsageSink
from domain.ports.pictures import PagePictures, Picture
from domain.ports.reranking import Reranker
from domain.ports.unit_scoring import UnitScorer
from nodes.context import Context, Ledger, Models

_DIFF_LINES = 40
"""Number of differing lines to show for a request that is not on the tape."""

_SINGLE: dict[str, type] = {
    "library": Library,
    "embedder": Embedder,
    "calculator": Calculator,
    "pictures": PagePictures,
    "functions": Functions,
}
"""The fields of a context that hold one port or none, and the protocol of each."""

_CALLED_BY_JUDGES: tuple[type, ...] = (Embedder, UnitScorer)
"""The protocols of the ports that judges call. A judge holds such a port in a field, which may also be None."""

Ports = dict[str, Any]


def record(context: Context, calls: list[Call]) -> Context:
    """Return `context` with ports that add every call to `calls`."""
    return _map_ports(context, lambda protocol, port: _Recording(protocol, port, calls))


def describe(context: Context) -> Ports:
    """Return the attributes of each port, from which `play` makes ports like them."""
    described = _map_ports(context, read_attributes)
    ports = {name: getattr(described, name) for name in (*_SINGLE, "rerankers")}
    models = {part.name: getattr(described.models, part.name) for part in fields(Models)}
    # A map of pairs is a list of them in msgpack.
    return ports | {"models": models | {"named": [[*key, model] for key, model in models["named"].items()]}}


def play(tape: Tape, player: "Player", tokens: TokenCounter, judges: Judges) -> Context:
    """Return a context like that of the taped run, whose every call `player` answers. The judges are code: today's
    judges run on the taped replies of the models that they call."""
    models = tape.ports["models"]
    named = {(tier, name): model for tier, name, model in models["named"]}
    ports: dict[str, Any] = {name: tape.ports.get(name) for name in (*_SINGLE, "rerankers")}
    described = Context(
        **ports,
        judges=_map_judges(judges, read_attributes),
        tokens=tokens,
        models=Models(**models | {"fallbacks": tuple(models["fallbacks"]), "named": named}),
    )
    return _map_ports(described, lambda protocol, attributes: _Playing(protocol, attributes, player, None))


def fill(context: Context, player: "Player") -> Context:
    """Return `context` with ports that are called only for requests that `player` cannot answer."""
    return _map_ports(context, lambda protocol, port: _Playing(protocol, read_attributes(protocol, port), player, port))


class Player:
    """Answers requests from a tape, each recorded call once and in the order of the tape. Calls made after the graph's
    step `after` come first: a run that continues from there repeats these, and not equal ones made before it."""

    def __init__(
        self, tape: Tape, run_id: str, after: int = -1, *, allows: Callable[[str], bool] = lambda title: True
    ) -> None:
        """`allows` tells by a port's name whether `fill` may make calls that the tape lacks."""
        self.missed: NotOnTape | None = None
        """The first request that could not be answered."""
        self.answered = 0
        """Number of requests that the tape answered."""
        self.made = 0
        """Number of calls that were made, because the tape lacks them."""
        self.refused: str | None = None
        """The port and method of the first call that was not allowed."""
        self.used: list[ModelUsage] = []
        """What the calls that were made have used, also those that were cut off."""
        self._allows = allows
        self._run_id = run_id
        self._calls = tape.calls
        self._left: dict[bytes, deque[Call]] = defaultdict(deque)
        # A cancelled call answers a request only where no equal one ended.
        for call in sorted(tape.calls, key=lambda call: (call.step <= after, call.cut)):
            self._left[_key(call.port, call.method, call.request)].append(call)

    def take(self, port: str, method: str, request: Mapping[str, Any]) -> Call | None:
        """Take the next recorded call of the request; None where there is none left."""
        left = self._left.get(_key(port, method, request))
        self.answered += bool(left)
        return left.popleft() if left else None

    def let_pass(self, port: str, method: str) -> None:
        """Note that a call is made. Raises `NotOnTape` where it is not allowed."""
        if not self._allows(port):
            self.refused = self.refused or f"{port}, {method}"
            raise NotOnTape(f"This would have to be asked anew: {port}, {method}.")
        self.made += 1

    def miss(self, port: str, method: str, request: Mapping[str, Any]) -> NotOnTape:
        """Make the error for a request that is not on the tape. It shows how the nearest taped request differs."""
        asked = show_request(request)
        recorded = [show_request(call.request) for call in self._calls if (call.port, call.method) == (port, method)]
        message = f"The tape of run {self._run_id} does not hold this request to {port}, {method}."
        if not recorded:
            message += " It holds none to it."
        elif asked in recorded:
            message += f" It was made {recorded.count(asked)} times then, and now once more."
        else:
            nearest = max(recorded, key=lambda lines: SequenceMatcher(None, lines, asked, autojunk=False).ratio())
            diff = list(unified_diff(nearest, asked, "on the tape", "asked now", n=1, lineterm=""))
            more = [f"… {len(diff) - _DIFF_LINES} more lines"] if len(diff) > _DIFF_LINES else []
            message += " The nearest that it holds:\n" + "\n".join([*diff[:_DIFF_LINES], *more])
        missed = NotOnTape(message)
        self.missed = self.missed or missed
        return missed


class _Recording:
    """A port whose calls are recorded."""

    def __init__(self, protocol: type, port: Any, calls: list[Call]) -> None:
        self._methods = read_methods(protocol)
        self._title = name_port(protocol, read_attributes(protocol, port))
        self._port = port
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)
        method = self._methods.get(name)
        if method is None:
            return attribute
        return partial(self._call if method.kind == "once" else self._stream, name, method, attribute)

    async def _call(
        self, name: str, method: PortMethod, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        with self._note(name, method, method.name_arguments(args, kwargs)) as (call, arguments):
            reply = await function(**arguments)
            call.reply = freeze(reply)
        return reply

    async def _stream(
        self, name: str, method: PortMethod, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        with self._note(name, method, method.name_arguments(args, kwargs)) as (call, arguments):
            call.reply = []
            async with aclosing(cast("AsyncGenerator[Any]", function(**arguments))) as chunks:
                async for chunk in chunks:
                    call.reply.append(chunk)
                    yield chunk

    @contextmanager
    def _note(self, name: str, method: PortMethod, arguments: dict[str, Any]) -> Iterator[tuple[Call, dict[str, Any]]]:
        """Record a call, and how the block ends. Yields the call and its arguments, with a sink that also records."""
        call = Call(self._title, name, method.make_request(arguments), _read_step())
        self._calls.append(call)
        sink = None if method.sink is None else arguments.get(method.sink)
        try:
            yield call, _meter(method, arguments, call.usage, call)
        except AskgraphError as error:
            call.end(error)
            raise
        except asyncio.CancelledError:
            # Cancelled for want of budget. A replay is faster and would have it, so the error is recorded.
            if isinstance(sink, Ledger) and sink.is_over_budget():
                call.end(OverBudget(sink.over_budget))
            raise
        call.end()


class _Playing:
    """A port whose calls a player answers; `port`, if given, answers the others."""

    def __init__(self, protocol: type, attributes: Mapping[str, Any], player: Player, port: Any) -> None:
        self._methods = read_methods(protocol)
        self._title = name_port(protocol, attributes)
        self._attributes = attributes
        self._player = player
        self._port = port

    def __getattr__(self, name: str) -> Any:
        method = self._methods.get(name)
        if method is None:
            if name not in self._attributes:
                raise AttributeError(name)
            return self._attributes[name]
        return partial(self._call if method.kind == "once" else self._stream, name, method)

    async def _call(self, name: str, method: PortMethod, /, *args: Any, **kwargs: Any) -> Any:
        arguments = method.name_arguments(args, kwargs)
        call = self._take(name, method, arguments)
        if call is None:
            return await getattr(self._port, name)(**_meter(method, arguments, self._player.used))
        _raise(call)
        return method.restore(call.reply, arguments)

    async def _stream(self, name: str, method: PortMethod, /, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        arguments = method.name_arguments(args, kwargs)
        call = self._take(name, method, arguments)
        if call is None:
            arguments = _meter(method, arguments, self._player.used)
            async with aclosing(getattr(self._port, name)(**arguments)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        for chunk in call.reply:
            yield chunk
        _raise(call)

    def _take(self, name: str, method: PortMethod, arguments: Mapping[str, Any]) -> Call | None:
        """Take the recorded call. None where there is none, or it was cancelled: then the port is called."""
        request = method.make_request(arguments)
        call = self._player.take(self._title, name, request)
        if self._port is not None:
            # No usage is reported: taped calls are not paid for again.
            if call is not None and not call.cut:
                # Of pictures the tape has only the names, which are not enough to ask a model anew.
                return None if method.returns == list[Picture] else call
            self._player.let_pass(self._title, name)
            return None
        if call is None:
            raise self._player.miss(self._title, name, request)
        for used in call.usage:
            arguments[cast(str, method.sink)].record(used)
        for failure in call.failures:
            arguments[cast(str, method.sink)].record_failure(failure)
        return call


class _Meter:
    """A sink that also adds to a list, and to the recorded call."""

    def __init__(self, sink: UsageSink, usage: list[ModelUsage], call: Call | None) -> None:
        self._sink = sink
        self._usage = usage
        self._call = call

    def record(self, usage: ModelUsage) -> None:
        self._usage.append(usage)
        self._sink.record(usage)

    def record_failure(self, failure: FailedAttempt) -> None:
        if self._call is not None:
            self._call.failures.append(failure)
        self._sink.record_failure(failure)

    def record_thoughts(self, thoughts: str) -> None:
        if self._call is not None:
            self._call.thoughts += thoughts
        self._sink.record_thoughts(thoughts)


def _meter(
    method: PortMethod, arguments: dict[str, Any], usage: list[ModelUsage], call: Call | None = None
) -> dict[str, Any]:
    """Return the arguments with a sink, where they have one, that also adds to the list and to the recorded call."""
    sink = None if method.sink is None else arguments.get(method.sink)
    return arguments if sink is None else arguments | {str(method.sink): _Meter(sink, usage, call)}


def _map_ports(context: Context, wrap: Callable[[type, Any], Any]) -> Context:
    """Return `context` with `wrap` applied to each port and its protocol. The token counter is left out: its results
    depend only on the text."""

    def wrap_any(protocol: type, port: Any) -> Any:
        return None if port is None else wrap(protocol, port)

    wrapped = context.models.map(partial(wrap, ChatModel))
    single = {name: wrap_any(protocol, getattr(context, name)) for name, protocol in _SINGLE.items()}
    rerankers = {name: wrap(Reranker, reranker) for name, reranker in context.rerankers.items()}
    judges = _map_judges(context.judges, wrap)
    return replace(context, **single, judges=judges, rerankers=rerankers, models=wrapped)


def _map_judges(judges: Judges, wrap: Callable[[type, Any], Any]) -> Judges:
    """Return `judges` with the ports that each calls wrapped."""
    mapped = {}
    for part in fields(judges):
        judge = getattr(judges, part.name)
        if is_dataclass(judge) and not isinstance(judge, type):
            ports = {
                held.name: wrap(protocol, port)
                for held in fields(judge)
                for protocol in _CALLED_BY_JUDGES
                if held.type in (protocol, protocol | None) and (port := getattr(judge, held.name)) is not None
            }
            judge = replace(judge, **ports)
        mapped[part.name] = judge
    return Judges(**mapped)


def _raise(call: Call) -> None:
    """Raise what the call raised; a cancelled call had run out of time."""
    if call.cut:
        raise TimeoutError
    if call.error is not None:
        kind, message = call.error
        raise getattr(errors, kind)(message)


def _key(port: str, method: str, request: Mapping[str, Any]) -> bytes:
    return pack([port, method, request])


def _read_step() -> int:
    return cast(int, get_config()["metadata"]["langgraph_step"])
