"""Read what a language model asks for instead of answering."""

import re
from collections.abc import AsyncIterator
from typing import NamedTuple

from domain.state import Lack

_OPENINGS = ("SEARCH:", "TOOLS:")
_LINE = re.compile(r"^[ \t\r*_`>-]{0,20}(SEARCH|TOOLS):[ \t*_]*(.*)$", re.MULTILINE)
_MARKS = " \t\r\n*_`>-"


class Needs(NamedTuple):
    """What the model lacks: the queries to search for, or what to do with tools."""

    lacks: Lack
    missing: list[str]


class NeedsListener:
    """Recognises, at the beginning of a language model's reply, that it asks for more."""

    def __init__(self) -> None:
        self.heard: Needs | None = None
        """None where the model answers."""

    async def listen(self, reply: AsyncIterator[str]) -> AsyncIterator[str]:
        """Pass an answer on, as soon as it can be told that it is one; keep what is none."""
        held, is_answer = "", False
        async for piece in reply:
            held += piece
            opening = held.lstrip(_MARKS)
            is_answer = is_answer or not any(opening.startswith(each) or each.startswith(opening) for each in _OPENINGS)
            if is_answer:
                yield held
                held = ""
        lines = [(kind, said.strip(_MARKS)) for kind, said in _LINE.findall(held)]
        tools = [said for kind, said in lines if kind == "TOOLS"]
        if lines:
            self.heard = Needs("tools", tools) if tools else Needs("searches", [said for _, said in lines if said])
        elif held:
            yield held
