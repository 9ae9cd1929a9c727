"""Signing in on the page at an identity provider.

The browser is sent there and comes back with a code, for which the provider gives a token. The token goes into the
cookie of `app/api/people/session.py`. What the browser needs meanwhile is in a second cookie, which only it has: with
the address of somebody else's sign-in nobody gets into that person's account (login CSRF).
"""

import re
from html import escape
from secrets import compare_digest
from typing import Annotated, Any
from urllib.parse import quote, unquote

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response

from app.api.dependencies import MOST_CHARACTERS, SignInDep, identify, is_secure, name_cookie, note_refusal
from app.api.people.session import keep_credential
from app.api.perimeter.errors import status_of
from app.api.schema.openapi import Responses, fail_with
from domain.errors import AskgraphError, NotFound, SignInFailed, Unauthenticated
from domain.ports.identities import SignIn, SignInAttempt

COOKIE = "askgraph_sign_in"
SECONDS = 600
"""Time that somebody has to sign in."""
LONGEST_TOKEN = 4_000
"""Browsers keep a cookie of 4,096 bytes, its name and attributes included."""

_OURS = re.compile(r"/(?![/\\])[!-\[\]-~]{0,1000}")
"""A path of this service. `//host` and `/\\host` would lead to another one."""

router = APIRouter(prefix="/api/session", tags=["session"])

_FAILED: dict[str, Any] = {
    "description": "The sign-in failed; says why to people.",
    "content": {"text/html": {"schema": {"type": "string"}, "example": "<!doctype html><p>This sign-in was begun …"}},
}
_RESPONSES: Responses = {
    **fail_with(),
    **dict.fromkeys((401, 403, 503), _FAILED),
    303: {"description": "Leads to the identity provider, and back to the page."},
}


@router.get("/sign-in", status_code=303, response_class=RedirectResponse, responses=_RESPONSES)
async def begin_sign_in(
    request: Request,
    sign_in: SignInDep,
    back: Annotated[str, Query(description="The path of this service to which to come back.", max_length=1000)] = "/",
) -> Response:
    """Send the browser to the identity provider. It comes back to `/api/session/callback`."""
    provider = _find(sign_in)
    try:
        address, attempt = await provider.begin(_find_callback(request))
    except AskgraphError as error:
        return _fail(error)
    response = RedirectResponse(address, 303)
    kept = ".".join((attempt.state, attempt.nonce, attempt.verifier, quote(back, safe="")))
    # Lax: the way back begins at the provider's page, and Strict would leave the cookie out.
    response.set_cookie(
        name_cookie(request, COOKIE), kept, SECONDS, httponly=True, samesite="lax", secure=is_secure(request)
    )
    return response


@router.get("/callback", status_code=303, response_class=RedirectResponse, responses=_RESPONSES)
async def finish_sign_in(request: Request, sign_in: SignInDep) -> Response:
    """Take the answer of the identity provider, and keep the token as the key is kept."""
    provider = _find(sign_in)
    try:
        back, token = await _finish(request, provider)
        response: Response = RedirectResponse(back if _OURS.fullmatch(back) else "/", 303)
        await keep_credential(request, response, token)
    except AskgraphError as error:
        response = _fail(error)
    response.delete_cookie(name_cookie(request, COOKIE), httponly=True, samesite="lax", secure=is_secure(request))
    return response


async def _finish(request: Request, sign_in: SignIn) -> tuple[str, str]:
    """Return the path to which to go back, and a token of a caller. Raises what goes wrong."""
    given = request.query_params
    try:
        parts = request.cookies.get(name_cookie(request, COOKIE), "").split(".", 3)
        if len(parts) != 4 or not compare_digest(parts[0].encode(), given.get("state", "").encode()):
            raise SignInFailed
        attempt, back = SignInAttempt(*parts[:3]), unquote(parts[3])
        code = given.get("code", "")
        if not 0 < len(code) <= MOST_CHARACTERS:
            raise SignInFailed(_read_refusal(given.get("error", "")))
        token = await sign_in.finish(attempt, _find_callback(request), code, given.get("iss"))
        if len(token) > LONGEST_TOKEN:
            raise SignInFailed(
                f"Your token has {len(token):,} characters, and a browser keeps {LONGEST_TOKEN:,}. Ask whoever runs "
                "the identity provider to leave out of it what askgraph does not need."
            )
    except Unauthenticated as error:
        note_refusal(request, None, error)
        raise
    await identify(request, token)
    return back, token


def _find(sign_in: SignIn | None) -> SignIn:
    if sign_in is None:
        raise NotFound("This service has no sign-in at an identity provider.")
    return sign_in


def _find_callback(request: Request) -> str:
    """Return the address to which the provider sends browsers: the service by the name that this one uses, which the
    perimeter has checked. The provider checks it again."""
    return str(request.url_for("finish_sign_in"))


def _read_refusal(code: str) -> str:
    named = f" It says: {code}." if re.fullmatch(r"\w{1,60}", code, re.ASCII) else ""
    return f"The identity provider did not sign you in.{named}"


def _fail(error: AskgraphError) -> Response:
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Sign-in failed</title>'
        f'<h1>Sign-in failed</h1><p>{escape(error.message)}</p><p><a href="/">Back to askgraph</a></p></html>'
    )
    return HTMLResponse(page, status_of(error))
