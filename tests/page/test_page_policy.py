"""What can be checked without a browser."""

import re
from hashlib import sha256
from os.path import normpath
from pathlib import PurePath

import httpx
import pytest

from app.api.pages import FILES, POLICY, WEB
from tests.page.scripted import Script

CSS = FILES["base.css"].content.decode()
OURS = {path: file.content.decode() for path, file in FILES.items() if not path.startswith("vendor/")}
SCRIPTS = {path for path in FILES if path.endswith(".js")}


def follow_imports(path: str) -> set[str]:
    """The script and all that it imports."""
    found, new = set(), {path}
    while new:
        found |= new
        named = [
            (PurePath(each).parent, target) for each in new for target in IMPORT.findall(FILES[each].content.decode())
        ]
        new = {normpath(folder / target) for folder, target in named} - found
    return found


IMPORT = re.compile(r'^import [^"]*"(\.[^"]+)";$', re.MULTILINE)
COLOURS = [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)]


def test_nothing_is_loaded_from_elsewhere_or_inserted_as_markup() -> None:
    for path, text in OURS.items():
        assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:)?//""", text), path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|\bstyle=", text), path


def test_the_files_of_others_are_those_that_were_taken() -> None:
    listed = (WEB / "vendor" / "README.md").read_text()
    for path in SCRIPTS:
        if path.startswith("vendor/"):
            assert f"`{sha256(FILES[path].content).hexdigest()}`" in listed, path


@pytest.mark.parametrize(("name", "most"), [("ask", 80_000), ("debug", 80_000), ("settings", 40_000)])
def test_a_browser_fetches_every_script_at_once_and_no_more_than_it_may(name: str, most: int) -> None:
    """Otherwise it would find one by one what they import."""
    page, needed = FILES[f"{name}.html"].content.decode(), follow_imports(f"{name}.js")
    assert set(re.findall(r'rel="modulepreload" href="/web/(.*?)"', page)) == needed
    styles = re.findall(r'rel="stylesheet" href="/web/(.*?)"', page)
    assert sum(len(FILES[path].compressed) for path in (*needed, f"{name}.html", *styles)) <= most


@pytest.mark.asyncio(loop_scope="session")
async def test_files_are_sent_compressed_once_and_never_as_something_else(script: Script) -> None:
    async with httpx.AsyncClient(base_url=script.address) as client:
        for path in ("/", "/t/some-thread", "/debug", "/debug/runs/some-run", "/settings", "/web/ask.js"):
            sent = await client.get(path, headers={"Accept-Encoding": "gzip"})
            plain = await client.get(path, headers={"Accept-Encoding": "identity"})
            assert sent.content == plain.content
            assert (sent.headers["content-encoding"], "content-encoding" in plain.headers) == ("gzip", False)
            assert sent.headers["content-security-policy"] == POLICY
            assert sent.headers["x-content-type-options"] == "nosniff"
            known = await client.get(path, headers={"If-None-Match": sent.headers["etag"]})
            assert (known.status_code, known.content) == (304, b"")
        for path in ("/web/", "/web/tsconfig.json", "/web/vendor/README.md", "/web/..%2fapi%2fpages.py"):
            assert (await client.get(path)).status_code == 404, path


@pytest.mark.parametrize("colours", COLOURS, ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(colours: dict[str, str]) -> None:
    pairs = [(text, behind) for text in ("ink", "soft", "accent", "bad") for behind in ("ground", "sheet", "tint")]
    pairs += [
        ("on-accent", "accent"),
        ("bad", "bad-tint"),
        ("warn", "warn-tint"),
        ("good", "ground"),
        ("warn", "ground"),
        ("ground", "ink"),
    ]
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
