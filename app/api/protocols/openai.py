"""OpenAI's Chat Completions over our runs, under `/v1`: for clients and libraries that speak it already.

The client keeps the conversation and sends all of it; a `thread_id` in `metadata` names its thread.
"""

import asyncio
import base64
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from app.api.asking.streams import (
    GONE,
    collect_while_connected,
    locate,
    respond_with_frames,
    work_while_connected,
)
from app.api.dependencies import (
    CallerDep,
    CallerScope,
    ConversationsDep,
    WorkspaceModesDep,
    begins_run,
    get_caller,
    read_services,
)
from app.api.perimeter.errors import status_of_failure
from app.api.protocols.client_conversations import (
    MOST_MESSAGES,
    SIDES,
    Asked,
    ClientModel,
    Message,
    Told,
    answer_about_conversation,
    ask_last,
    read_texts,
)
from app.api.protocols.refusing import InvalidRequest, refuse_in
from app.api.protocols.translating import (
    END,
    encode_data,
    list_sources,
    list_url_citations,
    locate_evidence,
    read_base_url,
    read_finish,
)
from app.api.schema.schemas import ThreadId, WorkspaceId
from domain.errors import AskgraphError, InputError, UnknownMode, UnknownWorkspace
from domain.events import Done, Event
from domain.ports.conversations import ConversationIndex
from domain.ports.embedding import Vector
from domain.scope import Scope

WITH_SOURCES = "/sources"
"""Behind the name of a model: the text of an answer ends with its sources. No name of ours has a slash."""
MOST_TEXTS = 256
"""Texts to embed in one request."""


def _refuse_ours(error: AskgraphError, status: int) -> Response:
    if isinstance(error, InvalidRequest):
        return refuse(400, error.problems[0], error.code, param=error.fields[0])
    if isinstance(error, UnknownMode):
        return refuse(404, error.message, "model_not_found", param="model")
    return refuse(400 if isinstance(error, InputError) and status == 422 else status, error.message, error.code)


OpenAIRoute = refuse_in(_refuse_ours)
"""Gives errors the protocol's form and its statuses."""

router = APIRouter(prefix="/v1", route_class=OpenAIRoute, include_in_schema=False)
rest = APIRouter(route_class=OpenAIRoute, include_in_schema=False)
"""What clients ask for besides; comes after all that there is."""


