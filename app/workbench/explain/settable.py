"""Lists what can be set before a step runs again: the fields of the state and the knobs that it reads."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import cache

from pydantic import BaseModel
from typing_extensions import TypedDict

from app.support.docstrings import list_descriptions
from app.workbench.replay.effects import decides, reads
from domain import profile
from graphs.answer import STEPS

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
        (kind.name, name): text
        for kind in ast.parse(inspect.getsource(profile)).body
        if isinstance(kind, ast.ClassDef)
        for name, text in list_descriptions(kind)
    }
    return dict(_walk(profile.Profile, "profile", said))


def _walk(kind: type[BaseModel], path: str, said: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, str]]:
    for name, field in kind.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _walk(field.annotation, f"{path}.{name}", said)
        else:
            yield f"{path}.{name}", said.get((kind.__name__, name), "")
