"""Ports that put every call of a run on its tape, and ports that answer from one.

One mechanism serves every port: what a method is, its protocol says. A coroutine replies once, a method that returns an
iterator streams. What a call consumed, which it reports to a `UsageSink`, is on the tape too.
"""

import asyncio
import hashlib
import inspect
import json
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from difflib import SequenceMatcher, unified_diff
from functools import cache, partial
from typing import Any, Literal, cast, get_origin, get_type_hints

import numpy as np
import ormsgpack
from langgraph.config import get_config
from pydantic import BaseModel, ConfigDict, TypeAdapter

from domain import errors
from domain.errors import AskgraphError, NotOnTape, OverBudget
from domain.ports.embedding import Embedder
from domain.ports.judgement import Judges
from domain.ports.library import Library
from domain.ports.models import ChatModel, ModelUsage, TokenCounter, UsageSink
from domain.ports.reranking import Reranker
from domain.scope import Scope
from domain.tapes import Call, Tape
from nodes.context import Context, Ledger, Models

_DIFF_LINES = 40
"""Lines of the difference that are shown where a request is not on the tape."""

_ARRAY = 1
"""The msgpack extension type of an array: its dtype and shape, then its values."""

_SINGLE: dict[str, type] = {"library": Library, "embedder": Embedder}
"""The fields of a context that hold one port, and its protocol."""

Ports = dict[str, Any]


def record(context: Context, calls: list[Call]) -> Context:
    """`context`, with every call of its ports added to `calls`."""
    return _map_ports(context, lambda protocol, port: _Recording(protocol, port, calls))


def describe(context: Context) -> Ports:
    """The attributes of each port, which is what `play` needs to know of what a run had."""
    described = _map_ports(context, _read_attributes)
    ports = {name: getattr(described, name) for name in (*_SINGLE, "rerankers")}
    models = {part.name: getattr(described.models, part.name) for part in fields(Models)}
    # A map of pairs is a list of them in msgpack.
    return ports | {"models": models | {"named": [[*key, model] for key, model in models["named"].items()]}}


def play(tape: Tape, player: "Player", tokens: TokenCounter, judges: Judges) -> Context:
    """The context of the run that `tape` is of, answered by `player` and nothing else. The judges are code: today's
    judge, on what the models that they call said then."""
    models = tape.ports["models"]
    named = {(tier, name): model for tier, name, model in models["named"]}
    described = Context(
        **{name: tape.ports[name] for name in (*_SINGLE, "rerankers")},
        judges=_map_judges(judges, _read_attributes),
        tokens=tokens,
        models=Models(**models | {"fallbacks": tuple(models["fallbacks"]), "named": named}),
    )
    return _map_ports(described, lambda protocol, attributes: _Playing(protocol, attributes, player, None))


def fill(context: Context, player: "Player") -> Context:
    """`context`, which is called only for what `player` cannot answer."""
    return _map_ports(
        context, lambda protocol, port: _Playing(protocol, _read_attributes(protocol, port), player, port)
    )


def pack(value: Any) -> bytes:
    """Msgpack of plain values, dataclasses and arrays. Equal values have equal bytes."""
    return ormsgpack.packb(value, default=_pack_array)


def unpack(data: bytes) -> Any:
    """What was packed; dataclasses come back as dictionaries, tuples as lists."""
    return ormsgpack.unpackb(data, ext_hook=_unpack_array)


class Player:
    """Answers requests from a tape, each recorded call once and in the order of the tape. Calls made after the graph's
    step `after` come first: a run that goes on from there makes them, and not the equal ones of before."""

    def __init__(self, tape: Tape, run_id: str, after: int = -1) -> None:
        self.missed: NotOnTape | None = None
        """The first request that could not be answered."""
        self._run_id = run_id
        self._calls = tape.calls
        self._left: dict[bytes, deque[Call]] = defaultdict(deque)
        # A call that was left is what a request came to only where no equal one ended: work done ahead is left, too.
        for call in sorted(tape.calls, key=lambda call: (call.step <= after, call.cut)):
            self._left[_key(call.port, call.method, _read_request(call.request))].append(call)

    def take(self, port: str, method: str, request: Mapping[str, Any]) -> Call | None:
        """The next recorded call of the request."""
        left = self._left.get(_key(port, method, request))
        return left.popleft() if left else None

    def miss(self, port: str, method: str, request: Mapping[str, Any]) -> NotOnTape:
        """What to raise for a request that is not on the tape: it shows how the nearest that is differs."""
        asked = _show(request)
        recorded = [_show(call.request) for call in self._calls if (call.port, call.method) == (port, method)]
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


