"""describe: answer a question about the library itself: which documents there are, or what one of them says in short.

Nothing is written here: titles are listed, and a summary is made of quotes, each cited. Where a model writes, it gets
the outline of what is summarised, and a passage of each section.
"""

from collections.abc import Sequence

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Citation, Source
from domain.events import Sources
from domain.library.citations import cite
from domain.outcome import Choice, Framing, NothingFound, Outcome, Reason
from domain.profile import CitationStyle
from domain.state import AnswerUpdate, Level, Task
from domain.text.hyperlinks import strip_images
from domain.text.markers import render_marker, strip_markers
from nodes.context import Context, profile_of, scope_of
from nodes.describe.subjects import CHUNKS_QUOTED, CHUNKS_WRITTEN, find_subject, read_document
from nodes.describe.summary import (
    Extract,
    Section,
    choose_passages,
    clean_item,
    name_section,
    outline,
    summarise,
)
from nodes.prompting.answerers import LOCAL, list_answerers
from nodes.sources.sourcing import make_source
from nodes.sources.titles import list_ids
from nodes.step import SPEAKS, Step
from nodes.wording.notices import wording_of
from nodes.writing.stream import AnsweringInput, AnswerWriter, discard, finish_turn

_LISTED = 40
"""Titles that a list names. Chosen: about a screen of them."""


class DescribeInput(AnsweringInput):
    """The part of the state that describe reads."""

    subject: str
    focus: list[str]
    answerer: str
    answer: str


class HandedOnUpdate(TypedDict):
    """The part of the state that describe writes where a model writes the summary."""

    task: Task
    sources: list[Source]
    outline: list[str]
    confidence: float
    level: Level


class DescribeUpdate(AnswerUpdate):
    """The part of the state that describe writes."""

    outcome: Outcome | None
    answered_by: str
    citations: list[Citation]
    sources: list[Source]
    choices: list[Choice]
    listed: list[str]
    failure: None


async def describe(state: DescribeInput, runtime: Runtime[Context]) -> DescribeUpdate | HandedOnUpdate:
    """List the documents, or quote what the subject's document or section says first, if no model writes or after it
    has failed.

    Raises `DatabaseUnavailable`.
    """
    context, scope, profile = runtime.context, scope_of(state), profile_of(state)
    wording = wording_of(profile, state["language"])
    draft = state["answer"]
    writer = AnswerWriter(discard if draft else runtime.stream_writer)
    is_written = (state["answerer"] or list_answerers(profile.generate, context.models)[0]) != LOCAL
    chunks = CHUNKS_WRITTEN if is_written else CHUNKS_QUOTED
    if not state["subject"] and not state["focus"]:
        listed = await context.library.list_documents(scope, _LISTED)
        writer.write(wording.list_documents([document.title for document in listed.documents], listed.total))
        return _finish(state, writer, "conversed", [], [], listed=list_ids(listed.documents))
    if state["focus"]:
        subject = await read_document(state["focus"][0], scope, context, chunks)
    else:
        subject, choices = await find_subject(state["subject"], scope, profile.retrieval, context, chunks)
        if choices:
            return _finish(state, writer, None, [], [], choices)
    if subject and is_written:
        passages = choose_passages(subject.sections, state["subject"], profile.generate.source_tokens)
        return HandedOnUpdate(
            task="summarise",
            sources=[_show_section(number, section) for number, section in enumerate(passages, 1)],
            outline=outline(subject.sections, subject.title),
            confidence=1.0,
            level="high",
        )
    extracts = summarise(subject.sections, state["subject"]) if subject else []
    if subject is None or not extracts:
        reasons: list[Reason] = [NothingFound(code="nothing_found", searched=state["subject"], scope_is_empty=False)]
        writer.write(wording.library.not_found.format(subject=state["subject"]))
        return _finish(state, writer, "abstained", reasons, [])
    sources = [_show_section(number, extract.section) for number, extract in enumerate(extracts, 1)]
    runtime.stream_writer(Sources(type="sources", citations=[cite(source) for source in sources]))
    writer.write(wording.library.about.format(title=wording.name([subject.title])))
    for source, extract in zip(sources, extracts, strict=True):
        _quote(writer, source, extract, subject.title, profile.generate.citation_style)
    if draft:
        AnswerWriter(runtime.stream_writer).correct(wording.correction.stopped, writer.text, writer.citations)
    return _finish(state, writer, "answered", [], sources)


def _show_section(number: int, section: Section) -> Source:
    """Return the section as a source."""
    return {
        **make_source(number, section.passage, score=1.0),
        "heading_path": list(section.heading_path),
        "text": section.text,
        "start": section.start,
        "end": section.start + len(section.text),
    }


def _quote(writer: AnswerWriter, source: Source, extract: Extract, title: str, style: CitationStyle) -> None:
    """Write the section's quotes as one item, opened by its heading; several as items of their own."""
    heading = strip_images(strip_markers(name_section(extract.section, title)))
    texts = [clean_item(source["text"][start:end]) for start, end in extract.spans]
    said = [strip_images(strip_markers(text)) for text in texts]
    marker = render_marker(source["number"], source["chunk_id"], style)
    opening = f"\n- **{heading}:**" if heading else "\n-"
    if len(said) == 1:
        writer.write(f"{opening} {said[0]} {marker}")
    else:
        writer.write(opening if heading else "")
        indent = "  " if heading else ""
        writer.write("".join(f"\n{indent}- {text}" for text in said) + f" {marker}")
    start = source["start"]
    writer.cite(cite(source, [(start + first, start + last) for first, last in extract.spans]))


def _finish(
    state: DescribeInput,
    writer: AnswerWriter,
    outcome: Outcome | None,
    reasons: list[Reason],
    sources: list[Source],
    choices: Sequence[Choice] = (),
    listed: list[str] | None = None,
) -> DescribeUpdate:
    return DescribeUpdate(
        answer=writer.text,
        outcome=outcome,
        outcome_reasons=reasons,
        framing=Framing(opening=0, closing=0),
        answered_by=LOCAL,
        citations=writer.citations,
        sources=sources,
        confidence=1.0 if sources else 0.0,
        level="high" if sources else "none",
        choices=list(choices),
        listed=listed or [],
        failure=None,
        turns=finish_turn(state, writer.text, writer.citations, outcome),
    )


STEP = Step(
    run=describe,
    label="Looking through the library",
    knobs=SPEAKS | {"retrieval", "generate.citation_style", "generate.source_tokens", "generate.model", "models"},
)
