"""The AI SDK's UI message stream, for pages that are built with `useChat`: `/api/ui/chat`.

The client keeps the conversation and sends all of it, with an id of the chat, by which it comes back to an answer that
it has lost sight of.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from sse_starlette import EventSourceResponse
from starlette.responses import Response

from app.answering.cached_answers import digest
from app.answering.requests import AcceptedRun, read_events
from app.api.asking.sse import STREAM_HEADERS
from app.api.asking.streams import PING_SECONDS, locate
from app.api.dependencies import (
    CallerScope,
    ConversationsDep,
    RunManagerDep,
    begins_run,
    get_caller,
    read_services,
)
from app.api.protocols.client_conversations import SIDES, Part, ask_last, join_text, remember_answer
from app.api.protocols.refusing import refuse_in, refuse_invalid_plainly, refuse_plainly
from app.api.protocols.translating import END, encode_data, locate_evidence, translate_text
from app.api.schema.schemas import WorkspaceId
from app.support.cancelling import finish
from domain.events import Done, Event, data_of
from domain.people.access import Caller

MOST_MESSAGES = 1000
PROTOCOL = {"x-vercel-ai-ui-message-stream": "v1"}


router = APIRouter(
    prefix="/api/ui/chat", route_class=refuse_in(refuse_invalid_plainly, refuse_plainly), include_in_schema=False
)


_OURS = {"dynamic": True, "providerExecuted": True}
"""Of a tool that the server runs, and that the client does not know."""


class Message(BaseModel):
    """A message of the chat."""

    role: Literal["system", "user", "assistant"]
    parts: list[Part]

    def read_text(self) -> str:
        """Return the message's text. Raises `InputError` where a user sends anything else."""
        sent = self.parts if self.role == "user" else (part for part in self.parts if part.type == "text")
        return join_text(sent, ("text",), "")


