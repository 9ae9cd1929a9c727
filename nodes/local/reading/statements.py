"""Splits a source into statements that may be quoted."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from domain.documents import Source
from domain.text.sentences import JUDGED, split_sentences
from domain.text.tables import is_value
from domain.text.terms import analyse

_LONGEST_LIST = 700
"""Limit, in characters, of a list that is quoted whole with its lead-in."""

_LEANING = re.compile(r"^(?:it|its|they|their|he|his|she|her|this|these|those|such|however|but)\b", re.IGNORECASE)
_ITEM = re.compile(r"(?:[-*+•▪◦‣●○–—]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")
_RULE = re.compile(r"[\s|:=+-]+")
_FOOTER = re.compile(r"(?:[^|]{0,100}\W)?page \d+(?: of \d+)?|[A-Z]? ?[-–—]? ?\d+ ?[-–—]?|\d+ of \d+", re.IGNORECASE)
"""A running title or page number between the paragraphs of a PDF."""
_NUMBERING = re.compile(r"(?:\d{1,2}(?:\.\d{1,2})*\.?|[A-Z]\.) ")
_LABEL = re.compile(r"(?=.{1,80}$)[A-Z0-9][^.!?:;=@\d]*[^\W\d]\)?", re.DOTALL)
"""A line like a heading or a row's label: short, capitalised, without figures, and not ending like a sentence."""
_LONGEST_LABEL = 8
"""Limit, in words, of a label."""
_SHOUTED = 3
"""Number of words from which a line in capitals is a title whatever else it holds; fewer may be a code that answers."""
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|had|do|does|did|can|may|must|will|shall|should|not)\b")


@dataclass(frozen=True)
class Statement:
    """A sentence, item or row that may be quoted, with the text that it cannot be read without."""

    source: Source
    start: int
    end: int
    lead: tuple[int, int] | None = None
    around: tuple[tuple[int, int], ...] = ()
    table: int | None = None
    """Offset of the table of a row."""
    enclosed: frozenset[str] = frozenset()
    """Terms of the question's numbers that lie within a range stated here."""

    @property
    def text(self) -> str:
        return self.source["text"][self.start : self.end]

    @cached_property
    def terms(self) -> frozenset[str]:
        return self.enclosed.union(analyse(self.text))

    @property
    def block(self) -> tuple[int, int]:
        """The paragraph, list or table that the statement stands in: source number and offset."""
        above = self.source["text"].rfind("\n\n", 0, self.start)
        return self.source["number"], above if self.table is None else self.table

    @property
    def context(self) -> str:
        spans = [self.lead, *self.around] if self.lead else self.around
        near = (self.source["text"][slice(*span)] for span in spans)
        return " ".join([self.source["title"], *self.source["heading_path"], *near])

    @property
    def shown(self) -> str:
        """The text to embed: with its lead-in, because an item, a row or "It is" means little alone."""
        text = f"{self.source['text'][slice(*self.lead)]} {self.text}" if self.lead else self.text
        return text[:JUDGED]


def read_title(source: Source) -> str:
    """Return the title and headings of the source."""
    return " ".join((source["title"], *source["heading_path"]))


def read_whole(source: Source) -> str:
    """Return the whole text of the source, title and headings included."""
    return f"{read_title(source)} {source['text']}"


def split_statements(source: Source) -> Iterator[Statement]:
    """Yield the statements of a source that may be quoted, in order. Headings, ruled lines, running titles and labels
    without a value are left out."""
    text = source["text"]
    titles = {source["title"], *source["heading_path"]}
    spans = split_sentences(text)
    labels = [_is_label(text, span) for span in spans]
    heading: tuple[tuple[int, int], ...] = ()
    previous: tuple[tuple[int, int], ...] = ()
    lead: tuple[int, int] | None = None
    header: tuple[int, int] | None = None
    table: int | None = None
    for position, (start, end) in enumerate(spans):
        piece = text[start:end]
        if _RULE.fullmatch(piece) or _FOOTER.fullmatch(piece):
            continue
        around = (*heading, *previous)
        announced = lead if previous == (lead,) else None
        previous = ((start, end),)
        is_row = " | " in piece or "\t" in piece
        cells = [cell for cell in re.split(r"[|\t]", piece) if cell.strip()]
        # Of consecutive labels, the first is the title of the list that the others form.
        is_list = (
            labels[position]
            and position > 0
            and labels[position - 1]
            and labels[position + 1 : position + 2] != [False]
        )
        if piece.startswith("#") or piece in titles or (len(spans) > 1 and labels[position] and not is_list):
            heading, lead, header, table = previous, None, None, None
        elif is_row and len(cells) < 2:
            continue
        elif is_row and table is None:
            table = start
            ruled = any(_RULE.fullmatch(text[slice(*span)]) for span in spans[position + 1 : position + 2])
            if ruled or not any(map(is_value, cells[1:])):
                header = (announced[0] if announced else start, end)
            else:
                yield Statement(source, start, end, announced, heading, table)
        elif is_row:
            yield Statement(source, start, end, header, heading, table)
        elif piece.endswith(":"):
            header, table, lead, last = None, None, (start, end), end
            for item_start, item_end in spans[position + 1 :]:
                if not _ITEM.match(text[item_start:item_end]) or item_end - start > _LONGEST_LIST:
                    break
                last = item_end
            # A lead-in whose formula or picture is lost may still hold the answer.
            if last > end or position + 1 == len(spans):
                yield Statement(source, start, last, None, around)
        elif _ITEM.match(piece):
            header = table = None
            yield Statement(source, start, end, lead, around)
        else:
            header = table = lead = None
            leans = spans[position - 1] if position and _LEANING.match(piece) and not labels[position - 1] else None
            yield Statement(source, start, end, announced or leans, around)


def _is_label(text: str, span: tuple[int, int]) -> bool:
    """Return True where a line of its own looks like a heading or a table row's label."""
    piece = _NUMBERING.sub("", text[slice(*span)], count=1)
    alone = text[: span[0]].rstrip(" ")[-1:] in ("", "\n") and text[span[1] :].lstrip(" ")[:1] in ("", "\n")
    if not alone or "|" in piece or _VERB.search(piece.lower()):
        return False
    shouted = piece.isupper() and piece[-1] not in ".!?" and len(piece.split()) >= _SHOUTED
    return shouted or (len(piece.split()) <= _LONGEST_LABEL and _LABEL.fullmatch(piece) is not None)
