"""Detects where a question departs from the sentence that is nearest to it.

A question may repeat a sentence nearly word for word and still ask for something else: it denies what the sentence
affirms, says "after" for "before", or has one word in the place of another. Similarity hardly notices; words do. Such a
departure means that the sentence does not answer. Most questions have none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from math import fsum

from domain.text.terms import STOP_WORDS, analyse

_OPPOSITES = """
increase rise grow gain climb expand raise | decrease fall decline drop shrink diminish reduce lower
improve strengthen | worsen weaken
more greater higher above exceed | less fewer lower below
over | under
most greatest largest highest maximum biggest | least smallest lowest minimum fewest
best better | worst worse
good | bad poor
before prior precede earlier | after later follow subsequent succeed
first initial | last final second
begin start open launch commence | end stop finish close cease
early | late
allow permit enable | forbid prohibit ban prevent bar disallow
legal lawful | illegal unlawful
include contain | exclude omit
require mandatory compulsory oblige | optional voluntary
positive | negative
accept approve agree welcome adopt | reject refuse deny disapprove disagree decline
support favor favour endorse advocate | oppose resist condemn criticize criticise
win victory | lose defeat
buy purchase import | sell export
succeed success successful | fail failure unsuccessful
safe secure | dangerous unsafe risky hazardous
all every always each entire | some sometimes rarely few never none partial
strong stronger strongest | weak weaker weakest
north northern northeast northwest | south southern southeast southwest
east eastern northeast southeast | west western northwest southwest
left | right
large larger big bigger huge major | small smaller little tiny minor
old older oldest ancient | new newer newest young younger youngest modern recent
high tall | low short
long longer longest lengthy | short shorter shortest brief
help assist promote encourage stimulate activate | prevent inhibit suppress hinder discourage hamper deactivate
inside internal inner indoor interior | outside external outer outdoor exterior
same similar identical equal alike | different distinct unequal dissimilar opposite
male man men boy father husband son king | female woman women girl mother wife daughter queen
simple simplest easy | complex complicated difficult hard sophisticated
public | private
create build construct form establish | destroy demolish abolish dissolve eliminate dismantle
like love enjoy prefer | dislike hate despise
attack invade assault | defend protect guard
hot warm warmer heat | cold cool cooler chill
rich wealthy affluent | poor impoverished
majority | minority
many numerous | few
common frequent usual | rare uncommon unusual infrequent
fast faster fastest quick rapid | slow slower slowest gradual
heavy heavier dark | light lighter
thick wide broad | thin narrow
deep | shallow
full | empty
near close nearest closest | far distant farthest furthest
wet moist humid | dry arid
bright | dark dim
clean pure | dirty polluted contaminated impure
rough hard solid | smooth soft
true correct right accurate | false wrong incorrect inaccurate
add | remove subtract delete
join unite merge combine unify connect | separate split divide leave disconnect
enter arrive | leave exit depart
push attract | pull repel
give provide supply grant offer donate send lend | take receive withhold borrow
teach teacher | learn student pupil
ask question | answer
hire employ employer | fire dismiss employee
live life alive birth born | die death dead
peace | war
friend ally | enemy opponent rival foe
urban city | rural countryside
domestic national | foreign international
central | peripheral
direct | indirect
active | passive inactive
visible | hidden invisible
known famous | unknown obscure
natural | artificial synthetic
permanent constant stable fixed static | temporary variable unstable dynamic
conservative | liberal progressive
advantage benefit | disadvantage drawback
profit surplus | loss deficit
cheap inexpensive | expensive costly
upper top | lower bottom
front forward | back rear backward
upward | downward
horizontal | vertical
straight | curved bent
liquid gas | solid
acid | alkaline
predator | prey
guilty | innocent
landlord | tenant
supply | demand
cause | effect result
theory theoretical | practice practical experimental
summer | winter
spring | autumn
day morning | night evening
ascend | descend
remember | forget
reveal expose | hide conceal
keep retain preserve maintain continue | discard abandon discontinue
gather collect concentrate | scatter disperse dilute
praise | blame
honest | dishonest
happy | sad unhappy
quiet silent | loud noisy
tight | loose
sharp | blunt
sweet | bitter sour
fresh | stale rotten
healthy | sick ill
occupied | vacant
military | civilian
religious sacred | secular
formal | informal
explicit | implicit
specific particular special | general universal
individual single sole | collective multiple double
primary main chief | secondary minor
odd | even
optimistic | pessimistic
convex | concave
finite | infinite
objective | subjective
abstract | concrete
scarce shortage | abundant abundance surplus
advance | retreat
conquer capture arrest imprison | surrender release liberate free
master noble | slave servant commoner
senior | junior
superior | inferior
professional expert | amateur novice beginner
absorb | emit reflect
freeze condense | melt boil thaw evaporate
inhale | exhale
compress contract | expand
accelerate | decelerate slow
lock | unlock
awake | asleep
reward | punish
"""
"""Words and their opposites, one pair of sides a line. Everyday English, not taken from any data set."""

_NEGATED = re.compile(r"(?:un|in|im|ir|il|dis|mis|non-?)(.{4,})")
"""A word that a prefix turns into its opposite."""

_DENIAL = re.compile(r"\b(not|no|never|nor|neither|without|cannot|except|fail\w*|lack\w*)\b|n['’]t\b")
"""Negations, in lower case only: a title may be "Never Cry Wolf"."""

_OPEN = re.compile(r"\b(what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE)
"""The question word of an open question. A yes-or-no question is answered by what contradicts it, an open one is
not."""

_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")

SAME_MATTER = 0.6
"""Share of the question's meaningful words that a sentence must have before an opposite counts."""

