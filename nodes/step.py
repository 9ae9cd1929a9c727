"""What a step says about itself. `graphs` derives everything else about it from this."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from langgraph.runtime import Runtime

from domain.execution.spans import Kind
from nodes.context import Context

State = Mapping[str, Any]

SPEAKS = frozenset({"language", "generate.fallback"})
"""The knobs of a step that says something itself."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of the graph: its function, and what the graph, the workbench and the page need to know about it."""

    run: Callable[[Any, Runtime[Context]], Awaitable[State]]
    """Its name is the step's. Its types say which fields of the state the step reads and writes."""
    label: str
    """What the page shows while the step runs."""
    kind: Kind = "chain"
    """What it is in a trace. A retriever writes candidates; a reranker makes sources of them."""
    knobs: frozenset[str] = frozenset()
    """The knobs of the profile that it reads; a group stands for all of its knobs."""
    prompts: Sequence[str] = ()
    """The system prompts that it sends. Their text is part of the cache key and of every run's record."""
    one_prompt: bool = True
    """False where it sends several system prompts, each in calls of its own: then one text cannot take their place."""
    asks: Literal["small", "large", "judge"] | None = None
    """The model that it asks; the step gets that model's time in addition to its own."""
    streams: bool = False
    """A model's text goes to the reader as it comes. The wait for each word is limited, not the whole."""
    retry: bool = False
    """Run it again where a service or its time failed. Not for a step that the reader would see begin twice."""

    @property
    def name(self) -> str:
        """The name of the step, of its folder and of its node in the graph."""
        return self.run.__name__

    @cached_property
    def depends(self) -> frozenset[str]:
        """The knobs that it reads by itself, with the scope, by asking its model, and by minding the budget."""
        edited = {f"prompts.{self.name}"} if self.prompts and self.one_prompt else set[str]()
        scoped = {"documents"} if "scope" in self.reads else set[str]()
        return (
            self.knobs
            | {"budget"}
            | edited
            | scoped
            | ({f"models.{self.asks}", "models.timeout"} if self.asks else set())
        )

    @cached_property
    def reads(self) -> frozenset[str]:
        """The fields of the state that it declares to read."""
        return list_fields(get_type_hints(self.run)["state"])

    @cached_property
    def sets(self) -> frozenset[str]:
        """The fields of the state that each of its updates holds."""
        returned = get_type_hints(self.run)["return"]
        updates = get_args(returned) if get_origin(returned) in (Union, UnionType) else (returned,)
        return frozenset.intersection(*map(list_fields, updates))


def list_fields(declared: Any) -> frozenset[str]:
    """Return the fields of a TypedDict."""
    return frozenset(declared.__required_keys__ | declared.__optional_keys__)
