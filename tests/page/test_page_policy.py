"""What can be checked without a browser."""

import base64
import hashlib
import re

import pytest

from app.serving.application import PAGE

TEXT = PAGE.read_bytes().decode()
COLOURS = [
    dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", TEXT, re.DOTALL)
]


@pytest.mark.parametrize(("tag", "directive"), [("script", "script-src"), ("style", "style-src")])
def test_the_policy_allows_exactly_this_file(tag: str, directive: str) -> None:
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", TEXT, re.DOTALL)
    assert len(found) == 1
    digest = base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()
    assert f"{directive} 'sha256-{digest}';" in TEXT, f"the {tag} has changed; write {directive} 'sha256-{digest}'"


def test_nothing_is_loaded_from_elsewhere_or_inserted_as_markup() -> None:
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:)?//""", TEXT)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|style=", TEXT)


@pytest.mark.parametrize("colours", COLOURS, ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(colours: dict[str, str]) -> None:
    pairs = [
        ("ink", "ground"),
        ("ink", "sheet"),
        ("ink", "tint"),
        ("soft", "ground"),
        ("soft", "sheet"),
        ("soft", "tint"),
    ]
    pairs += [("accent", "tint"), ("accent", "sheet"), ("on-accent", "accent"), ("bad", "bad-tint"), ("bad", "sheet")]
    pairs += [("bad", "ground"), ("warn", "warn-tint"), ("warn", "sheet"), ("good", "sheet"), ("ground", "ink")]
    poor = {pair: round(r, 2) for pair in pairs if (r := contrast(colours[pair[0]], colours[pair[1]])) < 4.5}
    assert not poor
    assert contrast(colours["edge"], colours["sheet"]) >= 3


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    channels = [byte / 255 for byte in bytes.fromhex(colour[1:])]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
