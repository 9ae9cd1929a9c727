"""Ends responses that are still being sent when their caller may not have them any more."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.support.cancelling import end_tasks
from domain.errors import AskgraphError, Forbidden, NotFound, Unauthenticated

WATCH_SECONDS = 2.0
"""Time between two looks. With the time for which a key is trusted (`app.access.authentication`), a stream goes on for
four seconds at most, and so it does with `app.answering.run_execution.SHOWN_SECONDS`."""


class WatchedResponse(Response):
    """Sends another response, of any kind, for as long as its caller may have it."""

    def __init__(self, response: Response, look: Callable[[], Awaitable[None]]) -> None:
        """`look` raises `Unauthenticated`, `Forbidden` or `NotFound` once they may not."""
        self.status_code = response.status_code
        self.raw_headers = response.raw_headers
        self.background = response.background
        self._response = response
        self._look = look

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        has_begun = False

        async def note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        serving = asyncio.create_task(self._response(scope, receive, note))
        watching = asyncio.create_task(self._wait_until_refused())
        try:
            await asyncio.wait({serving, watching}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
                return
            await end_tasks(serving)
            if has_begun:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await end_tasks(serving, watching)

    async def _wait_until_refused(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                await self._look()
            except (Unauthenticated, Forbidden, NotFound):
                return
            except AskgraphError:
                continue  # whether they may is not known while the database or the provider is away
