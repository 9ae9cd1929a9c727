"""Citations: the part of a document that supports a statement."""

from collections.abc import Sequence

from domain.documents import Citation, PageBox, Source
from domain.text.snippets import find_snippet, show_snippet


def cite(source: Source, spans: Sequence[tuple[int, int]] = (), statements: Sequence[str] = ()) -> Citation:
    """Return the citation of a whole source, or of `spans` within it (offsets in the document).

    `text` is all of the spans, because they are what is being cited, with an ellipsis where one leaves something out;
    of a whole source a snippet: what the `statements` rest on. `boxes` are where that stands.
    """
    start, end = source["start"], source["end"]
    if spans:
        start, end = min(first for first, _ in spans), max(last for _, last in spans)
    touched = [line for line in source["lines"] if line["start"] < end and line["end"] > start]
    page = touched[0]["page"] if touched else source["page"]
    if spans:
        quoted = _join(
            source["text"], sorted((first - source["start"], last - source["start"]) for first, last in spans)
        )
        text = "\n…\n".join(source["text"][first:last] for first, last in quoted)
    else:
        quoted = find_snippet(source["text"], statements)
        text = show_snippet(source["text"], quoted)
    citation = Citation(
        marker=source["number"],
        document_id=source["document_id"],
        title=source["title"],
        chunk_id=source["chunk_id"],
        chunk_index=source["chunk_index"],
        page=page,
        boxes=_find_boxes(source, quoted),
        heading_path=_find_section(source, start) if spans else source["heading_path"],
        start=start,
        end=end,
        text=text,
        score=source["score"],
    )
    if "source" in source:
        citation["source"] = source["source"]
    if "revision" in source and "updated_at" in source and "content_hash" in source:
        citation["revision"], citation["updated_at"] = source["revision"], source["updated_at"]
        citation["content_hash"] = source["content_hash"]
    return citation


def _find_section(source: Source, position: int) -> list[str]:
    """Return the headings over a place of the source."""
    begun = [section for section in source.get("sections", []) if section["start"] <= position]
    return begun[-1]["heading_path"] if begun else source["heading_path"]


def _find_boxes(source: Source, spans: Sequence[tuple[int, int]]) -> list[PageBox]:
    """Return where spans of the source's text stand, a box a line, and more only where a line has gaps. Within a line
    every character counts as equally wide, which is off by a hundredth of the line or two."""
    boxes = []
    for start, end in _join(source["text"], spans):
        for line in source["lines"]:
            first, last = max(source["start"] + start, line["start"]), min(source["start"] + end, line["end"])
            if first < last and line["box"]["width"] > 0:
                box, unit = line["box"], line["box"]["width"] / (line["end"] - line["start"])
                boxes.append(
                    PageBox(
                        page=line["page"],
                        x=round(box["x"] + unit * (first - line["start"]), 2),
                        y=round(box["y"], 2),
                        width=round(unit * (last - first), 2),
                        height=round(box["height"], 2),
                    )
                )
    return boxes


def _join(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of `text` with those made one between which nothing is left out."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and not text[joined[-1][1] : start].strip():
            start = joined.pop()[0]
        joined.append((start, end))
    return joined
