"""Splits an answer into its statements, each with the sources that it cites."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from domain.text.blocks import Block, read_blocks
from domain.text.markers import find_markers, strip_markers
from domain.text.sentences import split_sentences
from domain.text.terms import analyse

DOCUMENT_NOUN = r"(?:documents?|sources?|passages?|texts?|context|articles?)"
THE_DOCUMENTS = rf"(?:the|these|your|this) (?:(?:provided|given|cited) )?{DOCUMENT_NOUN}"
"""Patterns for words with which an answer speaks of the documents as such."""

_ABOUT_DOCUMENTS = re.compile(rf"^{THE_DOCUMENTS}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ClaimSpan:
    """A statement at `answer[start:end]`, markers included, and the numbers of the sources that it cites."""

    start: int
    end: int
    markers: tuple[int, ...]


def split_claims(answer: str, chunk_ids: Sequence[str]) -> list[ClaimSpan]:
    """Return the answer's statements with their markers.

    These are the markers in or right behind the sentence. Where it has none, they are those of the next sentence with
    markers in its paragraph or list, or below its table; behind the last marker of a paragraph, those of the sentence
    before. Items, rows and definitions without markers of their own also have those of their lead-in, caption or term.

    Questions, headings, lines that introduce a list, and remarks about the documents as such are no statements, and
    neither is code. `chunk_ids` are those of the sources, in order.
    """
    markers = find_markers(answer, chunk_ids)
    claims: list[ClaimSpan] = []
    uncited: list[int] = []
    bare: set[int] = set()
    blocks = read_blocks(answer)
    for start, end in _split_prose(answer, blocks):
        numbers = tuple(dict.fromkeys(n for span in markers if start <= span.start < end for n in span.numbers))
        sentence = strip_markers(answer[start:end]).strip()
        # Markers alone stand below a table, whose rows have no room for them.
        if claims and sentence and _begins_paragraph(answer, blocks, claims[-1].end, start):
            uncited.clear()
        if not numbers and (not is_statement(sentence) or _ABOUT_DOCUMENTS.match(sentence)):
            continue
        if numbers:
            for position in uncited:
                claims[position] = replace(claims[position], markers=numbers)
            uncited.clear()
        else:
            uncited.append(len(claims))
        if sentence:
            if not numbers:
                bare.add(len(claims))
            claims.append(ClaimSpan(start, end, numbers))
    for position in sorted(bare):
        claim = claims[position]
        block = next((block for block in blocks if block.start <= claim.start < block.end), None)
        if block is None:
            continue
        if block.lead is not None and claim.start >= block.lead[0]:
            of_lead = (n for span in markers if block.lead[0] <= span.start <= block.lead[1] for n in span.numbers)
            claims[position] = replace(claim, markers=tuple(dict.fromkeys((*claim.markers, *of_lead))))
        elif not claim.markers and block.kind == "paragraph" and position and claims[position - 1].start >= block.start:
            claims[position] = replace(claim, markers=claims[position - 1].markers)
    return claims


def _begins_paragraph(answer: str, blocks: Sequence[Block], before: int, start: int) -> bool:
    """Return True where the sentence at `start` is neither in the paragraph of the one that ends at `before` nor in its
    list or table. A paragraph goes on behind a line break."""
    gap = answer[before:start]
    return "\n\n" in gap or ("\n" in gap and any(before <= block.start <= start for block in blocks))


def _split_prose(answer: str, blocks: Sequence[Block]) -> Iterator[tuple[int, int]]:
    """Yield the sentences outside of code."""
    position = 0
    code = [(block.start, block.end) for block in blocks if block.kind == "code"]
    for start, end in [*code, (len(answer), len(answer))]:
        for sentence_start, sentence_end in split_sentences(answer[position:start]):
            yield position + sentence_start, position + sentence_end
        position = end


def is_statement(sentence: str) -> bool:
    """Return True where the sentence states something, rather than asks, announces or heads it."""
    return bool(analyse(sentence)) and not sentence.endswith(("?", ":")) and not sentence.startswith("#")
