"""What holds for every request before a route sees it, and for every response.

A web page that somebody looks at can send requests to this service: by its address (cross-site request forgery), or by
a name of its own that points to this machine (DNS rebinding). The first is refused by `Sec-Fetch-Site` and `Origin`,
the second by `Host`.
"""

import re
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.perimeter.errors import respond_to
from app.support.spans import span

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every response that does not set them itself."""

_SAFE_METHODS = {"GET", "HEAD"}
_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


_PREFIX = re.compile(r"(/[\w.~-]{1,100}){1,10}")


def read_prefix(headers: Headers) -> str:
    """Return what a proxy has taken from the path, as `/ask`; empty where none says so."""
    prefix = f"/{headers.get('x-forwarded-prefix', '').strip('/')}"
    return prefix if _PREFIX.fullmatch(prefix) else ""


_SLIPS = re.compile(r"(?:/v1|/chat/completions){0,5}/(?=(?:(?:chat/)?completions|responses|embeddings|models)(?:/|$))")
"""What a base URL of OpenAI's protocol that lacks `/v1`, has it twice or names more puts before an address."""


def _tidy(path: str) -> str:
    """Return the path that is meant. A redirect would lose the prefix that a proxy has taken from the address, and some
    clients their key."""
    path = re.sub("/{2,}", "/", path).rstrip("/")
    slip = _SLIPS.match(path)
    return f"/v1/{path[slip.end() :]}" if slip else path or "/"


class Perimeter:
    """Refuses requests of foreign hosts and origins, answers HEAD like GET and an address with a slip like the one that
    is meant, adds `HEADERS` to every response, and to an address of ours in `Location` what a proxy took from it."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        """`hosts` are the names of this service besides those of the machine itself; `*.example.com` stands for all
        names below `example.com`, `*` for every name. Pages of `origins` may ask as if they were ours, without the
        cookie of ours: they are who their key says."""
        self._app = app
        self._hosts = {host.lower() for host in hosts}
        named = "|".join(re.escape(origin.rstrip("/")).replace(r"\*", ".*") for origin in origins)
        self._origins = re.compile(named, re.IGNORECASE) if named else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin", "")
        is_cross_origin = _is_cross_origin(headers, host)
        is_named = is_cross_origin and self._origins is not None and self._origins.fullmatch(origin) is not None
        kept = [each for each in scope["headers"] if not (is_named and each[0] == b"cookie")]
        scope = {**scope, "path": _tidy(scope["path"]), "headers": kept}

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                _protect(message, read_prefix(headers))
                if is_named:
                    message["headers"] += [
                        (b"access-control-allow-origin", origin.encode()),
                        (b"access-control-expose-headers", b"*"),
                        (b"vary", b"Origin"),
                    ]
            await send(message)

        if not self._is_ours(host):
            refusal = respond_to(
                "unknown_host",
                f"This service is not known as {host[:200]!r}. If it should be, name it in ASKGRAPH_HOSTS.",
                retryable=False,
                status=400,
            )
            await refusal(scope, receive, send_protected)
        elif is_named and scope["method"] == "OPTIONS":
            await _allow(headers)(scope, receive, send_protected)
        elif scope["method"] not in _SAFE_METHODS and is_cross_origin and not is_named:
            refusal = respond_to(
                "cross_origin",
                "Another web site's page sent this request. Only pages of this service may change something, and those "
                f"that ASKGRAPH_ORIGINS names: {origin[:200]!r} is not among them.",
                retryable=False,
                status=403,
            )
            await refusal(scope, receive, send_protected)
        elif "\0" in scope["path"] or b"%00" in scope["query_string"]:
            problem = "The address of this request holds a NUL character, which no text here can."
            await respond_to("input_error", problem, retryable=False, status=400)(scope, receive, send_protected)
        elif scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET"}, receive, _leave_out_body(send_protected))
        else:
            await self._app(scope, receive, send_protected)

    def _is_ours(self, host: str) -> bool:
        """Return True for names in the list, for those of this machine, and for IP addresses: no name server can make
        a browser take one of those for another."""
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        if not name:
            return False
        return (
            name == "localhost"
            or name in self._hosts
            or "*" in self._hosts
            or any(f"*{name[dot:]}" in self._hosts for dot in range(len(name)) if name[dot] == ".")
            or _is_address(name)
        )


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_cross_origin(headers: Headers, host: str) -> bool:
    """Return True where a browser says that another origin's page sent the request.

    The rule is that of Go's `http.CrossOriginProtection`: browsers say it by `Sec-Fetch-Site`, and where they do not,
    because the address is neither https nor local, by `Origin`. Clients that are no browsers send neither.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2].lower() != host.lower()


def _allow(headers: Headers) -> Response:
    """Answer what a browser asks before a page elsewhere may ask: all that it wants."""
    allowed = {
        "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
        "Access-Control-Allow-Headers": headers.get("access-control-request-headers", "*"),
        "Access-Control-Allow-Private-Network": "true",
        "Access-Control-Max-Age": "600",
    }
    return Response(status_code=204, headers=allowed)


def _protect(message: Message, prefix: str) -> None:
    """Add the headers that the response lacks, and the prefix to an address of ours."""
    own = [
        (name, prefix.encode() + value if name == b"location" and value.startswith(b"/api/") else value)
        for name, value in message["headers"]
    ]
    given = {name for name, _ in own}
    message["headers"] = [*own, *(header for header in _RAW_HEADERS if header[0] not in given)]


def _leave_out_body(send: Send) -> Send:
    """Wrap `send` so that the response ends with its head. A stream notices that and stops."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b""})

    return send_head


class BodyLimit:
    """Refuses bodies that are too large: at once where their length is declared, else when they become so.

    Starlette's own middleware answers the former in plain text, where every other error of ours is JSON.
    """

    def __init__(self, app: ASGIApp, limit: int, others: Mapping[str, int]) -> None:
        """`limit` is in bytes; `others` are the limits of paths that have one of their own."""
        self._app = app
        self._limit = limit
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._others.get(scope["path"], self._limit)
        problem = f"The body of this request may have {limit:,} bytes."
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            await respond_to("oversized_request", problem, retryable=False, status=413)(scope, receive, send)
            return
        size = 0

        async def receive_counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > limit:
                raise HTTPException(413, problem)
            return message

        await self._app(scope, receive_counted, send)


class TraceRequests:
    """Opens the span of a request, below that of its caller where the header `traceparent` names one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # The path of a route without its ids would only be known afterwards.
        attributes = {"http.request.method": scope["method"], "url.path": scope["path"]}
        with span(f"{scope['method']} {scope['path']}", attributes, Headers(scope=scope).get("traceparent")):
            await self._app(scope, receive, send)
