"""What can be checked without a browser."""

import json
import re
from graphlib import CycleError
from hashlib import sha256
from os.path import normpath
from pathlib import PurePath

import httpx
import pytest
from playwright.async_api import Page

from app.api.pages import FILES, POLICY, VERSION, WEB
from app.api.scripts import join_scripts
from tests.page.scripted import Script, done, turn

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


IMPORT = re.compile(r'^import [^"]*"(\.[^"]+)";', re.MULTILINE)


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
    soon = set[str]().union(*map(follow_imports, re.findall(r'^import\("\./(.*?)"\)', OURS[f"{name}.js"], re.M)))
    preload = rf'rel="modulepreload" {{}}href="/web/{VERSION}/(.*?)"'
    assert set(re.findall(preload.format(""), page)) == needed
    # What the first question needs comes after what the page begins with.
    assert set(re.findall(preload.format('fetchpriority="low" '), page)) == soon - needed
    styles = re.findall(rf'rel="stylesheet" href="/web/{VERSION}/(.*?)"', page)
    assert sum(len(FILES[path].compressed) for path in (*(needed | soon), f"{name}.html", *styles)) <= most


def test_a_page_begins_with_few_files_and_each_part_of_them_exists_once() -> None:
    """Of six files at once each six take another way to the server and back. A part that exists twice would be two: a
    second store, which nothing changes."""
    parts = [part for text in OURS.values() for part in re.findall(r"^export const (\$\w+) = \(", text, re.M)]
    assert len(parts) == len(set(parts)) > 70
    assert not SCRIPTS & {"lib/store.js", "ui/app.js", "ui/turns.js"}
    assert max(len(follow_imports(f"{name}.js")) for name in ("ask", "debug", "settings")) <= 9


def test_scripts_have_the_one_style_of_imports_and_exports_that_is_joined() -> None:
    names, file = r"\{ [\w, ]+ \}", r'"\.\.?/[\w./-]+\.js";'
    export = r"export (async )?(function\*?|const|class) \w"
    for path in WEB.rglob("*.js"):
        text = path.read_text()
        if path.parent.name != "vendor" and "import.meta" not in text:
            for line in re.findall(r"^(?:import\b(?!\()|export\b|await\b|(?:const|let) .*= await\b).*", text, re.M):
                assert re.match(f"import {names} from {file}$|{export}", line), f"{path.name}: {line}"


def test_scripts_that_import_one_another_are_refused() -> None:
    one, other = (f'import {{ {name} }} from "./{name}.js";\nexport const x = 1;\n'.encode() for name in "ab")
    with pytest.raises(CycleError, match=r"a\.js.*b\.js"):
        join_scripts({"page.js": other, "b.js": one, "a.js": other}, ["page.js"])


def test_the_map_of_a_joined_script_names_the_file_and_line_of_an_error() -> None:
    sections = json.loads(FILES["ask.js.map"].content)["sections"]
    joined, seen = OURS["ask.js"].split("\n"), set()
    for section in sections:
        (path,), (source,) = section["map"]["sources"], section["map"]["sourcesContent"]
        lines, count = source.split("\n"), section["map"]["mappings"].count("A;") + 1
        assert len(lines) == count == len((WEB / path.removeprefix("parts/")).read_text().split("\n"))
        for at, line in enumerate(lines, section["offset"]["line"] + 1):
            assert joined[at].split("=")[-1] == line.removeprefix("export ").split("=")[-1] or "import" in line
        seen.add(path)
    assert {"parts/ask.js", "parts/ui/app.js"} <= seen
    assert joined[-2] == "//# sourceMappingURL=ask.js.map"


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
        for version, cache in ((VERSION, "max-age=31536000, immutable"), ("0" * 12, "no-cache")):
            for path in ("ask.js", "vendor/preact.js", "page.json"):
                sent = await client.get(f"/web/{version}/{path}")
                assert (sent.content, sent.headers["cache-control"]) == (
                    (await client.get(f"/web/{path}")).content,
                    cache,
                )
        for path in ("/web/", "/web/tsconfig.json", "/web/vendor/README.md", "/web/..%2fapi%2fpages.py"):
            assert (await client.get(path)).status_code == 404, path


@pytest.mark.asyncio(loop_scope="session")
async def test_a_reload_asks_for_the_page_alone(page: Page, script: Script) -> None:
    script.turns = [turn("r-1", "q", done("A.", []))]
    await page.goto(f"{await script()}/t/t-1")
    await page.locator(".turn").wait_for()
    await page.reload()
    await page.locator(".turn").wait_for()
    fetched = await page.evaluate("""() => performance.getEntriesByType("resource")
        .filter((each) => each.name.includes("/web/") && each.transferSize > 0).map((each) => each.name)""")
    assert fetched == []
