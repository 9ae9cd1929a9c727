"""Pictures of PDF pages, drawn by parser workers and kept for a while."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Self

from app.ingest.page_picture import PictureFormat, draw_page
from app.ingest.parser_workers import ParserWorkers
from app.support.cancelling import end_tasks
from domain.errors import CostlyDocument, RenderingBusy, UnreadableDocument

SECONDS = 15.0
"""Computing time that a page of a small file gets."""
MAX_WAITING = 32
"""Pages that wait for a worker or are drawn. More are refused."""
KEPT_BYTES = 64_000_000
"""Size of all pictures that are kept: about a thousand pages."""
KEPT_SECONDS = 600.0
"""Time for which a picture is kept, so that nothing stays long of a document that was erased."""

Page = tuple[str, int, int, PictureFormat]
"""The hash of the file, the page, counted from 1, its resolution and the format of the picture."""


class PageRenderer:
    """Draws pages. Its workers are its own, so that no page waits for a file that is being read."""

    def __init__(self, seconds: float = SECONDS, kept_bytes: int = KEPT_BYTES) -> None:
        self._workers = ParserWorkers(seconds=seconds)
        self._kept_bytes = kept_bytes
        self._drawing: dict[Page, asyncio.Task[bytes]] = {}
        self._pictures: OrderedDict[Page, tuple[bytes, asyncio.TimerHandle]] = OrderedDict()
        """Each with what will drop it. The one that was used last is at the end."""
        self._size = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._workers.close()
        await end_tasks(*self._drawing.values())

    async def render(self, page: Page, read: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the picture of a page. `read` returns the file. A picture that is kept or being drawn is not drawn
        again.

        Raises what `read` raises, `RenderingBusy` where too many wait already, `Draining`, and `UnreadableDocument` if
        the page cannot be drawn, or takes too much time or memory.
        """
        if (kept := self._pictures.get(page)) is not None:
            self._pictures.move_to_end(page)
            return kept[0]
        if page not in self._drawing:
            if len(self._drawing) >= MAX_WAITING:
                raise RenderingBusy
            self._drawing[page] = task = asyncio.create_task(self._draw(page, read))
            # Nobody may be left to hear of a failure.
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        # Whoever leaves does not stop it: others may wait for it, and it is asked for again soon.
        return await asyncio.shield(self._drawing[page])

    async def _draw(self, page: Page, read: Callable[[], Awaitable[bytes]]) -> bytes:
        _, number, dpi, kind = page
        try:
            picture = await self._workers.run(partial(draw_page, await read(), number, dpi, kind), is_short=True)
        except CostlyDocument as error:
            raise UnreadableDocument(
                f"Page {number} takes too much time or memory to draw. Open the file itself."
            ) from error
        finally:
            del self._drawing[page]
        self._keep(page, picture)
        return picture

    def _keep(self, page: Page, picture: bytes) -> None:
        timer = asyncio.get_running_loop().call_later(KEPT_SECONDS, self._drop, page)
        self._pictures[page] = picture, timer
        self._size += len(picture)
        while self._size > self._kept_bytes:
            self._drop(next(iter(self._pictures)))

    def _drop(self, page: Page) -> None:
        picture, timer = self._pictures.pop(page)
        # One that is drawn again is kept for as long again.
        timer.cancel()
        self._size -= len(picture)
