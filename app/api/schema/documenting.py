"""What the OpenAPI document says in words: summaries from the docstrings of routes, descriptions of fields from those
below them.

Pydantic's `use_attribute_docstrings` reads a module once for each class in it, whenever the service starts; this reads
it once, and only for who asks for the document.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from app.support.docstrings import list_descriptions

_SHARED = {
    "accepted_at": "When it was accepted.",
    "answer": "The answer, with markers such as `[1]`.",
    "answered_by": "The model that wrote the answer; `local` where sentences of the sources are quoted.",
    "assistant_id": "The assistant's id.",
    "attempt": "How often it was begun.",
    "boxes": "Where it stands on its pages, a box a line.",
    "cached": "True where the answer is that of an earlier run.",
    "calls": "Number of calls of models.",
    "characters": "Characters of the text.",
    "checkpoint_id": "The id of a saved state, from the thread's history.",
    "chunk_id": "The passage's id.",
    "citations": "What the markers of the answer refer to.",
    "code": "What went wrong, for programs.",
    "comment": "The reader's own words.",
    "confidence": "The probability that the answer is in the documents.",
    "content_hash": "SHA-256 of the file, in hex.",
    "cost": "US dollars; null where a price is not known.",
    "created_at": "When it was made.",
    "cached_tokens": "Tokens among those read that the provider knew from an earlier request.",
    "document_id": "The document's id.",
    "end": "Character of the document's text after the last one.",
    "ended_at": "When it ended; null before.",
    "error": "Why it failed; null where it did not.",
    "heading_path": "The headings above it, the outermost first.",
    "ingestion_id": "The id under which the file waits, from when it was added.",
    "input_tokens": "Tokens that were read.",
    "key_id": "The key's id, which is no secret.",
    "last-event-id": "The last event that was seen; the stream goes on behind it.",
    "limit": "The most entries of the list.",
    "message": "What went wrong, for people.",
    "mode": "The mode, such as `fast` or `standard`; `/api/modes` lists them.",
    "model": "The model's name.",
    "ms": "Milliseconds.",
    "node": "The step of the graph.",
    "other_id": "The id of the run to compare with.",
    "outcome": "How the run ended, such as `answered` or `abstained`.",
    "output_tokens": "Tokens that were written.",
    "page": "The page in the document, counted from 1; null where it has none.",
    "pages": "Number of pages; null where it has none.",
    "question": "The question, as a person asks it.",
    "questions": "Questions, as people ask them.",
    "retries": "How often it was searched again.",
    "rights": "What it may do.",
    "route": "How the question was classified.",
    "run_id": "The run's id, from `X-Run-Id` or the answer.",
    "score": "How well it fits; higher is better.",
    "since": "From when on is looked at.",
    "source": "The document's path as ingested, or its address.",
    "start": "First character, counted from 0, in the document's text.",
    "started_at": "When it began; null before.",
    "step": "The step's name or number, from the run's trace.",
    "stream": "True: server-sent events; false: one JSON answer; unset: as `Accept` says.",
    "thread_id": "The conversation's id.",
    "title": "The title, as people see it.",
    "updated_at": "When it was last changed.",
    "verdict": "`supported` or `unsupported`.",
    "warnings": "What did not go as it should.",
    "workspace": "The workspace; unset: the only one of the caller's key, else `default`.",
    "workspace_id": "The workspace.",
}
"""Descriptions of names that mean the same wherever they have no description of their own."""

_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
_REFERENCE = re.compile(r"#/components/schemas/(\w+)")


def add_words(openapi: dict[str, Any]) -> None:
    """Give each operation a summary, and each parameter and field the description that the code has of it."""
    for operations in openapi["paths"].values():
        for operation in operations.values():
            text = " ".join(operation["description"].split())
            operation["summary"] = re.split(r"(?<=[.!?:]) ", text, maxsplit=1)[0].rstrip(".:")
            for parameter in operation.get("parameters", ()):
                _describe(parameter, parameter["name"], {})
    schemas: dict[str, dict[str, Any]] = openapi["components"]["schemas"]
    # Of two classes of one name, pydantic puts their modules before it.
    wanted = {name.rpartition("__")[2] for name in schemas}
    bodies: dict[str, list[ast.ClassDef]] = {}
    for node in _parse_classes(wanted):
        bodies.setdefault(node.name, []).append(node)
    for name, schema in schemas.items():
        documented = dict(_list_docstrings(name.rpartition("__")[2], bodies))
        for field, value in schema.get("properties", {}).items():
            _describe(value, field, documented)
            if not value.get("description") and (named := _REFERENCE.search(str(value))):
                value["description"] = schemas[named[1]].get("description", "")


def _describe(part: dict[str, Any], name: str, documented: Mapping[str, str]) -> None:
    if not part.get("description") and (text := documented.get(name) or _SHARED.get(name)):
        # The code says it in Python's words.
        part["description"] = re.sub(r"\bNone\b", "null", text)


def _parse_classes(wanted: set[str]) -> Iterator[ast.ClassDef]:
    """Yield classes of our modules, the client's last: of two of one name, theirs are the API's. Those of other
    protocols, which others document, are left out."""
    for name in sorted(sys.modules, key=lambda each: (each.startswith("askgraph."), each)):
        if name.startswith(("app.", "askgraph.", "domain.")) and not name.startswith("app.api.protocols."):
            text = Path(str(sys.modules[name].__file__)).read_text("utf-8")
            if not wanted.isdisjoint(_CLASS.findall(text)):
                yield from (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))


def _list_docstrings(name: str, bodies: Mapping[str, Sequence[ast.ClassDef]]) -> Iterator[tuple[str, str]]:
    """Yield the docstrings below the fields of the class with this name, its bases' among them."""
    for node in bodies.get(name, ()):
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id != name:
                yield from _list_docstrings(base.id, bodies)
        yield from list_descriptions(node)