SAME_WORDING = 0.5
"""The same before a word in the place of another counts."""

FUNCTION_WORD = 0.2
"""Weight of a function word in looking for the nearest sentence; a meaningful word has 1."""

_Words = list[tuple[str, str]]

_OUT, _IN = 2, 3
"""Limits for one word in the place of another: words of the question, and of the sentence."""


@dataclass(frozen=True, slots=True)
class Departure:
    """The ways in which an open question departs from a sentence."""

    opposed: bool
    """True where the question denies what the sentence affirms, or has the opposite of one of its words."""
    swapped: bool
    """True where, amid the same words in the same order, one word stands in the place of another."""


def find_departure(question: str, sentence: str) -> Departure:
    """Compare an open question with a sentence. A yes-or-no question never departs."""
    if _OPEN.search(question) is None:
        return Departure(opposed=False, swapped=False)
    asked, said = _read_words(question), _read_words(sentence)
    terms, wanted = {term for _, term in said}, {term for _, term in asked}
    unsaid, unasked = wanted - terms, terms - wanted
    opposed = {term for term in unsaid if not unasked.isdisjoint(_read_opposites().get(term, ()))}
    opposed |= {term for word, term in asked if term in unsaid and _strip_prefix(word) in unasked}
    opposed |= {bare for word, term in said if term in unasked and (bare := _strip_prefix(word)) in unsaid}
    meaningful = {term for word, term in asked if word not in STOP_WORDS}
    denies = _DENIAL.search(question) is not None and _DENIAL.search(sentence.lower()) is None
    same_matter = len(meaningful & (terms | opposed)) >= SAME_MATTER * len(meaningful)
    same_wording = len(meaningful & terms) >= SAME_WORDING * len(meaningful)
    return Departure(
        opposed=denies or (bool(opposed) and same_matter),
        swapped=same_wording and _has_swap(asked, said, meaningful - terms, unasked),
    )


def share_wording(question: str, sentences: Sequence[str]) -> list[float]:
    """Return, per sentence, how many different words of the question it has; a function word counts `FUNCTION_WORD`."""
    asked = {term: FUNCTION_WORD if word in STOP_WORDS else 1.0 for word, term in _read_words(question)}
    return [fsum(asked.get(term, 0.0) for term in {term for _, term in _read_words(s)}) for s in sentences]


def _has_swap(asked: _Words, said: _Words, missing: set[str], unasked: set[str]) -> bool:
    """Return True where, between words that both have in a row, the question has a word of `missing` and the sentence
    one of `unasked`."""
    steps = SequenceMatcher(None, [t for _, t in asked], [t for _, t in said], autojunk=False).get_opcodes()
    for before, (kind, start, end, other_start, other_end), after in zip(steps, steps[1:], steps[2:], strict=False):
        if (before[0], kind, after[0]) == ("equal", "replace", "equal") and (
            end - start <= _OUT
            and other_end - other_start <= _IN
            and not missing.isdisjoint(term for _, term in asked[start:end])
            and any(term in unasked and word not in STOP_WORDS for word, term in said[other_start:other_end])
        ):
            return True
    return False


def _read_words(text: str) -> _Words:
    """Return all words with their terms; a function word is its own term."""
    words = _WORD.findall(text.lower())
    return [(word, (*analyse(word), word)[0]) for word in words]


def _strip_prefix(word: str) -> str | None:
    """Return the term of the word without a prefix that turns it into its opposite."""
    negated = _NEGATED.fullmatch(word)
    return _read_words(negated[1])[0][1] if negated else None


@lru_cache(maxsize=1)
def _read_opposites() -> dict[str, set[str]]:
    """Return the opposites of each term."""
    opposites: dict[str, set[str]] = {}
    for line in _OPPOSITES.strip().splitlines():
        one, other = ({term for _, term in _read_words(side)} for side in line.split("|"))
        for terms, against in ((one, other), (other, one)):
            for term in terms:
                opposites.setdefault(term, set()).update(against)
    return opposites
