"""Pictures of pages, for language models that see."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.scope import Scope


@dataclass(frozen=True, slots=True)
class CitedPage:
    """A page that a source stands on."""

    document_id: str
    content_hash: str
    """Of the file."""
    page: int
    """Counts from 1."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a page, as a message shows it."""

    document_id: str
    page: int
    width: int
    height: int
    digest: str
    """Of the picture's bytes."""
    data: str
    """A JPEG file in base64. Empty on a tape: nothing there shows a document that was erased since."""


class PagePictures(Protocol):
    """Draws pages of documents."""

    async def draw(self, scope: Scope, pages: Sequence[CitedPage], most: int) -> list[Picture]:
        """Pictures of the first `most` of these pages that show more than text: figures, scans, forms. Pages that
        cannot be drawn, or not soon enough, are left out."""
