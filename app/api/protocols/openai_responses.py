"""OpenAI's Responses over our runs, under `/v1`.

The conversation goes on by the id of the response before, or by all its messages, as in Chat Completions.
"""

import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any, Literal

import orjson
from fastapi import APIRouter, Request
from starlette.responses import Response

from app.answering.manager import RunManager
from app.answering.records import adopt
from app.api.asking.streams import locate, respond_with_frames
from app.api.dependencies import ConversationsDep, begins_run, get_caller, get_run_manager, read_services
from app.api.perimeter.errors import status_of_failure
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
from app.api.protocols.openai import (
    Metadata,
    OpenAIRoute,
    answer_whole,
    count_tokens,
    refuse,
    refuse_form,
)
from app.api.protocols.translating import encode_named, list_url_citations, read_base_url, read_finish, spell_result
from domain.errors import InputError, UnknownRun
from domain.events import Done, Event, ToolCalled, ToolReturned
from domain.ports.runs import RunQueue
from domain.runs import RunStatus
from domain.scope import Scope
from domain.state import REMEMBERED_TURNS, Turn

ANSWER = "msg_"
"""Stands before the run's id in that of its message."""

CALL = "mcp_call"
"""The item of a tool that the server runs. A client would try to run a `function_call`."""

ID = "resp_"
"""Stands before the run's id in that of a response."""

_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a response is incomplete, by why the answer ended."""

router = APIRouter(prefix="/v1", route_class=OpenAIRoute, include_in_schema=False)


class Item(Message):
    """A message of the conversation, or something else, which is passed over."""

    type: str = "message"
    id: str = ""
    role: Literal["", "system", "developer", "user", "assistant"] = ""


class ResponseRequest(ClientModel):
    """The fields of a request that are used. Others, such as `temperature`, have no meaning here and are ignored."""

    model: str
    """A mode."""
    input: str | list[Item]
    stream: bool = False
    background: Literal[False] | None = None
    conversation: None = None
    previous_response_id: str | None = None
    """Go on after this response."""
    metadata: Metadata | None = None
    text: dict[str, Any] | None = None
    tool_choice: str | dict[str, Any] | None = None

    def read_conversation(self, told: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return who has said what. `told` has the answers that are only referred to, by the ids of their messages.
        Raises `InputError`."""
        if isinstance(self.input, str):
            return [("user", self.input)]
        return read_texts(
            Item(role="assistant", content=told[item.id]) if item.id in told else item
            for item in self.input
            if item.id in told or item.role in SIDES
        )

    def list_referred(self) -> list[str]:
        """Return the ids of our messages that the input only refers to. Raises `InputError`."""
        items = [] if isinstance(self.input, str) else self.input
        if len(items) > MOST_MESSAGES:
            raise InputError(f"A conversation may have {MOST_MESSAGES} messages.")
        return [item.id for item in items if item.type == "item_reference" and item.id.startswith(ANSWER)]


@router.post("/responses")
@begins_run
async def respond(body: ResponseRequest, request: Request, conversations: ConversationsDep) -> Response:
    """Answer the last question of a conversation. A client that leaves has stopped its run."""
    refuse_form((body.text or {}).get("format"), body.tool_choice)
    metadata, referred = body.metadata or Metadata(), body.list_referred()
    thread_id: str | None = metadata.thread_id
    earlier: list[Turn] = []
    told: dict[str, str] = {}
    if referred or body.previous_response_id is not None:
        caller, manager = get_caller(request), get_run_manager(request)
        scope = Scope(caller.enter(metadata.workspace), groups=caller.groups)
        if body.previous_response_id is not None:
            last = await _find_run(manager, scope, body.previous_response_id.removeprefix(ID))
            thread_id, earlier = await _read_thread(read_services(request).runs.queue, scope, last)
        for name in referred:
            with suppress(UnknownRun):
                ended = (await _find_run(manager, scope, name.removeprefix(ANSWER))).ended
                told |= {name: ended["answer"]} if ended is not None and ended["type"] == "done" else {}
    before = [side for turn in earlier for side in (("user", turn["question"]), ("assistant", turn["answer"]))]
    said = [*before, *body.read_conversation(told)]
    is_whole = bool(before) or body.previous_response_id is None
    asked = await ask_last(
        request, conversations, said, body.model, metadata.workspace, thread_id, is_whole=is_whole, earlier=earlier
    )
    translation = Translation(asked, body, read_base_url(request))
    if body.stream:
        return respond_with_frames(translation.stream(), locate(asked.run))
    return await answer_whole(
        request, asked, translation.heed(), lambda done: translation.describe_end(done, done["answer"], 0), refuse
    )


async def _find_run(manager: RunManager, scope: Scope, run_id: str) -> RunStatus:
    """Return the run of a response. Raises `UnknownRun`."""
    await manager.require(scope, run_id)
    return await manager.read_status(scope.workspace_id, run_id)


async def _read_thread(queue: RunQueue, scope: Scope, last: RunStatus) -> tuple[str | None, list[Turn]]:
    """Return the thread that goes on after a run; where others follow it there, as after an edit, None, and the turns
    up to it, with which a new one begins."""
    run_id, thread_id = last.request.run_id, last.request.thread_id
    [newest] = await queue.list_turns(scope, thread_id, 1) or [last]
    if newest.request.run_id == run_id:
        return thread_id, []
    turns: list[Turn] = []
    for run in (*await queue.list_turns(scope, thread_id, REMEMBERED_TURNS - 1, run_id), last):
        if run.ended is not None and run.ended["type"] == "done":
            turns = adopt(run.request.turn, turns, run.ended)["turns"]
    return None, turns


