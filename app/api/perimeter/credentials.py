"""Reads the key or token of a request."""

from starlette.requests import HTTPConnection

COOKIE = "askgraph_key"
MOST_CHARACTERS = 8_192
"""Longest credential; what is longer is cut, and known to nobody."""


def read_credential(request: HTTPConnection) -> str | None:
    """Return what `Authorization: Bearer`, `X-API-Key` or the page's cookie holds, in this order; None where none
    does."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    credential = token.strip() if scheme.lower() == "bearer" else ""
    credential = credential or request.headers.get("x-api-key", "").strip() or request.cookies.get(COOKIE, "")
    return credential[:MOST_CHARACTERS] or None
