"""How sources are shown to a model: the same way in every prompt."""

import re
from collections.abc import Sequence

from domain.documents import Source, name_place
from domain.ports import TokenCounter

_TAG_START = re.compile(r"<(?=\W*source)", re.IGNORECASE)
_IN_ATTRIBUTE = str.maketrans({'"': "'", "<": "‹", ">": "›"})


def show_sources(sources: Sequence[Source]) -> str:
    """The sources, numbered, each in a tag of its own.

    A document that contains such a tag would otherwise open a source of its own. Its bracket is replaced by one that
    only looks like it; taking the tag out could leave another one behind, made of what stood around it.
    """
    return "\n\n".join(_show(source) for source in sources)


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
    where = " ".join(name_place(source["title"], source["heading_path"]).translate(_IN_ATTRIBUTE).split())
    page = f' page="{source["page"]}"' if source["page"] else ""
    text = _TAG_START.sub("‹", source["text"])
    return f'<source number="{source["number"]}" title="{where}"{page}>\n{text}\n</source>'
