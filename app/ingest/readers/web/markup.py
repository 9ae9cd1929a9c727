"""Markup as a parser of HTML takes it: what XML, shadow trees and Confluence write in other forms is set right."""

import html
import re

from selectolax.lexbor import LexborHTMLParser

from domain.errors import UnreadableDocument

_NESTING = re.compile(r"<(/?)(?:div|section|article|span|blockquote|ul|ol|dl|table|font|center)\b", re.IGNORECASE)
_DEEPEST = 3000
"""Deepest nesting that is read. The parser scans all open elements at each new one, so its time grows with the
square."""
_SHADOW = re.compile(r"<template(?=[^<>]*\sshadowrootmode)((?:(?!<template).)*?)</template", re.IGNORECASE | re.DOTALL)
"""What a browser shows within an element, and a parser keeps apart from the page."""
_XML = re.compile(
    r"\s*<\?xml\b|[^<>]{0,99}(?:<[!?][^<>]{0,500}>\s*){0,9}<html\b[^<>]{0,500}\.org/1999/xhtml", re.IGNORECASE
)
_EMPTY = re.compile(r"<(title|script|style|a|span|div|p|i|b|em|strong|h[1-6]|td|th|li)\b([^<>]*)/>", re.IGNORECASE)
"""Elements that XML may close at once and HTML may not, such as an anchor. An HTML parser would take all that follows
for their content."""
_TIME = re.compile(
    r"<time\b[^<>]{0,300}?\bdatetime=[\"']?([^\"'<> ]{1,40})[^<>]{0,300}>(?:(?<=/>)|\s*</time>)", re.IGNORECASE
)
"""A time that says itself only to programs."""
_CONFLUENCE = {
    re.compile(pattern): written
    for pattern, written in {
        r'<ac:parameter ac:name="(?!title)[^<>]*>[^<>]*</ac:parameter>': "",
        r"<ac:(task-(?:id|uuid)|placeholder)\b[^<>]*>[^<>]*</ac:\1>": "",
        r"<ac:task-status>complete</ac:task-status>": "☒ ",
        r"<ac:task-status>incomplete</ac:task-status>": "☐ ",
        r'<ri:[^<>]{0,300}?\bri:(?:content-title|filename|value)="([^"<>]{0,300})"[^<>]{0,99}>\s*(?=</ac:link>)': r"\1",
        r"<ri:user\b[^<>]*>": "[user]",
        r"<(/?)ac:task-list\b[^<>]*": r"<\1ul",
        r"<(/?)ac:task\b(?!-)[^<>]*": r"<\1li",
        r"<(/?)ac:plain-text-body\b[^<>]*": r"<\1pre",
        r"<(/?)ac:rich-text-body\b[^<>]*": r"<\1div",
        r"<ac:image\b": "<img",
    }.items()
}
"""The form in which Confluence stores pages, by that in which it shows them."""


def parse_html(page: str, *, is_xml: bool = False) -> LexborHTMLParser:
    """Return the tree of a page. Raises `UnreadableDocument` for one so deep that parsing would take hours."""
    page = _TIME.sub(r"\1", _SHADOW.sub(r"<div\1</div", page))
    is_stored = "<ac:" in page or "<ri:" in page
    if is_xml or is_stored or _XML.match(page):
        page = _EMPTY.sub(r"<\1\2></\1>", _open_cdata(page))
    for pattern, written in _CONFLUENCE.items() if is_stored else ():
        page = pattern.sub(written, page)
    depth = 0
    for tag in _NESTING.finditer(page):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > _DEEPEST:
            raise UnreadableDocument(
                f"The HTML is nested more than {_DEEPEST:,} levels deep. Save it as text and retry."
            )
    return LexborHTMLParser(page)


def _open_cdata(page: str) -> str:
    """Return a page with text in place of its sections of text. A comment of a script or a style before one hides it
    from parsers of HTML."""
    first, *others = page.split("<![CDATA[")
    parts = [first]
    for each in others:
        words, end, rest = each.partition("]]>")
        is_text = end and not parts[-1].endswith(("//", "/*"))
        parts.append(f"{html.escape(words)}{rest}" if is_text else f"<![CDATA[{each}")
    return "".join(parts)
