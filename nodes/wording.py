"""Prose for outcomes: the only place where an outcome's reasons become text.

Each language is a file of `nodes/catalogue`. To add one, add its file and its name to `domain.profile.Language`.
"""

import tomllib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from domain.outcome import Reason
from domain.profile import Language, Profile

_CATALOGUE = Path(__file__).parent / "catalogue"


class _Texts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Abstention(_Texts):
    """The texts of abstentions."""

    sentence: str
    searched: str
    nearest: str
    nothing_close: str
    no_documents: str


class Caveat(_Texts):
    """The texts of caveats and admissions."""

    low_confidence: str
    missing_words: str


class Correction(_Texts):
    """The texts of reasons for corrections."""

    stopped: str
    uncited: str
    withdrawn: str
    rewritten: str
    one_statement: str
    statements: str


class Lists(_Texts):
    """The texts around and between items of a list."""

    quoted: str
    separator: str
    alternative: str


class Wording(_Texts):
    """The texts of one language."""

    abstention: Abstention
    caveat: Caveat
    correction: Correction
    lists: Lists

    def adapt(self, sentence: str | None) -> Self:
        """Return the same texts with an abstention of the profile's own, if it has one."""
        if sentence is None:
            return self
        alone = Abstention(sentence=sentence, searched="", nearest="", nothing_close="", no_documents="")
        return self.model_copy(update={"abstention": alone})

    def abstain(self, reasons: Sequence[Reason]) -> str:
        """Return an abstention: the sentence and, where the profile has none of its own, what was searched and
        what came nearest, if that is known."""
        texts = self.abstention
        said = [texts.sentence]
        for reason in reasons:
            if reason["code"] != "nothing_found":
                continue
            said.append(texts.searched.format(query=reason["searched"]))
            if reason["nearest"]:
                titles = self.lists.separator.join(map(self._quote, reason["nearest"]))
                said.append(texts.nearest.format(titles=titles))
            else:
                said.append(texts.no_documents if reason["scope_is_empty"] else texts.nothing_close)
        return " ".join(filter(None, said))

    def open(self, reasons: Sequence[Reason]) -> str:
        """Return the caveat that opens an answer, with the blank after it; empty where there is none."""
        is_low = any(reason["code"] == "low_confidence" for reason in reasons)
        return f"{self.caveat.low_confidence} " if is_low else ""

    def close(self, reasons: Sequence[Reason]) -> str:
        """Return the admission that ends an answer, with the blank before it; empty where there is none."""
        said = ""
        for reason in reasons:
            if reason["code"] == "missing_words":
                words = self.lists.alternative.join(map(self._quote, reason["words"]))
                said += f" {self.caveat.missing_words.format(words=words)}"
        return said

    def correct(self, *, statements: int, rewritten: int, withdrawn: int) -> str:
        """Return why an answer was corrected after its statements were verified."""
        texts = self.correction
        if not statements:
            return texts.uncited
        counted = texts.one_statement if statements == 1 else texts.statements.format(count=statements)
        template = texts.rewritten if rewritten else texts.withdrawn
        return template.format(statements=counted, rewritten=rewritten, withdrawn=withdrawn)

    def _quote(self, item: str) -> str:
        return self.lists.quoted.format(item=item)


def wording_of(profile: Profile) -> Wording:
    """Return the texts in which a run of this profile speaks."""
    return read_catalogue(profile.language).adapt(profile.generate.fallback)


@lru_cache
def read_catalogue(language: Language) -> Wording:
    """Read the texts of a language."""
    return Wording.model_validate(tomllib.loads((_CATALOGUE / f"{language}.toml").read_text(encoding="utf-8")))
