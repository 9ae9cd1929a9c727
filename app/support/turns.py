"""Shares a number of places fairly: those who wait get one in turn, owner by owner, however many each of them wants."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Some places, and who waits for one. Belongs to one event loop."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """By owner. The first owner is the next one."""

    @asynccontextmanager
    async def take(self, owner: str) -> AsyncIterator[None]:
        """Hold a place. Of one owner's requests the first comes first."""
        await self._enter(owner)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, owner: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        """Give the place to the next owner; those who have gone meanwhile are passed over."""
        while self._waiting:
            owner, turns = self._waiting.popitem(last=False)
            while turns and turns[0].done():
                turns.popleft()
            if not turns:
                continue
            turns.popleft().set_result(None)
            if turns:
                self._waiting[owner] = turns
            return
        self._free += 1
