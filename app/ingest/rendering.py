"""Pictures of PDF pages, drawn by parser workers and kept for a while."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Self

from app.ingest.page_picture import PictureFormat, draw_page
from app.ingest.parser_workers import ParserWorkers
from app.support.cancelling import end_tasks, keep_cancelling
from app.support.turns import Turns
from domain.errors import CostlyDocument, RenderingBusy, UnreadableDocument

SECONDS = 15.0
"""Computing time that a page of a small file gets; by the clock it is given up after `PATIENCE` times as long."""
MOST_OF_CALLER = 16
"""Pages that wait or are drawn for a caller. More are refused."""
KEPT_BYTES = 64_000_000
"""Size of all pictures that are kept: about a thousand pages."""
KEPT_SECONDS = 600.0
"""Time for which a picture is kept, so that nothing stays long of a document that was erased."""

Page = tuple[str, int, int, PictureFormat]
"""The hash of the file, the page, counted from 1, its resolution and the format of the picture."""


@dataclass(slots=True)
class _Drawing:
    task: asyncio.Task[bytes]
    waiting: int = 0
    """Requests that wait for it."""


class PageRenderer:
    """Draws pages, for one caller after the other, and none that nobody waits for any more. Its workers are its own, so
    that no page waits for a file that is being read."""

    def __init__(self, seconds: float = SECONDS, kept_bytes: int = KEPT_BYTES) -> None:
        self._workers = ParserWorkers(seconds=seconds)
        self._kept_bytes = kept_bytes
        # Its places are the workers', of which no caller gets the last one. Whoever waits has not loaded the file.
        self._turns = Turns(self._workers.places, self._workers.places - 1)
        self._drawing: dict[Page, _Drawing] = {}
        self._begun = Counter[str]()
        """Pages that are being drawn, by the caller who asked first."""
        self._pictures: OrderedDict[Page, tuple[bytes, asyncio.TimerHandle]] = OrderedDict()
        """Each with what will drop it. The one that was used last is at the end."""
        self._size = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._workers.close()
        await end_tasks(*(drawing.task for drawing in self._drawing.values()))

    async def render(self, page: Page, read: Callable[[], Awaitable[bytes]], caller: str = "") -> bytes:
        """Return the picture of a page. `read` returns the file. A picture that is kept or being drawn is not drawn
        again. Cancelling this stops the drawing, unless others wait for it.

        Raises what `read` raises, `RenderingBusy` where the caller waits for too many already, `Draining`, and
        `UnreadableDocument` if the page cannot be drawn, or takes too much time or memory.
        """
        if (kept := self._pictures.get(page)) is not None:
            self._pictures.move_to_end(page)
            return kept[0]
        drawing = self._drawing.get(page)
        if drawing is None:
            if self._begun[caller] >= MOST_OF_CALLER:
                raise RenderingBusy
            drawing = self._drawing[page] = _Drawing(asyncio.create_task(self._draw(page, read, caller)))
            self._begun[caller] += 1
            drawing.task.add_done_callback(lambda _: self._end(page, drawing, caller))
        drawing.waiting += 1
        try:
            return await asyncio.shield(drawing.task)
        finally:
            drawing.waiting -= 1
            if not drawing.waiting and not drawing.task.done():
                # Whoever asks for it from now on has it begun anew.
                del self._drawing[page]
                keep_cancelling(drawing.task)

    def _end(self, page: Page, drawing: _Drawing, caller: str) -> None:
        if not drawing.task.cancelled():
            drawing.task.exception()  # nobody may be left to hear of it
        if self._drawing.get(page) is drawing:
            del self._drawing[page]
        self._begun[caller] -= 1
        if not self._begun[caller]:
            del self._begun[caller]

    async def _draw(self, page: Page, read: Callable[[], Awaitable[bytes]], caller: str) -> bytes:
        _, number, dpi, kind = page
        try:
            async with self._turns.take(caller):
                picture = await self._workers.run(partial(draw_page, await read(), number, dpi, kind), is_short=True)
        except CostlyDocument as error:
            raise UnreadableDocument(
                f"Page {number} takes too much time or memory to draw. Open the file itself."
            ) from error
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
