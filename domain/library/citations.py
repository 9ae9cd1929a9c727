"""Citations: the part of a document that supports a statement."""

import re
from bisect import bisect_left
from collections.abc import Sequence

from domain.documents import Citation, CitedPassage, PageBox, Source, TextLine
from domain.text.claims import MOST_CHARACTERS, ClaimSpan, split_claims
from domain.text.markers import find_markers, strip_markers
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
        boxes=find_boxes(source["text"], source["start"], source["lines"], quoted),
        heading_path=find_section(source, start) if spans else source["heading_path"],
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
    if "outside" in source:
        citation["outside"] = source["outside"]
    return citation


MOST_PASSAGES = 200
"""Markers of one source from which nobody is told what each of them rests on."""


def cite_by_marker(answer: str, citations: Sequence[Citation], sources: Sequence[Source]) -> list[Citation]:
    """Return the citations of the finished answer, with `passages` where several markers of one rest on different
    places: each on what the statements say that it follows."""
    if len(answer) > MOST_CHARACTERS:
        return list(citations)
    by_number = {source["number"]: source for source in sources}
    chunk_ids = [source["chunk_id"] for source in sorted(sources, key=lambda source: source["number"])]
    markers = [(marker.start, number) for marker in find_markers(answer, chunk_ids) for number in marker.numbers]
    cited = [number for _, number in markers]
    if len(cited) == len(set(cited)):
        return list(citations)
    claims = split_claims(answer, chunk_ids)
    return [
        _split(citation, by_number[number], answer, [place for place, each in markers if each == number], claims)
        if cited.count(number := citation["marker"]) > 1 and number in by_number
        else citation
        for citation in citations
    ]


def _split(
    citation: Citation, source: Source, answer: str, places: Sequence[int], claims: Sequence[ClaimSpan]
) -> Citation:
    if len(places) > MOST_PASSAGES:
        return citation
    said: list[list[str]] = [[] for _ in places]
    for claim in claims:
        if source["number"] in claim.markers:
            # What stands behind the last marker of its block leans on that one.
            nth = min(bisect_left(places, claim.start), len(places) - 1)
            said[nth].append(strip_markers(answer[claim.start : claim.end]))
    passages = [find_passage(citation, source, statements) for statements in said]
    if all(passage == passages[0] for passage in passages):
        return citation
    return {**citation, "passages": passages}


def find_passage(citation: Citation, source: Source, statements: Sequence[str]) -> CitedPassage:
    """Return where the source says it: word for word where it is quoted, else what the statements rest on."""
    quoted = [re.search(r"\s+".join(map(re.escape, said.split())), source["text"]) for said in statements]
    start = source["start"]
    spans = sorted((start + found.start(), start + found.end()) for found in quoted if found)
    found = cite(source, spans) if spans else cite(source, statements=statements) if statements else citation
    return CitedPassage(
        page=found["page"],
        boxes=found.get("boxes", []),
        heading_path=found["heading_path"],
        start=found["start"],
        end=found["end"],
        text=found["text"],
    )


def find_section(source: Source, position: int) -> list[str]:
    """Return the headings over a place of the source."""
    begun = [section for section in source.get("sections", []) if section["start"] <= position]
    return begun[-1]["heading_path"] if begun else source["heading_path"]


def find_boxes(text: str, offset: int, lines: Sequence[TextLine], spans: Sequence[tuple[int, int]]) -> list[PageBox]:
    """Return where spans of `text`, which begins at `offset` in its document, stand, a box a line, and more only where
    a line has gaps. Within a line every character counts as equally wide, which is off by a hundredth of the line or
    two."""
    boxes = []
    for start, end in _join(text, spans):
        for line in lines:
            first, last = max(offset + start, line["start"]), min(offset + end, line["end"])
            if first < last and line["box"]["width"] > 0:
                box, unit = line["box"], line["box"]["width"] / (line["end"] - line["start"])
                place = PageBox(
                    page=line["page"],
                    x=round(box["x"] + unit * (first - line["start"]), 2),
                    y=round(box["y"], 2),
                    width=round(unit * (last - first), 2),
                    height=round(box["height"], 2),
                )
                if "confidence" in box:
                    place["confidence"] = box["confidence"]
                boxes.append(place)
    return boxes


def _join(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans of `text` with those made one between which nothing is left out."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and not text[joined[-1][1] : start].strip():
            start = joined.pop()[0]
        joined.append((start, end))
    return joined
