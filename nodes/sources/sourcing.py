"""Makes sources of passages."""

from domain.documents import Line, Passage, Source, TextLine


def make_source(
    number: int, passage: Passage, *, score: float, dense: float | None = None, lexical: float | None = None
) -> Source:
    """Return the passage as the source of that number. `score` is its relevance, 0-1."""
    source = Source(
        number=number,
        chunk_id=passage.chunk_id,
        chunk_index=passage.chunk_index,
        document_id=passage.document_id,
        title=passage.title,
        heading_path=list(passage.heading_path),
        text=passage.text,
        start=passage.start,
        end=passage.end,
        page=passage.page,
        lines=[make_line(line) for line in passage.lines],
        score=round(score, 4),
        dense=dense,
        lexical=lexical,
    )
    if passage.source:
        source["source"] = passage.source
    if passage.revision:
        source["revision"], source["updated_at"] = passage.revision, passage.updated_at
        source["content_hash"] = passage.content_hash
    if passage.dated:
        source["dated"] = passage.dated
    if passage.lead:
        source["lead"] = passage.lead
    return source


def make_line(line: Line) -> TextLine:
    """Return the line as the state holds it."""
    return TextLine(start=line.start, end=line.end, page=line.page, box=line.box)
