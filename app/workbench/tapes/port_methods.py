"""The methods of ports, read off their protocols, so that one mechanism can tape them all.

A coroutine replies once; a method that returns an iterator streams. The usage of a call goes to its `UsageSink`.
"""

import inspect
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from typing import Any, Literal, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter

from domain.ports.models import UsageSink
from domain.ports.pictures import Picture
from domain.scope import Scope


@dataclass(frozen=True, slots=True)
class PortMethod:
    """A method of a protocol."""

    kind: Literal["once", "stream"]
    parameters: tuple[str, ...]
    keyed: tuple[str, ...]
    """The parameters that identify a request: all but the usage sink and the timeout."""
    sink: str | None
    returns: Any

    def name_arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return dict(zip(self.parameters, args, strict=False)) | dict(kwargs)

    def make_request(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {name: freeze(arguments[name]) for name in self.keyed if name in arguments}

    def restore(self, reply: Any, arguments: Mapping[str, Any]) -> Any:
        """Restore a taped reply to what the port returned."""
        schema = arguments.get("schema")
        return schema.model_validate(reply) if schema is not None else _adapt(self.returns).validate_python(reply)


@cache
def read_methods(protocol: type) -> dict[str, PortMethod]:
    """Return the public methods of a protocol by name."""
    return {
        name: _read_method(function)
        for name, function in vars(protocol).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }


def _read_method(function: Callable[..., Any]) -> PortMethod:
    hints = get_type_hints(function)
    parameters = tuple(inspect.signature(function).parameters)[1:]
    sink = next((name for name in parameters if hints[name] in (UsageSink, UsageSink | None)), None)
    streams = get_origin(hints["return"]) is AsyncIterator or hints["return"] is AsyncIterator
    return PortMethod(
        kind="stream" if streams else "once",
        parameters=parameters,
        keyed=tuple(name for name in parameters if name not in (sink, "timeout")),
        sink=sink,
        returns=hints["return"],
    )


@cache
def _adapt(hint: Any) -> TypeAdapter[Any]:
    # Arrays stand within lists and dictionaries; a dataclass brings its own configuration.
    return TypeAdapter(hint, config=None if is_dataclass(hint) else ConfigDict(arbitrary_types_allowed=True))


@cache
def _name_attributes(protocol: type) -> tuple[str, ...]:
    return tuple(inspect.get_annotations(protocol))


def read_attributes(protocol: type, port: Any) -> dict[str, Any]:
    """Return the attributes of a port that its protocol declares."""
    return {name: getattr(port, name) for name in _name_attributes(protocol)}


def name_port(protocol: type, attributes: Mapping[str, Any]) -> str:
    """Return the protocol's name, and the port's where it has one: `ChatModel gpt-5-nano`."""
    return " ".join([protocol.__name__, *([attributes["name"]] if "name" in attributes else [])])


def freeze(value: Any) -> Any:
    """Copy the value for the tape: it may be changed before the tape is packed. Of a picture, only what names it."""
    match value:
        case [Picture() | object(pictures=_), *_]:
            return [freeze(each) for each in value]
        case list():
            return list(value)
        case Picture():
            return replace(value, data="")
        case Mapping():
            return dict(value)
        case BaseModel():
            return value.model_dump()
        case Scope():
            return value.to_json()
        case type():
            return _describe_schema(value)
    return replace(value, pictures=freeze(value.pictures)) if getattr(value, "pictures", None) else value


@cache
def _describe_schema(schema: type[BaseModel]) -> dict[str, str]:
    return {"name": schema.__name__, "schema": json.dumps(schema.model_json_schema(), indent=1)}
