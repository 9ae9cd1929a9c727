"""The attributes of a span, in the names that other tools read.

OpenTelemetry's conventions for generative AI come first (https://github.com/open-telemetry/semantic-conventions-genai):
Phoenix and Langfuse read them. OpenInference (https://arize-ai.github.io/openinference/spec/semantic_conventions.html)
has names for what they lack, such as a chain's input and a reranker's documents, and Langfuse one for the type of an
observation (`langfuse/_client/attributes.py` of its SDK).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from domain.execution.spans import Facts, Kind
from domain.ports.models import Message, ModelReply, Tool

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The conventions' variable: texts of people and documents are sent only where it has one of the values below."""
CAPTURING = frozenset({"true", "span_only", "span_and_event"})

_KINDS: Mapping[Kind, tuple[str | None, str, str]] = {
    "agent": ("invoke_agent", "AGENT", "agent"),
    "chain": (None, "CHAIN", "chain"),
    "model": ("chat", "LLM", "generation"),
    "retriever": ("retrieval", "RETRIEVER", "retriever"),
    # Langfuse has no type for it.
    "reranker": (None, "RERANKER", "retriever"),
    "tool": ("execute_tool", "TOOL", "tool"),
}
"""The names of each kind: `gen_ai.operation.name`, `openinference.span.kind` and `langfuse.observation.type`."""

_FIGURES: Mapping[str, Sequence[str]] = {
    "thread_id": ("gen_ai.conversation.id", "session.id"),
    "model": ("gen_ai.request.model", "llm.model_name"),
    "input_tokens": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "output_tokens": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
    "cost": ("llm.cost.total",),
    "tool": ("gen_ai.tool.name", "tool.name"),
    "call_id": ("gen_ai.tool.call.id", "tool.id"),
}
_TEXTS: Mapping[str, Sequence[str]] = {
    "input": ("input.value",),
    "output": ("output.value",),
    "messages": ("gen_ai.input.messages",),
    "reply": ("gen_ai.output.messages",),
    "tools": ("gen_ai.tool.definitions",),
}
_TEXTS_OF_KIND: Mapping[tuple[Kind | None, str], str] = {
    ("tool", "input"): "gen_ai.tool.call.arguments",
    ("tool", "output"): "gen_ai.tool.call.result",
    ("retriever", "input"): "gen_ai.retrieval.query.text",
    ("reranker", "input"): "reranker.query",
}

_MOST_DOCUMENTS = 50
"""Documents of a span. Chosen: more than a search of the modes that ship finds."""


def describe(facts: Facts, *, texts: bool) -> dict[str, str | int | float]:
    """Return the attributes that tell these facts; those with texts of people and documents only with `texts`."""
    kind = facts.get("kind")
    described: dict[str, str | int | float] = {}
    if kind is not None:
        names = ("gen_ai.operation.name", "openinference.span.kind", "langfuse.observation.type")
        described |= {name: value for name, value in zip(names, _KINDS[kind], strict=True) if value is not None}
    for fact, value in facts.items():
        described |= dict.fromkeys(_FIGURES.get(fact, ()), value)  # type: ignore[arg-type]
        if texts and fact in _TEXTS:
            said = value if isinstance(value, str) else json.dumps(_spell(value), ensure_ascii=False, default=str)
            described |= dict.fromkeys(_TEXTS[fact], said)
            if of_kind := _TEXTS_OF_KIND.get((kind, fact)):
                described[of_kind] = said
    if "cost" in facts:
        described["langfuse.observation.cost_details"] = json.dumps({"total": facts["cost"]})
    documents = [_show(each, texts=texts) for each in facts.get("documents", ())[:_MOST_DOCUMENTS]]
    if kind == "retriever" and documents:
        described["gen_ai.retrieval.documents"] = json.dumps(documents, ensure_ascii=False)
    elif kind == "reranker":
        candidates = [_show(each, texts=texts) for each in facts.get("candidates", ())[:_MOST_DOCUMENTS]]
        described |= _flatten("reranker.input_documents", candidates)
        described |= _flatten("reranker.output_documents", documents)
    return described


def _spell(value: Any) -> Any:
    match value:
        case ModelReply():
            return [{"role": "assistant", "parts": list(_list_parts(value.text, value)), "finish_reason": "stop"}]
        case [Message(), *_]:
            return [_spell_message(message) for message in value]
        case [Tool(), *_]:
            return [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                }
                for tool in value
            ]
    return value


def _spell_message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        part = {"type": "tool_call_response", "id": message.answers, "response": message.content}
        return {"role": "tool", "parts": [part]}
    return {"role": message.role, "parts": list(_list_parts(message.content, message))}


def _list_parts(text: str, said: Message | ModelReply) -> Iterator[dict[str, Any]]:
    if text:
        yield {"type": "text", "content": text}
    for call in said.calls:
        yield {"type": "tool_call", "id": call.id, "name": call.name, "arguments": dict(call.arguments)}


def _show(document: Mapping[str, Any], *, texts: bool) -> dict[str, Any]:
    """Return a chunk in the form of `gen_ai.retrieval.documents`; text and metadata are OpenInference's."""
    shown = {"id": document["chunk_id"], "score": document["score"]}
    metadata = {name: document[name] for name in ("document_id", "page") if document.get(name) is not None}
    if texts and "text" in document:
        shown["content"] = document["text"]
        metadata["title"] = document["title"]
    return {**shown, "metadata": metadata}


def _flatten(prefix: str, documents: Sequence[Mapping[str, Any]]) -> dict[str, str | float]:
    return {
        f"{prefix}.{place}.document.{name}": json.dumps(value, ensure_ascii=False) if name == "metadata" else value
        for place, document in enumerate(documents)
        for name, value in document.items()
    }
