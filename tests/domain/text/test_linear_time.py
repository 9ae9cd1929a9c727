"""Functions that read an answer or a source on the event loop take time in proportion to the text.

`tests/test_linear_patterns.py` tries the patterns; here whole functions read long repetitions. Time is that of the CPU,
and only its growth counts: with eight times the text a linear function takes 8 times as long, a quadratic one 64. And
no function does more work a character than ten thousand rounds of a loop.
"""

import time
from collections.abc import Callable

import pytest

from domain.library.citations import cite, cite_by_marker
from domain.profile import CitationStyle
from domain.text.blocks import find_plain, read_blocks
from domain.text.claims import split_claims
from domain.text.disguises import DisguiseStream
from domain.text.hyperlinks import strip_links
from domain.text.injections import gives_orders
from domain.text.languages import detect_language
from domain.text.markers import MarkerStream, find_markers, strip_markers
from domain.text.sentences import split_sentences
from domain.text.snippets import find_snippet
from domain.text.terms import analyse
from nodes.prompting.messages import disarm
from nodes.writing.claims import find_quoted
from tests.sources import make_source

SHORT, LONGER, GROWTH = 2000, 8, 23
ROUNDS = 10_000
SOURCE = make_source("A sentence of a source. " * 100)
WORTH_A_LOOK = 0.05
"""CPU seconds for the long text below which its growth does not matter."""

PIECES = (
    "a", " ", "\n", "a. ", "a.\n", "[1]", "a [1]. ", "[1]\n\n", "[", "](", "![", "- a\n", "  - a [1]\n", "> a\n",
    "| a | b [1] |\n", "|-|-|\n", "`", "```\n", "`` ` ", "# a\n", "a\n: b\n", "a: b\n", "==\n", "http://a ", "a@b.c ",
    "www.a", "!", "(", "<a", "&#58;", "\\", "\u200b", "漢。", "é ",
    "$a$\n\n", "-\n$a$\n\n", "a | b\nlabel\n", "a:\n\n", "| - ", "#", "!a", "a@", "a-", "1.", "/", "a.b/",
    "]:",
)  # fmt: skip


def _mark_in_tokens(text: str, style: CitationStyle = "number") -> None:
    stream = MarkerStream(["c1"], style)
    for character in text:
        stream.feed(character)
    stream.finish()


def _undisguise(text: str) -> None:
    stream = DisguiseStream()
    stream.feed(text)
    stream.finish()


READERS: dict[str, Callable[[str], object]] = {
    "find_markers": lambda text: find_markers(text, ["c1"]),
    "strip_markers": strip_markers,
    "MarkerStream": _mark_in_tokens,
    "split_claims": lambda text: split_claims(text, ["c1"]),
    "read_blocks": read_blocks,
    "find_plain": find_plain,
    "split_sentences": split_sentences,
    "strip_links": lambda text: strip_links(text, ["a source"]),
    "strip_links of a link": lambda text: strip_links(f"[a]({text}(", []),
    "DisguiseStream": _undisguise,
    "detect_language": detect_language,
    "gives_orders": gives_orders,
    "find_snippet": lambda text: find_snippet(text, [text[place : place + 20] for place in range(0, len(text), 20)]),
    "analyse": analyse,
    "cite_by_marker": lambda text: cite_by_marker(text, [cite(SOURCE)], [SOURCE]),
    "disarm": disarm,
    "find_quoted": lambda text: find_quoted(text, []),
}


def _measure(read: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    read(text)
    return time.thread_time() - began


def _loop(text: str) -> None:
    for _ in text:
        pass


def _repeat(piece: str, length: int) -> str:
    return (piece * (length // len(piece) + 1))[:length]


@pytest.mark.parametrize("name", READERS)
def test_readers_take_linear_time(name: str) -> None:
    read, slow = READERS[name], []
    read("Warm up: the first use may load data. [1]")
    for piece in PIECES:
        long = _measure(read, _repeat(piece, LONGER * SHORT))
        tries = 0
        # Each text is new, because some readers remember what they have read.
        while long > WORTH_A_LOOK and long > GROWTH * _measure(read, _repeat(piece, SHORT - tries)) and tries < 3:
            tries += 1
            long = min(long, _measure(read, _repeat(piece, LONGER * SHORT - tries)))
        if tries == 3:
            slow.append(f"{piece!r}: {long:.2f} s")
        elif long > ROUNDS * _measure(_loop, _repeat(piece, LONGER * SHORT)) and long > WORTH_A_LOOK:
            slow.append(f"{piece!r}: {long:.2f} s for {LONGER * SHORT} characters")
    assert not slow, slow


@pytest.mark.parametrize("piece", ["[1]", "a [1]. ", "[", "<a", " ", "`"])
def test_markers_of_a_long_answer_take_linear_time(piece: str) -> None:
    def read(length: int) -> float:
        text = _repeat(piece, length)
        return min(_measure(lambda text: find_markers(text, ["c1"]), text) for _ in range(2))

    assert read(160_000) < GROWTH * max(read(20_000), 0.004)
