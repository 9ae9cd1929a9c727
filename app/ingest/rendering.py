"""Pictures of PDF pages, drawn by parser workers."""

from functools import partial
from typing import Self

from app.ingest.page_picture import draw_page
from app.ingest.parser_workers import ParserWorkers
from domain.errors import CostlyDocument, RenderingBusy, UnreadableDocument

SECONDS = 15.0
"""Computing time that a page of a small file gets."""
MAX_WAITING = 32
"""Pages that wait for a worker or are drawn. More are refused."""


class PageRenderer:
    """Draws pages. Its workers are its own, so that no page waits for a file that is being read."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._workers = ParserWorkers(seconds=seconds)
        self._waiting = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._workers.close()

    async def render(self, pdf: bytes, page: int, dpi: int) -> bytes:
        """Return the page, counted from 1, as a PNG picture.

        Raises `RenderingBusy` where too many wait already, `Draining`, and `UnreadableDocument` if the page cannot be
        drawn, or takes too much time or memory.
        """
        if self._waiting >= MAX_WAITING:
            raise RenderingBusy
        self._waiting += 1
        try:
            return await self._workers.run(partial(draw_page, pdf, page, dpi))
        except CostlyDocument as error:
            raise UnreadableDocument(
                f"Page {page} takes too much time or memory to draw. Open the file itself."
            ) from error
        finally:
            self._waiting -= 1
