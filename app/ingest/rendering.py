"""Pictures of PDF pages, drawn by parser workers."""

from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Self

from app.ingest.page_picture import PictureFormat, draw_page
from app.ingest.parser_workers import ParserWorkers
from app.support.turns import Turns
from domain.errors import CostlyDocument, RenderingBusy, UnreadableDocument

SECONDS = 15.0
"""Computing time that a page of a small file gets; by the clock it is given up after `PATIENCE` times as long."""
MOST_OF_CALLER = 16
"""Pages that wait or are drawn for a caller. More are refused."""


class PageRenderer:
    """Draws pages, for one caller after the other, and none that nobody waits for any more. Its workers are its own, so
    that no page waits for a file that is being read."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._workers = ParserWorkers(seconds=seconds)
        # Its places are the workers', of which no caller gets the last one. Whoever waits has not loaded the file.
        self._turns = Turns(self._workers.places, self._workers.places - 1)
        self._begun = Counter[str]()
        """Pages that wait or are drawn, by caller."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._workers.close()

    async def render(
        self, number: int, dpi: int, kind: PictureFormat, read: Callable[[], Awaitable[bytes]], caller: str = ""
    ) -> bytes:
        """Return the picture of a page, counted from 1, of the file that `read` returns. Cancelling this stops it.

        Raises what `read` raises, `RenderingBusy` where the caller waits for too many already, `Draining`, and
        `UnreadableDocument` if the page cannot be drawn, or takes too much time or memory.
        """
        if self._begun[caller] >= MOST_OF_CALLER:
            raise RenderingBusy
        self._begun[caller] += 1
        try:
            async with self._turns.take(caller):
                return await self._workers.run(partial(draw_page, await read(), number, dpi, kind), is_short=True)
        except CostlyDocument as error:
            raise UnreadableDocument(
                f"Page {number} takes too much time or memory to draw. Open the file itself."
            ) from error
        finally:
            self._begun[caller] -= 1
            if not self._begun[caller]:
                del self._begun[caller]
