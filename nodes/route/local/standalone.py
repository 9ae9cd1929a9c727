"""Makes a follow-up question stand alone, and widens its query, without a language model.

A fragment takes the place of its counterpart in the last question: "And for stations?" after "How long is the warranty
for accessories?" asks for the warranty for stations. Any other question that leans on the conversation is given the
words of it that people would add (`nodes/route/local/carrying.py`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from domain.errors import EmbedderUnavailable
from domain.outcome import ANSWERS, Choice, Framing, find_claimed
from domain.ports.embedding import Embedder
from domain.ports.judgement import Rewrite
from domain.state import Turn
from domain.text.claims import MOST_CHARACTERS
from domain.text.languages import Language, detect_language
from domain.text.markers import strip_markers
from domain.text.question import LONGEST_QUERY, add_carried, split_carried
from domain.text.sentences import split_sentences
from domain.text.tables import is_rule
from domain.text.terms import analyse, content_words
from nodes.reading.phrases import match_whole, read_phrases
from nodes.reading.questions import OWN_WORDS, read_parts
from nodes.route.local.carrying import WORD, rank_words
from nodes.route.local.routing import strip_courtesies

CONTEXT_WORDS = 6
"""Words added from the conversation; more would drown the question. Of those that people add, the learned choice holds
.51 at a precision of .31; the words of the last question hold .19 at .29 (a88e208a:benchmarks/carrying.py)."""

CARRYING_TURNS = 3
"""Turns from which words are taken over. Chosen: a conversation's subject is usually named in the last few."""

BACKGROUND_TURNS = 2
BACKGROUND_WORDS = 8
"""Limits of what a query takes along: words, from this many earlier questions; see
docs/decisions/08-queries-and-retries.md."""

SAME_TOPIC = 0.15
"""Cosine of two questions on one topic. Of questions that stand alone, it keeps .92 of the follow-ups of people's
conversations with their topic, and notices .61 (CAsT) and .85 (mtrag) of those put into another conversation."""

LONGEST_FRAGMENT = 8
"""Words of a fragment that takes the place of a part of the last question. Chosen: a longer one says it all."""

_SEARCHED = ("needs_retrieval", "about_library")
"""Routes of the turns that are about documents."""

_UNANSWERED = ("showed_passages", "abstained", "asked_back", "declined")

LONGEST_PICK = 8
"""Words of a reply that picks a choice; a longer one is a question of its own. Chosen, as above."""


@dataclass(frozen=True, slots=True)
class LocalRewriter:
    """Implements `FollowUpRewriter` by words, and notices by meaning where the topic changes."""

    embedder: Embedder

    async def rewrite(self, question: str, turns: Sequence[Turn]) -> Rewrite:
        standalone = make_standalone(question, turns)
        asked, _ = split_carried(standalone)
        named = [turn["question"] for turn in turns if turn["route"] in _SEARCHED]
        # A question made of the last one needs none of its words again, nor does one about something else.
        query = asked
        if asked.rstrip("?") == question.rstrip("?") and (asked != standalone or await self._goes_on(question, named)):
            query = add_background(question, turns)
        phrases = read_phrases(detect_language(question) or "en", "followup")
        unclear = not named and phrases["dangling"].search(question) is not None
        return Rewrite(standalone, query, unclear, read_parts(standalone))

    async def _goes_on(self, question: str, earlier: Sequence[str]) -> bool:
        """Return True where a question that stands alone is near to one of the last ones that were searched for, or
        nobody can tell."""
        try:
            own, *others = [await self.embedder.embed_query(text) for text in (question, *earlier[-CARRYING_TURNS:])]
        except EmbedderUnavailable:
            return True
        return any(float(own @ other) >= SAME_TOPIC for other in others)

    def pick(self, question: str, choices: Sequence[Choice]) -> Choice | None:
        exact = [choice for choice in choices if choice["label"] == question]
        if len(exact) == 1:
            return exact[0]
        if not 0 < len(question.split()) <= LONGEST_PICK:
            return None
        for language in dict.fromkeys((detect_language(question) or "en", "en")):
            ordinals = read_phrases(language, "followup", "ordinals").values()
            for choice, ordinal in zip(choices, ordinals, strict=False):
                if match_whole(ordinal, question):
                    return choice
        words = set(analyse(question))
        shared = [len(words & set(analyse(choice["label"]))) for choice in choices]
        best = max(shared, default=0)
        if best and shared.count(best) == 1 and best >= len(words) / 2:
            return choices[shared.index(best)]
        return None

    def accept(self, question: str, turns: Sequence[Turn], language: Language) -> str:
        if not turns or turns[-1]["outcome"] not in ANSWERS or "?" in question:
            return ""
        start, end = find_claimed(turns[-1]["answer"], turns[-1].get("framing") or Framing(opening=0, closing=0))
        said = strip_markers(turns[-1]["answer"][start:end][-LONGEST_QUERY:]).strip("*_ \n")
        rest = strip_courtesies(question)
        for each in dict.fromkeys((language, "en")) if said.endswith("?") else ():
            talk, replies = read_phrases(each, "talk"), read_phrases(each, "talk", "replies")
            adds = content_words(rest) and not read_phrases(each, "followup")["requests"].search(rest)
            # "Okay, thanks" ends it, and "Okay, why" asks about what was said.
            is_other = adds or replies["thanks"].search(question) or talk["asks"].search(rest)
            if replies["yes"].search(question) and not is_other:
                return said[split_sentences(said)[-1][0] :].strip("*_ ")
        return ""


