"""Translates a run's events for protocols that only add to a text, and its citations into addresses."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson
from fastapi import Request

from app.api.perimeter.perimeter import read_prefix
from domain.documents import Citation, name_cited
from domain.errors import ModelRefused
from domain.events import RESTART, Done, Event, ToolReturned
from domain.state import CUT, Degradation
from domain.text.hyperlinks import strip_images
from domain.text.markers import find_markers
from nodes.prompting.answerers import LOCAL

CORRECTION = "\n\n---\n\n**Correction.** The text above is withdrawn.{reason} The corrected answer:\n\n"
"""Opens a corrected answer: these protocols have no way to take back what was streamed, nor another place that says
why."""


SOURCES = "\n\n---\n\n**Sources and notes**\n"
"""Opens the list of sources behind an answer, for clients that show nothing but text."""


def read_base_url(request: Request) -> str:
    """Return the address at which the client reached us, also where a proxy has taken a prefix from the path."""
    return str(request.base_url) + f"{read_prefix(request.headers)}/"[1:]


def translate_text(event: Event, sent: str, offset: int) -> tuple[str, int]:
    """Return the text to send for an event, and where in all that was sent the answer begins."""
    if event["type"] == "content":
        return event["token"], offset
    if event["type"] == "correction":
        if event["answer"].startswith(sent[offset:]):
            return event["answer"][len(sent) - offset :], offset
        known = event["reason"] and event["reason"] != RESTART
        opening = CORRECTION.format(reason=f" {event['reason']}" if known else "")
        return opening + event["answer"], len(sent) + len(opening)
    if event["type"] == "done" and not sent:
        # A stopped run may have written nothing that was streamed.
        return event["answer"], 0
    return "", offset


def read_finish(degraded: Iterable[Degradation], answered_by: str) -> str:
    """Return why an answer ended, in the words of OpenAI's protocol: as long as it may be, refused by the provider of
    the model, or in good order."""
    codes = {each["code"] for each in degraded if each["node"] == "generate"}
    if CUT in codes:
        return "length"
    return "content_filter" if ModelRefused().code in codes and answered_by == LOCAL else "stop"


def spell_result(result: ToolReturned) -> str:
    """Write what a tool of the agent came to, for protocols that know results as text."""
    sources = f"Sources: {', '.join(map(str, result['sources']))}" if result["sources"] else ""
    return "\n".join(filter(None, (result["text"], sources)))


class Mark(NamedTuple):
    """A marker of an answer, and what it cites."""

    start: int
    end: int
    citation: Citation


def list_marks(done: Done) -> list[Mark]:
    """Return the markers of the answer in order, one for each citation that they name."""
    by_number = {citation["marker"]: citation for citation in done["citations"]}
    chunk_ids = [by_number[n]["chunk_id"] if n in by_number else "" for n in range(1, max(by_number, default=0) + 1)]
    return [
        Mark(span.start, span.end, by_number[number])
        for span in find_markers(done["answer"], chunk_ids)
        for number in span.numbers
        if number in by_number
    ]


def locate_evidence(base_url: str, workspace_id: str, run_id: str, citation: Citation) -> str:
    """Return the address of the cited page, or of the document where it has no pages: of the revision that was cited,
    whatever the document holds by now. What came from outside stands in the run alone."""
    if "outside" in citation:
        return f"{base_url}api/runs/{run_id}?workspace={workspace_id}"
    place = "text" if citation["page"] is None else f"pages/{citation['page']}.png"
    revision = f"&revision={citation['revision']}" if "revision" in citation else ""
    return f"{base_url}api/documents/{citation['document_id']}/{place}?workspace={workspace_id}{revision}"


def list_sources(base_url: str, workspace_id: str, done: Done) -> str:
    """Return the sources of an answer as text, with what readers should know besides; empty where there is neither."""
    lines = [f"\n> {strip_images(' '.join(warning.split()))}\n" for warning in done["warnings"]]
    for citation in done["citations"]:
        page = f", page {citation['page']}" if citation["page"] else ""
        address = locate_evidence(base_url, workspace_id, done["run_id"], citation)
        lines.append(f"\n- [{citation['marker']}] {strip_images(name_cited(citation))}{page}: {address}")
    return SOURCES + "".join(lines) if lines else ""


def list_url_citations(base_url: str, workspace_id: str, done: Done, offset: int) -> list[dict[str, Any]]:
    """Return each marker of the answer, which begins at `offset` of the text, with the address of what it cites, as
    OpenAI's protocols have it."""
    return [
        {
            "start_index": mark.start + offset,
            "end_index": mark.end + offset,
            "title": mark.citation["title"],
            "url": locate_evidence(base_url, workspace_id, done["run_id"], mark.citation),
        }
        for mark in list_marks(done)
    ]


def encode_data(data: dict[str, Any]) -> bytes:
    """Encode a frame that has no name."""
    return b"data: %b\n\n" % orjson.dumps(data)


def encode_named(name: str, data: dict[str, Any]) -> bytes:
    """Encode a frame that has a name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps(data))


END = b"data: [DONE]\n\n"
"""Ends a stream of frames without names."""
