"""The parts of a PDF page, from pieces of a line to the finished page."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from domain.documents import Box, UnreadKind

Edges = tuple[float, float, float, float]
"""Left, top, right and bottom, in points from the top left of the page as shown."""
Skipped = tuple[UnreadKind, str, int]
"""What is not read of a page: kind, what is to say of it, and number."""


class Piece(NamedTuple):
    """Text on a line between two gaps that may separate table cells."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    gap: float = 0.0
    """Width of the gap before it, in heights of the type."""

    def join(self, other: "Piece", glue: str = " ") -> "Piece":
        """Return both as one."""
        return Piece(
            f"{self.text}{glue}{other.text}".strip(),
            min(self.left, other.left),
            min(self.top, other.top),
            max(self.right, other.right),
            max(self.bottom, other.bottom),
            self.gap,
        )


def enclose(parts: "Sequence[Piece | Run]") -> Edges:
    """Return the edges of a box around all parts."""
    return (
        min(part.left for part in parts),
        min(part.top for part in parts),
        max(part.right for part in parts),
        max(part.bottom for part in parts),
    )


@dataclass(slots=True)
class Run:
    """Characters on one line. Coordinates are points on the page as shown, from its top left."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    heights: list[float] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    cells: list[Piece] = field(default_factory=list)
    """The cells, if it is the row of a table."""
    tabular: bool = False
    """True if it contains a gap that is wider than a space can be."""
    joined: bool = False
    """True if it was put together from lines that stand apart at the same height."""
    bold: bool = False
    """True if it begins and ends in bold type."""
    confidence: float | None = None
    """How sure text recognition is of it, 0-1; None where the file has the text."""
    is_entered: bool = False
    """True for what is entered in a form."""
    columns: Sequence[tuple[float, float]] = ()
    """Left and right edges of the columns, if it is the row of a table."""

    @property
    def height(self) -> float:
        """Mean height of the type: superscripts enlarge the box but hardly the mean."""
        return sum(self.heights) / len(self.heights)

    @property
    def sideways(self) -> bool:
        """True for text that runs up or down the page."""
        return not self.is_entered and self.bottom - self.top > 3 * self.height


@dataclass(frozen=True, slots=True)
class PageLine:
    """One line of text with its place on the page."""

    text: str
    height: float
    """Height of the type, in points."""
    bold: bool
    gap: str
    """Separator from the line before: a space where the paragraph goes on, a line break in tables and lists, an empty
    line before a paragraph, nothing after a hyphen."""
    box: Box
    columns: Sequence[tuple[float, float]] = ()
    """Left and right edges of the columns, in points, if it is the row of a table."""

    @property
    def has_cells(self) -> bool:
        """True for a table row."""
        return " | " in self.text


@dataclass(frozen=True, slots=True)
class Page:
    """The lines of one page in reading order."""

    lines: list[PageLine]
    is_picture: bool
    """True if it has an image and hardly any text."""
    skipped: Sequence[Skipped] = ()
    own: str = ""
    """The characters of its content, as the file has them."""
    is_mute: bool = False
    """True if its fonts do not say which letters their signs are."""
    has_fields: bool = False
    unseen: Sequence[str] = ()
    """Words that nobody sees, which are not among the lines."""
    is_scan: bool = False
    """True if text recognition reads it, where that is installed."""
    doubtful: int = 0
    """Recognised lines that are left out because they are probably none."""
    is_poor: bool = False
    """True for a scan that is hardly read, whichever way up."""
    comments: Sequence[PageLine] = ()
    """What readers have noted on it."""
