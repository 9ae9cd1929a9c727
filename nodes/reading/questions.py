"""Tells from its wording what a question asks for. The words are in `domain/languages`, in table `questions`."""

import re
from itertools import chain

from domain.text.languages import detect_language
from domain.text.question import add_carried, split_carried
from domain.text.terms import content_words, find_terms
from nodes.reading.phrases import read_patterns, read_phrases

SEVERAL = ("steps", "list", "comparison", "parts")
"""Kinds of questions whose answers are long."""

OWN_WORDS = 3
"""A pronoun with fewer content words before it refers to what was said before. A fragment with fewer content words in
total is incomplete. Chosen by nDCG of the follow-ups in mtrag."""

_OPENING = re.compile(r"^(?:the|a|an|der|die|das|dem|den|le|la|les|el|los|las)\s+", re.IGNORECASE)

_LONGEST_NAME = 6
"""Words of a thing that is compared. Chosen: what is longer asks something, as "how often are laptops replaced in"."""

_TAIL = re.compile(r"(?<!\s)\s*(?:[:,;?]|\s[-–—])\s+")


def read_pair(question: str) -> tuple[list[str], str]:
    """Return the names of the two things that the question compares, and what it goes on with; no names where it
    compares no two."""
    text = question.strip(" ?!.")
    if asks_for(question, "comparison"):
        for pattern in read_patterns(detect_language(question) or "en", "questions", "pair"):
            if match := pattern.search(text):
                one, two = map(strip_article, match.groups())
                two, _, rest = _TAIL.sub("\0", two, count=1).partition("\0")
                if max(len(one.split()), len(two.split())) > _LONGEST_NAME:
                    continue
                more = max(len(one.split()) - len(two.split()), 0)  # "git reset --soft and --hard"
                two = " ".join([*one.split()[:more], two])
                return [one, two], rest.strip()
    return [], ""


def strip_article(name: str) -> str:
    """Return the name without the article before it."""
    return _OPENING.sub("", name.strip(" \"'`"))


def read_parts(question: str) -> list[str]:
    """Return the parts of a question that asks several things. One that leans on the others has their words in
    brackets: "what does it cost? (long warranty WS-400)". Empty where it asks one thing."""
    asked, carried = split_carried(question)
    language = detect_language(asked) or "en"
    phrases = read_phrases(language, "questions")
    parts = phrases["joint"].split(asked.rstrip(" ?!."))
    words = [[word.strip(",;:?!.") for word in part.split() if content_words(word)] for part in parts]
    # "Only on Monday and Friday how" asks one thing: what asks another begins with its question word.
    if len(parts) < 2 or not all(words) or any(find_terms(part.split()[0], language) for part in parts[1:]):
        return []
    leans = read_phrases(language, "followup")
    whole: list[str] = []
    for place, part in enumerate(parts):
        # What comes first leans on less.
        is_short = len(set(words[place])) < OWN_WORDS - (place == 0)
        # In German all nouns begin like names.
        has_name = any(
            not (word.isalpha() or word.isdecimal()) or (word[0].isupper() and language != "de")
            for word in words[place]
        )
        is_whole = not ((is_short and not has_name) or leans["pronouns"].search(part) or leans["pointers"].search(part))
        others = () if is_whole else chain(*words[:place], *words[place + 1 :])
        whole.append(add_carried(f"{part.rstrip(' ?')}?", [*others, *filter(None, [carried])]))
    return whole


def asks_for(question: str, *kinds: str) -> bool:
    """Return True where the wording of the question, in its language, is that of one of the kinds."""
    patterns = read_phrases(detect_language(question) or "en", "questions")
    return any(patterns[kind].search(question) for kind in kinds)