class Translation:
    """One answer in the protocol's form."""

    def __init__(self, asked: Asked, body: ResponseRequest, base_url: str) -> None:
        self._asked = asked
        self._run_id = asked.run.run_id
        self._body = body
        self._base_url = base_url
        self._created = int(time.time())
        self._number = -1
        self._calls: list[dict[str, Any]] = []
        self._open: dict[str, dict[str, Any]] = {}
        self._place: int | None = None
        """The message's place among the items; None before it begins."""

    async def heed(self) -> AsyncGenerator[Event]:
        """Yield the events of an answer that is described at its end."""
        async with aclosing(self._asked.events) as opened:
            async for event in opened:
                if event["type"] in ("tool_call", "tool_result"):
                    list(self._work(event))
                yield event

    def stream(self) -> AsyncGenerator[bytes]:
        """Yield the frames. Stops the run where the client leaves before the end."""
        begun = self._describe("in_progress")
        kinds = ("response.created", "response.in_progress")
        return self._asked.stream([self._encode(kind, response=begun) for kind in kinds], self._translate)

    def _translate(self, told: Told) -> Iterator[bytes]:
        event = told.event
        if event["type"] in ("tool_call", "tool_result"):
            yield from self._work(event)
        if self._place is None and (told.added or event["type"] == "done"):
            self._place = len(self._calls)
            item = self._write("in_progress", [])
            yield self._encode("response.output_item.added", output_index=self._place, item=item)
            yield self._encode_part("response.content_part.added", part=_describe_text("", []))
        if told.added:
            yield self._encode_part("response.output_text.delta", delta=told.added, logprobs=[])
        if event["type"] == "done":
            yield from self._end(event, told.text, told.offset)
        elif event["type"] == "error":
            code = "rate_limit_exceeded" if status_of_failure(event) == 429 else "server_error"
            error = {"code": code, "message": event["message"]}
            yield self._encode("response.failed", response=self._describe("failed", error=error))

    def describe_end(self, done: Done, text: str, offset: int) -> dict[str, Any]:
        """Describe the whole response; the answer begins at `offset` of the text."""
        reason = _REASONS.get(read_finish(done["degraded"], done["answered_by"]))
        status = "incomplete" if done["stopped"] or reason else "completed"
        tokens = count_tokens(done)
        usage = {
            "input_tokens": tokens["prompt_tokens"],
            "input_tokens_details": {**tokens["prompt_tokens_details"], "cache_write_tokens": 0},
            "output_tokens": tokens["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens["total_tokens"],
        }
        content = [_describe_text(text, self._cite(done, offset))]
        place = len(self._calls) if self._place is None else self._place
        message = self._write(status, content)
        output = [*self._calls[:place], message, *self._calls[place:]]
        details = {"reason": reason} if reason else None
        return self._describe(status, output=output, usage=usage, incomplete_details=details)

    def _work(self, event: ToolCalled | ToolReturned) -> Iterator[bytes]:
        """Yield what a call of a tool, or its result, becomes."""
        if event["type"] == "tool_call":
            item = {
                "id": f"mcp_{self._run_id}_{len(self._calls)}",
                "type": CALL,
                "server_label": "askgraph",
                "name": event["name"],
                "arguments": orjson.dumps(event["arguments"]).decode(),
                "status": "in_progress",
                "output": None,
                "error": None,
                "approval_request_id": None,
            }
            self._open[event["call_id"]] = item
            self._calls.append(item)
        else:
            item = self._open.pop(event["call_id"])
            item |= {"status": "completed", "output": spell_result(event)}
        index = self._calls.index(item)
        index += self._place is not None and index >= self._place
        place = {"output_index": index, "item_id": item["id"]}
        if item["status"] == "in_progress":
            yield self._encode("response.output_item.added", output_index=index, item=item)
            yield self._encode("response.mcp_call.in_progress", **place)
            yield self._encode("response.mcp_call_arguments.done", arguments=item["arguments"], **place)
        else:
            yield self._encode("response.mcp_call.completed", **place)
            yield self._encode("response.output_item.done", output_index=index, item=item)

    def _end(self, done: Done, text: str, offset: int) -> list[bytes]:
        response = self.describe_end(done, text, offset)
        [item] = [item for item in response["output"] if item["type"] == "message"]
        [part] = item["content"]
        return [
            *(
                self._encode_part("response.output_text.annotation.added", annotation_index=index, annotation=each)
                for index, each in enumerate(part["annotations"])
            ),
            self._encode_part("response.output_text.done", text=text, logprobs=[]),
            self._encode_part("response.content_part.done", part=part),
            self._encode("response.output_item.done", output_index=self._place, item=item),
            self._encode(f"response.{response['status']}", response=response),
        ]

    def _describe(self, status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": f"{ID}{self._run_id}",
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": self._body.model,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": self._body.metadata.model_dump(exclude_none=True) if self._body.metadata else {},
            "previous_response_id": self._body.previous_response_id,
            "parallel_tool_calls": False,
            "tool_choice": "none",
            "tools": [],
            "temperature": None,
            "top_p": None,
            "usage": None,
            **more,
        }

    def _write(self, status: str, content: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"{ANSWER}{self._run_id}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _cite(self, done: Done, offset: int) -> list[dict[str, Any]]:
        cited = list_url_citations(self._base_url, self._asked.run.workspace_id, done, offset)
        return [{"type": "url_citation", **each} for each in cited]

    def _encode_part(self, kind: str, **more: Any) -> bytes:
        return self._encode(kind, item_id=f"{ANSWER}{self._run_id}", output_index=self._place, content_index=0, **more)

    def _encode(self, kind: str, **more: Any) -> bytes:
        self._number += 1
        return encode_named(kind, {"type": kind, "sequence_number": self._number, **more})


def _describe_text(text: str, annotations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}
