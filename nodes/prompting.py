"""How sources are shown to a model: the same way in every prompt."""

import re
from collections.abc import Sequence

from domain.documents import Source, name_place
from domain.ports.models import TokenCounter

_UNSEEN = r"[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]*"
"""Characters that a reader does not see, and a model may not either."""
_LOOKALIKES = {"s": "ѕｓ", "o": "оοｏ", "u": "υսｕ", "r": "гｒ", "c": "сϲｃ", "e": "еｅ"}
_SOURCE = _UNSEEN.join(f"[{letter}{_LOOKALIKES[letter]}]" for letter in "source")
# What opens a source in our prompts, and what opens a message in the chat templates of models that a local server
# would not tell from its own.
_COMMAND = re.compile(
    rf"[<＜﹤](?=\W*{_SOURCE}|\||/?s>|/?(?:start|end)_of_turn|[/<]*SYS>>)|\[(?=/?INST\])", re.IGNORECASE
)
_HARMLESS = {"[": "［"}
_IN_ATTRIBUTE = str.maketrans({'"': "'", "<": "‹", ">": "›"})


def show_sources(sources: Sequence[Source]) -> str:
    """The sources, numbered, each in a tag of its own."""
    return "\n\n".join(_show(source) for source in sources)


def disarm(text: str) -> str:
    """`text` without what would end a source or open another, or a message of another role, for a prompt that it is
    put into.

    The bracket is replaced by one that only looks like it; taking the tag out could leave another one behind, made of
    what stood around it.
    """
    return _COMMAND.sub(lambda bracket: _HARMLESS.get(bracket[0], "‹"), text)


def show_titles(titles: Sequence[str]) -> str:
    """A list of titles, each on one line."""
    return "\n".join(f"- {disarm(' '.join(title.split()))}" for title in titles)


def fit_sources(sources: Sequence[Source], budget: int, tokens: TokenCounter) -> list[Source]:
    """The sources that fit into `budget` tokens: whole ones, dropped from the tail; the first always stays."""
    kept: list[Source] = []
    spent = 0
    for source in sources:
        spent += tokens.count(_show(source))
        if kept and spent > budget:
            break
        kept.append(source)
    return kept


def _show(source: Source) -> str:
    title = _show_attribute("title", name_place(source["title"], source["heading_path"]))
    path = _show_attribute("path", source["source"]) if source.get("source") else ""
    page = f' page="{source["page"]}"' if source["page"] else ""
    return f'<source number="{source["number"]}"{title}{path}{page}>\n{disarm(source["text"])}\n</source>'


def _show_attribute(name: str, value: str) -> str:
    return f' {name}="{disarm(" ".join(value.translate(_IN_ATTRIBUTE).split()))}"'
