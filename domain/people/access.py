"""Access: who asks, in which workspaces, and with which rights."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from domain.errors import Forbidden, InputError, UnknownWorkspace
from domain.people.limits import NO_LIMITS, Limits
from domain.scope import DEFAULT_SCOPE

Right = Literal["ask", "ingest", "debug", "admin"]
"""`ask`: questions, their runs and saved steps, reading documents, and erasing one's own conversations. `ingest`:
adding and deleting documents, and making assistants. `debug`: lists of runs, their prompts and replies, why, what-if,
differences and bundles; replays, costs and the cache. `admin`: erasing what others wrote."""

KEY_PREFIX = "key:"
"""How the names of callers begin who have a key; its id follows."""

RIGHTS: frozenset[Right] = frozenset(get_args(Right))


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request. A service without keys knows one, the `OWNER` of the machine."""

    name: str
    workspaces: frozenset[str] | None = None
    """None: all."""
    groups: frozenset[str] | None = None
    """The groups whose documents the caller may read; None: all."""
    rights: frozenset[Right] = RIGHTS
    limits: Limits = NO_LIMITS
    until: float | None = field(default=None, compare=False)
    """When the caller's token expires, in seconds since 1970; None: what else there is says."""

    def require(self, right: Right) -> None:
        """Raise `Forbidden` where the caller lacks the right."""
        if right not in self.rights:
            raise Forbidden(f"This needs the right {right!r}, which your key does not have.")

    def check_groups(self, given: Collection[str], had: Collection[str] | None = None) -> None:
        """Raise what is wrong with giving these groups to a document or an assistant; `had`: to one that has those.

        Raises `InputError` for others than the caller's own, unless they are kept, and `Forbidden` for taking others
        away, or the last one, which would show it to everybody.
        """
        if self.groups is None:
            return
        if others := set(given) - self.groups - set(had or ()):
            raise InputError(f"You can give your own groups only, and {min(others)!r} is none of them.")
        if had and (not given or set(had) - set(given) - self.groups):
            raise Forbidden("You can take away your own groups only, and not the last one.")

    @property
    def sees_deployment(self) -> bool:
        """True for callers with the right `debug` in every workspace: what holds for the deployment as a whole, such as
        paths, addresses and counts of all tenants, is not for one of them."""
        return "debug" in self.rights and self.workspaces is None

    def may_change(self, others: str) -> bool:
        """Return True if the caller may change or take back what the caller of this name has done."""
        return others == self.name or "admin" in self.rights

    def enter(self, workspace_id: str | None) -> str:
        """Return the workspace of a request: the one that it names, else the caller's only one, else `default`.

        Raises `UnknownWorkspace` where it is not the caller's, whether it exists or not.
        """
        if workspace_id is None:
            one = self.workspaces is not None and len(self.workspaces) == 1
            workspace_id = next(iter(self.workspaces or ())) if one else DEFAULT_SCOPE.workspace_id
        if self.workspaces is not None and workspace_id not in self.workspaces:
            raise UnknownWorkspace(f"There is no workspace {workspace_id!r}.")
        return workspace_id


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, without its secret."""

    key_id: str
    name: str
    """Who or what uses it."""
    rights: frozenset[Right]
    workspaces: frozenset[str] | None = None
    """None: all."""
    groups: frozenset[str] | None = None
    """None: all."""
    limits: Limits = NO_LIMITS
    created_at: datetime | None = None
    expires_at: datetime | None = None
    """When it ends; None: never."""
    revoked_at: datetime | None = None
    """When it was revoked; None: it was not."""
    last_used_at: datetime | None = None
    """Within a minute."""

    def is_valid(self, now: datetime) -> bool:
        """Return True unless the key was revoked or has expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def as_caller(self) -> Caller:
        """Return who sends requests with this key."""
        return Caller(f"{KEY_PREFIX}{self.key_id}", self.workspaces, self.groups, self.rights, self.limits)


OWNER = Caller("owner")
"""The owner of the machine, who may do everything everywhere."""

STRANGER = Caller("owner", rights=RIGHTS - {"admin"})
"""Whoever reaches a service that other machines reach and that has no key yet: without the right to make the first key,
with which one of them would shut out all others."""
