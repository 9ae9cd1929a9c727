"""Stored answers, given before anything else is made of a request, which takes several times as long."""

from collections.abc import Mapping

from fastapi import FastAPI, Request
from pydantic import ValidationError
from starlette.types import Message, Receive, Scope, Send

from app.api.errors import respond_to_error
from app.api.schemas import ChatRequest
from app.api.streams import STREAM_HEADERS, locate, wants_json
from app.runs.recall import Recall, Recalled
from domain.errors import AskgraphError

PATH = "/api/chat"

_STREAM: Mapping[bytes, bool | None] = {b"": None, b"stream=true": True, b"stream=false": False}
"""What the query says of `stream`, in the usual words."""


class RecallingApp(FastAPI):
    """Answers a question that finds its answer stored; any other request goes to the routes as it came."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH and scope["method"] == "POST":
            headers = dict(scope["headers"])
            is_json = headers.get(b"content-type", b"").startswith(b"application/json")
            if is_json and scope["query_string"] in _STREAM:
                messages = await _receive_all(receive)
                if await _serve(scope, headers, b"".join(m.get("body", b"") for m in messages), send):
                    return
                receive = _receive_again(messages, receive)
        await super().__call__(scope, receive, send)


async def _receive_all(receive: Receive) -> list[Message]:
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    return messages


def _receive_again(messages: list[Message], receive: Receive) -> Receive:
    again = iter(messages)

    async def receive_again() -> Message:
        return next(again, None) or await receive()

    return receive_again


async def _serve(scope: Scope, headers: Mapping[bytes, bytes], body: bytes, send: Send) -> bool:
    """Whether it was answered: with what is stored, or with what is wrong with the question."""
    try:
        asked = ChatRequest.model_validate_json(body)
    except ValidationError:
        return False
    recall: Recall = scope["state"]["recall"]
    try:
        recalled = await recall.serve(asked.as_ask())
    except AskgraphError as error:
        request = Request(scope)
        await respond_to_error(request, error)(scope, request.receive, send)
        return True
    if recalled is None:
        return False
    accept = headers.get(b"accept", b"").decode("latin-1")
    await _send(recalled, wants_json(accept, _STREAM[scope["query_string"]]), send)
    return True


async def _send(recalled: Recalled, as_json: bool, send: Send) -> None:
    body = recalled.as_json() if as_json else recalled.as_events()
    headers = locate(recalled) | (
        {"Content-Type": "application/json"}
        if as_json
        else {"Content-Type": "text/event-stream; charset=utf-8", **STREAM_HEADERS}
    )
    headers["Content-Length"] = str(len(body))
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": raw})
    await send({"type": "http.response.body", "body": body})
