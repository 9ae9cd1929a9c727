"""Predicts, without a language model, whether sources hold the answer to a question.

The confidence is a logistic regression on a few features, fitted on public questions that are asked of their own
documents with and without the paragraph that answers. So it tells sources that answer from sources that are merely
about the same subject. The fit: `a88e208a:benchmarks/fit_confidence.py` in git. Figures: docs/decisions/10-grading.md.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from domain.documents import Source, name_place
from domain.ports.judgement import Grade
from domain.ports.unit_scoring import UnitScorer
from domain.profile import LONG_ANSWER, SHORT_ANSWER
from domain.scope import Scope
from domain.state import UNSURE, level_of
from domain.text.languages import Language, detect_language
from domain.text.question import split_carried
from domain.text.terms import analyse_in, content_words, find_terms
from nodes.reading.choosing import Passage, choose_passages
from nodes.reading.contrast import find_contradiction
from nodes.reading.fitting import judge_fit, lacks_name, read_whole
from nodes.reading.phrases import read_phrases
from nodes.reading.questions import SEVERAL, asks_for, read_parts
from nodes.reading.scoring import SHORTEST, ScoredUnits, choose_sources, cover, list_looked_up, score_units

_WEIGHTS: tuple[float, ...] = (-6.54, 0.46, 1.0, 3.72, -2.87, 0.06)
"""Log-odds: intercept, then one weight per feature, of an earlier fit. Those of coverage and contradiction are set by
hand (docs/decisions/10-grading.md): a training question without the paragraph that answers it is still compared with
its own document, which shares its words and never contradicts it, while users also ask about what no document mentions.
What the fit gives now (-5.91, .59, .43, 2.2, contradiction kept, .07) is worse on the unseen sets:
AUC .756 and .735, these .762 and .744."""

_MOST_WORDS = 20
"""Words of a question that are counted. Chosen: one in five hundred questions of the fit has more."""

_READ_AS = (0.0, 0.6, 0.9, 1.0), (0.0, 0.6, 0.8, 1.0)
"""What the logistic says, and how it is to be read: between .8 and .9 it is surer than right.
Of answers at .9 or more, 66 of 66 are right, and of those between 38 of 42 (seven judged sets)."""

_UNFIT = 0.4
"""Factor on the confidence of what lacks a name of the question, or has no figure where one is asked for: however sure
it was, it is then shown as a passage. Chosen by hand."""

_SURE = 0.7
"""Share of the probability that a quote holds, against all other units, from which it may be sure. Of answers at .8 or
more, 78 of 80 are right that hold it or a figure that is asked for, and 28 of 38 others (five sets of documents)."""

_LABELLED = 0.85
"""Least confidence of what alone has the label that is asked for, and is quoted whole. Chosen."""

_ACCOUNTED = 0.75
"""Share of the question's words, by weight, that a quote with its place has to have where its block goes on behind it.
Of answers at .8 or more, 9 of 13 with less are right, and 95 of 95 others (seven judged sets); of those between .7 and
.8 that the fit was surer of, 6 of 15 and 53 of 72."""

_OF_ANOTHER = 0.59
"""Confidence of a quote of another subject than the question's, at most. Chosen: it is answered with a caveat."""
_RIVAL = 0.75
"""Share of the most probable unit from which one outside the quote leaves a figure unsure: both may be meant. Of four
judged sets of documents (A to E of 2026-11-28) it takes the two wrong figures at .8 or more, and no right one."""

_PASSAGE = 0.39
"""Confidence at most of what is shown as a passage: below what answers with a caveat."""

_ELSEWHERE = 0.1
"""Share of the probability in other documents up to which a quote is shown that is less probable than not. Of 400
questions on documents that nobody had read, 13 such quotes are right and 5 wrong; of 201 practical ones 1 and 3, and 1
and 7 without this."""

_FOUND = 0.5
"""Confidence from which a part of a question counts as answered: it is then more probable than not."""

_NOTHING_MISSING = 0.6
"""Least confidence where an answer is probable and no word of the question is missing. Between .5 and .6, 10 of 14 such
answers are useful, and 17 of 31 others (six practical sets)."""

_READ = 3
"""Number of sources in which the nearest sentence is looked for. Chosen by hand."""


@dataclass(frozen=True, slots=True)
class Features:
    """The inputs of the logistic."""

    log_odds: float
    """Log-odds of the unit that answers best."""
    covered: float
    """Share of the question's terms, by weight, that the sources hold."""
    similarity: float
    """Cosine of the question with the best source; where that is not known, with its nearest unit."""
    contradiction: float = 0.0
    """From `find_contradiction`, for the nearest sentence."""
    words: int = 7
    """Number of words of the question. One unit holds a smaller share of a long question, even if it answers."""


