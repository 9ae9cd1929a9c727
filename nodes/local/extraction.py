"""Finds the sentences that answer a question."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from domain.citations import strip_markers
from domain.documents import Source
from domain.errors import EmbedderUnavailable
from domain.ports import Embedder
from domain.sentences import JUDGED, split_sentences
from domain.state import Turn
from domain.tables import is_value
from domain.terms import analyse
from nodes.local.ranges import Amount, compare, read_amounts

_EMBEDDED = 8
"""Passages that are embedded, about 5 ms each; the others are left behind by their words and their source. Where one
passage answers, five are enough; where two are needed, answers are lost with five (docs/decisions/
0043-time-to-first-token.md)."""

COVERAGE = 0.5
"""What covering all words of the question counts, beside a cosine similarity of 1 (benchmarks/extraction.py)."""

CONTEXT = 0.75
"""Share of a word's weight where not the sentence has it, but its title, heading, lead-in or the sentence before."""

EXPECTED = 0.15
"""Gained by a sentence that holds the kind of thing asked for, lost by one that does not (benchmarks/extraction.py)."""

CARRIED = 0.3
"""Share of a word's weight where the user did not type it in this turn, but the conversation before it held it."""

RELEVANCE = 0.1
"""What the relevance of the source counts: between two like sentences, the better document's."""

PROMISE = 0.8
"""The same before anything is embedded: it stands in for the similarity, of which it is the source's."""

CLOSE = 0.1
"""How far behind the best a further sentence may be (benchmarks/extraction.py)."""

CLOSE_IF_NEW = 0.2
"""The same for one that covers words of the question which the chosen ones leave open, or belongs to a list."""

EQUALLY = 0.8
"""Share of the question's terms, by weight, that a further row of a table must have of what its best row has."""

_LONGEST_LIST = 700
"""Characters of a list that is quoted whole with its lead-in."""

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DATE = rf"\b\d{{4}}\b|\b(?:{_MONTHS})\b|\bcentur|\b\d{{1,2}}[:.]\d\d\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b\d+\w* (?:day|week|month|year)s?\b|\b(?:daily|weekly|monthly|yearly|annually)\b"  # noqa: E501
_QUANTITY = (
    r"\b\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|[mb]illion|half|"
    r"third|quarter|once|twice|no limit|unlimited)\b"
)
_FREQUENCY = (
    r"\b(?:every|each|per|once|twice|times|hourly|daily|nightly|weekly|monthly|quarterly|yearly|annual(?:ly)?|interval|"
    r"regularly|continuously|always|never|rarely|often|\d+ (?:minute|hour|day|week|month|year)s?)\b"
)
_REASON = r"\b(?:because|due to|since|therefore|so that|in order|as a result|reason|caused?|led to|to avoid|thus)\b"
_EXPECTATIONS: tuple[tuple[re.Pattern[str], re.Pattern[str] | None], ...] = tuple(
    (re.compile(asked, re.IGNORECASE), re.compile(given, re.IGNORECASE) if given else None)
    for asked, given in (
        (r"^\W*(?:since |until )?when\b|\b(?:what|which) (?:year|date|day|month|decade|century|time)\b", _DATE),
        (r"\bhow (?:often|frequently)\b", _FREQUENCY),
        (
            r"\bhow (?:many|much|long|old|far|large|big|tall|high|fast|deep|wide|soon|late)\b|"
            r"\bhow (?:heavy|thick|hot|cold)\b|\bwhat (?:(?:is|are|was|were) the )?(?:\w+ )?"
            r"(?:percentage|percent|number|amount|fraction|proportion|price|fee|fare|cost|weight|height|length|speed)\b",
            _QUANTITY,
        ),
        (r"^\W*why\b|\bwhat (?:caused|causes|reason)\b", _REASON),
        (r"^\W*(?:who|whom|whose|where)\b|\b(?:what|which) (?:person|company|city|country|state|place|region)\b", None),
    )
)
"""A kind of question and what an answer to it holds; None stands for a name that the question does not have."""

_AGAIN = re.compile(
    r"\W*(?:(?:and|or|but) (?:what about |how about )?|(?:what|how) about )(?:for |in |of |with )?(?:the|an?|my|our)\b",
    re.IGNORECASE,
)
"""How a question begins that asks the last one of something else."""

