"""AG-UI, the protocol of CopilotKit and other interfaces for agents: `/ag-ui`. https://docs.ag-ui.com

The client keeps the conversation and sends all of it. Threads and runs have the names that it gives them; ours stand in
the state.
"""

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import orjson
from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from app.api.asking.streams import locate, respond_with_frames
from app.api.dependencies import ConversationsDep, begins_run
from app.api.protocols.client_conversations import (
    MOST_MESSAGES,
    SIDES,
    Asked,
    ClientModel,
    Message,
    Told,
    ask_last,
    read_texts,
)
from app.api.protocols.refusing import refuse_in, refuse_plainly
from app.api.protocols.translating import encode_data, spell_result
from app.api.schema.schemas import WorkspaceId
from domain.events import Event, data_of

TOLD = ("outcome", "outcome_reasons", "confidence", "verification", "warnings", "degraded")
"""What the state tells of an answer, besides its citations."""

router = APIRouter(prefix="/ag-ui", route_class=refuse_in(refuse_plainly), include_in_schema=False)


class RunInput(ClientModel):
    """The fields of a run's input that are used. Tools of the client and its state have no meaning here."""

    model_config = ConfigDict(alias_generator=to_camel)

    thread_id: str = Field(max_length=200)
    run_id: str = Field(max_length=200)
    messages: list[Message] = Field(min_length=1, max_length=MOST_MESSAGES)


@router.post("")
@begins_run
async def run_agent(
    body: RunInput,
    request: Request,
    conversations: ConversationsDep,
    mode: str = "standard",
    workspace: WorkspaceId | None = None,
) -> Response:
    """Answer the last question of a conversation. A client that leaves has stopped its run."""
    # A message without text holds nothing but calls of tools.
    said = read_texts(each for each in body.messages if each.role in SIDES and each.content)
    asked = await ask_last(request, conversations, said, mode, workspace)
    return respond_with_frames(Translation(body, asked).stream(), locate(asked.run))


class Translation:
    """One answer in the protocol's events."""

    def __init__(self, body: RunInput, asked: Asked) -> None:
        self._asked, run = asked, asked.run
        self._names = {"threadId": body.thread_id, "runId": body.run_id}
        self._state: dict[str, Any] = {"run_id": run.run_id, "thread_id": run.thread_id, "citations": []}
        self._run_id = run.run_id
        self._step = ""
        self._written = 0
        """Messages of the answer that were begun: tools that are called later end one."""
        self._is_open = False

    def stream(self) -> AsyncGenerator[bytes]:
        """Yield the frames. Stops the run where the client leaves before the end."""

        def translate(told: Told) -> Iterator[bytes]:
            return map(encode_data, (*self._write(told.added), *self._translate(told.event)))

        return self._asked.stream([encode_data({"type": "RUN_STARTED", **self._names})], translate)

    def _write(self, piece: str) -> Iterator[dict[str, Any]]:
        if not piece:
            return
        if not self._is_open:
            self._is_open, self._written = True, self._written + 1
            yield {"type": "TEXT_MESSAGE_START", "messageId": self._message_id, "role": "assistant"}
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._message_id, "delta": piece}

    @property
    def _message_id(self) -> str:
        return f"{self._run_id}-{self._written}"

    def _translate(self, event: Event) -> Iterator[dict[str, Any]]:
        """Yield the protocol's events for an event, besides its text."""
        match event["type"]:
            case "thinking":
                yield from self._end_step()
                self._step = event["step"]
                yield {"type": "STEP_STARTED", "stepName": self._step}
            case "tool_call":
                yield from self._end_text()
                call = {"toolCallId": event["call_id"]}
                yield {"type": "TOOL_CALL_START", **call, "toolCallName": event["name"]}
                yield {"type": "TOOL_CALL_ARGS", **call, "delta": orjson.dumps(event["arguments"]).decode()}
                yield {"type": "TOOL_CALL_END", **call}
            case "tool_result":
                result = {"toolCallId": event["call_id"], "content": spell_result(event), "role": "tool"}
                yield {"type": "TOOL_CALL_RESULT", "messageId": f"{self._run_id}-{event['call_id']}", **result}
            case "sources":
                yield self._tell(citations=event["citations"])
            case "done":
                yield from self._end_text()
                yield from self._end_step()
                told = {name: value for name, value in event.items() if name in TOLD}
                yield self._tell(citations=event["citations"], **told)
                outcome = {"type": "cancelled" if event["stopped"] else "success"}
                yield {"type": "RUN_FINISHED", **self._names, "outcome": outcome}
            case "error":
                yield {"type": "RUN_ERROR", "message": event["message"], "code": event["code"]}
            case "content" | "citation" | "comparison":
                pass  # the text, and what the state and the end say
            case _:
                # Whatever is told besides, now or in later versions.
                yield {"type": "CUSTOM", "name": event["type"], "value": data_of(event)}

    def _tell(self, **changed: Any) -> dict[str, Any]:
        self._state |= changed
        return {"type": "STATE_SNAPSHOT", "snapshot": self._state}

    def _end_step(self) -> Iterator[dict[str, Any]]:
        if self._step:
            yield {"type": "STEP_FINISHED", "stepName": self._step}
            self._step = ""

    def _end_text(self) -> Iterator[dict[str, Any]]:
        if self._is_open:
            yield {"type": "TEXT_MESSAGE_END", "messageId": self._message_id}
            self._is_open = False
