"""Under which user a server runs, and what ties its life to its supervisor's."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.errors import ConfigurationError

ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"} | {
    name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ
}
"""What the servers and their tools see: not the client's API keys, and no `PG*` variable that changes a setting."""

UNPRIVILEGED = ("postgres", "nobody")
"""Whom Postgres runs as where the client is root: the first of these that exists."""

CAPABILITIES = ((), ("dac_read_search",), ("dac_override",))
"""What that user is given, the least that reaches the files: nothing; passing through directories closed to others
(a HOME or an environment below /root); or, in containers that have dropped that capability, overriding file modes
altogether."""


@dataclass(frozen=True, slots=True)
class Account:
    """The user that a server runs as, and the command prefix that makes it so."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()


def find_setpriv() -> str:
    """The path of util-linux's `setpriv`. Raises `ConfigurationError`."""
    if path := shutil.which("setpriv"):
        return path
    raise ConfigurationError(
        "The embedded servers need the program `setpriv`. Install the package util-linux, or set DATABASE_URL and "
        "REDIS_URL."
    )


def own_account() -> Account:
    """The client's own user."""
    return Account(os.geteuid(), os.getegid())


def unprivileged_account(owner: Path, program: Path, home: Path) -> Account:
    """The client's own user, or where that is root, one that may run `program` and enter `home`.

    The owner of the directory `owner`, where it exists and is not root's, goes before the usual names: the data must
    stay readable when such a user is created later. Raises `ConfigurationError`.
    """
    if os.geteuid() != 0:
        return own_account()
    uid, gid = _choose_user(owner)
    for capabilities in CAPABILITIES:
        prefix = (find_setpriv(), f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *_grant(capabilities))
        # `cd` and a program that looks itself up exactly as the server will.
        probe = subprocess.run(
            [*prefix, "sh", "-c", 'cd "$0" && exec "$1"', home, program],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if probe.returncode == 0:
            return Account(uid, gid, prefix)
    raise ConfigurationError(
        f"Postgres refuses to run as root, and user {uid} cannot reach {home} and {program.parent}. Run askgraph as an "
        "ordinary user, put both where others may enter (chmod o+x on every directory above), or set DATABASE_URL."
    )


def bound_to_parent(account: Account, death_signal: str, command: Sequence[str | Path]) -> list[str]:
    """`command`, run as `account`, which gets `death_signal` (a name such as `INT`) when its parent dies."""
    # A second setpriv: the change of user clears the signal.
    return [*account.prefix, find_setpriv(), f"--pdeathsig={death_signal}", *map(str, command)]


def bound_to_supervisor(account: Account, death_signal: str, command: Sequence[str | Path]) -> list[str]:
    """`bound_to_parent` for a command that the supervisor starts, even if the supervisor dies while it does."""
    guard = '[ "$PPID" = "$SUPERVISOR" ] && exec "$0" "$@"'
    return bound_to_parent(account, death_signal, ["sh", "-c", guard, *command])


def _choose_user(owner: Path) -> tuple[int, int]:
    if owner.exists() and (status := owner.stat()).st_uid != 0:
        return status.st_uid, status.st_gid
    for name in UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise ConfigurationError(
        "Postgres refuses to run as root, and there is no user to run it as. Create the user `nobody`, run askgraph "
        "as an ordinary user, or set DATABASE_URL."
    )


def _grant(capabilities: Sequence[str]) -> list[str]:
    if not capabilities:
        return []
    added = ",".join(f"+{name}" for name in capabilities)
    # no_setuid_fixup: without it access(2), by which Postgres looks for its own files, ignores the capability.
    return [f"--inh-caps={added}", f"--ambient-caps={added}", "--securebits=+no_setuid_fixup"]
