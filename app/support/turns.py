"""Shares a number of places fairly: those who wait get one in turn, owner by owner, however many each of them wants."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Some places, and who waits for one. Belongs to one event loop."""

    def __init__(self, places: int, most: int | None = None) -> None:
        """`most` are the places that one owner may have at once, so that others need not wait for long work of theirs;
        None: all."""
        self._free = places
        self._most = most or places
        self._held = Counter[str]()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """By owner. The first owner is the next one."""

    @asynccontextmanager
    async def take(self, owner: str) -> AsyncIterator[None]:
        """Hold a place. Of one owner's requests the first comes first."""
        await self._enter(owner)
        try:
            yield
        finally:
            self._leave(owner)

    async def _enter(self, owner: str) -> None:
        if self._may_enter(owner):
            self._give(owner)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(owner)
            raise

    def _may_enter(self, owner: str) -> bool:
        return self._free > 0 and self._held[owner] < self._most

    def _give(self, owner: str) -> None:
        self._free -= 1
        self._held[owner] += 1

    def _leave(self, owner: str) -> None:
        """Give the place to the next owner who may have it; those who have gone meanwhile are passed over."""
        self._free += 1
        self._held[owner] -= 1
        if not self._held[owner]:
            del self._held[owner]
        for following in list(self._waiting):
            turns = self._waiting[following]
            while turns and turns[0].done():
                turns.popleft()
            if turns and self._may_enter(following):
                self._give(following)
                turns.popleft().set_result(None)
                self._waiting.move_to_end(following)
            if not turns:
                del self._waiting[following]
            if not self._free:
                return
