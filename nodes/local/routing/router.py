"""Routes a question, without a language model.

Courtesies are recognised by their words, everything else by the nearest of example utterances (prototypes.py). Turning
a question away wrongly costs far more than a search in vain, so the two other routes must win clearly.
"""

import re
from dataclasses import dataclass

from domain.ports.embedding import Embedder, Vector
from domain.ports.judgement import Routed
from domain.state import Route
from domain.text.languages import Language, detect_language
from domain.text.terms import content_words
from nodes.local.phrases import match_whole, read_courtesies, read_library, read_talk
from nodes.local.routing.prototypes import ABOUT_ASSISTANT, COMMAND, GOODBYE, MOMENT, PROTOTYPES, TRANSACTION

_LONGEST_TALK = 24
"""Limit, in words, of small talk and commands; anything longer is searched."""

NEAREST = 0.45
"""Cosine similarity from which an example counts as near (benchmarks/routing.py)."""

LEAD = 0.06
"""Lead that the nearest example must have over the nearest question for the documents (benchmarks/routing.py)."""

_embedded: dict[str, list[tuple[Route, str, Vector]]] = {}
"""The embedded examples, by the name of the embedder."""


@dataclass(frozen=True, slots=True)
class LocalRouter:
    """Implements `QuestionRouter`."""

    embedder: Embedder

    async def route(self, question: str, *, follow_up: bool) -> Routed:
        rest = strip_courtesies(question)
        if not re.search(r"\w", rest):
            return Routed("conversational", "It is a courtesy.")
        if len(rest.split()) > _LONGEST_TALK:
            return Routed("needs_retrieval", "It is longer than small talk.")
        language = detect_language(rest)
        if (request := find_library_request(rest, language)) is not None:
            return request
        phrases = read_talk(language or "en")
        if match_whole(phrases.conversational, rest):
            return Routed("conversational", f"It is {ABOUT_ASSISTANT}.")
        if follow_up and phrases.goes_on.search(rest):
            return Routed("needs_retrieval", "It asks for more on the last answer.")
        if language not in (None, "en"):
            # The examples are English, and so is the embedding model: other languages resemble none of them reliably.
            return _search(rest, follow_up=follow_up)
        impossible = set() if phrases.address.search(rest) else {ABOUT_ASSISTANT}
        if phrases.asks.search(rest):
            impossible |= {COMMAND, TRANSACTION}
        if rest.endswith("?") or re.search(r"\d", rest):
            impossible.add(GOODBYE)
        if phrases.lasting.search(rest):
            impossible.add(MOMENT)
        nearest = [found for found in await self._find_nearest(rest) if found[1] not in impossible]
        route, kind, score = max(nearest, key=lambda found: found[2])
        documents = max(found[2] for found in nearest if found[0] == "needs_retrieval")
        lead = LEAD * 2 if follow_up else LEAD
        if route == "needs_retrieval" or score < NEAREST or score - documents < lead:
            return _search(rest, follow_up=follow_up)
        return Routed(route, f"It is {kind}.")

    def find_request(self, question: str) -> Routed | None:
        rest = strip_courtesies(question)
        return find_library_request(rest, detect_language(rest)) if len(rest.split()) <= _LONGEST_TALK else None

    async def is_for_documents(self, question: str, *, follow_up: bool) -> bool:
        rest = strip_courtesies(question)
        phrases = read_talk(detect_language(rest) or "en")
        if (
            not phrases.asks.search(rest)
            or phrases.address.search(rest)
            or (follow_up and phrases.speakers.search(rest))
        ):
            return False
        return (await self.route(question, follow_up=follow_up)).route == "needs_retrieval"

    async def prepare(self) -> None:
        """Embed the examples, once per embedder."""
        if self.embedder.name in _embedded:
            return
        groups = [(route, kind, texts) for route, kinds in PROTOTYPES.items() for kind, texts in kinds.items()]
        vectors = await self.embedder.embed_passages([text for _, _, texts in groups for text in texts])
        found, first = [], 0
        for route, kind, texts in groups:
            found.append((route, kind, vectors[first : first + len(texts)]))
            first += len(texts)
        _embedded[self.embedder.name] = found

    async def _find_nearest(self, text: str) -> list[tuple[Route, str, float]]:
        """Return each kind of example with the similarity of its nearest."""
        await self.prepare()
        vector = await self.embedder.embed_query(text)
        return [
            (route, kind, float((vectors @ vector).max())) for route, kind, vectors in _embedded[self.embedder.name]
        ]


def strip_courtesies(question: str) -> str:
    """Return the question without the greetings, thanks and interjections that it opens with."""
    rest = question.strip().replace("’", "'")
    while match := read_courtesies().match(rest):
        rest = rest[match.end() :]
    return rest


def _search(text: str, *, follow_up: bool) -> Routed:
    """Route what is for the documents: a topic in a word gets an overview, anything else an answer."""
    if not follow_up and is_topic(text):
        return Routed("about_library", "It is a topic in a word.", subject=text.strip(" ?!."))
    return Routed("needs_retrieval", "It may be answered by the documents.")


def is_topic(text: str) -> bool:
    """Return True for a single word that names a topic, not a code or an address."""
    words = text.split()
    return len(words) == 1 and words[0].strip(" ?!.").isalpha() and len(content_words(text)) == 1


def find_library_request(text: str, language: Language | None) -> Routed | None:
    """Return how to route a request about the library itself: which documents there are, or a summary of something.
    None where the text is no such request."""
    for spoken in dict.fromkeys((language or "en", "en")):
        phrases = read_library(spoken)
        if match_whole(phrases.list, text):
            return Routed("about_library", "It asks which documents there are.")
        if (match := match_whole(phrases.summary, text)) is None:
            continue
        subject = next(filter(None, match.groupdict().values()), "").strip(" \"'„“”«»")
        points_back = phrases.pointers.fullmatch(subject) is not None
        if opening := phrases.articles.match(subject):
            subject = subject[opening.end() :]
        if points_back or not content_words(subject):
            return Routed("about_library", "It asks for a summary of the last subject.", points_back=True)
        return Routed("about_library", "It asks for a summary.", subject)
    return None
