"""Ollama's protocol over our runs, under `/ollama`: for clients that know no other. https://docs.ollama.com/api

The client keeps the conversation and sends all of it. An answer is a line of JSON, or streamed in several.
"""

import time
from collections.abc import AsyncGenerator, Iterator
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
    Asked,
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
    is_chat = request.url.path.endswith("chat")
    refuse_form({"type": "json"} if body.format else None, None)
    asking = body.messages if is_chat else [Message(role="user", content=body.prompt, images=body.images)]
    if not asking[-1:] or not (asking[-1].content or asking[-1].images):
        # So a client has a model loaded.
        return JSONResponse(_write(body.model, is_chat, "", done=True, done_reason="load"))
    if (told := answer_about_conversation(asking)) is not None:
        return JSONResponse(_write(body.model, is_chat, told, done=True, done_reason="stop"))
    name = body.model.removesuffix(TAG)
    said = read_texts(message for message in asking if message.role in SIDES)
    asked = await ask_last(request, conversations, said, name.removesuffix(WITH_SOURCES), None)
    translation = Translation(body.model, is_chat, asked, read_base_url(request) if name.endswith(WITH_SOURCES) else "")
    if body.stream:
        silence = _encode(_write(body.model, is_chat, ""))
        return respond_with_frames(translation.stream(), locate(asked.run), silence, "application/x-ndjson")
    return await answer_whole(request, asked, asked.events, translation.describe, refuse)


@router.api_route("/{path:path}", methods=["GET", "POST", "DELETE"])
async def refuse_rest(path: str) -> Response:
    """Refuse what Ollama has besides, such as fetching models."""
    return refuse(404, f"There is no {path[:200]!r} here; docs/clients.md lists what askgraph has of it.")


def _write(model: str, is_chat: bool, text: str, *, done: bool = False, **more: Any) -> dict[str, Any]:
    said = {"message": {"role": "assistant", "content": text}} if is_chat else {"response": text}
    return {"model": model, "created_at": datetime.now(UTC).isoformat(), **said, "done": done, **more}


def _encode(line: dict[str, Any]) -> bytes:
    return orjson.dumps(line) + b"\n"


class Translation:
    """One answer in the protocol's lines."""

    def __init__(self, model: str, is_chat: bool, asked: Asked, base_url: str) -> None:
        """With a `base_url`, the text ends with its sources."""
        self._model = model
        self._is_chat = is_chat
        self._asked = asked
        self._base_url = base_url
        self._began = time.monotonic_ns()

    def stream(self) -> AsyncGenerator[bytes]:
        """Yield the lines. Stops the run where the client leaves before the end."""

        def translate(told: Told) -> Iterator[bytes]:
            if told.added:
                yield _encode(_write(self._model, self._is_chat, told.added))
            if told.event["type"] == "done":
                yield _encode(self._end(told.event, self._show_sources(told.event)))
            elif told.event["type"] == "error":
                yield _encode({"error": told.event["message"]})

        return self._asked.stream((), translate)

    def describe(self, done: Done) -> dict[str, Any]:
        """Make the whole answer."""
        return self._end(done, done["answer"] + self._show_sources(done))

    def _show_sources(self, done: Done) -> str:
        return list_sources(self._base_url, self._asked.run.workspace_id, done) if self._base_url else ""

    def _end(self, done: Done, text: str) -> dict[str, Any]:
        tokens, took = count_tokens(done), time.monotonic_ns() - self._began
        told = {
            "done_reason": read_finish(done["degraded"], done["answered_by"]),
            "total_duration": took,
            "load_duration": 0,
            "prompt_eval_duration": 0,
            "eval_duration": took,
            "prompt_eval_count": tokens["prompt_tokens"],
            "eval_count": tokens["completion_tokens"],
        }
        return _write(self._model, self._is_chat, text, done=True, **told)
