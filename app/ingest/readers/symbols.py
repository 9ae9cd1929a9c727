"""Fonts whose characters stand for signs: which ones, by the charts of the fonts."""

import re

PRIVATE = re.compile("[\uf020-\uf0ff]")
"""Characters that mean what their font shows."""

_LATIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_GREEK = "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖαβχδεφγηιϕκλμνοπθρστυϖωξψζ"
_SIGNS = {
    "symbol": dict(zip(map(ord, _LATIN), _GREEK, strict=True))
    | {code: chr(code) for code in (*range(0x20, 0x22), *range(0x28, 0x2A), *range(0x2B, 0x40))}
    | dict(zip(range(0xA3, 0xA6), "≤⁄∞", strict=True))
    | dict(zip(range(0xAB, 0xBD), "↔←↑→↓°±″≥×∝∂•÷≠≡≈…", strict=True))
    | {0x2D: "−", 0xC6: "∅", 0xCE: "∈", 0xD1: "∇", 0xD6: "√", 0xDE: "⇒", 0xE5: "∑", 0xF2: "∫"},
    "wingdings": {
        0x6C: "●", 0x6E: "■", 0x6F: "☐", 0x71: "☐", 0x76: "❖", 0x78: "☒", 0xA7: "▪", 0xA8: "☐", 0xD8: "➢", 0xDF: "←",
        0xE0: "→", 0xE8: "➔", 0xF0: "⇨", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
    },
    "wingdings 2": {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "☐"},
}  # fmt: skip


def spell_symbols(text: str, font: str) -> str:
    """Return the text with the signs that a font shows in place of its characters, private or of one byte; of an
    unknown one as it is."""
    signs = _SIGNS.get(font.lower())
    if signs is None:
        return text
    return "".join(signs.get(ord(each) & 0xFF, each) if each <= "ÿ" or PRIVATE.match(each) else each for each in text)
