"""Lists what can be set before a step runs again: the fields of the state and the knobs that it reads."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from typing_extensions import TypedDict

from domain import profile
from graphs.answer import STEPS
from graphs.effects import decides, reads

FIELDS = {
    "question": "The question as it was asked.",
    "standalone_question": "The question as it stands without the conversation.",
    "corrected_question": "The question with its spelling corrected.",
    "route": "The kind of question, which decides the way.",
    "query": "What is searched for.",
    "confidence": "The probability that the sources hold the answer, 0 to 1.",
    "candidates": "The passages that the searches found.",
    "sources": "The passages that are read.",
    "answer": "The answer's text.",
}
"""Fields of the state that a person may want to set, and what they are."""


class Settable(TypedDict):
    """A field or a knob that can be set."""

    name: str
    """A knob as `profile.rerank.keep`."""
    text: str
    """What it is."""
    after: bool
    """True where the edge after the step reads it; False where the step itself does."""


def list_settable(node: str) -> list[Settable]:
    """Return what a step and the edge after it read, the fields first; empty for what is no step of the graph."""
    if node not in STEPS:
        return []
    named = {**FIELDS, **_describe_knobs()}
    return [
        Settable(name=name, text=text, after=after)
        for after, asks in ((False, reads), (True, decides))
        for name, text in (*named.items(), (f"profile.prompts.{node}", "The system prompt of its model."))
        if asks(node, name)
    ]


@cache
def _describe_knobs() -> Mapping[str, str]:
    said = {
        (kind.name, field.target.id): text.value.value
        for kind in ast.parse(inspect.getsource(profile)).body
        if isinstance(kind, ast.ClassDef)
        for field, text in pairwise(kind.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
    return dict(_walk(profile.Profile, "profile", said))


def _walk(kind: type[BaseModel], path: str, said: Mapping[tuple[str, str], Any]) -> Iterator[tuple[str, str]]:
    for name, field in kind.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _walk(field.annotation, f"{path}.{name}", said)
        else:
            yield f"{path}.{name}", " ".join(str(said.get((kind.__name__, name), "")).split())
