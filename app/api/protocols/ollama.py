"""Ollama's protocol over our runs, under `/ollama`: for clients that know no other. https://docs.ollama.com/api

The client keeps the conversation and sends all of it. An answer is a line of JSON, or streamed in several.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import Field
from starlette.responses import Response

from app.api.asking.streams import locate, respond_with_frames
from app.api.dependencies import CallerDep, CallerScope, ConversationsDep, WorkspaceModesDep, begins_run
from app.api.protocols import client_conversations
from app.api.protocols.client_conversations import (
    MOST_MESSAGES,
    SIDES,
    ClientModel,
    Told,
    answer_about_conversation,
    ask_last,
    read_texts,
)
from app.api.protocols.openai import (
    WITH_SOURCES,
    answer_whole,
    count_tokens,
    list_models,
    refuse_form,
)
from app.api.protocols.refusing import refuse_in
from app.api.protocols.translating import list_sources, read_base_url, read_finish
from domain.errors import AskgraphError, InputError, UnknownMode
from domain.events import Done

TAG = ":latest"
"""Clients add it to a name without one, as Ollama does."""
_DETAILS = {"family": "askgraph", "families": ["askgraph"], "format": "", "parameter_size": "", "parent_model": ""}
_DESCRIBED = {"details": {**_DETAILS, "quantization_level": ""}, "modified_at": "1970-01-01T00:00:00Z"}


def encode(line: dict[str, Any]) -> bytes:
    """Encode a line."""
    return orjson.dumps(line) + b"\n"


def refuse(status: int, message: str, code: str = "") -> JSONResponse:
    """Make an error in the protocol's form."""
    return JSONResponse({"error": message}, status)


def _refuse_ours(error: AskgraphError, status: int) -> Response:
    return refuse(404 if isinstance(error, UnknownMode) else 400 if status == 422 else status, error.message)


router = APIRouter(prefix="/ollama", route_class=refuse_in(_refuse_ours), include_in_schema=False)


class Message(client_conversations.Message):
    """A message of one of the roles that the protocol knows."""

    role: Literal["system", "user", "assistant", "tool"]
    images: tuple[Any, ...] = ()

    def read_text(self, *, asks: bool = True) -> str:
        """Return the message's text. Raises `InputError` where one that `asks` shows a picture."""
        if asks and self.images:
            raise InputError("Only text can be asked about; a message has images.")
        return super().read_text(asks=asks)


class AnswerRequest(ClientModel):
    """The fields of a request that are used. Others, such as `options`, have no meaning here and are ignored."""

    model: str
    messages: list[Message] = Field(default=[], max_length=MOST_MESSAGES)
    prompt: str = ""
    """The question of a client that keeps no conversation."""
    images: tuple[Any, ...] = ()
    stream: bool = True
    format: str | dict[str, Any] | None = None


@router.get("")
async def greet() -> PlainTextResponse:
    """Say that the service answers, in the words that clients look for."""
    return PlainTextResponse("Ollama is running")


@router.get("/api/version")
async def tell_version() -> dict[str, str]:
    """Tell our version: those of the protocol have no numbers."""
    return {"version": version("askgraph")}


@router.get("/api/tags")
async def list_tags(caller: CallerDep, modes: WorkspaceModesDep) -> dict[str, Any]:
    """List the modes and assistants as models."""
    names = [model["id"] + TAG for model in (await list_models(caller, modes))["data"]]
    return {"models": [{"name": name, "model": name, "size": 0, "digest": "", **_DESCRIBED} for name in names]}


@router.get("/api/ps")
async def list_loaded() -> dict[str, Any]:
    """List the models that take memory: none."""
    return {"models": []}


@router.post("/api/show")
async def show(body: AnswerRequest, modes: WorkspaceModesDep, scope: CallerScope) -> dict[str, Any]:
    """Describe a mode or an assistant as a model."""
    await modes.find(scope, body.model.removesuffix(TAG).removesuffix(WITH_SOURCES))
    more = {"modelfile": "", "parameters": "", "template": "", "model_info": {"general.architecture": "askgraph"}}
    return {**_DESCRIBED, **more, "capabilities": ["completion"]}


@router.post("/api/chat")
@router.post("/api/generate")
@begins_run
async def answer(body: AnswerRequest, request: Request, conversations: ConversationsDep) -> Response:
    """Answer the last question of a conversation. A client that leaves has stopped its run."""
    is_chat, began = request.url.path.endswith("chat"), time.monotonic_ns()

    def write(text: str, *, done: bool = False, **more: Any) -> dict[str, Any]:
        said = {"message": {"role": "assistant", "content": text}} if is_chat else {"response": text}
        return {"model": body.model, "created_at": datetime.now(UTC).isoformat(), **said, "done": done, **more}

    def end(done: Done, text: str) -> dict[str, Any]:
        tokens, took = count_tokens(done), time.monotonic_ns() - began
        sources = list_sources(base_url, asked.run.workspace_id, done) if name != mode else ""
        return write(
            text + sources,
            done=True,
            warnings=done["warnings"],
            done_reason=read_finish(done["degraded"], done["answered_by"]),
            total_duration=took,
            load_duration=0,
            prompt_eval_duration=0,
            eval_duration=took,
            prompt_eval_count=tokens["prompt_tokens"],
            eval_count=tokens["completion_tokens"],
        )

    def translate(told: Told) -> Iterator[bytes]:
        if told.added:
            yield encode(write(told.added))
        if told.event["type"] == "done":
            yield encode(end(told.event, ""))
        elif told.event["type"] == "error":
            yield encode({"error": told.event["message"]})

    refuse_form({"type": "json"} if body.format else None, None)
    asking = body.messages if is_chat else [Message(role="user", content=body.prompt, images=body.images)]
    if not asking[-1:] or not (asking[-1].content or asking[-1].images):
        # So a client has a model loaded.
        return JSONResponse(write("", done=True, done_reason="load"))
    if (told := answer_about_conversation(asking)) is not None:
        return JSONResponse(write(told, done=True, done_reason="stop"))
    name, base_url = body.model.removesuffix(TAG), read_base_url(request)
    mode = name.removesuffix(WITH_SOURCES)
    said = read_texts(message for message in asking if message.role in SIDES)
    asked = await ask_last(request, conversations, said, mode, None)
    if body.stream:
        stream = asked.stream((), translate)
        return respond_with_frames(stream, locate(asked.run), encode(write("")), "application/x-ndjson")
    return await answer_whole(request, asked, asked.events, lambda done: end(done, done["answer"]), refuse)


@router.api_route("/{path:path}", methods=["GET", "POST", "DELETE"])
async def refuse_rest(path: str) -> Response:
    """Refuse what Ollama has besides, such as fetching models."""
    return refuse(404, f"There is no {path[:200]!r} here; docs/clients.md lists what askgraph has of it.")