@dataclass(frozen=True, slots=True)
class LocalGrader:
    """Implements `SourceGrader`."""

    unit_scorer: UnitScorer

    async def grade(self, question: str, sources: Sequence[Source], *, scope: Scope, typed: str | None = None) -> Grade:
        if rows := list_looked_up(question, sources):
            score, told = rows[0]["score"], [row.get("computed", "") for row in rows]
            return Grade(min(score, UNSURE) if lacks_name(question, told) else score, [])
        missing = find_missing(question, sources)
        read = [source for source in sources if "computed" not in source] or sources
        whole = await self._estimate(question, read, scope, typed)
        sure: dict[str, float] = {}
        for part in read_parts(question):
            asked, _ = split_carried(part)
            rows, own = list_looked_up(part, sources), choose_sources(part, read)
            sure[asked] = rows[0]["score"] if rows else await self._estimate(part, own, scope, asked)
        confidence = max(whole, *sure.values()) if sure else whole
        if confidence >= _FOUND:
            missing += [part for part, probability in sure.items() if probability < _FOUND]
            confidence = confidence if missing else max(confidence, _NOTHING_MISSING)
        if sure and level_of(min(sure.values())) != "high":
            # As sure of the whole as of the part that is least sure.
            confidence = min(confidence, UNSURE)
        return Grade(confidence, missing)

    async def _estimate(self, question: str, sources: Sequence[Source], scope: Scope, typed: str | None) -> float:
        """Return the probability that what would be quoted answers; little where that cannot be an answer."""
        scored = await score_units(question, sources, self.unit_scorer, scope, typed=typed)
        confidence = float(np.interp(estimate_confidence(read_features(question, sources, scored)), *_READ_AS))
        several = asks_for(typed or question, *SEVERAL)
        budget = LONG_ANSWER if several else SHORT_ANSWER
        best = choose_passages(scored.units, scored.shares, 1, budget, several=several, wanted=scored.wanted)
        if not best:
            return confidence * _UNFIT
        quoted = slice(best[0].first, best[0].last + 1)
        has_label = bool(scored.labelled) and {*scored.labelled} <= {*range(best[0].first, best[0].last + 1)}
        if has_label:
            confidence = max(confidence, _LABELLED)
        fit = judge_fit(question, scored.units[quoted], scored.shares[quoted], scored.units)
        if fit == "none":
            return confidence * _UNFIT
        if confidence < _FOUND and _is_one_of_many(scored, best[0]):
            return min(confidence, _PASSAGE)
        if fit == "another":
            return min(confidence, _OF_ANOTHER)
        others = np.delete(scored.shares, np.r_[quoted]).max(initial=0.0)
        has_figure = fit == "figure" and others < _RIVAL * scored.shares[quoted].max()
        is_sure = has_figure or (fit in ("figure", "open") and float(scored.shares[quoted].sum()) >= _SURE)
        is_whole = has_label or not _is_part(question, scored, best[0], fit)
        return confidence if is_sure and is_whole else min(confidence, UNSURE)


def _is_one_of_many(scored: ScoredUnits, quoted: Passage) -> bool:
    """Return True for a row of a table, and where other documents may as well be meant."""
    first = scored.units[quoted.first]
    owners = (unit.source["document_id"] != first.source["document_id"] for unit in scored.units)
    return first.kind == "table" or float(scored.shares[list(owners)].sum()) > _ELSEWHERE


def _is_part(question: str, scored: ScoredUnits, quoted: Passage, fit: str) -> bool:
    """Return True for the beginning of a paragraph, list or table that leaves words of the question open: they may
    stand in the rest."""
    units, language = scored.units[quoted.first : quoted.last + 2], detect_language(question) or "en"
    last, behind = scored.units[quoted.last], units.pop() if len(units) > quoted.last + 1 - quoted.first else None
    if behind is None or behind.source is not last.source or behind.block != last.block:
        return False
    told = frozenset[str]().union(*(find_terms(read_whole(unit), language) for unit in units))
    # A figure accounts for the words that ask for one.
    asked = read_phrases(language, "questions")["number"].search(question) if fit == "figure" else None
    return cover(scored.wanted, told | find_terms(asked[0] if asked else "", language)) < _ACCOUNTED


def estimate_confidence(features: Features) -> float:
    """Return the probability (0-1) that the sources answer the question."""
    log_odds = sum(weight * value for weight, value in zip(_WEIGHTS, (1.0, *astuple(features)), strict=True))
    return 1 / (1 + math.exp(-log_odds))


def read_features(question: str, sources: Sequence[Source], scored: ScoredUnits) -> Features:
    """Compute the features of a question and at least one source."""
    known = sources[0]["dense"]
    nearest = {source["number"] for source in sources[:_READ]}
    language = detect_language(question) or "en"
    return Features(
        log_odds=float(scored.log_odds.max(initial=0.0)),
        covered=cover(scored.wanted, _read_terms(sources, language)),
        similarity=scored.similarity if known is None else known,
        contradiction=find_contradiction(question, [u.text for u in scored.units if u.source["number"] in nearest]),
        words=min(len(question.split()), _MOST_WORDS),
    )


def find_missing(question: str, sources: Sequence[Source]) -> list[str]:
    """Return the question's meaningful words, names and numbers whose stem is in no source, in order. German writes
    compounds as one word: "Systemabsturz" names "Absturz"; "14d" names 14."""
    language = detect_language(question) or "en"
    covered = _read_terms(sources, language)
    own = {word: analyse_in(language, word) for word in content_words(question)}
    return [
        word for word, terms in own.items() if terms and not any(_is_named(term, covered, language) for term in terms)
    ]


def _is_named(term: str, covered: Collection[str], language: Language) -> bool:
    if term in covered:
        return True
    if term.isdigit():
        return any(each.startswith(term) and each[len(term) :].isalpha() for each in covered)
    is_part = language == "de" and term.isalpha() and len(term) >= SHORTEST
    return is_part and any(each.startswith(term) or each.endswith(term) for each in covered)


def _read_terms(sources: Sequence[Source], language: Language) -> frozenset[str]:
    """Return the terms of the sources, titles and headings included."""
    texts = (text for s in sources for text in (name_place(s["title"], s["heading_path"]), s["text"]))
    return frozenset[str]().union(*(find_terms(text, language) for text in texts))
