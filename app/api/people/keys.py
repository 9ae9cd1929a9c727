"""Keys and retention, for administrators of the whole deployment."""

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from app.access.keys import check_name, make_key, read_expiry
from app.api.dependencies import KeysDep, SettingsDep, administrate_all, needs
from app.api.schema.openapi import answer_with, fail_with, list_of
from app.api.schema.responses import NewKeyBody, RetentionBody
from app.api.schema.schemas import KeyRequest, NewKeyRequest
from app.history.retention import read_policy
from domain.errors import UnknownKey
from domain.people.access import ApiKey

router = APIRouter(prefix="/api", tags=["keys"], route_class=needs("admin"), dependencies=[Depends(administrate_all)])


@router.get("/keys", **answer_with(list_of("keys", ApiKey), "The keys."))
async def list_keys(keys: KeysDep) -> dict[str, Any]:
    """List the keys, oldest first and without their secrets; also those that were revoked."""
    return {
        "keys": [
            asdict(key)
            | {
                name: None if held is None else sorted(held)
                for name, held in (("rights", key.rights), ("workspaces", key.workspaces), ("groups", key.groups))
            }
            for key in await keys.list()
        ]
    }


@router.post("/keys", **answer_with(NewKeyBody, "The key.", 409, status=201))
async def create_key(body: NewKeyRequest, request: Request, keys: KeysDep) -> dict[str, Any]:
    """Make a key. Its secret is in this response and nowhere else. From the first key on, every request needs one."""
    key, token = await make_key(keys, body.as_key(expires_at=read_expiry(body.expires)))
    request.state.targets = [key.key_id, key.name]
    return {"key_id": key.key_id, "key": token}


@router.put("/keys/{key_id}", status_code=204, responses=fail_with(404, 409) | {204: {"description": "Changed."}})
async def change_key(key_id: str, body: KeyRequest, request: Request, keys: KeysDep) -> Response:
    """Change what a key may do, where, what it may read and how much it may use. Its secret and its end stay."""
    request.state.targets = [body.name]
    key = body.as_key(key_id)
    await check_name(keys, key)
    if not await keys.change(key):
        raise UnknownKey(f"There is no key {key_id!r} that is in use.")
    return Response(status_code=204)


@router.delete("/keys/{key_id}", status_code=204, responses=fail_with(404) | {204: {"description": "Revoked."}})
async def revoke_key(key_id: str, keys: KeysDep) -> Response:
    """Revoke a key for good. Every process refuses it within five seconds."""
    if not await keys.revoke(key_id):
        raise UnknownKey(f"There is no key {key_id!r}.")
    return Response(status_code=204)


@router.get("/retention", **answer_with(RetentionBody, "The policy."))
async def get_retention(settings: SettingsDep) -> dict[str, Any]:
    """Say how long conversations are kept, which the settings determine."""
    policy = read_policy(settings)
    return {
        "days": _count_days(policy.older_than),
        "by_workspace": {name: _count_days(span) for name, span in policy.by_workspace.items()},
        "steps_days": _count_days(policy.steps_for),
    }


def _count_days(span: timedelta | None) -> float | None:
    return None if span is None else span / timedelta(days=1)
