"""Cites what a language model writes, statement by statement, while it is written: a small model sets no markers, or
wrong ones."""

from collections.abc import Callable, Sequence

from domain.documents import Source
from domain.ports.judgement import Align
from domain.profile import CitationStyle
from domain.text.blocks import closes_fence, find_fence, find_item
from domain.text.claims import is_statement, split_claims
from domain.text.hyperlinks import REMOVED
from domain.text.languages import Language
from domain.text.markers import find_markers, render_marker, strip_markers
from domain.text.sentences import split_paragraph
from domain.text.tables import is_row, is_rule

SAYS, _ELSEWHERE = 0.4, 0.2
"""Score from which a source says a statement, and below which one that a model cites gives way to such a one. Chosen on
half of `verification`: of sentences of real answers .93 are marked rightly, as many as from .5 on, and a fifth more are
marked. Of 184 statements that cite rightly none loses its marker."""

_LONGEST = 1000
"""Characters of a sentence that is compared with the sources; a longer one goes out as it is."""


class Attribution:
    """Passes an answer on as it comes, and puts the missing markers behind its statements.

    A marker stays where its source may say so, and is replaced where only another one does. Text goes out at once, up
    to the first marker of a sentence, which waits for the end of that.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        cite: Callable[[int], None],
        align: Align,
        sources: Sequence[Source],
        style: CitationStyle,
        language: Language = "en",
    ) -> None:
        """`write` gets the text, and `cite` the number of each marker in it."""
        self._write, self._report, self._align, self._style = write, cite, align, style
        self._language = language
        self._ids = [source["chunk_id"] for source in sources]
        self._held, self._shown = "", 0
        """The sentence that is not finished, and how many characters of it went out."""
        self._fence, self._in_table = "", False
        self._drafted = ""
        """The whole text as the model wrote it."""
        self.kept = self.mended = 0
        """Statements with the model's own markers, and those whose markers are set or replaced here."""
        self._unsaid: list[str] = []
        """Statements without a marker that no source says."""

    def feed(self, text: str) -> None:
        """Pass on as much as can go out now."""
        self._drafted += text
        self._held += text
        while end := self._find_end():
            self._finish(*end)
        markers = find_markers(self._held, self._ids)
        certain = self._held[: markers[0].start if markers else None].rstrip().removesuffix("|").rstrip()
        self._write(certain[self._shown :])
        self._shown = max(self._shown, len(certain))

    def finish(self) -> list[str]:
        """Pass on the rest. Return the statements that neither the model nor this class could cite."""
        self._finish(len(self._held), len(self._held))
        claims = [each for each in split_claims(self._drafted, self._ids) if not each.markers]
        bare = [strip_markers(self._drafted[each.start : each.end]) for each in claims if not each.about_documents]
        return [each for each in self._unsaid if any(each in other for other in bare)]

    def _find_end(self) -> tuple[int, int] | None:
        """Return where the first sentence of the held text ends, and where the next begins; None where it goes on."""
        line, newline, _ = self._held.partition("\n")
        ended = (len(line), len(line) + 1) if newline else None
        if self._fence or is_row(line) or find_fence(line):
            return ended
        if len(line) > _LONGEST:
            return len(line), len(line)
        sentences = list(split_paragraph(line, 0, len(line), self._language))
        return (sentences[0][1], sentences[1][0]) if len(sentences) > 1 else ended

    def _finish(self, end: int, following: int) -> None:
        sentence = self._held[:end]
        cited = self._cite(sentence)
        self._write(cited[self._shown :] + self._held[end:following])
        self._held, self._shown = self._held[following:], 0
        if not self._fence:
            for number in (number for marker in find_markers(cited, self._ids) for number in marker.numbers):
                self._report(number)

    def _cite(self, sentence: str) -> str:
        """Return the sentence, line or row with its markers."""
        if self._fence:
            self._fence = "" if closes_fence(sentence, self._fence) else self._fence
            return sentence
        self._fence = find_fence(sentence)
        is_header = is_row(sentence) and (is_rule(sentence) or not self._in_table)
        self._in_table = is_row(sentence) and (is_rule(sentence) or self._in_table)
        said = strip_markers(sentence)[find_item(sentence) :].strip()
        if self._fence or is_header or len(sentence) > _LONGEST or not is_statement(said.replace(REMOVED, "")):
            return sentence
        own = {number for marker in find_markers(sentence, self._ids) for number in marker.numbers}
        scores = self._align(said)
        best = max(scores, key=lambda number: (scores[number], -number), default=0)
        if not best or scores[best] < SAYS:
            self._unsaid += [] if own else [said]
            self.kept += bool(own)
            return sentence
        # What gives orders has no score, and is left to whoever cites it.
        if any(scores.get(number, 1.0) >= _ELSEWHERE for number in own):
            self.kept += 1
            return sentence
        self.mended += 1
        return mark(sentence, [best], self._ids, self._style)


def mark(text: str, numbers: Sequence[int], chunk_ids: Sequence[str], style: CitationStyle) -> str:
    """Return the statement with markers of these sources in the place of its own; in a table row they stand in the last
    cell."""
    markers = "".join(render_marker(number, chunk_ids[number - 1], style) for number in numbers)
    own = find_markers(text, chunk_ids)
    if not own:
        end = len(text.rstrip().removesuffix("|").rstrip()) if is_row(text) else len(text)
        return f"{text[:end]} {markers}{text[end:]}"
    text = text[: own[-1].start] + markers + text[own[-1].end :]
    for each in reversed(own[:-1]):
        text = text[: each.start].rstrip(" ") + text[each.end :]
    return text
