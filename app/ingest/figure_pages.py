"""Draws cited pages for language models that see; parser workers do the work."""

import asyncio
import base64
import hashlib
import logging
from collections.abc import Sequence
from functools import partial

from app.ingest.page_picture import draw_figures
from app.ingest.parser_workers import ParserWorkers
from domain.errors import AskgraphError
from domain.ports.originals import OriginalStore, read_whole
from domain.ports.pictures import CitedPage, Picture
from domain.scope import Scope

SECONDS = 5.0
"""Time for all pages of an answer. A page of a report takes .1 s."""

logger = logging.getLogger("askgraph.pictures")


class FigurePages:
    """The pages of the PDF files that are kept. Adapts parser workers to the port `PagePictures`."""

    def __init__(self, originals: OriginalStore, workers: ParserWorkers) -> None:
        self._originals = originals
        self._workers = workers

    async def draw(self, scope: Scope, pages: Sequence[CitedPage], most: int) -> list[Picture]:
        """Return pictures of the first `most` of these pages that show more than text."""
        drawn: dict[CitedPage, Picture] = {}
        by_file: dict[str, list[CitedPage]] = {}
        for page in pages:
            by_file.setdefault(page.content_hash, []).append(page)
        try:
            async with asyncio.timeout(SECONDS):
                for content_hash, wanted in by_file.items():
                    drawn |= await self._draw_of(scope.workspace_id, content_hash, wanted, most)
        except TimeoutError:
            logger.warning("Pages took too long to draw, and the model sees %s of them.", len(drawn))
        return [drawn[page] for page in pages if page in drawn][:most]

    async def _draw_of(
        self, workspace_id: str, content_hash: str, wanted: Sequence[CitedPage], most: int
    ) -> dict[CitedPage, Picture]:
        try:
            data = await read_whole(self._originals, workspace_id, content_hash)
            if not data.startswith(b"%PDF"):
                return {}
            job = partial(draw_figures, data, [page.page for page in wanted], most)
            figures = await self._workers.run(job, owner=workspace_id, is_short=True)
        except AskgraphError as error:
            logger.warning("Pages of a document could not be drawn: %s", error.message)
            return {}
        return {
            page: Picture(
                page.document_id,
                page.page,
                figure.width,
                figure.height,
                hashlib.sha256(figure.jpeg).hexdigest(),
                base64.b64encode(figure.jpeg).decode(),
            )
            for page in wanted
            if (figure := figures.get(page.page)) is not None
        }
