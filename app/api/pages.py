"""The pages for people: the files of `app/web`. They need no build, and nothing from elsewhere."""

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.api.scripts import follow_imports, join_scripts
from domain.text.languages import FOLDER, LANGUAGES, Language, read_file

WEB = Path(__file__).parents[1] / "web"

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".map": "application/json"}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class WebFile:
    """A file of the pages, compressed once."""

    media_type: str
    content: bytes
    compressed: bytes
    tag: str


_PAGE = {"": "ask", "t": "ask", "debug": "debug", "settings": "settings"}
_VERSION = re.compile("[0-9a-f]{12}")
_COMMENT = re.compile(rb"^ *(?:/\*(?:(?!\*/)[\s\S])*\*/|//[^\n]*)$", re.MULTILINE)
_TYPE = re.compile(rb"/\*\* @[^*\n]*\*/ ?")
_INDENTATION = re.compile(rb"^ +", re.MULTILINE)
_SOON = re.compile(rb'^import\("\.(/[^"]+)"\)', re.MULTILINE)
_STYLE = b'<link rel="stylesheet" href="/web/base.css">'
"""In its place stands the style itself: the first paint does not wait for another answer."""
_SCRIPTS = b"<!-- scripts -->"
"""The line of a page in whose place stands what its browser fetches at once: else it would find one script after the
other by what they import."""


def _shorten(text: bytes) -> bytes:
    """Leave out comments, types and indentation, which are for who reads the files: they would be an eighth of what a
    browser fetches. Errors still name the right line."""
    bare = _COMMENT.sub(lambda comment: b"\n" * comment[0].count(b"\n"), text)
    return _INDENTATION.sub(b"", _TYPE.sub(b"", bare))


def _pack(media_type: str, content: bytes) -> WebFile:
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    return WebFile(media_type, content, gzip.compress(content, mtime=0), tag)


def list_texts(texts: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of a `page.toml` with their keys, such as `composer.ask`."""
    for name, text in texts.items():
        if isinstance(text, str):
            yield f"{path}{name}", text
        else:
            yield from list_texts(text, f"{path}{name}.")


def _read_texts(language: Language) -> WebFile:
    texts = {key: text for each in ("en", language) for key, text in list_texts(read_file(each, "page"))}
    return _pack(
        "application/json", json.dumps({"language": language, "languages": LANGUAGES, "texts": texts}).encode()
    )


TEXTS = {each: _read_texts(each) for each in LANGUAGES if (FOLDER / each / "page.toml").exists()}
"""What the page on which people ask says, in each language that has a `page.toml`."""


def _read_files() -> tuple[str, dict[str, WebFile]]:
    files: dict[str, bytes] = {}
    for path in sorted(WEB.rglob("*")):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            files[path.relative_to(WEB).as_posix()] = content if path.parent.name == "vendor" else _shorten(content)
    join_scripts(files, [name.replace(".html", ".js") for name in files if name.endswith(".html")])
    version = sha256(b"".join([*files.values(), *(file.content for file in TEXTS.values())])).hexdigest()[:12]
    for page in [name for name in files if name.endswith(".html")]:
        script = page.replace(".html", ".js")
        needed = follow_imports(files, script)
        soon = [follow_imports(files, each[1:].decode()) - needed for each in _SOON.findall(files[script])]
        links = [f'<link rel="modulepreload" href="/web/{each}">' for each in sorted(needed)]
        links += [
            f'<link rel="modulepreload" fetchpriority="low" href="/web/{each}">' for each in sorted(set().union(*soon))
        ]
        shown = files[page].replace(_STYLE, b"<style>%b</style>" % files["base.css"])
        shown = shown.replace(_SCRIPTS, "\n".join(links).encode())
        files[page] = shown.replace(b'"/web/', f'"/web/{version}/'.encode())
    return version, {name: _pack(_TYPES[PurePath(name).suffix], content) for name, content in files.items()}


VERSION, FILES = _read_files()
"""What the addresses of all files begin with, below `/web/`: other files are another version. And every file that a
browser may ask for, by its path."""

POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    f"style-src 'self' 'sha256-{b64encode(sha256(FILES['base.css'].content).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The pages' Content-Security-Policy: no script but ours, and no text that becomes markup."""


@router.get("/")
@router.get("/t/{thread_id}")
@router.get("/debug")
@router.get("/debug/runs/{run_id}")
@router.get("/settings")
async def show_page(request: Request) -> Response:
    """Show a page. Its script reads from the address which conversation or run is meant."""
    return _send(request, FILES[f"{_PAGE[request.url.path.split('/')[1]]}.html"])


@router.get("/web/{path:path}")
async def get_file(request: Request, path: str) -> Response:
    """Return a script, a style sheet or what the pages say, in the first language of the browser that has it, or else
    in English. At an address of this version it never changes; what an older page asks for is the file of today."""
    version, _, rest = path.partition("/")
    name = rest if _VERSION.fullmatch(version) else path
    file = FILES.get(name)
    if name == "page.json":
        # Browsers list their languages from the best to the worst.
        wanted = (each.strip()[:2].lower() for each in request.headers.get("accept-language", "").split(","))
        file = TEXTS[next((each for each in wanted if each in TEXTS), "en")]
    if file is None:
        raise HTTPException(404)
    return _send(request, file, "max-age=31536000, immutable" if version == VERSION else "no-cache")


def _send(request: Request, file: WebFile, cache: str = "no-cache") -> Response:
    headers = {
        "Cache-Control": cache,
        "Content-Security-Policy": POLICY,
        "ETag": file.tag,
        "Vary": "Accept-Encoding, Accept-Language",
        "X-Content-Type-Options": "nosniff",
    }
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(file.content, 200, headers, file.media_type)
    return Response(file.compressed, 200, headers | {"Content-Encoding": "gzip"}, file.media_type)
