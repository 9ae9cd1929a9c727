"""Makes questions of what a text says, which it answers: those it asks itself, and those that a sentence with a figure
or a definition, or a cell of a table, turns into by the forms of its language (`starters.toml`). No form fits most
sentences, and then there is no question."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from domain.text.blocks import Block, Span, blank_struck, plain_text, read_blocks
from domain.text.dictionary import is_word
from domain.text.languages import Language, detect_language, fold, read_file, read_words
from domain.text.sentences import split_block
from domain.text.tables import is_row, is_rule, split_cells

LONGEST_READ = 100_000
"""Characters of a document that is read for the sake of a question."""
_LONGEST = 90
"""Characters of a question. Chosen: one line of the page."""
_LONGEST_SENTENCE = 300
"""Characters of a sentence that are read."""
_MOST_WORDS = 8
"""Words of what a sentence is about. Chosen: what is longer holds a sentence of its own."""
_LONGEST_NAME = 5
"""Words that name a row."""
_MOST_ROWS = 8
"""Rows of a table of which a question is made."""
_LONGEST_FIGURE = 24
"""Characters of a cell that holds a figure with its unit."""

_BARE = r"[\w'’/-]+(?:[.+]\w+)*"
_BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")


@dataclass(frozen=True, slots=True)
class Starter:
    """A question, and the span of the text that answers it."""

    question: str
    answer: Span


def make_starters(text: str) -> Iterator[Starter]:
    """Yield questions that the text answers: first those that it asks itself, then those of its sentences, then those
    of its tables. Each is short and understood without the text."""
    told = detect_language(text)
    # Columns of English names are told by these.
    language = told or "en"
    blocks = read_blocks(blank_struck(text))
    sentences = (*_read_asked(text, blocks, language), *_turn_sentences(text, blocks, language)) if told else ()
    yield from (starter for starter in sentences if len(starter.question) <= _LONGEST)
    for block in blocks:
        if block.kind == "table":
            yield from _read_cells(text, block, language)


def _read_asked(text: str, blocks: Sequence[Block], language: Language) -> Iterator[Starter]:
    whole = re.compile(read_file(language, "reading")["followup"]["whole"], re.IGNORECASE)
    how_to = read_file(language, "starters").get("how_to")
    for block, following in pairwise(blocks):
        said = plain_text(text[block.start : block.end]).strip(" #*\n")
        if "\n" in said or following.kind == "heading" or _leans(said, language):
            continue
        if said.endswith("?") and whole.match(said):
            yield Starter(said, (following.start, following.end))
        elif block.kind == "heading" and how_to and (match := re.fullmatch(how_to[0], said)):
            yield Starter(how_to[1].format(match[1]), (following.start, following.end))


def _turn_sentences(text: str, blocks: Sequence[Block], language: Language) -> Iterator[Starter]:
    forms = _read_forms(language)
    for block in blocks:
        if block.kind != "paragraph":
            continue
        for start, end in split_block(text, block, language):
            sentence = " ".join(plain_text(text[start : min(end, start + _LONGEST_SENTENCE)]).split())
            if question := forms.turn(sentence, text):
                yield Starter(question, (start, end))


@dataclass(frozen=True, slots=True)
class _Forms:
    """The forms of a language."""

    language: Language
    rules: Sequence[tuple[re.Pattern[str], str]]
    determiners: re.Pattern[str]
    indefinite: re.Pattern[str]
    joints: re.Pattern[str]

    def turn(self, sentence: str, text: str) -> str | None:
        """Return the question of the first form that fits the sentence."""
        for pattern, question in self.rules:
            if (match := pattern.match(sentence)) is None:
                continue
            parts = {name: part or "" for name, part in match.groupdict().items()}
            rest = f"{parts.get('b', '')} {parts.get('a', '')}"
            if self._breaks_off(parts.get("b", "")) or _leans(rest, self.language):
                continue
            if "s" in parts:
                named = self._name(parts["s"], text, is_known="name" in parts)
                if named is None:
                    continue
                parts["s"] = named
            asked = " ".join(question.format_map(parts).split())
            return asked if question.endswith(" ?") else asked.replace(" ?", "?")
        return None

    def _name(self, subject: str, text: str, *, is_known: bool) -> str | None:
        """Return what a sentence is about, an article and nouns, as it is written within a sentence; None for anything
        else. `is_known` asks for what can be asked after by itself: a name, or any one of a kind."""
        stops = read_words(self.language).stop_words
        first, *others = re.sub(r"^(\w['’])(?=\w)", r"\1 ", subject).split()
        nouns = others if (has_article := self.determiners.fullmatch(first) is not None) else [first, *others]
        if (
            not nouns
            or len(nouns) > _MOST_WORDS
            or any(fold(word) in stops and not self.joints.fullmatch(word) for word in nouns[not has_article :])
            or fold(nouns[0]) in stops
            or self.joints.fullmatch(nouns[-1])
        ):
            return None
        if has_article:
            is_name = _is_code(nouns[0]) or self.indefinite.fullmatch(first)
            return first.lower() + subject[len(first) :] if is_name or not is_known else None
        if _is_code(first) or self.language == "de" or _is_large_within(first, text):
            return subject
        is_plural = first.endswith("s") and is_word(fold(first[:-1]), self.language)
        is_small = _is_small_within(first, text) or (is_plural and len(others) < 1)
        return None if is_known or not is_small else first[0].lower() + subject[1:]

    def _breaks_off(self, before: str) -> bool:
        """Return True where a word is left over without what it belongs to, and for what does not happen."""
        stops = read_words(self.language).stop_words
        words = before.split()
        return bool(words) and (fold(words[-1]) in stops or not {"not", "never", "nicht", "nie"}.isdisjoint(words))


def _is_code(word: str) -> bool:
    """Return True for a name of signs: WS-400, LoRaWAN, API, log.level."""
    return word[1:] != word[1:].lower() or not word.replace("-", "").replace("'", "").isalpha()


def _is_large_within(word: str, text: str) -> bool:
    return re.search(rf"(?<=[a-z,] ){re.escape(word)}\b", text) is not None


def _is_small_within(word: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(word.lower())}\b", text) is not None


@cache
def _read_forms(language: Language) -> _Forms:
    data: Mapping[str, Any] = read_file(language, "starters")
    stops = "|".join(sorted(read_words(language).stop_words - {"a", "an", "of", "per"}))
    names = {
        "about": data["about"],
        "money": read_file(language, "reading")["questions"]["money"],
        "number": data["number"],
        "span": data["span"].replace("{number}", data["number"]),
        "date": data.get("date", "(?!)"),
        "v": rf"(?P<v>{data.get('v', '(?!)')})",
        "s": rf"(?P<s>(?=[^\W\d_]){_BARE}(?: {_BARE}){{0,{_MOST_WORDS}}}?(?: \([^()]{{2,12}}\))?)",
        "name": rf"(?P<s>(?P<name>(?:(?:{data['determiners']}) )?(?=[^\W\d_]){_BARE}(?: {_BARE}){{0,2}}?))",
        "n": rf"(?P<n>(?!(?:{stops}|of|per)\b)[^\W\d]{_BARE}(?: (?!\d){_BARE}){{0,6}}?)(?=[.,;:()]|$| (?:{stops})\b)",
        "b": r"(?P<b>[^,;:()]{2,60}?)",
        "a": r"(?P<a>(?: [^.,;:()]{1,60}?)?)(?=[.,;:(]|$)",
        "end": r"(?=[.,;:(]|$)",
    }
    rules = [
        (re.compile(re.sub(r"\{(\w+)\}", lambda match: names.get(match[1], match[0]), pattern)), question)
        for pattern, question in data["rules"]
    ]
    flags = re.IGNORECASE
    return _Forms(
        language,
        rules,
        re.compile(data["determiners"], flags),
        re.compile(data["indefinite"], flags),
        re.compile(data["joints"]),
    )


def _leans(question: str, language: Language) -> bool:
    """Return True for a question that points to what stands elsewhere."""
    leans = read_file(language, "reading")["followup"]
    return any(re.search(leans[kind], question, re.IGNORECASE) for kind in ("pointers", "pronouns"))


def _read_cells(text: str, block: Block, language: Language) -> Iterator[Starter]:
    """Yield a question for figures in a table: of its row, which its first cell names, and its column."""
    forms = read_file(language, "starters")
    rows = [part for part in block.parts if is_row(text[slice(*part)]) and not is_rule(text[slice(*part)])]
    if "cell" not in forms or block.lead is None or len(rows) < 2:
        return
    header = split_cells(next((line for line in text[slice(*block.lead)].splitlines() if is_row(line)), ""))
    cells = [split_cells(text[slice(*part)]) for part in rows]
    first = [row[0] for row in cells]
    for column in range(1, len(header)):
        asked = _drop_brackets(header[column])
        values = [row[column] for row in cells if column < len(row) and row[column]]
        if not _is_countable(asked, language) or not all(map(_is_figure, values)):
            continue
        for row, part in list(zip(cells, rows, strict=True))[:_MOST_ROWS]:
            name = _drop_brackets(row[0])
            is_code = any(map(_is_code, name.split()))
            if column < len(row) and row[column] and first.count(row[0]) == 1 and _is_label(name, language):
                form = forms["named_cell" if is_code or name.istitle() else "cell"]
                is_phrase = " " in name and not name.istitle()
                definite = f"{forms['definite']} {name}"
                if is_code and definite.lower() in text.lower():
                    name = definite
                elif not is_code and (is_phrase or _is_small_within(name.split()[0], text)):
                    name = name[0].lower() + name[1:]
                yield Starter(form.format(column=asked[0].lower() + asked[1:], row=name), part)


def _drop_brackets(cell: str) -> str:
    return " ".join(_BRACKETS.sub(" ", plain_text(cell)).split())


def _is_figure(cell: str) -> bool:
    return len(cell) <= _LONGEST_FIGURE and re.search(r"\d", cell) is not None


def _is_countable(name: str, language: Language) -> bool:
    """Return True for the name of one thing of which there may be several: a noun, which "the" may stand before."""
    words = fold(name).split()
    stops = read_words(language).stop_words
    if not 0 < len(words) <= 3 or not all(word.isalpha() and word not in stops for word in words):
        return False
    *_, last = words
    plural = f"{last[:-1]}ies" if re.search("[^aeiou]y$", last) else f"{last}s"
    return is_word(last, language) and is_word(plural, language)


def _is_label(name: str, language: Language) -> bool:
    """Return True for what may name a row within a sentence."""
    words = name.split()
    stops = read_words(language).stop_words
    is_plain = name[:1].isalpha() and "," not in name and len(words) <= _LONGEST_NAME
    return is_plain and not any(fold(word) in stops for word in words)
