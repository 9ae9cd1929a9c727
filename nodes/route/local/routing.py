"""Routes a question, without a language model.

Courtesies are recognised by their words, everything else by the nearest of example utterances
(nodes/reading/data/en/examples.toml). Turning a question away wrongly costs far more than a search in vain, so the two
other routes must win clearly.
"""

import re
from dataclasses import dataclass, replace

from domain.ports.embedding import Embedder, Vector
from domain.ports.judgement import Routed
from domain.text.languages import detect_language
from domain.text.terms import content_words
from nodes.reading.phrases import match_whole, read_courtesies, read_examples, read_phrases

_LONGEST_REQUEST = 24
"""Most words of a request about the library. Chosen: the time of the patterns grows with the length of the text."""

_ABOUT_ASSISTANT = "a question about the assistant"
_ORDERS = {"a command to a device", "a personal transaction"}
_GOODBYE = "a goodbye"
_MOMENT = "something of this very moment"
"""Kinds of examples with a rule of their own. A question is about the assistant only if it addresses it. Asking how to
do something is not an order to do it. A goodbye has no figure and asks nothing. What names a year is not about now."""

_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")

NEAREST = 0.45
"""Cosine similarity from which an example counts as near (a88e208a:benchmarks/routing.py)."""

LEAD = 0.06
"""Lead that the nearest example must have over the nearest question for the documents, found likewise."""

_embedded: dict[str, Vector] = {}
"""The embedded examples, one a row, by the name of the embedder."""


@dataclass(frozen=True, slots=True)
class LocalRouter:
    """Implements `QuestionRouter`."""

    embedder: Embedder

    async def route(self, question: str, *, follow_up: bool) -> Routed:
        rest = strip_courtesies(question)
        if not re.search(r"\w", rest):
            return Routed("conversational", "It is a courtesy.")
        language = detect_language(rest)
        phrases = read_phrases(language or "en", "talk")
        if match_whole(phrases["conversational"], rest):
            return Routed("conversational", f"It is {_ABOUT_ASSISTANT}.")
        if follow_up and read_phrases(language or "en", "followup")["requests"].search(rest):
            return Routed("needs_retrieval", "It asks for more on the last answer.")
        if language not in (None, "en"):
            # The examples are English, and so is the embedding model: other languages resemble none of them reliably.
            return replace(_search(rest, follow_up=follow_up), sure=phrases["asks"].search(rest) is not None)
        impossible = set() if phrases["address"].search(rest) else {_ABOUT_ASSISTANT}
        if phrases["asks"].search(rest):
            impossible |= _ORDERS
        if re.search(r"[\d?]", rest):
            impossible.add(_GOODBYE)
        if _YEAR.search(rest):
            impossible.add(_MOMENT)
        await self.prepare()
        scores = _embedded[self.embedder.name] @ await self.embedder.embed_query(rest)
        near = [
            (score, *each) for score, each in zip(scores, read_examples(), strict=True) if each[1] not in impossible
        ]
        score, route, kind, _ = max(near)
        documents = max(score for score, route, *_ in near if route == "needs_retrieval")
        lead = LEAD * 2 if follow_up else LEAD
        if route == "needs_retrieval" or score < NEAREST or score - documents < lead:
            return _search(rest, follow_up=follow_up)
        asks = phrases["asks"].search(rest) is not None and phrases["address"].search(rest) is None
        return Routed(route, f"It is {kind}.", sure=route == "conversational", asks=asks)

    def find_request(self, question: str) -> Routed | None:
        """Return how to route a request about the library itself: which documents there are, or a summary."""
        text = strip_courtesies(question)
        if len(text.split()) > _LONGEST_REQUEST:
            return None
        for spoken in dict.fromkeys((detect_language(text) or "en", "en")):
            phrases = read_phrases(spoken, "library")
            if match_whole(phrases["list"], text):
                return Routed("about_library", "It asks which documents there are.")
            if (match := match_whole(phrases["summary"], text)) is None:
                continue
            subject = next(filter(None, match.groups()), "").strip(" \"'„“”«»")
            points_back = phrases["pointers"].fullmatch(subject) is not None
            if opening := phrases["articles"].match(subject):
                subject = subject[opening.end() :]
            if points_back or not content_words(subject):
                return Routed("about_library", "It asks for a summary of the last subject.", points_back=True)
            return Routed("about_library", "It asks for a summary.", subject)
        return None

    async def prepare(self) -> None:
        """Embed the examples, once per embedder."""
        if self.embedder.name not in _embedded:
            _embedded[self.embedder.name] = await self.embedder.embed_passages([text for *_, text in read_examples()])


def strip_courtesies(question: str) -> str:
    """Return the question without the greetings, thanks and interjections that it opens with."""
    rest = question.strip().replace("’", "'")
    while match := read_courtesies().match(rest):
        rest = rest[match.end() :]
    return rest


def _search(text: str, *, follow_up: bool) -> Routed:
    """Route what is for the documents: a topic in a word gets an overview, anything else an answer."""
    words = text.split()
    if not follow_up and len(words) == 1 and words[0].strip(" ?!.").isalpha() and content_words(text):
        return Routed("about_library", "It is a topic in a word.", text.strip(" ?!."), sure=False)
    return Routed("needs_retrieval", "It may be answered by the documents.")
