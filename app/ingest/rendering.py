"""Pictures of PDF pages, drawn by a process that can be killed."""

import asyncio
import os
import sys
from pathlib import Path

from domain.errors import RenderingBusy, UnreadableDocument

SECONDS = 15.0
"""Longest time that a page takes before it is given up."""
MAX_WAITING = 32
"""Pages that wait for a core. More are refused."""

_PROGRAM = Path(__file__).with_name("page_picture.py")


class PageRenderer:
    """Draws pages, one at a time for each core. Belongs to one event loop."""

    def __init__(self, at_once: int | None = None, seconds: float = SECONDS) -> None:
        self._free = asyncio.Semaphore(at_once or os.cpu_count() or 1)
        self._waiting = 0
        self._seconds = seconds

    async def render(self, pdf: bytes, page: int, dpi: int) -> bytes:
        """Return the page, counted from 1, as a PNG picture.

        Raises `RenderingBusy` where too many wait already, and `UnreadableDocument` if the page cannot be drawn, or
        not in time.
        """
        if self._waiting >= MAX_WAITING:
            raise RenderingBusy
        self._waiting += 1
        try:
            async with self._free:
                return await self._draw(pdf, page, dpi)
        finally:
            self._waiting -= 1

    async def _draw(self, pdf: bytes, page: int, dpi: int) -> bytes:
        # Isolated: neither the environment nor this folder can change what the program imports.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            str(_PROGRAM),
            str(page),
            str(dpi),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(self._seconds):
                picture, _ = await process.communicate(pdf)
        except TimeoutError as error:
            raise UnreadableDocument(
                f"Page {page} takes longer than {self._seconds:.0f} seconds to draw. Open the file itself."
            ) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0 or not picture:
            raise UnreadableDocument(f"Page {page} cannot be drawn. Open the file itself.")
        return picture
