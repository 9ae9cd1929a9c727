"""Ends responses that are still being sent when their caller may not have them any more."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.support.cancelling import end_tasks
from domain.errors import AskgraphError, Forbidden, Unauthenticated
from domain.people.access import Caller

WATCH_SECONDS = 2.0
"""Time between two looks. With the time for which a key is trusted (`app.access.authentication`), a stream goes on for
four seconds at most."""


class WatchedResponse(Response):
    """Sends another response, of any kind, for as long as its caller is the same."""

    def __init__(self, response: Response, caller: Caller, identify: Callable[[], Awaitable[Caller]]) -> None:
        self.status_code = response.status_code
        self.raw_headers = response.raw_headers
        self.background = response.background
        self._response = response
        self._caller = caller
        self._identify = identify

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
        """Return once the key, token or groups of the caller are no longer those with which they came."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                if await self._identify() != self._caller:
                    return
            except (Unauthenticated, Forbidden):
                return
            except AskgraphError:
                continue  # whether they may is not known while the database or the provider is away
