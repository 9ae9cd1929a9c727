"""Citations: the part of a document that supports a statement."""

from collections.abc import Sequence

from domain.documents import Box, Citation, Source
from domain.text.snippets import make_snippet


def cite(source: Source, span: tuple[int, int] | None = None, statements: Sequence[str] = ()) -> Citation:
    """Return the citation of a whole source, or of `span` within it (offsets in the document).

    `text` is all of a span, because it is what is being cited; of a whole source a snippet: what the `statements` rest
    on. `bbox` encloses the lines that the span touches on its first page.
    """
    start, end = span or (source["start"], source["end"])
    touched = [line for line in source["lines"] if line["start"] < end and line["end"] > start]
    page = touched[0]["page"] if touched else source["page"]
    if span:
        text = source["text"][start - source["start"] : end - source["start"]]
    else:
        text = make_snippet(source["text"], statements)
    citation = Citation(
        marker=source["number"],
        document_id=source["document_id"],
        title=source["title"],
        chunk_id=source["chunk_id"],
        chunk_index=source["chunk_index"],
        page=page,
        bbox=_enclose([line["box"] for line in touched if line["page"] == page]),
        heading_path=_find_section(source, start) if span else source["heading_path"],
        start=start,
        end=end,
        text=text,
        score=source["score"],
    )
    if "source" in source:
        citation["source"] = source["source"]
    if "revision" in source and "updated_at" in source:
        citation["revision"], citation["updated_at"] = source["revision"], source["updated_at"]
    return citation


def _find_section(source: Source, position: int) -> list[str]:
    """Return the headings over a place of the source."""
    begun = [section for section in source.get("sections", []) if section["start"] <= position]
    return begun[-1]["heading_path"] if begun else source["heading_path"]


def _enclose(boxes: Sequence[Box]) -> Box | None:
    if not boxes:
        return None
    x = min(box["x"] for box in boxes)
    y = min(box["y"] for box in boxes)
    right = max(box["x"] + box["width"] for box in boxes)
    bottom = max(box["y"] + box["height"] for box in boxes)
    return Box(x=x, y=y, width=right - x, height=bottom - y)
