"""The user a server runs as, and tying its life to its supervisor's."""

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
"""Environment of the servers and their tools: without the client's API keys, and without `PG*` variables, which would
change settings."""

UNPRIVILEGED = ("postgres", "nobody")
"""Users that Postgres runs as if the client is root: the first that exists."""

CAPABILITIES = ((), ("dac_read_search",), ("dac_override",))
"""Capabilities for that user, smallest first; the first set that reaches the files is used: none; passing through
directories closed to others (a HOME or an environment below /root); overriding file modes, for containers without that
capability."""


@dataclass(frozen=True, slots=True)
class Account:
    """The user that a server runs as, and the command prefix that switches to it."""

    uid: int
    gid: int
    prefix: tuple[str, ...] = ()


def find_setpriv() -> str:
    """Return the path of util-linux's `setpriv`. Raises `ConfigurationError`."""
    if path := shutil.which("setpriv"):
        return path
    raise ConfigurationError(
        "The embedded servers need the program `setpriv`. Install the package util-linux, or set DATABASE_URL and "
        "REDIS_URL."
    )


def own_account() -> Account:
    """Return the client's own user."""
    return Account(os.geteuid(), os.getegid())


def unprivileged_account(owner: Path, program: Path, home: Path) -> Account:
    """Return the client's own user or, if that is root, one that can run `program` and enter `home`.

    If the directory `owner` exists and does not belong to root, its owner is preferred to the usual users: the data
    must stay readable if such a user is created later. Raises `ConfigurationError`.
    """
    if os.geteuid() != 0:
        return own_account()
    uid, gid = _choose_user(owner)
    for capabilities in CAPABILITIES:
        prefix = (find_setpriv(), f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *_grant(capabilities))
        # Enters the folder and runs a program that looks itself up, exactly as the server will.
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
    """Wrap `command` to run as `account` and receive `death_signal` (a name such as `INT`) when its parent dies."""
    # A second setpriv, because the change of user clears the signal.
    return [*account.prefix, find_setpriv(), f"--pdeathsig={death_signal}", *map(str, command)]


def bound_to_supervisor(account: Account, death_signal: str, command: Sequence[str | Path]) -> list[str]:
    """Wrap a command like `bound_to_parent`, and do not start it if the supervisor has already died."""
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
    # no_setuid_fixup: without it access(2), with which Postgres looks for its own files, ignores the capability.
    return [f"--inh-caps={added}", f"--ambient-caps={added}", "--securebits=+no_setuid_fixup"]
