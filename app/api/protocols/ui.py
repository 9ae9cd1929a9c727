"""The AI SDK's UI message stream, for pages that are built with `useChat`: `/api/ui/chat`.

The client keeps the conversation and sends all of it, with an id of the chat, by which it comes back to an answer that
it has lost sight of.
"""

from collections.abc import AsyncGenerator, Iterator
from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from app.answering.cached_answers import digest
from app.answering.requests import AcceptedRun, read_events
from app.api.asking.streams import locate, respond_with_frames
from app.api.dependencies import (
    CallerScope,
    ConversationsDep,
    RunManagerDep,
    begins_run,
    get_caller,
    read_services,
)
from app.api.protocols.client_conversations import (
    MOST_MESSAGES,
    SIDES,
    Asked,
    ClientModel,
    Part,
    Told,
    ask_last,
    join_text,
    read_texts,
)
from app.api.protocols.refusing import refuse_in, refuse_plainly
from app.api.protocols.translating import END, encode_data, locate_evidence, read_base_url, read_finish
from app.api.schema.schemas import WorkspaceId
from domain.events import Done, Event, data_of
from domain.people.access import Caller

PROTOCOL = {"x-vercel-ai-ui-message-stream": "v1"}


router = APIRouter(prefix="/api/ui/chat", route_class=refuse_in(refuse_plainly), include_in_schema=False)


_OURS = {"dynamic": True, "providerExecuted": True}
"""Of a tool that the server runs, and that the client does not know."""


class Message(ClientModel):
    """A message of the chat."""

    role: Literal["system", "user", "assistant"]
    parts: list[Part]

    def read_text(self, *, asks: bool = True) -> str:
        """Return the message's text. Raises `InputError` where a user who `asks` sends anything else."""
        return join_text(self.parts, "", asks=asks and self.role == "user")


class ChatRequest(ClientModel):
    """A chat, and what the transport's `body` adds to it. Other fields are ignored."""

    id: str = Field(min_length=1, max_length=200, pattern=r"^[^/\\\x00-\x1f]+$")
    messages: list[Message] = Field(min_length=1, max_length=MOST_MESSAGES)
    mode: str = "standard"
    workspace: WorkspaceId | None = None
    trigger: str = ""
    """Why the client asks; `regenerate-message` asks for another answer."""
    on_disconnect: Literal["continue", "cancel"] = "continue"
    """Continue or cancel the run if the client leaves. Continued, it can be resumed."""


@router.post("")
@begins_run
async def chat(body: ChatRequest, request: Request, conversations: ConversationsDep) -> Response:
    """Answer the last question of a chat."""
    said = read_texts(message for message in body.messages if message.role in SIDES)
    again = body.trigger == "regenerate-message"
    asked = await ask_last(request, conversations, said, body.mode, body.workspace, anew=again)
    run = asked.run
    # Who comes back has the chat's id only, and the answer that they find is to be remembered as well.
    chat_name = _name_chat(get_caller(request), run.workspace_id, body.id)
    await conversations.remember(chat_name, f"{run.thread_id} {asked.key}")
    return _respond(request, asked, is_stopped_by_leaving=body.on_disconnect == "cancel")


@router.get("/{chat_id}/stream")
async def resume(
    chat_id: str, request: Request, conversations: ConversationsDep, manager: RunManagerDep, scope: CallerScope
) -> Response:
    """Stream the answer that is being written in this chat, from its beginning; 204 where none is."""
    caller, workspace_id = get_caller(request), scope.workspace_id
    place = await conversations.find(_name_chat(caller, workspace_id, chat_id))
    if place is None:
        return Response(status_code=204)
    thread_id, key = place.split(" ")
    unfinished = await read_services(request).runs.queue.list_unfinished(workspace_id, thread_id)
    if not unfinished:
        return Response(status_code=204)
    run_id = unfinished[-1].request.run_id
    await manager.require(scope, run_id)
    run, stop = AcceptedRun(run_id, thread_id, workspace_id), partial(manager.stop, workspace_id, run_id)
    events = read_events(await manager.follow_run(workspace_id, run_id))
    return _respond(request, Asked(run, events, stop, key, conversations), is_stopped_by_leaving=False)


def _respond(request: Request, asked: Asked, *, is_stopped_by_leaving: bool) -> Response:
    frames = Translation(asked, read_base_url(request)).stream(is_stopped_by_leaving=is_stopped_by_leaving)
    return respond_with_frames(frames, locate(asked.run) | PROTOCOL)


def _name_chat(caller: Caller, workspace_id: str, chat_id: str) -> str:
    return digest(["chat", workspace_id, caller.name, chat_id])


class Translation:
    """One answer in the protocol's parts."""

    def __init__(self, asked: Asked, base_url: str) -> None:
        self._asked = asked
        self._base_url = base_url

    def stream(self, *, is_stopped_by_leaving: bool) -> AsyncGenerator[bytes]:
        """Yield the frames."""
        run = self._asked.run
        metadata = {"run_id": run.run_id, "thread_id": run.thread_id}
        start = {"type": "start", "messageId": run.run_id, "messageMetadata": metadata}
        begun = [encode_data(start), encode_data({"type": "start-step"})]

        def translate(told: Told) -> Iterator[bytes]:
            return map(encode_data, [*self._write(told), *self._translate(told.event)])

        return self._asked.stream(begun, translate, END, is_stopped_by_leaving=is_stopped_by_leaving)

    def _write(self, told: Told) -> Iterator[dict[str, Any]]:
        """Yield the parts for the text that an event adds or ends."""
        if told.added:
            if told.added == told.text:
                yield {"type": "text-start", "id": "answer"}
            yield {"type": "text-delta", "id": "answer", "delta": told.added}
        if told.text and told.event["type"] in ("done", "error"):
            yield {"type": "text-end", "id": "answer"}

    def _translate(self, event: Event) -> list[dict[str, Any]]:
        """Return the parts for an event, besides its text."""
        match event["type"]:
            case "thinking" | "verification" | "correction":
                # A part with the id of an earlier one replaces it.
                name = {"thinking": "step"}.get(event["type"], event["type"])
                return [{"type": f"data-{name}", "id": name, "data": data_of(event)}]
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
            case "content" | "citation" | "sources" | "comparison":
                return []  # the text, and what stands at its end
            case _:
                # Whatever is told besides, now or in later versions.
                return [{"type": f"data-{event['type']}", "data": data_of(event), "transient": True}]

    def _finish(self, done: Done) -> dict[str, Any]:
        told = ("run_id", "thread_id", "outcome", "confidence", "cached", "warnings")
        metadata = {name: value for name, value in done.items() if name in told}
        reason = read_finish(done["degraded"], done["answered_by"]).replace("_", "-")
        return {"type": "finish", "finishReason": reason, "messageMetadata": metadata}

    def _cite(self, done: Done) -> list[dict[str, Any]]:
        """Return the sources: the address of each citation's evidence, each document once, and all that is known."""
        citations = done["citations"]
        if not citations:
            return []
        addresses = [
            {
                "type": "source-url",
                "sourceId": str(citation["marker"]),
                "url": locate_evidence(self._base_url, self._asked.run.workspace_id, done["run_id"], citation),
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