_NAME = re.compile(r"(?<=[^.!?:] )[A-Z]\w+")
_ENUMERATION = re.compile(
    r"^\W*(?:list|name|enumerate)\b|\b(?:what|which) (?:are|were|\w+s\b)|\bwhat all\b|\bsteps\b", re.IGNORECASE
)
_LEANING = re.compile(r"^(?:it|its|they|their|he|his|she|her|this|these|those|such|however|but)\b", re.IGNORECASE)
_ITEM = re.compile(r"(?:[-*+•▪◦‣●○–—]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s")
_RULE = re.compile(r"[\s|:=+-]+")
_FOOTER = re.compile(r"(?:[^|]{0,100}\W)?page \d+(?: of \d+)?|[A-Z]? ?[-–—]? ?\d+ ?[-–—]?|\d+ of \d+", re.IGNORECASE)
"""A running title or page number between the paragraphs of a PDF."""
_NUMBERING = re.compile(r"(?:\d{1,2}(?:\.\d{1,2})*\.?|[A-Z]\.) ")
_LABEL = re.compile(r"(?=.{1,80}$)[A-Z0-9][^.!?:;=@\d]*[^\W\d]\)?", re.DOTALL)
"""Looks like a heading or a row's label: short, begins with a capital, holds no figure and does not end as a sentence
does."""
_LONGEST_LABEL = 8
"""Words."""
_SHOUTED = 3
"""Words in capitals from which a line is a title, whatever else it holds; fewer may be a code that answers."""
_VERB = re.compile(r"\b(?:is|are|was|were|has|have|had|do|does|did|can|may|must|will|shall|should|not)\b")


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage that answers: `start`-`end` of the document of source `number`, and exactly the text there."""

    number: int
    start: int
    end: int
    text: str
    score: float


@dataclass(frozen=True)
class _Passage:
    """A sentence, item or row that may be quoted, and what it needs before it to be understood."""

    source: Source
    start: int
    end: int
    lead: tuple[int, int] | None = None
    around: tuple[tuple[int, int], ...] = ()
    table: int | None = None
    """Where the table of a row begins."""
    enclosed: frozenset[str] = frozenset()
    """Terms of the question's numbers that are within a range stated here."""

    @property
    def text(self) -> str:
        return self.source["text"][self.start : self.end]

    @cached_property
    def terms(self) -> frozenset[str]:
        return self.enclosed.union(analyse(self.text))

    @property
    def block(self) -> tuple[int, int]:
        """The paragraph, list or table it stands in."""
        above = self.source["text"].rfind("\n\n", 0, self.start)
        return self.source["number"], above if self.table is None else self.table

    @property
    def context(self) -> str:
        spans = [self.lead, *self.around] if self.lead else self.around
        near = (self.source["text"][slice(*span)] for span in spans)
        return " ".join([self.source["title"], *self.source["heading_path"], *near])

    def quote(self, span: tuple[int, int], score: float) -> Quote:
        offset = self.source["start"]
        text = self.source["text"][slice(*span)]
        return Quote(self.source["number"], offset + span[0], offset + span[1], text, score)