@dataclass(frozen=True, slots=True)
class _Method:
    """What a protocol says of one of its methods."""

    kind: Literal["once", "stream"]
    parameters: tuple[str, ...]
    keyed: tuple[str, ...]
    """The parameters that make the request: not where usage goes, nor how long is waited."""
    sink: str | None
    returns: Any

    def name_arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return dict(zip(self.parameters, args, strict=False)) | dict(kwargs)

    def make_request(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {name: _freeze(arguments[name]) for name in self.keyed if name in arguments}

    def restore(self, reply: Any, arguments: Mapping[str, Any]) -> Any:
        """The reply as the port gave it."""
        schema = arguments.get("schema")
        return schema.model_validate(reply) if schema is not None else _adapt(self.returns).validate_python(reply)


class _Recording:
    """A port that is called, and noted."""

    def __init__(self, protocol: type, port: Any, calls: list[Call]) -> None:
        self._methods = _read_methods(protocol)
        self._title = _title(protocol, _read_attributes(protocol, port))
        self._port = port
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)
        method = self._methods.get(name)
        if method is None:
            return attribute
        return partial(self._call if method.kind == "once" else self._stream, name, method, attribute)

    async def _call(
        self, name: str, method: _Method, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Any:
        with self._note(name, method, args, kwargs) as (call, args, kwargs):
            reply = await function(*args, **kwargs)
            call.reply = _freeze(reply)
        return reply

    async def _stream(
        self, name: str, method: _Method, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        with self._note(name, method, args, kwargs) as (call, args, kwargs):
            call.reply = []
            async with aclosing(cast("AsyncGenerator[Any]", function(*args, **kwargs))) as chunks:
                async for chunk in chunks:
                    call.reply.append(chunk)
                    yield chunk

    @contextmanager
    def _note(
        self, name: str, method: _Method, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[tuple[Call, tuple[Any, ...], dict[str, Any]]]:
        """A call on the tape, which knows how the block ended; and the arguments, with the tape before the sink."""
        arguments = method.name_arguments(args, kwargs)
        call = Call(self._title, name, method.make_request(arguments), _read_step())
        self._calls.append(call)
        sink = None if method.sink is None else arguments.get(method.sink)
        if method.sink is not None and sink is not None:
            meter = _Meter(sink, call.usage)
            if method.sink in kwargs:
                kwargs = kwargs | {method.sink: meter}
            else:
                place = method.parameters.index(method.sink)
                args = (*args[:place], meter, *args[place + 1 :])
        try:
            yield call, args, kwargs
        except AskgraphError as error:
            call.end(error)
            raise
        except asyncio.CancelledError:
            # Left for want of budget, which a replay, being faster, would have.
            if isinstance(sink, Ledger) and sink.is_over_budget():
                call.end(OverBudget(sink.over_budget))
            raise
        call.end()


class _Playing:
    """A port that a player answers for; `port`, if there is one, is called for what it cannot answer."""

    def __init__(self, protocol: type, attributes: Mapping[str, Any], player: Player, port: Any) -> None:
        self._methods = _read_methods(protocol)
        self._title = _title(protocol, attributes)
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

    async def _call(self, name: str, method: _Method, /, *args: Any, **kwargs: Any) -> Any:
        arguments = method.name_arguments(args, kwargs)
        call = self._take(name, method, arguments)
        if call is None:
            return await getattr(self._port, name)(*args, **kwargs)
        _raise(call)
        return method.restore(call.reply, arguments)

    async def _stream(self, name: str, method: _Method, /, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        arguments = method.name_arguments(args, kwargs)
        call = self._take(name, method, arguments)
        if call is None:
            async with aclosing(getattr(self._port, name)(*args, **kwargs)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        for chunk in call.reply:
            yield chunk
        _raise(call)

    def _take(self, name: str, method: _Method, arguments: Mapping[str, Any]) -> Call | None:
        """The recorded call; None where the port is to be called, which is when there is none or it was left."""
        request = method.make_request(arguments)
        call = self._player.take(self._title, name, request)
        if self._port is not None:
            # Nothing goes to the sink: what is on the tape is not paid for again.
            return None if call is None or call.cut else call
        if call is None:
            raise self._player.miss(self._title, name, request)
        for used in call.usage:
            arguments[cast(str, method.sink)].record(used)
        return call


class _Meter:
    """A sink that notes on the tape what passes through it."""

    def __init__(self, sink: UsageSink, usage: list[ModelUsage]) -> None:
        self._sink = sink
        self._usage = usage

    def record(self, usage: ModelUsage) -> None:
        self._usage.append(usage)
        self._sink.record(usage)


def _map_ports(context: Context, wrap: Callable[[type, Any], Any]) -> Context:
    """`context` with each of its ports wrapped, which is told the port's protocol. Counting tokens is no call: it
    depends on nothing but the text."""

    def wrap_model(model: ChatModel | None) -> Any:
        return None if model is None else wrap(ChatModel, model)

    models = context.models
    wrapped = Models(
        small=wrap_model(models.small),
        large=wrap_model(models.large),
        judge=wrap_model(models.judge),
        fallbacks=tuple(wrap_model(model) for model in models.fallbacks),
        named={key: wrap_model(model) for key, model in models.named.items()},
    )
    single = {name: wrap(protocol, getattr(context, name)) for name, protocol in _SINGLE.items()}
    rerankers = {name: wrap(Reranker, reranker) for name, reranker in context.rerankers.items()}
    judges = _map_judges(context.judges, wrap)
    return replace(context, **single, judges=judges, rerankers=rerankers, models=wrapped)


def _map_judges(judges: Judges, wrap: Callable[[type, Any], Any]) -> Judges:
    """`judges` with the embedder of each wrapped."""
    mapped = {}
    for part in fields(judges):
        judge = getattr(judges, part.name)
        if is_dataclass(judge) and not isinstance(judge, type):
            ports = [held.name for held in fields(judge) if held.type is Embedder]
            judge = replace(judge, **{name: wrap(Embedder, getattr(judge, name)) for name in ports})
        mapped[part.name] = judge
    return Judges(**mapped)


def _raise(call: Call) -> None:
    """Raise what the call raised. Who left one in the middle was out of time."""
    if call.cut:
        raise TimeoutError
    if call.error is not None:
        kind, message = call.error
        raise getattr(errors, kind)(message)


def _freeze(value: Any) -> Any:
    """The value as it is now, for the tape: what is packed later may have been changed by then."""
    match value:
        case list():
            return list(value)
        case Mapping():
            return dict(value)
        case BaseModel():
            return value.model_dump()
        case Scope():
            return value.to_json()
        case type():
            return _describe_schema(value)
    return value


def _read_request(recorded: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request as it would be recorded today: earlier versions kept a scope's documents in the order given."""
    if "scope" not in recorded:
        return recorded
    return {**recorded, "scope": Scope.from_json(recorded["scope"]).to_json()}


@cache
def _describe_schema(schema: type[BaseModel]) -> dict[str, str]:
    return {"name": schema.__name__, "schema": json.dumps(schema.model_json_schema(), indent=1)}


@cache
def _read_methods(protocol: type) -> dict[str, _Method]:
    return {
        name: _read_method(function)
        for name, function in vars(protocol).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }


def _read_method(function: Callable[..., Any]) -> _Method:
    hints = get_type_hints(function)
    parameters = tuple(inspect.signature(function).parameters)[1:]
    sink = next((name for name in parameters if hints[name] in (UsageSink, UsageSink | None)), None)
    streams = get_origin(hints["return"]) is AsyncIterator or hints["return"] is AsyncIterator
    return _Method(
        kind="stream" if streams else "once",
        parameters=parameters,
        keyed=tuple(name for name in parameters if name not in (sink, "timeout")),
        sink=sink,
        returns=hints["return"],
    )


@cache
def _adapt(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


@cache
def _name_attributes(protocol: type) -> tuple[str, ...]:
    return tuple(inspect.get_annotations(protocol))


def _read_attributes(protocol: type, port: Any) -> dict[str, Any]:
    return {name: getattr(port, name) for name in _name_attributes(protocol)}


def _title(protocol: type, attributes: Mapping[str, Any]) -> str:
    return " ".join([protocol.__name__, *([attributes["name"]] if "name" in attributes else [])])


def _key(port: str, method: str, request: Mapping[str, Any]) -> bytes:
    return pack([port, method, request])


def _read_step() -> int:
    return cast(int, get_config()["metadata"]["langgraph_step"])


def _show(request: Mapping[str, Any]) -> list[str]:
    """A request for people, line by line."""
    plain = ormsgpack.unpackb(pack(request), ext_hook=_name_array)
    return [line for part in json.dumps(plain, ensure_ascii=False, indent=1).splitlines() for line in part.split("\\n")]


def _name_array(tag: int, data: bytes) -> str:
    return f"{_unpack_array(tag, data).shape} {hashlib.sha256(data).hexdigest()[:12]}"


def _pack_array(value: Any) -> ormsgpack.Ext:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a tape cannot hold a {type(value).__name__}")
    header = ormsgpack.packb([value.dtype.str, value.shape])
    return ormsgpack.Ext(_ARRAY, b"".join([bytes([len(header)]), header, value.tobytes()]))


def _unpack_array(tag: int, data: bytes) -> np.ndarray[Any, Any]:
    start = 1 + data[0]
    dtype, shape = ormsgpack.unpackb(data[1:start])
    # A copy, because what is computed with values that are not aligned may differ in the last bit.
    return np.frombuffer(data, dtype, offset=start).reshape(shape).copy()