def make_standalone(question: str, turns: Sequence[Turn]) -> str:
    """Return the question with its counterpart of the last question exchanged, or with words of the conversation in
    brackets: "How long is it valid? (warranty Lindenhof W2)". A question that stands alone already is unchanged."""
    searched = [turn for turn in turns if turn["route"] in _SEARCHED]
    phrases = read_phrases(detect_language(question) or "en", "followup")
    if not searched or not leans_on_conversation(question, phrases):
        return question
    if phrases["requests"].search(question):
        # The question is the same; only the answer is to be another.
        return searched[-1]["standalone_question"] or searched[-1]["question"]
    last = _read_question(searched[-1])
    if (exchanged := exchange(question, last, phrases)) is not None:
        return exchanged
    points_back = bool(phrases["pronouns"].search(question) or phrases["pointers"].search(question))
    said = [(_read_question(turn), _read_statements(turn)) for turn in searched[-CARRYING_TURNS:]]
    return add_carried(question, rank_words(question, said, points_back=points_back)[:CONTEXT_WORDS])


def _read_question(turn: Turn) -> str:
    """Return an earlier question that stands alone, without words that it took from others."""
    return split_carried(turn["standalone_question"] or turn["question"])[0]


def _read_statements(turn: Turn) -> str:
    """Return what an earlier answer says from documents: nothing where it only says that there is no answer. The header
    of a table says nothing."""
    if turn["outcome"] in _UNANSWERED:
        return ""
    start, end = find_claimed(turn["answer"], turn.get("framing") or Framing(opening=0, closing=0))
    lines = strip_markers(turn["answer"][start : min(end, start + MOST_CHARACTERS)]).split("\n")
    return "\n".join(line for line, below in pairwise([*lines, ""]) if not is_rule(line) and not is_rule(below))


def exchange(question: str, last: str, phrases: Mapping[str, re.Pattern[str]]) -> str | None:
    """Return the last question with the part that the fragment is about exchanged for it. None where the question is no
    fragment, or has no counterpart."""
    fragment = phrases["openers"].sub("", question).strip(" ?!.")
    is_fragment = fragment != question.strip(" ?!.") and phrases["part"].match(fragment)
    if not is_fragment or "," in fragment or len(fragment.split()) > LONGEST_FRAGMENT:
        return None
    body = last.rstrip(" ?!.")
    found = list(phrases["part"].finditer(body))
    # The same word is the better counterpart, the later part the likelier one.
    same = [each for each in found if fragment.casefold().startswith(each[0].casefold())]
    for each in reversed(same or found):
        if content_words(body[: each.start()]):
            return f"{body[: each.start()]}{fragment}?"
    return None


def add_background(question: str, turns: Sequence[Turn]) -> str:
    """Return the question with words of earlier questions in brackets, even where it stands alone, because most
    conversations keep their subject. Only for searching, where added words count half; never for answering."""
    searched = [turn["question"] for turn in turns if turn["route"] in _SEARCHED]
    known = set(analyse(question))
    added: list[str] = []
    for word in (word for earlier in searched[: -BACKGROUND_TURNS - 1 : -1] for word in name_topics(earlier)):
        terms = set(analyse(word))
        if not terms <= known and len(added) < BACKGROUND_WORDS:
            known |= terms
            added.append(word)
    return add_carried(question, added)


def leans_on_conversation(question: str, phrases: Mapping[str, re.Pattern[str]]) -> bool:
    """Return True where the question cannot be understood without what was said before."""
    if any(phrases[name].search(question) for name in ("openers", "pointers", "requests")):
        return True
    if any(_count_words(question[: found.start()]) < OWN_WORDS for found in phrases["pronouns"].finditer(question)):
        return True
    return _count_words(question) < (1 if phrases["whole"].search(question) else OWN_WORDS)


def _count_words(text: str) -> int:
    return len(set(content_words(text)))


def name_topics(question: str) -> list[str]:
    """Return the meaningful words of a question as written, in order."""
    words = (word.rstrip(".'’/-") for word in WORD.findall(question))
    return [word for word in words if content_words(word)]
