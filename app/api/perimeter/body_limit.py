"""Limits of request bodies."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.perimeter.errors import respond_to


class BodyLimit:
    """Refuses bodies that are too large: at once where their length is declared, else when they become so.

    Starlette's own middleware answers the former in plain text, where every other error of ours is JSON.
    """

    def __init__(self, app: ASGIApp, limit: int, others: Mapping[str, int]) -> None:
        """`limit` is in bytes; `others` are the limits of paths that have one of their own."""
        self._app = app
        self._limit = limit
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._others.get(scope["path"], self._limit)
        problem = f"The body of this request may have {limit:,} bytes."
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            await respond_to("oversized_request", problem, retryable=False, status=413)(scope, receive, send)
            return
        size = 0

        async def receive_counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > limit:
                raise HTTPException(413, problem)
            return message

        await self._app(scope, receive_counted, send)