class ChatRequest(BaseModel):
    """A chat, and what the transport's `body` adds to it. Other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    id: str = Field(min_length=1, max_length=200, pattern=r"^[^/\\\x00-\x1f]+$")
    messages: list[Message] = Field(min_length=1, max_length=MOST_MESSAGES)
    mode: str = "standard"
    workspace: WorkspaceId | None = None
    on_disconnect: Literal["continue", "cancel"] = "continue"
    """Continue or cancel the run if the client leaves. Continued, it can be resumed."""


@router.post("")
@begins_run
async def chat(body: ChatRequest, request: Request, conversations: ConversationsDep) -> Response:
    """Answer the last question of a chat."""
    said = [(message.role, message.read_text()) for message in body.messages if message.role in SIDES]
    asked = await ask_last(request, conversations, said, body.mode, body.workspace)
    run = asked.run
    # Who comes back has the chat's id only, and the answer that they find is to be remembered as well.
    chat_name = _name_chat(get_caller(request), run.workspace_id, body.id)
    await conversations.remember(chat_name, f"{run.thread_id} {asked.key}")
    translation = Translation(run.run_id, run.thread_id, str(request.base_url), run.workspace_id)
    on_leave = asked.stop if body.on_disconnect == "cancel" else None
    return _respond(translation.stream(asked.events, asked.remember, on_leave), locate(run))


@router.get("/{chat_id}/stream")
async def resume(
    chat_id: str, request: Request, conversations: ConversationsDep, manager: RunManagerDep, scope: CallerScope
) -> Response:
    """Stream the answer that is being written in this chat, from its beginning; 204 where none is."""
    caller, workspace_id = get_caller(request), scope.workspace_id
    place = await conversations.find(_name_chat(caller, workspace_id, chat_id))
    if place is None:
        return Response(status_code=204)
    thread_id, asked = place.split(" ")
    unfinished = await read_services(request).runs.queue.list_unfinished(workspace_id, thread_id)
    if not unfinished:
        return Response(status_code=204)
    run_id = unfinished[-1].request.run_id
    await manager.require(scope, run_id)
    events = read_events(await manager.follow_run(workspace_id, run_id))

    async def remember(answer: str) -> None:
        await remember_answer(conversations, asked, answer, thread_id)

    translation = Translation(run_id, thread_id, str(request.base_url), workspace_id)
    return _respond(translation.stream(events, remember), locate(AcceptedRun(run_id, thread_id, workspace_id)))


def _respond(frames: AsyncGenerator[bytes], headers: dict[str, str]) -> Response:
    return EventSourceResponse(frames, ping=PING_SECONDS, headers=headers | STREAM_HEADERS | PROTOCOL)


def _name_chat(caller: Caller, workspace_id: str, chat_id: str) -> str:
    return digest(["chat", workspace_id, caller.name, chat_id])


class Translation:
    """One answer in the protocol's parts."""

    def __init__(self, run_id: str, thread_id: str, base_url: str, workspace_id: str) -> None:
        self._run_id = run_id
        self._thread_id = thread_id
        self._base_url = base_url
        self._workspace_id = workspace_id

    async def stream(
        self,
        events: AsyncGenerator[Event],
        remember: Callable[[str], Awaitable[None]] | None = None,
        on_leave: Callable[[], Awaitable[object]] | None = None,
    ) -> AsyncGenerator[bytes]:
        """Yield the frames. Calls `remember` with the text at its end, `on_leave` where the client leaves before."""
        sent, offset, ended = "", 0, False
        try:
            metadata = {"run_id": self._run_id, "thread_id": self._thread_id}
            yield encode_data({"type": "start", "messageId": self._run_id, "messageMetadata": metadata})
            yield encode_data({"type": "start-step"})
            async with aclosing(events) as opened:
                async for event in opened:
                    piece, offset = translate_text(event, sent, offset)
                    if piece:
                        if not sent:
                            yield encode_data({"type": "text-start", "id": "answer"})
                        yield encode_data({"type": "text-delta", "id": "answer", "delta": piece})
                        sent += piece
                    ended = event["type"] in ("done", "error")
                    if ended and sent:
                        yield encode_data({"type": "text-end", "id": "answer"})
                    if event["type"] == "done" and remember is not None:
                        await remember(sent)
                    for part in self._translate(event):
                        yield encode_data(part)
            yield END
        finally:
            if on_leave is not None and not ended:
                await finish(on_leave)

    def _translate(self, event: Event) -> list[dict[str, Any]]:
        """Return the parts for an event, besides its text."""
        match event["type"]:
            case "thinking" | "verification" | "correction":
                # A part with the id of an earlier one replaces it.
                name = {"thinking": "step"}.get(event["type"], event["type"])
                return [{"type": f"data-{name}", "id": name, "data": data_of(event)}]
            case "waiting":
                return [{"type": "data-waiting", "data": data_of(event), "transient": True}]
            case "tool_call":
                part = {"type": "tool-input-available", "toolName": event["name"], "input": event["arguments"]}
                return [{**part, "toolCallId": event["call_id"], **_OURS}]
            case "tool_result":
                output = {"text": event["text"], "sources": event["sources"]}
                part = {"type": "tool-output-available", "output": output}
                return [{**part, "toolCallId": event["call_id"], **_OURS}]
            case "done":
                end = {"type": "abort", "reason": "stopped"} if event["stopped"] else self._finish(event)
                return [*self._cite(event), {"type": "finish-step"}, end]
            case "error":
                return [
                    {"type": "error", "errorText": event["message"]},
                    {"type": "finish-step"},
                    {"type": "finish", "finishReason": "error"},
                ]
        return []

    def _finish(self, done: Done) -> dict[str, Any]:
        told = ("run_id", "thread_id", "outcome", "confidence", "cached", "warnings")
        metadata = {name: value for name, value in done.items() if name in told}
        return {"type": "finish", "finishReason": "stop", "messageMetadata": metadata}

    def _cite(self, done: Done) -> list[dict[str, Any]]:
        """Return the sources: the address of each citation's evidence, each document once, and all that is known."""
        citations = done["citations"]
        if not citations:
            return []
        addresses = [
            {
                "type": "source-url",
                "sourceId": str(citation["marker"]),
                "url": locate_evidence(self._base_url, self._workspace_id, done["run_id"], citation),
                "title": citation["title"],
            }
            for citation in citations
        ]
        documents = {
            citation["document_id"]: {
                "type": "source-document",
                "sourceId": citation["document_id"],
                "mediaType": "text/markdown",
                "title": citation["title"],
                "filename": citation.get("source") or citation["title"],
            }
            for citation in citations
            if "outside" not in citation
        }
        return [*addresses, *documents.values(), {"type": "data-citations", "data": citations}]
