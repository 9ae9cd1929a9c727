import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token
from selectolax.lexbor import LexborHTMLParser

from app.ingest.decoding import decode
from app.ingest.front_matter import split_front_matter
from app.ingest.readers.assembly import Assembly, clean, squeeze
from app.ingest.readers.html import add_html
from domain.documents import ParsedDocument
from domain.metadata import Metadata

_PARSER = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"])


def read_markdown(source: str, data: bytes) -> ParsedDocument:
    """Markdown without its markup, because the text is quoted, embedded and searched as it stands.

    Code keeps its lines, a table row becomes ``cell | cell``, list items keep their markers, and a link keeps its
    address where that is not relative. Front matter is metadata and no part of the text; its ``title`` names the
    document.
    """
    metadata, text = split_front_matter(clean(decode(data)))
    assembly = Assembly()
    _add_tokens(assembly, _PARSER.parse(text))
    title = metadata.get("title")
    return replace(assembly.finish(title if isinstance(title, str) else None, source), metadata=metadata)


def read_front_matter(data: bytes) -> Metadata:
    """Return the metadata of a Markdown file without reading its text."""
    return split_front_matter(clean(decode(data)))[0]


def _add_tokens(assembly: Assembly, tokens: Sequence[Token]) -> None:
    lists: list[int | None] = []
    marker, gap = "", "\n\n"
    heading = 0
    row: list[str] | None = None
    for token in tokens:
        match token.type:
            case "heading_open":
                heading = int(token.tag[1])
            case "heading_close":
                heading, gap = 0, "\n\n"
            case "bullet_list_open":
                lists.append(None)
            case "ordered_list_open":
                lists.append(int(token.attrGet("start") or 1))
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
                if not lists:
                    gap = "\n\n"
            case "list_item_open":
                number = lists[-1]
                marker = "  " * (len(lists) - 1) + ("- " if number is None else f"{number}. ")
                if number is not None:
                    lists[-1] = number + 1
            case "tr_open":
                row = []
            case "tr_close" if row is not None:
                if any(row):
                    assembly.add_block(" | ".join(row), gap=gap)
                    gap = "\n"
                row = None
            case "table_close":
                gap = "\n\n"
            case "inline":
                text = "".join(_spell(token.children or ()))
                if heading:
                    assembly.add_heading(heading, text)
                elif row is not None:
                    row.append(squeeze(text))
                else:
                    assembly.add_block(marker + text, gap=gap if marker else "\n\n")
                    gap, marker = ("\n" if marker else "\n\n"), ""
            case "fence" | "code_block":
                assembly.add_block(marker + token.content)
                gap, marker = "\n\n", ""
            case "html_block":
                add_html(assembly, LexborHTMLParser(token.content))
            case _:
                pass


def _spell(tokens: Sequence[Token]) -> Iterator[str]:
    """The words of inline tokens; raw tags are markup and go."""
    address, words = "", ""
    for token in tokens:
        match token.type:
            case "text" | "code_inline":
                words += token.content
                yield token.content
            case "softbreak" | "hardbreak":
                yield "\n"
            case "image":
                words += token.content
                yield "".join(_spell(token.children or ()))
            case "link_open":
                address, words = str(token.attrGet("href") or ""), ""
            case "link_close":
                bare = address.removeprefix("mailto:")
                if re.match(r"[a-z][a-z0-9+.-]*:", address, re.IGNORECASE) and bare not in words:
                    yield f" ({bare})"
            case _:
                pass
