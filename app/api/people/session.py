"""Signing in on the page.

The key goes into a cookie that no script can read (`HttpOnly`) and that no other site's page can make a browser send
(`SameSite=Strict`): pictures of pages and files open by plain links, and hostile text that became a script would find
no key. Programs send their key with each request instead. Beside the key it names a session, which ends on the server
when somebody signs out.
"""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from app.api.dependencies import CallerDep, get_authenticator, identify, is_secure, name_cookie, needs
from app.api.perimeter.json_bodies import JsonRoute
from app.api.schema.openapi import answer_with, fail_with, respond_with
from app.api.schema.responses import CallerBody
from app.api.schema.schemas import SignInRequest
from domain.people.access import Caller

router = APIRouter(prefix="/api/session", tags=["session"], route_class=JsonRoute)
guarded = APIRouter(prefix="/api/session", tags=["session"], route_class=needs(None))


@router.post("", responses=respond_with(CallerBody, "The key is valid.") | fail_with())
async def sign_in(body: SignInRequest, request: Request) -> JSONResponse:
    """Put a key into a cookie that lasts until the browser is closed."""
    caller = await identify(request, body.key)
    response = JSONResponse(_describe(caller))
    await keep_credential(request, response, body.key)
    return response


@guarded.get("", **answer_with(CallerBody, "The caller."))
async def get_session(caller: CallerDep) -> dict[str, Any]:
    """Return who sends this request."""
    return _describe(caller)


@router.delete("", status_code=204, responses=fail_with() | {204: {"description": "Signed out."}})
async def sign_out(request: Request) -> Response:
    """End the browser's session, and the streams that were opened with it, and take the key out of the cookie."""
    await get_authenticator(request).sign_out(request.cookies.get(name_cookie(request), ""))
    response = Response(status_code=204)
    response.delete_cookie(name_cookie(request), httponly=True, samesite="strict", secure=is_secure(request))
    return response


async def keep_credential(request: Request, response: Response, credential: str) -> None:
    """Begin a session with a key or token, and put both into the browser's cookie."""
    cookie = await get_authenticator(request).sign_in(credential)
    response.set_cookie(name_cookie(request), cookie, httponly=True, samesite="strict", secure=is_secure(request))


def _describe(caller: Caller) -> dict[str, Any]:
    return {
        "name": caller.name,
        "workspaces": None if caller.workspaces is None else sorted(caller.workspaces),
        "groups": None if caller.groups is None else sorted(caller.groups),
        "rights": sorted(caller.rights),
    }
