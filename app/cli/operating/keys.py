from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, cast

import typer

from app.access.keys import make_key, read_expiry
from app.cli.support.options import JsonOption, check_workspace, new_cli
from app.cli.support.running import as_command, print_json, print_result
from app.settings import read_settings
from app.support.terminal import err, escape, new_table, out, print_table
from app.wiring.stores import open_stores
from domain.documents import check_groups
from domain.errors import InputError, UnknownKey
from domain.people.access import OWNER, RIGHTS, ApiKey, Right
from domain.people.audit import AuditEntry
from domain.people.limits import Limits, say_dollars

cli = new_cli(no_args_is_help=True, help="Make, list and revoke API keys.")


@cli.command()
@as_command
async def create(
    name: Annotated[str, typer.Argument(help="Who or what uses the key.")],
    right: Annotated[
        list[str] | None, typer.Option(help="ask, ingest, debug or admin; repeatable. [default: ask]")
    ] = None,
    workspace: Annotated[
        list[str] | None, typer.Option("--workspace", "-w", help="Only this workspace; repeatable. [default: all]")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="Only documents of this group, and of none; repeatable. [default: all]")
    ] = None,
    expires: Annotated[str | None, typer.Option(help="End of the key's life, such as 90d. [default: never]")] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Requests that it may send.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Questions that it may have answered at once.")
    ] = None,
    tokens_per_day: Annotated[
        int | None, typer.Option(min=0, max=10**12, help="Tokens that its questions may use.")
    ] = None,
    dollars_per_day: Annotated[float | None, typer.Option(min=0, max=10**9, help="Dollars that they may cost.")] = None,
    max_documents: Annotated[int | None, typer.Option(min=1, max=10**9, help="Documents that it may store.")] = None,
    max_stored_mb: Annotated[
        int | None, typer.Option(min=1, max=10**9, help="Megabytes of files that it may store.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Make a key and print it. It is shown this once: only its digest is kept.

    From the first key on, every request needs one. Limits that are not given are those of the settings, if any.
    """
    for each in workspace or []:
        check_workspace(each)
    if not name.strip():
        raise InputError("A key needs a name.")
    rights = frozenset(right or ["ask"])
    if unknown := rights - RIGHTS:
        raise InputError(f"There is no right {sorted(unknown)[0]!r}. Choose of {', '.join(sorted(RIGHTS))}.")
    wanted = ApiKey(
        key_id="",
        name=name,
        rights=cast(frozenset[Right], rights),
        workspaces=frozenset(workspace) if workspace else None,
        groups=frozenset(check_groups(group) or ()) if group else None,
        limits=Limits(requests_per_minute, runs, tokens_per_day, dollars_per_day, max_documents, max_stored_mb),
        expires_at=read_expiry(expires),
    )
    async with open_stores(read_settings()) as stores:
        key, token = await make_key(stores.keys, wanted)
        await stores.audit.add(AuditEntry(OWNER.name, "askgraph keys create", (key.key_id, name), 201))
    if as_json:
        print_json({"key_id": key.key_id, "key": token})
    else:
        print(token)
        err.print("Keep it: it is shown this once. `askgraph serve` takes notice within five seconds.")
    return 0


@cli.command("list")
@as_command
async def list_keys(as_json: JsonOption = False) -> int:
    """List the keys, without their secrets."""
    async with open_stores(read_settings()) as stores:
        found = await stores.keys.list()
    return print_result(_print_keys, found, as_json=as_json)


@cli.command()
@as_command
async def revoke(key_id: Annotated[str, typer.Argument(help="The key's id, from `askgraph keys list`.")]) -> int:
    """Revoke a key for good. Every process refuses it within five seconds."""
    async with open_stores(read_settings()) as stores:
        if not await stores.keys.revoke(key_id):
            raise UnknownKey(f"There is no key {key_id!r}.")
        await stores.audit.add(AuditEntry(OWNER.name, "askgraph keys revoke", (key_id,), 200))
    out.print(f"Revoked {escape(key_id)}.")
    return 0


def _print_keys(keys: Sequence[ApiKey]) -> None:
    now = datetime.now(UTC)
    headings = ("id", "name", "state", "rights", "workspaces", "groups", "limits", "last used")
    table = new_table(*headings, overflow="fold")
    for key in keys:
        state = "revoked" if key.revoked_at else "expired" if not key.is_valid(now) else "valid"
        if state == "valid" and key.expires_at:
            state = f"until {key.expires_at:%Y-%m-%d}"
        table.add_row(
            key.key_id,
            escape(key.name),
            state,
            " ".join(sorted(key.rights)),
            escape("all" if key.workspaces is None else " ".join(sorted(key.workspaces))),
            escape("all" if key.groups is None else " ".join(sorted(key.groups))),
            _say_limits(key.limits),
            f"{key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never",
        )
    print_table(table)


def _say_limits(limits: Limits) -> str:
    parts = [
        limits.requests_per_minute is not None and f"{limits.requests_per_minute:,} requests/min",
        limits.runs is not None and f"{limits.runs:,} at once",
        limits.tokens_per_day is not None and f"{limits.tokens_per_day:,} tokens/day",
        limits.dollars_per_day is not None and f"{say_dollars(limits.dollars_per_day)}/day",
        limits.max_documents is not None and f"{limits.max_documents:,} documents",
        limits.max_stored_mb is not None and f"{limits.max_stored_mb:,} MB",
    ]
    return ", ".join(part for part in parts if part) or "default"