async def extract(
    question: str,
    sources: Sequence[Source],
    embedder: Embedder,
    *,
    max_sentences: int,
    typed: str | None = None,
    last: Turn | None = None,
) -> list[Quote]:
    """The sentences of `sources` that answer best, fewer than `max_sentences` where few say it: the best
    one's source first, in reading order within a source.

    A sentence that leans on the one before it, a list item and a table row come with what they lean on; a list that
    answers comes whole; of rows, items or sentences that state ranges side by side, that which encloses a number of
    the question. None where there are no sources. Where the embedder is down, words alone decide.

    `typed` is what the user wrote, where `question` carries words of the conversation beside it. What the `last`
    answer quoted is then quoted again only where it says more of what was typed than all else, and "And the other
    one?" asks for the kind of thing that the last question did.
    """
    typed = typed or question
    passages = [passage for source in sources for passage in _split(source)]
    passages = [p for p in passages if not p.text.endswith(":") or _meet_expectation(question, p.text) >= 0]
    passages = _drop_excluding(passages, read_amounts(question))
    kind = question
    if typed != question and last is not None:
        passages = _drop_said(passages, typed, last["answer"])
        kind = last["question"] if _AGAIN.match(typed) else question
    wanted = _weigh_terms(question, typed, passages)
    merit = [
        COVERAGE * _cover(wanted, passage) + EXPECTED * _meet_expectation(kind, passage.text) for passage in passages
    ]
    relevance = [passage.source["score"] for passage in passages]
    promising = sorted(range(len(passages)), key=lambda i: -(merit[i] + PROMISE * relevance[i]))
    chosen = promising[: max(_EMBEDDED, max_sentences)]
    if not chosen:
        return []
    similarities = await _compare(question, [_show(passages[i]) for i in chosen], embedder)
    scored = sorted(
        (
            (similarity + merit[i] + RELEVANCE * relevance[i], passages[i])
            for i, similarity in zip(chosen, similarities, strict=True)
        ),
        key=lambda item: -item[0],
    )
    return _select(scored, wanted, bool(_ENUMERATION.search(question)), max_sentences)


def _drop_excluding(passages: Sequence[_Passage], amounts: Sequence[Amount]) -> list[_Passage]:
    """Without what states another range than the one of its paragraph, list or table that encloses an amount."""
    for amount in amounts:
        fits = [compare(amount, passage.text) for passage in passages]
        settled = {p.block for p, fit in zip(passages, fits, strict=True) if fit == "encloses"}
        passages = [
            replace(passage, enclosed=passage.enclosed | {amount.term}) if fit == "encloses" else passage
            for passage, fit in zip(passages, fits, strict=True)
            if fit in (None, "encloses") or passage.block not in settled
        ]
    return list(passages)


def _drop_said(passages: Sequence[_Passage], typed: str, said: str) -> list[_Passage]:
    """Without what the last answer quoted, unless it holds more of the typed words than all else does, or, where none
    of them says anything ("Since when?"), the kind of thing asked for."""
    words = set(analyse(typed))
    known = " ".join(said.split())
    again = [" ".join(strip_markers(passage.text).split()) in known for passage in passages]
    most = max((len(words & p.terms) for p, old in zip(passages, again, strict=True) if not old), default=-1)
    return [
        passage
        for passage, old in zip(passages, again, strict=True)
        if not old or len(words & passage.terms) > most or (not words and _meet_expectation(typed, passage.text) > 0)
    ]


async def _compare(question: str, texts: Sequence[str], embedder: Embedder) -> list[float]:
    try:
        vector = await embedder.embed_query(question)
        return [float(similarity) for similarity in await embedder.embed_passages(texts) @ vector]
    except EmbedderUnavailable:
        return [0.0] * len(texts)


def _split(source: Source) -> Iterator[_Passage]:
    """What of a source may be quoted. Headings, ruled lines, running titles and labels without a value are no
    answers."""
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
        # of several labels one below the other, the first names the list that the others are
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
                yield _Passage(source, start, end, announced, heading, table)
        elif is_row:
            yield _Passage(source, start, end, header, heading, table)
        elif piece.endswith(":"):
            header, table, lead, last = None, None, (start, end), end
            for item_start, item_end in spans[position + 1 :]:
                if not _ITEM.match(text[item_start:item_end]) or item_end - start > _LONGEST_LIST:
                    break
                last = item_end
            # Where what it announces is gone (a formula, a picture), it may still say what is asked for.
            if last > end or position + 1 == len(spans):
                yield _Passage(source, start, last, None, around)
        elif _ITEM.match(piece):
            header = table = None
            yield _Passage(source, start, end, lead, around)
        else:
            header = table = lead = None
            leans = spans[position - 1] if position and _LEANING.match(piece) and not labels[position - 1] else None
            yield _Passage(source, start, end, announced or leans, around)