class ChatMessage(Message):
    """A message of one of the roles that the protocol knows."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]


class Metadata(BaseModel):
    """What clients may note. We read two of the notes."""

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, Any]
    thread_id: ThreadId | None = None
    """Go on in this thread."""
    workspace: WorkspaceId | None = None
    """Ask there."""


class StreamOptions(ClientModel):
    """What a stream holds beside the answer."""

    include_usage: bool = False


class _Completing(ClientModel):
    """The fields of a request that are used. Others, such as `temperature`, have no meaning here and are ignored."""

    model: str
    """A mode or an assistant; with `WITH_SOURCES` behind it for a client that shows nothing but text."""
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    metadata: Metadata | None = None


class PromptRequest(_Completing):
    """A question without a conversation, as clients ask that know no chat."""

    prompt: str | Annotated[list[str], Field(min_length=1, max_length=1)]


class CompletionRequest(_Completing):
    """A conversation."""

    messages: list[ChatMessage] = Field(min_length=1, max_length=MOST_MESSAGES)
    response_format: dict[str, Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    function_call: str | dict[str, Any] | None = None


class EmbeddingRequest(ClientModel):
    """Texts to embed."""

    input: str | Annotated[list[str], Field(min_length=1, max_length=MOST_TEXTS)]
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    """Those of the model, if given: its vectors cannot be cut."""

    @field_validator("input", mode="before")
    @classmethod
    def refuse_tokens(cls, given: Any) -> Any:
        if isinstance(given, list) and given and isinstance(given[0], int | list):
            raise PydanticCustomError(
                "tokens", "send texts: tokens are those of another model (LangChain: check_embedding_ctx_length=False)"
            )
        return given


@router.get("/models")
async def list_models(caller: CallerDep, modes: WorkspaceModesDep, workspace: WorkspaceId | None = None) -> Any:
    """List the modes as models, and the assistants of the workspace. A caller of several who names none gets modes."""
    try:
        names = await modes.list_names(Scope(caller.enter(workspace), groups=caller.groups))
    except UnknownWorkspace:
        if workspace is not None:
            raise
        names = list(modes.deployed)
    return {"object": "list", "data": [_describe_model(name) for name in names]}


@router.get("/models/{name}")
async def get_model(name: str, modes: WorkspaceModesDep, scope: CallerScope) -> dict[str, Any]:
    """Describe a mode or an assistant as a model."""
    await modes.find(scope, name)
    return _describe_model(name)


@router.post("/chat/completions")
@begins_run
async def complete(body: CompletionRequest, request: Request, conversations: ConversationsDep) -> Response:
    """Answer the last question of a conversation. A client that leaves has stopped its run."""
    refuse_form(body.response_format, body.tool_choice or body.function_call)
    if (told := answer_about_conversation(body.messages)) is not None:
        return _tell(body, told)
    said = read_texts(message for message in body.messages if message.role in SIDES)
    return await _answer(body, said, request, conversations)


@router.post("/completions")
@begins_run
async def complete_prompt(body: PromptRequest, request: Request, conversations: ConversationsDep) -> Response:
    """Answer a question. A client that leaves has stopped its run."""
    prompt = body.prompt if isinstance(body.prompt, str) else body.prompt[0]
    return await _answer(body, [("user", prompt)], request, conversations)


async def _answer(
    body: _Completing, said: list[tuple[str, str]], request: Request, conversations: ConversationIndex
) -> Response:
    metadata, mode = body.metadata or Metadata(), body.model.removesuffix(WITH_SOURCES)
    asked = await ask_last(request, conversations, said, mode, metadata.workspace, metadata.thread_id)
    completion = Completion(body.model, read_base_url(request), asked, is_chat=isinstance(body, CompletionRequest))
    if body.stream:
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        return respond_with_frames(completion.stream(with_usage=with_usage), locate(asked.run))
    return await answer_whole(request, asked, asked.events, completion.describe, refuse)


def _tell(body: CompletionRequest, told: str) -> Response:
    """Say something of which no run is made."""
    choice = {"index": 0, "logprobs": None, "finish_reason": "stop"}
    head = {"id": "chatcmpl-conversation", "created": int(time.time()), "model": body.model}
    message = {"role": "assistant", "content": told}
    if not body.stream:
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        choices = [{**choice, "message": message}]
        return JSONResponse({**head, "object": "chat.completion", "choices": choices, "usage": usage})
    frame = encode_data({**head, "object": "chat.completion.chunk", "choices": [{**choice, "delta": message}]})
    return Response(frame + END, media_type="text/event-stream")


@router.post("/embeddings")
@begins_run
async def embed(body: EmbeddingRequest, request: Request) -> Any:
    """Embed texts with the model that the documents are embedded with, whatever the name of the model asked for. Counts
    as a run while it is done, and its tokens as those of one. A client that leaves has stopped it."""
    texts = [body.input] if isinstance(body.input, str) else body.input
    services = read_services(request)
    embedder = services.library.embedder
    if body.dimensions not in (None, embedder.dimension):
        raise InputError(f"The vectors have {embedder.dimension} dimensions, and no other number of them.")
    tokens = await asyncio.to_thread(lambda: sum(services.models.tokens.count(text) for text in texts))

    async def work() -> Vector:
        async with services.begin_work(get_caller(request), tokens):
            return await embedder.embed_passages(texts)

    vectors = await work_while_connected(request, work())
    if vectors is None:
        return Response(status_code=GONE)
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector.tobytes()).decode()
            if body.encoding_format == "base64"
            else vector.tolist(),
        }
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": embedder.name, "usage": usage}


def refuse_form(form: dict[str, Any] | None, choice: str | dict[str, Any] | None) -> None:
    """Raise `InputError` for an answer in another form than text, which its client could not read."""
    if form and form.get("type", "text") != "text":
        raise InputError(f"An answer is text: the format {form['type']!r} cannot be kept. Leave it out.")
    mode = choice.get("mode", "one tool") if isinstance(choice, dict) else choice
    if mode not in (None, "auto", "none"):
        raise InputError("No tool of the client is called: tool_choice can only be 'auto' or 'none'.")


async def answer_whole(
    request: Request,
    asked: Asked,
    events: AsyncGenerator[Event],
    describe: Callable[[Done], dict[str, Any]],
    refuse: Callable[[int, str, str], Response],
) -> Response:
    """Wait for the answer and describe it. A client that leaves has stopped its run."""
    followed = await collect_while_connected(request, events)
    if followed is None:
        await asked.give_up()
        return Response(status_code=GONE)
    ended, _ = followed
    if ended["type"] == "error":
        await asked.expect_again()
        status = status_of_failure(ended)
        return refuse(400 if status == 422 else status, ended["message"], ended["code"])
    await asked.remember(ended["answer"])
    return JSONResponse(describe(ended), headers=locate(asked.run))


class Completion:
    """One answer in the protocol's form."""

    def __init__(self, model: str, base_url: str, asked: Asked, *, is_chat: bool = True) -> None:
        self._is_chat = is_chat
        self._model = model
        self._shows_sources = model.endswith(WITH_SOURCES)
        self._base_url = base_url
        self._asked = asked
        self._workspace_id = asked.run.workspace_id
        self._created = int(time.time())

    def stream(self, *, with_usage: bool) -> AsyncGenerator[bytes]:
        """Yield the frames. Stops the run where the client leaves before the end."""
        begun = encode_data(self._make_chunk({"role": "assistant", "content": ""}))

        def translate(told: Told) -> Iterator[bytes]:
            if told.added:
                yield encode_data(self._make_chunk({"content": told.added}))
            if told.event["type"] == "done":
                if sources := self._show_sources(told.event):
                    yield encode_data(self._make_chunk({"content": sources}))
                yield from map(encode_data, self._make_end(told.event, told.offset, with_usage=with_usage))
            elif told.event["type"] == "error":
                failed = told.event
                yield encode_data(_describe_error(failed["message"], failed["code"], status_of_failure(failed)))

        return self._asked.stream([begun], translate, END)

    def describe(self, done: Done) -> dict[str, Any]:
        """Make the whole completion."""
        text = done["answer"] + self._show_sources(done)
        message = {"role": "assistant", "content": text, "refusal": None, **self._cite(done, 0)}
        return {
            **self._head("chat.completion"),
            "choices": [self._choose("message", message, _finish(done))],
            "usage": count_tokens(done),
            **self._add_ours(done),
        }

    def _show_sources(self, done: Done) -> str:
        return list_sources(self._base_url, self._workspace_id, done) if self._shows_sources else ""

    def _make_chunk(self, delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {**self._head("chat.completion.chunk"), "choices": [self._choose("delta", delta)], **more}

    def _choose(self, name: str, message: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        said = {name: message} if self._is_chat else {"text": message.get("content", "")}
        return {"index": 0, **said, "logprobs": None, "finish_reason": finish}

    def _make_end(self, done: Done, offset: int, *, with_usage: bool) -> list[dict[str, Any]]:
        """Make the last pieces of a streamed completion; the answer begins at `offset` of what was streamed."""
        end = self._make_chunk(self._cite(done, offset), **self._add_ours(done))
        end["choices"][0]["finish_reason"] = _finish(done)
        if not with_usage:
            return [end]
        return [end, {**self._head("chat.completion.chunk"), "choices": [], "usage": count_tokens(done)}]

    def _cite(self, done: Done, offset: int) -> dict[str, Any]:
        cited = list_url_citations(self._base_url, self._workspace_id, done, offset)
        return {"annotations": [{"type": "url_citation", "url_citation": each} for each in cited]} if cited else {}

    def _head(self, kind: str) -> dict[str, Any]:
        run_id, kind = self._asked.run.run_id, kind if self._is_chat else "text_completion"
        return {"id": f"chatcmpl-{run_id}", "object": kind, "created": self._created, "model": self._model}

    def _add_ours(self, done: Done) -> dict[str, Any]:
        """Return what the protocol has no place for: the addresses of what is cited, and what readers should know."""
        run_id, cited = done["run_id"], done["citations"]
        addresses = [locate_evidence(self._base_url, self._workspace_id, run_id, each) for each in cited]
        return {"citations": addresses, "warnings": done["warnings"]}


def count_tokens(done: Done) -> dict[str, Any]:
    """Return the tokens that language models read and wrote for the answer; none where it is quoted or cached."""
    known = sum(usage.get("cached_tokens", 0) for usage in done["usage"])
    read = sum(usage["input_tokens"] for usage in done["usage"])
    written = sum(usage["output_tokens"] for usage in done["usage"])
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written} | {
        "prompt_tokens_details": {"cached_tokens": known}
    }


def _finish(done: Done) -> str:
    return read_finish(done["degraded"], done["answered_by"])


def _describe_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "askgraph"}


async def refuse_rest(request: Request) -> Response:
    """Refuse what OpenAI has besides, such as files."""
    return refuse(
        404,
        f"There is no {request.url.path[:200]} here; docs/clients.md lists what askgraph has of OpenAI's protocol. "
        "Documents are added by POST /api/documents.",
        "not_found",
    )


rest.add_api_route("/v1/{path:path}", refuse_rest, methods=["GET", "POST", "DELETE"])


def refuse(status: int, message: str, code: str, param: str | None = None) -> JSONResponse:
    """Make an error in the protocol's form."""
    return JSONResponse(_describe_error(message, code, status, param), status)


def _describe_error(message: str, code: str, status: int, param: str | None = None) -> dict[str, Any]:
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
