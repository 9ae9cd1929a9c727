"""Replies that need neither documents nor a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from domain.text.languages import Language
from nodes.reading.phrases import read_phrases
from nodes.wording.notices import Reply, read_catalogue


@dataclass(frozen=True, slots=True)
class LocalSmallTalk:
    """Implements `SmallTalk` with the fixed replies of the catalogue."""

    async def reply(self, question: str, titles: Sequence[str] | None, language: Language) -> str:
        return read_catalogue(language).reply(_choose_reply(question, language), titles)

    async def decline(self, question: str, titles: Sequence[str] | None, language: Language) -> str:
        is_action = read_phrases(language, "talk")["action"].search(question)
        return read_catalogue(language).reply("cannot_do" if is_action else "cannot_help", titles)


def _choose_reply(question: str, language: Language) -> Reply:
    """Return the first reply whose words the question holds; in English where its own language has none of them."""
    spoken: tuple[Language, ...] = (language, "en")
    for each in dict.fromkeys(spoken):
        for name, pattern in read_phrases(each, "talk", "replies").items():
            if pattern.search(question):
                return cast(Reply, name)
    return "other"