def _is_label(text: str, span: tuple[int, int]) -> bool:
    """Whether a line of its own looks like a heading or like what a table's rows are called."""
    piece = _NUMBERING.sub("", text[slice(*span)], count=1)
    alone = text[: span[0]].rstrip(" ")[-1:] in ("", "\n") and text[span[1] :].lstrip(" ")[:1] in ("", "\n")
    if not alone or "|" in piece or _VERB.search(piece.lower()):
        return False
    shouted = piece.isupper() and piece[-1] not in ".!?" and len(piece.split()) >= _SHOUTED
    return shouted or (len(piece.split()) <= _LONGEST_LABEL and _LABEL.fullmatch(piece) is not None)


def _show(passage: _Passage) -> str:
    """What is embedded: an item, a row or "It is" means little without what it leans on."""
    text = f"{passage.source['text'][slice(*passage.lead)]} {passage.text}" if passage.lead else passage.text
    return text[:JUDGED]


def _weigh_terms(question: str, typed: str, passages: Sequence[_Passage]) -> dict[str, float]:
    """The question's terms by how few of the passages have them (the idf of BM25), adding up to 1."""
    # In the question's order: sums over a set would differ between processes in the last bit, and break ties anew.
    terms = dict.fromkeys(analyse(question))
    own = set(analyse(typed))
    held = Counter(term for passage in passages for term in terms.keys() & passage.terms)
    weights = {
        t: math.log(1 + (len(passages) - held[t] + 0.5) / (held[t] + 0.5)) * (1 if t in own else CARRIED) for t in terms
    }
    total = sum(weights.values())
    return {term: weight / total for term, weight in weights.items()}


def _cover(wanted: dict[str, float], passage: _Passage) -> float:
    own = passage.terms
    around = set(analyse(passage.context))
    return sum(w if t in own else CONTEXT * w if t in around else 0.0 for t, w in wanted.items())


def _meet_expectation(question: str, text: str) -> int:
    """1 where the text holds the kind of thing asked for, -1 where it does not, 0 where any sentence may answer."""
    for asked, given in _EXPECTATIONS:
        if asked.search(question):
            if given is not None:
                return 1 if given.search(text) else -1
            known = set(re.findall(r"\w+", question.lower()))
            return 1 if any(name.lower() not in known for name in _NAME.findall(text)) else -1
    return 0


def _select(
    scored: Sequence[tuple[float, _Passage]], wanted: dict[str, float], enumerating: bool, max_sentences: int
) -> list[Quote]:
    best = scored[0][0]
    quotes: list[Quote] = []
    places: list[tuple[str, int, int]] = []
    texts: set[str] = set()
    missing = set(wanted)
    tables: dict[tuple[int, int], float] = {}
    for score, passage in scored:
        terms = passage.terms
        new = bool(missing & terms) or (enumerating and passage.lead is not None)
        if len(quotes) == max_sentences:
            break
        margin = CLOSE_IF_NEW if new else CLOSE
        if new and _completes(scored[0][1], passage):
            margin += 2 * EXPECTED  # the best sentence holds what was expected, this one need not
        if score < best - margin:
            continue
        if passage.table is not None:
            matched = math.fsum(wanted[term] for term in wanted.keys() & terms)
            if matched < EQUALLY * tables.setdefault((passage.source["number"], passage.table), matched):
                continue
        spans = [passage.lead, (passage.start, passage.end)] if passage.lead else [(passage.start, passage.end)]
        for span in spans[-(max_sentences - len(quotes)) :]:
            quote = passage.quote(span, score)
            place = (passage.source["document_id"], quote.start, quote.end)
            words = " ".join(quote.text.lower().split())
            if words in texts or any(_overlap(place, other) for other in places):
                continue
            quotes.append(quote)
            places.append(place)
            texts.add(words)
        missing -= terms
    # The best answer's source comes first, what stands in one source stays in its order.
    merit = {number: max(q.score for q in quotes if q.number == number) for number in {q.number for q in quotes}}
    return sorted(quotes, key=lambda quote: (-merit[quote.number], quote.number, quote.start))


def _completes(best: _Passage, passage: _Passage) -> bool:
    """Whether a sentence comes next in the paragraph of the best one."""
    between = passage.source["text"][best.end : passage.start]
    return passage.source is best.source and between.isspace() and "\n" not in between


def _overlap(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    """Whether two places share text, as they do where chunks overlap."""
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
