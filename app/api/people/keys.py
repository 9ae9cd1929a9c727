"""Keys and retention, for administrators of the whole deployment."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from app.access.keys import check_name, make_key, read_expiry
from app.api.dependencies import KeysDep, RetentionDep, SettingsDep, administrate_all, needs
from app.api.schema.openapi import answer_with, fail_with, list_of
from app.api.schema.responses import NewKeyBody, RetentionBody
from app.api.schema.schemas import KeyRequest, NewKeyRequest, RetentionRequest
from app.history.retention import apply_settings, prune, read_policy
from app.settings import Settings
from domain.errors import UnknownKey
from domain.history.retention import Policy, Pruned
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
async def get_retention(settings: SettingsDep, retention: RetentionDep) -> dict[str, Any]:
    """Say how long conversations are kept."""
    return _describe(settings, await read_policy(settings, retention))


@router.put("/retention", **answer_with(RetentionBody, "The policy."))
async def set_retention(body: RetentionRequest, settings: SettingsDep, retention: RetentionDep) -> dict[str, Any]:
    """Choose how long conversations are kept, and say what is deleted for it within the hour. What the environment
    says stays."""
    chosen = Policy.of_days(body.days, body.by_workspace, body.steps_days)
    policy = apply_settings(settings, chosen)
    pruned = await prune(retention, policy, dry_run=True)
    if not body.dry_run:
        await retention.keep_policy(chosen)
    return _describe(settings, policy, pruned)


def _describe(settings: Settings, policy: Policy, pruned: Pruned | None = None) -> dict[str, Any]:
    fixed = {"retention": "days", "keep_steps": "steps_days"}
    return {
        **policy.as_days(),
        "fixed": [name for setting, name in fixed.items() if setting in settings.model_fields_set],
        "deletes": None if pruned is None else {"conversations": pruned.threads, "steps": pruned.tapes},
    }
