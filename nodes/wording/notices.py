"""Prose for outcomes: the only place where an outcome's reasons become text.

Each language has them in a file `notices.toml` of its folder in `domain/languages`.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from domain.errors import UnsupportedAnswer
from domain.outcome import Reason
from domain.profile import Profile
from domain.state import Failure
from domain.text.claims import LATEX
from domain.text.hyperlinks import strip_images
from domain.text.languages import Language, is_in_other_script, read_file


class _Texts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Abstention(_Texts):
    """The texts of abstentions."""

    sentence: str
    searched: str
    nothing_close: str
    no_documents: str
    other_language: str
    unread_language: str


class Passages(_Texts):
    """The texts around passages that may answer."""

    opening: str


class Caveat(_Texts):
    """The texts of caveats and admissions."""

    low_confidence: str
    missing_words: str
    missing_parts: str
    no_source: str


class Correction(_Texts):
    """The texts of reasons for corrections."""

    stopped: str
    uncited: str
    withdrawn: str
    rewritten: str
    cited: str
    list_withdrawn: str
    one_statement: str
    statements: str


class Lists(_Texts):
    """The texts around and between items of a list."""

    quoted: str
    separator: str
    alternative: str
    also: str
    also_others: str


class Origin(_Texts):
    """The texts that name the quoted document and its date, where several documents are quoted."""

    document: str
    date: str


class Library(_Texts):
    """The texts around what is said about the library itself."""

    one_document: str
    documents: str
    some_documents: str
    about: str
    not_found: str
    held_back: str


class Question(_Texts):
    """The texts of questions back."""

    which: str


class Warnings(_Texts):
    """Warnings that come with an answer."""

    one_unembedded: str
    unembedded: str
    cut: str
    late: str
    lost_link: str
    other_language: str
    ended: str
    uncited: str
    beside_question: str
    unread: str


Reply = Literal[
    "greeting", "wellbeing", "thanks", "goodbye", "abilities", "settings", "assistant", "entertainment", "life",
    "no", "yes", "other", "cannot_do", "cannot_help",
]  # fmt: skip
"""A reply to small talk, or a refusal."""


class SmallTalk(_Texts):
    """Replies to small talk, and refusals. `offer` is the offer to ask about documents."""

    greeting: str
    wellbeing: str
    thanks: str
    goodbye: str
    abilities: str
    settings: str
    assistant: str
    entertainment: str
    life: str
    no: str
    yes: str
    other: str
    cannot_do: str
    cannot_help: str
    offer: str
    offer_unknown: str
    offer_none: str


_NAMED = 3
"""Number of titles that a reply to small talk names; a list of all would be noise."""


_REPEATED = 160
"""Characters of a question that an abstention repeats. Chosen: about two lines."""

_WHOLE = re.compile(rf"{LATEX}|`[^`\n]+`|\[[^][\n]*\]\([^()\s]*\)|(?P<mark>\*\*|__|~~|\*|_)[^*_~\n]+(?P=mark)")
"""What Markdown encloses: formulas, code, links, words in bold and the like."""

_NAMED_OF = 60
"""Characters of a statement by which an answer names it. Chosen: it stands above."""


class Wording(_Texts):
    """The texts of one language."""

    abstention: Abstention
    passages: Passages
    caveat: Caveat
    correction: Correction
    lists: Lists
    origin: Origin
    library: Library
    question: Question
    warnings: Warnings
    small_talk: SmallTalk

    def adapt(self, sentence: str | None) -> Self:
        """Return the same texts with an abstention of the profile's own, if it has one."""
        if sentence is None:
            return self
        alone = Abstention(**{**dict.fromkeys(Abstention.model_fields, ""), "sentence": sentence})
        return self.model_copy(update={"abstention": alone})

    def abstain(self, reasons: Sequence[Reason]) -> str:
        """Return an abstention: the sentence and, where the profile has none of its own, what was searched. Where there
        are no documents, only that is said: they cannot fail to answer."""
        texts = self.abstention
        said = [texts.sentence]
        for reason in reasons:
            if reason["code"] == "nothing_found":
                if reason["scope_is_empty"] and texts.no_documents:
                    return texts.no_documents
                said += [texts.searched.format(query=_begin(reason["searched"])), texts.nothing_close]
                if is_in_other_script(reason["searched"]):
                    said.append(texts.unread_language)
            elif reason["code"] == "other_language":
                said.append(texts.other_language)
        return " ".join(filter(None, said))

    def explain(self, failure: Failure | None) -> str:
        """Return why what a model has streamed is replaced."""
        if failure is not None and failure["code"] == UnsupportedAnswer().code:
            return failure["message"]
        return self.correction.stopped

    def open(self, reasons: Sequence[Reason]) -> str:
        """Return the caveat that opens an answer, as a paragraph of its own; empty where there is none."""
        is_low = any(reason["code"] == "low_confidence" for reason in reasons)
        return f"{self.caveat.low_confidence}\n\n" if is_low else ""

    def close(self, reasons: Sequence[Reason]) -> str:
        """Return the admission that ends an answer, as a paragraph of its own; empty where there is none."""
        said: list[str] = []
        for reason in reasons:
            if reason["code"] == "missing_words":
                said.append(self.caveat.missing_words.format(words=self._offer(reason["words"])))
            elif reason["code"] == "missing_parts":
                said.append(self.caveat.missing_parts.format(parts=self._offer(reason["parts"])))
            elif reason["code"] == "uncited" and "statements" in reason:
                named = self._list(_begin(each, _NAMED_OF) for each in reason["statements"])
                said.append(self.caveat.no_source.format(statements=named))
            elif reason["code"] == "other_language":
                said.append(self.abstention.other_language)
        return f"\n\n{' '.join(said)}" if said else ""

    def name_origin(self, title: str, updated_at: str | None) -> str:
        """Return the title of a quoted document and the date of its revision, in ISO 8601, if that is known."""
        if updated_at is None:
            return title
        year, month, day = updated_at[:10].split("-")
        date = self.origin.date.format(year=year, month=month, day=day)
        return self.origin.document.format(title=title, date=date)

    def correct(self, *, statements: int, rewritten: int, withdrawn: int) -> str:
        """Return why an answer was corrected after its statements were verified."""
        texts = self.correction
        if not statements:
            return texts.uncited
        if not rewritten and not withdrawn:
            return texts.cited
        counted = texts.one_statement if statements == 1 else texts.statements.format(count=statements)
        template = texts.rewritten if rewritten else texts.withdrawn
        return template.format(statements=counted, rewritten=rewritten, withdrawn=withdrawn)

    def list_withdrawn(self, statements: Sequence[str]) -> str:
        """Return which statements were withdrawn."""
        return self.correction.list_withdrawn.format(statements=self._list(statements))

    def reply(self, reply: Reply, titles: Sequence[str] | None) -> str:
        """Return a reply to small talk with an offer of documents; `titles` None: it is not known which there are."""
        texts = self.small_talk
        if titles is None:
            offer = texts.offer_unknown
        elif not titles:
            offer = texts.offer_none
        else:
            offer = texts.offer.format(titles=self.name(titles[:_NAMED], more=len(titles) > _NAMED))
        said: str = getattr(texts, reply)
        return said.format(offer=offer)

    def list_documents(self, titles: Sequence[str], total: int) -> str:
        """Return which documents there are: all `total` of them, or as many as `titles` names."""
        if not total:
            return self.small_talk.offer_none
        if total == 1:
            return self.library.one_document.format(titles=self.name(titles))
        text = self.library.some_documents if total > len(titles) else self.library.documents
        return text.format(total=total, titles="".join(f"\n- {self._quote(title)}" for title in titles))

    def warn_of_unembedded(self, documents: int) -> str:
        """Return that so many documents, at least one, are found by their words only."""
        texts = self.warnings
        return texts.one_unembedded if documents == 1 else texts.unembedded.format(count=f"{documents:,}")

    def ask_back(self, labels: Sequence[str]) -> str:
        """Return the question back, with what may be meant as a numbered list."""
        choices = "".join(f"\n{number}. {strip_images(label)}" for number, label in enumerate(labels, 1))
        return f"{self.question.which}{choices}"

    def name(self, titles: Sequence[str], *, more: bool = False) -> str:
        """Return the titles in quotation marks, as one reads a list aloud."""
        quoted = [self._quote(title) for title in titles]
        if more:
            return self.lists.separator.join(quoted) + self.lists.also_others
        return self.lists.also.join([self.lists.separator.join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)

    def _offer(self, items: Sequence[str]) -> str:
        return self.lists.alternative.join(map(self._quote, items))

    def _list(self, items: Iterable[str]) -> str:
        return self.lists.separator.join(map(self._quote, items))

    def _quote(self, item: str) -> str:
        return self.lists.quoted.format(item=strip_images(item))


def _begin(text: str, most: int = _REPEATED) -> str:
    """Return a question or statement, of a long one its beginning: the reader knows it. No formula is cut, and nothing
    else that Markdown encloses, because the page would show its marks: what begins the text is repeated whole."""
    if len(text) <= most:
        return text
    end = len(text[:most].rsplit(None, 1)[0])
    for whole in _WHOLE.finditer(text):
        if whole.start() < end < whole.end():
            end = whole.start() or whole.end()
    return f"{text[:end].rstrip()}…" if end < len(text) else text


def wording_of(profile: Profile, language: Language) -> Wording:
    """Return the texts in which a run of this profile speaks a language."""
    return read_catalogue(language).adapt(profile.generate.fallback)


@lru_cache
def read_catalogue(language: Language) -> Wording:
    """Read the texts of a language."""
    return Wording.model_validate(read_file(language, "notices"))
